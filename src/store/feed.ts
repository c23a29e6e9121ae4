/**
 * Tells the listeners of transactions in the order in which they ran, each once it is on the disk. Commits may be
 * reported out of order, or fail; nobody hears of a transaction before all earlier ones have been told or given up.
 */
import type { ChangeBatch } from "./store.ts";

export type Feed = {
  /** Called inside the transaction: its place in the order. */
  readonly enter: () => Ticket;
  readonly listen: (listener: (batch: ChangeBatch) => void) => () => void;
};
export type Ticket = {
  /** It is on the disk. Resolves when the listeners have heard. */
  readonly committed: (batch: ChangeBatch) => Promise<void>;
  readonly failed: () => void;
};

type Waiting = { state: "open" | "failed" | "committed"; batch: ChangeBatch | undefined; told: () => void };

/** `onFault` hears what a listener threw; the other listeners and the writer are none the wiser. */
export function makeFeed(onFault: (thrown: unknown) => void): Feed {
  const listeners = new Set<(batch: ChangeBatch) => void>();
  const waiting: Waiting[] = [];
  const tell = (batch: ChangeBatch) => {
    if (batch.changes.length === 0 && batch.zones.length === 0) return;
    for (const listener of [...listeners]) {
      try {
        listener(batch);
      } catch (thrown) {
        onFault(thrown);
      }
    }
  };
  const drain = () => {
    for (let head = waiting[0]; head !== undefined && head.state !== "open"; head = waiting[0]) {
      waiting.shift();
      if (head.batch !== undefined) tell(head.batch);
      head.told();
    }
  };
  return {
    enter: () => {
      const entry: Waiting = { state: "open", batch: undefined, told: () => undefined };
      waiting.push(entry);
      return {
        committed: (batch) =>
          new Promise((resolve) => {
            Object.assign(entry, { state: "committed", batch, told: resolve });
            drain();
          }),
        failed: () => {
          entry.state = "failed";
          drain();
        },
      };
    },
    listen: (listener) => {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
  };
}
