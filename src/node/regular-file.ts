import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { codedError } from "../base/errors.ts";

/**
 * Reads a file of at most `bytesMax` bytes. Anything but a regular file is refused before it is read: opening a FIFO would
 * block the thread for ever, past every signal, and a device has no end. Throws the system's error, or one of code
 * ENOTREGULAR or EFBIG.
 */
export function readRegularFile(path: string, bytesMax: number): Buffer {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(descriptor);
    if (stat.isDirectory()) throw codedError("EISDIR", "is a directory");
    if (!stat.isFile()) throw codedError("ENOTREGULAR", "it is no regular file");
    if (stat.size > bytesMax) throw codedError("EFBIG", `it is larger than ${bytesMax} bytes`);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
