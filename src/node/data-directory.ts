import { randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  constants,
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
import { ownerFault, readableFault, writableFault } from "../base/private-path.ts";
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
 * Makes the directory where it is missing, locks it against a second instance and reads its key, made at first use. A
 * directory, store or key that another user could have made or changed is refused: its accounts, tokens and zones may be
 * that user's. Throws OperatorError.
 */
export function openDataDirectory(path: string, libc: Libc | undefined): DataDirectory {
  try {
    makeDirectory(resolve(path));
  } catch (error) {
    throw new OperatorError(`cannot make the data directory ${path}: ${errorText(error)}`);
  }
  refuse(writableFault(path, statSync(path)));
  const release = lockDirectory(path, libc);
  try {
    makeStoreDirectory(join(path, "store"));
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

function refuse(fault: string | undefined): void {
  if (fault !== undefined) throw new OperatorError(`cannot use the data directory: ${fault}`);
}

/** Others are kept out of it, whatever the operator's own directory allows. */
function makeStoreDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
    return;
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw new OperatorError(`cannot make the store ${path}: ${errorText(error)}`);
  }
  const stat = statSync(path);
  refuse(writableFault(path, stat));
  for (const name of ["data.mdb", "lock.mdb"]) {
    const file = statSync(join(path, name), { throwIfNoEntry: false });
    if (file !== undefined) refuse(ownerFault(join(path, name), file));
  }
  if ((stat.mode & 0o077) === 0) return;
  try {
    chmodSync(path, 0o700);
  } catch (error) {
    throw new OperatorError(`cannot keep other users out of the store ${path}: ${errorText(error)}`);
  }
}

function lockDirectory(path: string, libc: Libc | undefined): () => void {
  const file = join(path, "lock");
  let descriptor: number;
  try {
    descriptor = openSync(file, constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0), 0o600);
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
  const key = readRegularFile(file, KEY_FILE_BYTES_MAX, (stat) => readableFault(file, stat));
  if (key.length !== KEY_BYTES) throw new Error(`it has ${key.length} bytes, not ${KEY_BYTES}`);
  return key;
}
