/** Streams that could not be opened: counted by why, and said once a minute a peer. */
import type { Log } from "../base/log.ts";
import type { Timers } from "../cluster/transport.ts";
import type { OpeningFault } from "./identity-exchange.ts";
import type { HandshakeFault } from "./tls.ts";

export const FAILURE_KINDS = [
  "key",
  "tls",
  "network",
  "timeout",
  "proof",
  "malformed",
  "version",
  "refused",
  "refused_by_peer",
  "limit",
] as const satisfies readonly (HandshakeFault["kind"] | OpeningFault["kind"] | "timeout" | "limit")[];
export type FailureKind = (typeof FAILURE_KINDS)[number];

export type Failure = { readonly kind: FailureKind; readonly detail: string };

export type FailedPeer = {
  readonly role: "dialer" | "acceptor";
  readonly address: string;
  /** Whom we dialed, or who it said that it was. */
  readonly nodeId: string | undefined;
};

export type Failures = {
  readonly note: (failure: Failure, peer: FailedPeer) => void;
  readonly counts: () => Readonly<Record<FailureKind, number>>;
};

const LOG_EVERY_MS = 60_000;
/** Lines in that time, of all peers together: strangers of many addresses fill no log. */
const LINES_MAX = 100;

export function createFailures(log: Log, timers: Timers): Failures {
  const counts = Object.fromEntries(FAILURE_KINDS.map((kind) => [kind, 0])) as Record<FailureKind, number>;
  let said = new Set<string>();
  let saidSinceMs = timers.now();
  const isSilent = (key: string): boolean => {
    const nowMs = timers.now();
    if (nowMs - saidSinceMs >= LOG_EVERY_MS) {
      said = new Set();
      saidSinceMs = nowMs;
    }
    if (said.has(key) || said.size >= LINES_MAX) return true;
    said.add(key);
    return false;
  };
  return {
    note: ({ kind, detail }, { role, address, nodeId }) => {
      counts[kind]++;
      // A dialer's port is another one each time, so the acceptor knows it by its address alone.
      if (isSilent(`${kind} ${nodeId ?? ""} ${address}`)) return;
      const fields = { node: nodeId, address, role, why: kind, detail };
      if (kind === "key") {
        log("warn", "a node has another replication.encrypt_key than this one: nothing is exchanged with it", fields);
      } else {
        const isWorthy = kind !== "network" && kind !== "timeout";
        log(isWorthy ? "warn" : "info", "a replication stream could not be opened", fields);
      }
    },
    counts: () => ({ ...counts }),
  };
}
