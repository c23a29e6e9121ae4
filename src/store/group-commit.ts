/**
 * Group commit: while one group of transactions is on its way to the disk the next one runs in memory, and goes there as
 * one commit when the disk is free. One flush at a time serves more writers than flushes that overlap, and the processor
 * and the disk work side by side.
 */

import { setImmediate as nextTurn } from "node:timers/promises";

/** One transaction. Throws what takes it back. A promise lets the thread do other things, and all others wait for it. */
export type TransactionWork = () => void | Promise<void>;

export type GroupCommit = {
  /**
   * Queues a transaction; rejects with what it threw, or with what its commit failed of. Resolves when that is on the
   * disk, and with it all that ran before.
   */
  readonly run: (work: TransactionWork) => Promise<void>;
  /** Settles when nothing waits any more. */
  readonly idle: () => Promise<void>;
};

export type Groups = {
  /** Opens a group. The one before it may still be on its way. */
  readonly begin: () => void;
  /** Closes the group at once and brings it to the disk. Never called again before it has settled. */
  readonly commit: () => Promise<void>;
  /** Whether transactions may run beside the group that is on its way. */
  readonly mayRunBeside: () => boolean;
};

/** The transactions of a group run one after the other without a pause. */
const GROUP_MAX = 64;

type Waiting = {
  readonly work: TransactionWork;
  readonly resolve: () => void;
  readonly reject: (thrown: unknown) => void;
};

export function makeGroupCommit({ begin, commit, mayRunBeside }: Groups): GroupCommit {
  const waiting: Waiting[] = [];
  /** Of the group that is open. */
  let ran: Waiting[] = [];
  let isRunning = false;
  let isFlushing = false;
  let idlers: (() => void)[] = [];
  const hasRun = async ({ work, reject }: Waiting): Promise<boolean> => {
    try {
      const result = work();
      if (result !== undefined) await result;
      return true;
    } catch (thrown) {
      reject(thrown);
      return false;
    }
  };
  const runWaiting = async () => {
    isRunning = true;
    // Whoever writes in this same turn of the event loop belongs to the same group.
    await Promise.resolve();
    if (ran.length === 0) begin();
    while (ran.length < GROUP_MAX) {
      const member = waiting.shift();
      if (member === undefined) break;
      if (await hasRun(member)) ran.push(member);
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
    if (waiting.length > 0 && ran.length < GROUP_MAX && (!isFlushing || mayRunBeside())) void runWaiting();
    if (isRunning || isFlushing) return;
    for (const idle of idlers) idle();
    idlers = [];
  };
  return {
    run: (work) =>
      new Promise((resolve, reject) => {
        waiting.push({ work, resolve, reject });
        advance();
      }),
    idle: () =>
      new Promise((resolve) => {
        idlers.push(resolve);
        advance();
      }),
  };
}
