import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { errorCode, errorText, OperatorError } from "../base/errors.ts";
import type { Libc } from "../listen/linux/libc.ts";
import { lockFile } from "../listen/linux/socket.ts";
import { readRegularFile } from "./regular-file.ts";

const KEY_FILE_BYTES_MAX = 4096;
const KEY_BYTES = 32;

export type DataDirectory = {
  readonly path: string;
  /** The node's own secret, from which others are derived. */
  readonly key: Uint8Array;
  /** Gives the lock back. */
  readonly release: () => void;
};

/**
 * Makes the directory where it is missing, locks it against a second instance and reads its key, made at first use.
 * Throws OperatorError.
 */
export function openDataDirectory(path: string, libc: Libc | undefined): DataDirectory {
  try {
    makeDirectory(resolve(path));
  } catch (error) {
    throw new OperatorError(`cannot make the data directory ${path}: ${errorText(error)}`);
  }
  const release = lockDirectory(path, libc);
  try {
    // LMDB makes its files readable for all; the folder keeps others out, whatever the operator's own directory allows.
    mkdirSync(join(path, "store"), { recursive: true, mode: 0o700 });
    return { path, key: readOrMakeKey(join(path, "key")), release };
  } catch (error) {
    release();
    throw error;
  }
}

/** Step by step: `mkdirSync` with `recursive` never returns where the kernel lets nobody make a directory (/proc). */
function makeDirectory(path: string): void {
  if (existsSync(path)) {
    if (!statSync(path).isDirectory()) throw new Error("it is not a directory");
    return;
  }
  if (!existsSync(dirname(path))) makeDirectory(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}

function lockDirectory(path: string, libc: Libc | undefined): () => void {
  const file = join(path, "lock");
  let descriptor: number;
  try {
    descriptor = openSync(file, "a+", 0o600);
  } catch (error) {
    throw new OperatorError(`cannot use the data directory ${path}: ${errorText(error)}`);
  }
  const locked = libc === undefined ? takeProcessFile(`${file}.pid`) : lockFile(libc, descriptor);
  if (!locked) {
    closeSync(descriptor);
    throw new OperatorError(`another instance runs on the data directory ${path}`);
  }
  return () => {
    if (libc === undefined) rmSync(`${file}.pid`, { force: true });
    closeSync(descriptor);
  };
}

/** Without flock: a file names the process; one that a dead process left behind is taken over. */
function takeProcessFile(file: string): boolean {
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      writeFileSync(file, `${process.pid}\n`, { flag: "wx", mode: 0o600 });
      return true;
    } catch (error) {
      if (errorCode(error) !== "EEXIST" || isAlive(Number(readFileSync(file, "latin1")))) return false;
      rmSync(file, { force: true });
    }
  }
  return false;
}

function isAlive(processId: number): boolean {
  if (!Number.isInteger(processId) || processId <= 0 || processId === process.pid) return false;
  try {
    process.kill(processId, 0);
    return true;
  } catch (error) {
    return errorCode(error) === "EPERM";
  }
}

function readOrMakeKey(file: string): Uint8Array {
  try {
    return readKey(file);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw new OperatorError(`cannot read the key ${file}: ${errorText(error)}`);
  }
  const draft = `${file}.new`;
  try {
    // Linked into place when it is whole, so that no crash leaves half a key.
    rmSync(draft, { force: true });
    writeFileSync(draft, randomBytes(KEY_BYTES), { mode: 0o600, flag: "wx", flush: true });
    linkSync(draft, file);
    rmSync(draft);
    return readKey(file);
  } catch (error) {
    throw new OperatorError(`cannot make the key ${file}: ${errorText(error)}`);
  }
}

function readKey(file: string): Uint8Array {
  const key = readRegularFile(file, KEY_FILE_BYTES_MAX);
  if (key.length !== KEY_BYTES) throw new Error(`it has ${key.length} bytes, not ${KEY_BYTES}`);
  return key;
}
