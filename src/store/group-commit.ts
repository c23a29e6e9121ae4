/**
 * Group commit: what arrives while a commit is on its way to the disk waits, and then goes in one commit together. One
 * flush at a time serves more writers than flushes that overlap, and each writer's own flush is the one it waits for.
 */

/** One transaction. Throws what takes it back. A promise lets the thread do other things, and all others wait for it. */
export type TransactionWork = () => void | Promise<void>;

export type GroupCommit = {
  /** Queues a transaction; rejects with what it threw, or with what its commit failed of. Resolves when that is on the disk. */
  readonly run: (work: TransactionWork) => Promise<void>;
  /** Settles when nothing waits any more. */
  readonly idle: () => Promise<void>;
};

/** The transactions of a group run one after the other without a pause. */
const GROUP_MAX = 64;

type Waiting = {
  readonly work: TransactionWork;
  readonly resolve: () => void;
  readonly reject: (thrown: unknown) => void;
};

/** `begin` opens a group, `commit` brings all that its transactions left to the disk. */
export function makeGroupCommit(begin: () => void, commit: () => Promise<void>): GroupCommit {
  const waiting: Waiting[] = [];
  let running: Promise<void> | undefined;
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
  const runGroup = async (members: readonly Waiting[]) => {
    begin();
    const ran: Waiting[] = [];
    for (const member of members) if (await hasRun(member)) ran.push(member);
    try {
      await commit();
    } catch (thrown) {
      for (const { reject } of ran) reject(thrown);
      return;
    }
    for (const { resolve } of ran) resolve();
  };
  const runAll = async () => {
    // Whoever writes in this same turn of the event loop belongs to the first group.
    await Promise.resolve();
    while (waiting.length > 0) await runGroup(waiting.splice(0, GROUP_MAX));
    running = undefined;
  };
  return {
    run: (work) =>
      new Promise((resolve, reject) => {
        waiting.push({ work, resolve, reject });
        running ??= runAll();
      }),
    idle: async () => {
      while (running !== undefined) await running;
    },
  };
}
