/**
 * Tells the listeners of transactions in the order in which they ran, each once it is on the disk. Commits may be
 * reported out of order, or fail; nobody hears of a transaction before all earlier ones have been told or given up.
 */
import type { ChangeBatch } from "./store.ts";
import type { News } from "./watchers.ts";

export type Feed = {
  /** Called inside the transaction: its place in the order. */
  readonly enter: () => Ticket;
  readonly listen: (listener: (batch: ChangeBatch) => void) => () => void;
};
export type Ticket = {
  /** It is on the disk. Resolves when the listeners have heard. */
  readonly committed: (batch: ChangeBatch, news: News) => Promise<void>;
  readonly failed: () => void;
};

type Told = { readonly batch: ChangeBatch; readonly news: News };
type Waiting = { state: "open" | "failed" | "committed"; what: Told | undefined; told: () => void };

/**
 * `onFault` hears what a listener threw; the other listeners and the writer are none the wiser. `hear` comes before all
 * listeners: who asks inside of one what other stores have still to hear of finds it counted.
 */
export function makeFeed(onFault: (thrown: unknown) => void, hear: (news: News) => void): Feed {
  const listeners = new Set<(batch: ChangeBatch) => void>();
  const waiting: Waiting[] = [];
  const tell = ({ batch, news }: Told) => {
    hear(news);
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
      if (head.what !== undefined) tell(head.what);
      head.told();
    }
  };
  return {
    enter: () => {
      const entry: Waiting = { state: "open", what: undefined, told: () => undefined };
      waiting.push(entry);
      return {
        committed: (batch, news) =>
          new Promise((resolve) => {
            Object.assign(entry, { state: "committed", what: { batch, news }, told: resolve });
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
