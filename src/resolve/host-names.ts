/** Addresses of upstreams that the settings have by name, kept for a while. */
import { HOST_ADDRESSES_MAX, HOST_KEPT_MS, HOST_LOOKUP_MS, HOST_RETRY_MS, HOSTS_MAX } from "./limits.ts";
import { createRecent } from "./recent.ts";
import type { Timers } from "./timers.ts";

/** Addresses of 4 or 16 bytes, those to be asked first in front; none where there are none. May reject. */
export type ResolveHost = (host: string) => Promise<readonly Uint8Array[]>;

export type HostNames = {
  /** What is known, even if it is old, which is looked up anew by the way; undefined: the first look-up is under way. */
  readonly addresses: (host: string) => readonly Uint8Array[] | undefined;
  /** Calls back when the look-up that is under way has ended, not before this returns. */
  readonly whenKnown: (host: string, run: () => void) => void;
};

type Known = {
  addresses: readonly Uint8Array[] | undefined;
  untilMs: number;
  isAsking: boolean;
  readonly waiting: (() => void)[];
};

export function createHostNames(resolveHost: ResolveHost, timers: Timers): HostNames {
  const hosts = createRecent<Known>(HOSTS_MAX, () => ({
    addresses: undefined,
    untilMs: 0,
    isAsking: false,
    waiting: [],
  }));
  const look = (host: string, known: Known): void => {
    if (known.isAsking || (known.addresses !== undefined && timers.nowMs() < known.untilMs)) return;
    known.isAsking = true;
    let isOver = false;
    const finish = (found: readonly Uint8Array[]): void => {
      if (isOver) return;
      isOver = true;
      stop();
      known.isAsking = false;
      // Old addresses are better than none: the system's resolver may be the one that is away.
      if (found.length > 0 || known.addresses === undefined) known.addresses = found.slice(0, HOST_ADDRESSES_MAX);
      known.untilMs = timers.nowMs() + (found.length > 0 ? HOST_KEPT_MS : HOST_RETRY_MS);
      for (const run of known.waiting.splice(0)) run();
    };
    const stop = timers.after(HOST_LOOKUP_MS, () => finish([]));
    resolveHost(host).then(finish, () => finish([]));
  };
  return {
    addresses: (host) => {
      const known = hosts.get(host);
      look(host, known);
      return known.addresses;
    },
    whenKnown: (host, run) => {
      const known = hosts.get(host);
      look(host, known);
      if (known.isAsking) known.waiting.push(run);
      else queueMicrotask(run);
    },
  };
}
