import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { codedError } from "../base/errors.ts";

/**
 * Reads a file of at most `bytesMax` bytes. Anything but a regular file is refused before it is read: opening a FIFO would
 * block the thread for ever, past every signal, and a device has no end. `faultOf` may refuse the file by its owner and
 * mode. Throws the system's error, or one of code ENOTREGULAR, EFBIG or ENOTPRIVATE.
 */
export function readRegularFile(
  path: string,
  bytesMax: number,
  faultOf: (stat: Stats) => string | undefined = () => undefined,
): Buffer {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(descriptor);
    if (stat.isDirectory()) throw codedError("EISDIR", "is a directory");
    if (!stat.isFile()) throw codedError("ENOTREGULAR", "it is no regular file");
    if (stat.size > bytesMax) throw codedError("EFBIG", `it is larger than ${bytesMax} bytes`);
    const fault = faultOf(stat);
    if (fault !== undefined) throw codedError("ENOTPRIVATE", fault);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
