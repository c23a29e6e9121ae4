/** Who hears of transactions for the sake of other stores. Where nobody does, transactions note nothing. */
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { DigestKeeper } from "./digest.ts";
import type { ItemRef } from "./replica.ts";
import type { Seal } from "./seal.ts";
import { makeTrace, type Trace, type Traced } from "./trace.ts";

/** What a transaction that is on the disk leaves to tell. */
export type News = { readonly order: number; readonly traced: Traced; readonly hasAudit: boolean };

export type Watchers = {
  readonly trace: (isLocal: boolean, seal: Seal) => Trace | undefined;
  /** The place of a transaction that is to be kept, called inside of it. */
  readonly enter: () => number;
  readonly lastOrder: () => number;
  readonly hear: (news: News) => void;
  readonly onItems: (listener: (refs: readonly ItemRef[]) => void) => () => void;
  readonly onAudit: (listener: () => void) => () => void;
};

export function makeWatchers(digest: () => Pick<DigestKeeper, "isWanted" | "hear">, log: Log): Watchers {
  const itemListeners = new Set<(refs: readonly ItemRef[]) => void>();
  const auditListeners = new Set<() => void>();
  let order = 0;
  const safely = (tell: () => void) => {
    try {
      tell();
    } catch (thrown) {
      log("error", `a listener of the store threw: ${errorText(thrown)}`);
    }
  };
  return {
    trace: (isLocal, seal) => {
      const wantsDeltas = digest().isWanted();
      if (!wantsDeltas && itemListeners.size === 0) return undefined;
      return makeTrace({ isLocal, wantsDeltas, seal });
    },
    enter: () => ++order,
    lastOrder: () => order,
    hear: (news) => {
      digest().hear(news.order, news.traced);
      const { made } = news.traced;
      if (made.length > 0) for (const listener of [...itemListeners]) safely(() => listener(made));
      if (news.hasAudit) for (const listener of [...auditListeners]) safely(listener);
    },
    onItems: (listener) => added(itemListeners, listener),
    onAudit: (listener) => added(auditListeners, listener),
  };
}

function added<Listener>(listeners: Set<Listener>, listener: Listener): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}
