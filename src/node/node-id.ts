import { randomBytes } from "node:crypto";
import { linkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errorCode, errorText, OperatorError } from "../base/errors.ts";
import { readRegularFile } from "./regular-file.ts";

const FILE = "node-id";
const FILE_BYTES_MAX = 256;
const RANDOM_BYTES = 6;

/**
 * The id of the node whose data directory this is: the one that the operator gave, or one made at the first start and
 * kept there. Throws OperatorError.
 */
export function nodeIdOf(directory: string, configured: string | undefined): string {
  if (configured !== undefined) return configured;
  const file = join(directory, FILE);
  try {
    return readNodeId(file);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw new OperatorError(`cannot read the node id ${file}: ${errorText(error)}`);
  }
  const draft = `${file}.new`;
  try {
    // Linked into place when it is whole, so that no crash leaves half an id.
    rmSync(draft, { force: true });
    writeFileSync(draft, `node-${randomBytes(RANDOM_BYTES).toString("hex")}\n`, {
      mode: 0o600,
      flag: "wx",
      flush: true,
    });
    linkSync(draft, file);
    rmSync(draft);
    return readNodeId(file);
  } catch (error) {
    throw new OperatorError(`cannot make the node id ${file}: ${errorText(error)}`);
  }
}

function readNodeId(file: string): string {
  const text = readRegularFile(file, FILE_BYTES_MAX).toString("latin1").trimEnd();
  if (!/^node-[0-9a-f]{12}$/.test(text)) throw new Error("it holds no node id");
  return text;
}
