/**
 * How soon a thread has the processor when something comes for it. Linux gives ordinary threads equal shares, and lets each say
 * how long it wants to run at a stretch: one that asks for little does not wait until another, which is in the middle of its own
 * stretch, has come to the end. Nobody's share changes, and it takes no privilege.
 */
import { getPriority } from "node:os";
import { ANSWER_SLICE_US } from "../limits.ts";
import { type Libc, systemError } from "./libc.ts";

/** sched_setattr(2), which has no function in older C libraries: its number and its structure. */
const SET_ATTRIBUTES = process.arch === "x64" ? 314 : 274;
/** SCHED_ATTR_SIZE_VER0 */
const ATTRIBUTES_BYTES = 48;
const SIZE_AT = 0;
const NICE_AT = 16;
const RUNTIME_AT = 24;
const THIS_THREAD = 0;

/** For the calling thread, which answers. Where the system refuses, it goes on as it is. */
export function answerSoon(libc: Libc | undefined): void {
  if (libc === undefined) return;
  try {
    askForSlices(libc, ANSWER_SLICE_US);
  } catch {
    // A sandbox without the system call: answers come later on a busy machine, and that is all.
  }
}

/**
 * Asks for stretches of `sliceUs` microseconds for the calling thread, 100 to 100,000. Kernels before 6.12 take it and change
 * nothing. Throws the system's error where it is refused.
 */
export function askForSlices(libc: Libc, sliceUs: number): void {
  const attributes = Buffer.alloc(ATTRIBUTES_BYTES);
  attributes.writeUInt32LE(ATTRIBUTES_BYTES, SIZE_AT);
  // Policy 0 is SCHED_OTHER; the call sets everything anew, and so the thread's priority as it is.
  attributes.writeInt32LE(getPriority(THIS_THREAD), NICE_AT);
  attributes.writeBigUInt64LE(BigInt(sliceUs) * 1_000n, RUNTIME_AT);
  const address = libc.addressOf(attributes.buffer) + attributes.byteOffset;
  if (libc.systemCall(SET_ATTRIBUTES, THIS_THREAD, address, 0, 0) !== 0)
    throw systemError(libc.errno(), "sched_setattr");
}
