/**
 * Group commit: what arrives while a commit is on its way to the disk waits, and then goes in one commit together. One
 * flush at a time serves more writers than flushes that overlap, and each writer's own flush is the one it waits for.
 */

/** Whether it is to be kept. A promise keeps the transaction open, and all others waiting, until it settles. */
export type TransactionWork = () => boolean | Promise<boolean>;

export type GroupCommit = {
  /** Queues a transaction; rejects with what it threw. Resolves when its commit is on the disk. */
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

/** `transact` starts one transaction; those that are started in one go share a commit. */
export function makeGroupCommit(transact: (work: TransactionWork) => Promise<void>): GroupCommit {
  const waiting: Waiting[] = [];
  let running: Promise<void> | undefined;
  const runOne = async ({ work, resolve, reject }: Waiting) => {
    try {
      await transact(work);
      resolve();
    } catch (thrown) {
      reject(thrown);
    }
  };
  const runAll = async () => {
    // Whoever writes in this same turn of the event loop belongs to the first group.
    await Promise.resolve();
    while (waiting.length > 0) await Promise.all(waiting.splice(0, GROUP_MAX).map(runOne));
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
