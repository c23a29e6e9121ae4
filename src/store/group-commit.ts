/**
 * Group commit: while one group of transactions is on its way to the disk the next one runs in memory, and goes there as
 * one commit when the disk is free. One flush at a time serves more writers than flushes that overlap, and the processor
 * and the disk work side by side. A long transaction belongs to the group that is open when it ends: until then others run,
 * commit and are told as if it had not begun.
 */

import { setImmediate as nextTurn } from "node:timers/promises";

/** One transaction. Throws what takes it back. "later": it was taken back, and is to run again behind the long one. */
export type TransactionWork = () => undefined | "later";
/** One transaction over several turns of the event loop; rejects with what takes it back. */
export type LongWork = () => Promise<void>;

export type GroupCommit = {
  /**
   * Queues a transaction; rejects with what it threw, or with what its commit failed of. Resolves when that is on the
   * disk, and with it all that ran before.
   */
  readonly run: (work: TransactionWork) => Promise<void>;
  /** As `run`, one at a time. Others run between its turns. */
  readonly runLong: (work: LongWork) => Promise<void>;
  /** Settles when nothing waits any more. */
  readonly idle: () => Promise<void>;
};

export type Groups = {
  /** Opens a group. The one before it may still be on its way. */
  readonly begin: () => void;
  /** Closes the group at once and brings it to the disk. Never called again before it has settled. */
  readonly commit: () => Promise<void>;
  /** Whether a long transaction may begin beside the group that is on its way. */
  readonly mayRunBeside: () => boolean;
};

/** The transactions of a group run one after the other without a pause. */
const GROUP_MAX = 64;

type Ending = { readonly resolve: () => void; readonly reject: (thrown: unknown) => void };
/** `isLater`: it ran beside the long one that is under way, and was taken back. */
type Short = Ending & { readonly isLong: false; readonly work: TransactionWork; isLater: boolean };
type Long = Ending & { readonly isLong: true; readonly work: LongWork };
type Waiting = Short | Long;

/** Whether it is to go to the disk. */
function hasRun(member: Short): boolean {
  try {
    member.isLater = member.work() === "later";
    return !member.isLater;
  } catch (thrown) {
    member.reject(thrown);
    return false;
  }
}

export function makeGroupCommit({ begin, commit, mayRunBeside }: Groups): GroupCommit {
  const waiting: Waiting[] = [];
  /** Of the group that is open. */
  let ran: Waiting[] = [];
  let isRunning = false;
  let isFlushing = false;
  let isLongUnderWay = false;
  let idlers: (() => void)[] = [];
  const mayRun = (member: Waiting): boolean => {
    if (!member.isLong) return !(member.isLater && isLongUnderWay);
    return !isLongUnderWay && (!isFlushing || mayRunBeside());
  };
  /** The first that may run now. Who waits for a long transaction, or is one, lets others pass. */
  const next = (): number => (ran.length < GROUP_MAX ? waiting.findIndex(mayRun) : -1);
  const runLong = async (member: Long): Promise<void> => {
    isLongUnderWay = true;
    await member.work().then(() => ran.push(member), member.reject);
    isLongUnderWay = false;
    for (const each of waiting) if (!each.isLong) each.isLater = false;
    advance();
  };
  const runWaiting = async () => {
    isRunning = true;
    // Whoever writes in this same turn of the event loop belongs to the same group.
    await Promise.resolve();
    if (ran.length === 0) begin();
    for (let at = next(); at >= 0; at = next()) {
      const [member] = waiting.splice(at, 1);
      if (member === undefined) break;
      if (member.isLong) void runLong(member);
      else if (hasRun(member)) ran.push(member);
      // Before all that came behind it.
      else if (member.isLater) waiting.splice(at, 0, member);
    }
    isRunning = false;
    advance();
  };
  const flush = async () => {
    isFlushing = true;
    const members = ran;
    ran = [];
    const settle = await commit().then(
      () => (member: Waiting) => member.resolve(),
      (thrown: unknown) => (member: Waiting) => member.reject(thrown),
    );
    isFlushing = false;
    // The disk has the next group to do before anybody is told of this one: lmdb begins at the end of this turn.
    advance();
    if (isFlushing) await nextTurn();
    for (const member of members) settle(member);
  };
  const advance = () => {
    if (isRunning) return;
    if (ran.length > 0 && !isFlushing) void flush();
    if (next() >= 0) void runWaiting();
    if (isRunning || isFlushing || isLongUnderWay) return;
    for (const idle of idlers) idle();
    idlers = [];
  };
  return {
    run: (work) =>
      new Promise((resolve, reject) => {
        waiting.push({ isLong: false, work, isLater: false, resolve, reject });
        advance();
      }),
    runLong: (work) =>
      new Promise((resolve, reject) => {
        waiting.push({ isLong: true, work, resolve, reject });
        advance();
      }),
    idle: () =>
      new Promise((resolve) => {
        idlers.push(resolve);
        advance();
      }),
  };
}
