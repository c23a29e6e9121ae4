/**
 * One probe of one member: a ping; after a time-out k others are asked to ping it, and TCP is tried at once; and so again each
 * interval until it has answered by any way or been silent for too long.
 */
import type { Acknowledgements } from "./acknowledgements.ts";
import type { Gossip } from "./gossip.ts";
import type { LocalHealth } from "./local-health.ts";
import type { PingMessage, Source, SuspectMessage } from "./messages.ts";
import type { Node, NodeTable } from "./node-table.ts";
import type { MembershipSettings } from "./settings.ts";
import type { Timers } from "./transport.ts";

/** Who asks peers for a nack: protocol 4 has it. */
const NACK_PROTOCOL = 4;

export type ProbeOptions = {
  readonly table: NodeTable;
  readonly settings: MembershipSettings;
  readonly timers: Timers;
  readonly health: LocalHealth;
  readonly gossip: Pick<Gossip, "send">;
  readonly acknowledgements: Acknowledgements;
  /** Where answers go. */
  readonly source: Source;
  /** A ping over TCP; true where it was answered in time. Never rejects. */
  readonly pingByStream: (node: Node, ping: PingMessage, timeoutMs: number) => Promise<boolean>;
};

export type Probe = {
  /** Others suspect it too: a silence of one interval is enough. */
  readonly hurry: () => void;
  readonly cancel: () => void;
};

/** Calls `onEnd` once. `silenceMs`: how long the member may be silent, before one's own health stretches it. */
export function startProbe(
  node: Node,
  silenceMs: number,
  options: ProbeOptions,
  onEnd: (isAlive: boolean) => void,
): Probe {
  const { table, settings, timers, health, gossip, acknowledgements, source } = options;
  const startMs = timers.now();
  const intervalMs = health.stretched(settings.probeIntervalMs);
  let endMs = startMs + health.stretched(silenceMs);
  let asked = 0;
  let nacks = 0;
  let isOver = false;
  let isAsking = false;
  let cancelTimer = (): void => undefined;

  const stop = (): void => {
    isOver = true;
    cancelTimer();
    acknowledgements.forget(sequence);
  };
  const end = (isAlive: boolean): void => {
    if (isOver) return;
    stop();
    // Others that do not even say that they got no answer tell of one's own health, not of the member's.
    if (isAlive) health.change(-1);
    else health.change(asked > 0 ? Math.max(0, asked - nacks) : 1);
    onEnd(isAlive);
  };
  const sequence = acknowledgements.expect({
    onAck: () => end(true),
    onNack: () => {
      nacks++;
    },
  });
  const ping: PingMessage = { type: "ping", sequence, node: node.name, source };
  const pingDirectly = (): void => {
    const { name, incarnation, endpoint, versions } = node;
    // It hears of a suspicion by the same packet, and can refute it.
    const suspect: SuspectMessage = { type: "suspect", incarnation, node: name, from: table.self.name };
    gossip.send(endpoint, versions[1], ping, node.state === "suspect" ? suspect : undefined);
  };
  const askOthers = (): void => {
    const relays = table.some(settings.indirectProbes, node.name).filter(({ state }) => state === "alive");
    for (const { endpoint, versions } of relays) {
      const wantsNack = !isAsking && versions[1] >= NACK_PROTOCOL;
      if (wantsNack) asked++;
      const message = { type: "indirect-ping", sequence, target: node.endpoint, node: node.name, source } as const;
      gossip.send(endpoint, versions[1], { ...message, wantsNack });
    }
    if (isAsking) return;
    isAsking = true;
    void options.pingByStream(node, ping, endMs - timers.now()).then((isAlive) => {
      if (isAlive) end(true);
    });
  };
  /** At the time-out, and an interval after the last round. */
  const armNext = (delayMs: number): void => {
    const leftMs = endMs - timers.now();
    cancelTimer = timers.after(Math.max(0, Math.min(delayMs, leftMs)), () => {
      if (timers.now() >= endMs) return end(false);
      if (isAsking) pingDirectly();
      askOthers();
      armNext(intervalMs);
    });
  };
  pingDirectly();
  armNext(health.stretched(settings.probeTimeoutMs));
  return {
    hurry: () => {
      if (isOver) return;
      endMs = Math.min(endMs, Math.max(timers.now(), startMs + intervalMs));
      cancelTimer();
      armNext(isAsking ? intervalMs : health.stretched(settings.probeTimeoutMs));
    },
    cancel: stop,
  };
}
