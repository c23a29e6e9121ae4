/** Who is probed when, what others ask to have probed, and answers to those who probe this node. */
import type { Acknowledgements } from "./acknowledgements.ts";
import type { Counters } from "./counters.ts";
import type { Endpoint, IndirectPingMessage, PingMessage, Source } from "./messages.ts";
import { isLive, type Node } from "./node-table.ts";
import { type Probe, type ProbeOptions, startProbe } from "./probe.ts";
import { PROBES_MAX, RELAYS_MAX } from "./settings.ts";

const NO_PAYLOAD = new Uint8Array(0);

export type Prober = {
  readonly start: () => void;
  readonly stop: () => void;
  /** Probes a member now; `isSuspected`: a silence of one interval is enough. */
  readonly probe: (name: string, isSuspected: boolean) => void;
  readonly onPing: (ping: PingMessage, from: Endpoint) => void;
  readonly onIndirectPing: (message: IndirectPingMessage, from: Endpoint) => void;
};

export type ProberOptions = ProbeOptions & {
  readonly acknowledgements: Acknowledgements;
  readonly counters: Counters;
  readonly onSilent: (node: Node) => void;
  /** Whoever this node does not hold for a member probes it. */
  readonly onStranger: (endpoint: Endpoint) => void;
};

/** A port and an address that can be sent to. */
function isReachable({ address, port }: Endpoint): boolean {
  return (address.length === 4 || address.length === 16) && port >= 1 && port <= 65_535;
}

/** Where an answer goes, and what can be read there. */
type Asker = { readonly to: Endpoint; readonly protocol: number };

/** Pings a member for another one, and tells that one what came of it. `relays`: how to end those that wait. */
function relay(
  { sequence, target, node, wantsNack }: IndirectPingMessage,
  { to, protocol }: Asker,
  relays: Set<() => void>,
  { table, settings, timers, gossip, acknowledgements, source }: ProberOptions,
): void {
  const end = (): void => {
    cancelTimer();
    acknowledgements.forget(relayed);
    relays.delete(end);
  };
  const relayed = acknowledgements.expect({
    onAck: () => {
      end();
      gossip.send(to, protocol, { type: "ack", sequence, payload: NO_PAYLOAD });
    },
    onNack: () => undefined,
  });
  const cancelTimer = timers.after(settings.probeTimeoutMs, () => {
    end();
    if (wantsNack) gossip.send(to, protocol, { type: "nack", sequence });
  });
  relays.add(end);
  gossip.send(target, table.get(node)?.versions[1] ?? 0, { type: "ping", sequence: relayed, node, source });
}

export function createProber(options: ProberOptions): Prober {
  const { table, settings, timers, gossip, counters } = options;
  const probes = new Map<string, Probe>();
  const relays = new Set<() => void>();
  const lanes: (() => void)[] = [];
  let isStopped = false;

  const probe = (name: string, isSuspected: boolean): void => {
    const node = table.get(name);
    if (isStopped || node === undefined || node === table.self || !isLive(node)) return;
    const current = probes.get(name);
    if (current !== undefined && isSuspected) current.hurry();
    if (current !== undefined || probes.size >= PROBES_MAX) return;
    counters.probes++;
    const silenceMs = isSuspected || node.state === "suspect" ? settings.probeIntervalMs : settings.silenceMs;
    const started = startProbe(node, silenceMs, options, (isAlive) => {
      probes.delete(name);
      if (isAlive) return;
      counters.failedProbes++;
      options.onSilent(node);
    });
    probes.set(name, started);
  };
  /** One probe an interval, whether or not the one before has ended. */
  const openLane = (index: number, choose: () => Node | undefined, delayMs: number): void => {
    lanes[index] = timers.after(delayMs, () => {
      const node = choose();
      if (node !== undefined) probe(node.name, false);
      openLane(index, choose, settings.probeIntervalMs);
    });
  };
  const answerTo = (
    from: Endpoint,
    asker: Source | undefined,
  ): { readonly to: Endpoint; readonly protocol: number } => {
    const to = asker !== undefined && isReachable(asker.endpoint) ? asker.endpoint : from;
    return { to, protocol: table.get(asker?.node ?? "")?.versions[1] ?? 0 };
  };

  return {
    probe,
    start: () => {
      openLane(0, table.successor, settings.probeIntervalMs / 2);
      openLane(1, table.nextInRound, settings.probeIntervalMs);
    },
    stop: () => {
      isStopped = true;
      for (const cancel of [...lanes, ...relays]) cancel();
      for (const { cancel } of probes.values()) cancel();
    },
    onPing: ({ node, sequence, source: asker }, from) => {
      // An address may have become another member's.
      if (node !== "" && node !== table.self.name) {
        counters.dropped.misaddressed++;
        return;
      }
      const { to, protocol } = answerTo(from, asker);
      gossip.send(to, protocol, { type: "ack", sequence, payload: NO_PAYLOAD });
      const state = table.get(asker?.node ?? "")?.state;
      if (
        !isStopped &&
        asker !== undefined &&
        isReachable(asker.endpoint) &&
        (state === undefined || state === "dead")
      ) {
        options.onStranger(asker.endpoint);
      }
    },
    onIndirectPing: (message, from) => {
      if (isStopped) return;
      const isFull = relays.size >= RELAYS_MAX;
      if (isFull || !isReachable(message.target)) counters.dropped[isFull ? "full" : "unfit"]++;
      else relay(message, answerTo(from, message.source), relays, options);
    },
  };
}
