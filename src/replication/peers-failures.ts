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
/** Peers whose last line is remembered. */
const REMEMBERED_MAX = 1_000;

export function createFailures(log: Log, timers: Timers): Failures {
  const counts = Object.fromEntries(FAILURE_KINDS.map((kind) => [kind, 0])) as Record<FailureKind, number>;
  const saidAtMs = new Map<string, number>();
  const isSilent = (key: string): boolean => {
    const nowMs = timers.now();
    const last = saidAtMs.get(key);
    if (last !== undefined && nowMs - last < LOG_EVERY_MS) return true;
    saidAtMs.delete(key);
    const [oldest] = saidAtMs.keys();
    if (saidAtMs.size >= REMEMBERED_MAX && oldest !== undefined) saidAtMs.delete(oldest);
    saidAtMs.set(key, nowMs);
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
