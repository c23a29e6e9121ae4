/** Who is probed when, what others ask to have probed, and answers to those who probe this node. */
import type { Acknowledgements } from "./acknowledgements.ts";
import type { Counters } from "./counters.ts";
import type { DeadMessage, Endpoint, IndirectPingMessage, PingMessage, Source } from "./messages.ts";
import { isLive, isReachable, type Node } from "./node-table.ts";
import { type Probe, type ProbeOptions, startProbe } from "./probe.ts";
import { PROBES_MAX, RELAYS_MAX } from "./settings.ts";

const NO_PAYLOAD = new Uint8Array(0);
/** Of a ping whose answer nobody waits for. */
const UNAWAITED = 0;

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
  readonly random: () => number;
  readonly onSilent: (node: Node) => void;
  /** Whoever is no member to this node probes it. */
  readonly onStranger: (endpoint: Endpoint) => void;
};

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

/** Who probes this node and is dead to it hears so, and refutes it; whom it does not know at all it asks who is there. */
function answerStranger({ node: name, endpoint }: Source, { table, gossip, onStranger }: ProberOptions): void {
  const node = table.get(name);
  if (!isReachable(endpoint)) return;
  if (node === undefined) onStranger(endpoint);
  // It may have come back at another address than it died at.
  else if (node.state === "dead") gossip.send(endpoint, node.versions[1], deathOf(node, table.self.name));
}

/**
 * Pings one of the dead. Where it is alive, it refutes its death at once: so do the sides of a partition that has healed find each
 * other, within an interval as a rule. Nobody waits for the answer.
 */
function callDead({ table, gossip, random, source }: ProberOptions): void {
  const dead = table.dead();
  const node = dead[Math.floor(random() * dead.length)];
  if (node === undefined) return;
  const ping: PingMessage = { type: "ping", sequence: UNAWAITED, node: node.name, source };
  gossip.send(node.endpoint, node.versions[1], ping, deathOf(node, table.self.name));
}

function deathOf({ name: node, incarnation }: Node, from: string): DeadMessage {
  return { type: "dead", incarnation, node, from };
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
  const nextInRound = (): Node | undefined => {
    callDead(options);
    return table.nextInRound();
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
      openLane(1, nextInRound, settings.probeIntervalMs);
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
      if (!isStopped && asker !== undefined) answerStranger(asker, options);
    },
    onIndirectPing: (message, from) => {
      if (isStopped) return;
      const isFull = relays.size >= RELAYS_MAX;
      if (isFull || !isReachable(message.target)) counters.dropped[isFull ? "full" : "unfit"]++;
      else relay(message, answerTo(from, message.source), relays, options);
    },
  };
}
