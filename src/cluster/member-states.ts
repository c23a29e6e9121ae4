/**
 * The rules by which members become alive, suspect, dead and left, and by which this node refutes what is said about itself. Of
 * two statements about a member the one with the later incarnation holds, and only the member itself makes a later one.
 */

import { ipToText } from "../base/ip.ts";
import type { LogLevel } from "../base/log.ts";
import type { Counters } from "./counters.ts";
import { checkChance, confirmationsExpected, suspicionBounds } from "./formulas.ts";
import type { Gossip } from "./gossip.ts";
import { isLater, laterThan } from "./incarnation.ts";
import type { LocalHealth } from "./local-health.ts";
import type { Delegate, Member } from "./member.ts";
import {
  type AliveMessage,
  type DeadMessage,
  type Endpoint,
  MEMBER_STATE,
  type MemberState,
  type NodeState,
  type SuspectMessage,
  type Versions,
} from "./messages.ts";
import { isLive, isReachable, type Node, type NodeTable, sameBytes, sameEndpoint } from "./node-table.ts";
import { INCARNATION_MAX, MEMBERS_MAX, type MembershipSettings } from "./settings.ts";
import { createSuspicion, type Suspicion } from "./suspicion.ts";
import type { Timers } from "./transport.ts";
import { META_BYTES_MAX } from "./wire-limits.ts";

/** Of the protocol we speak 1 to 5; what follows is of whoever uses it, and these are what a serf of today accepts. */
export const VERSIONS: Versions = [1, 5, 2, 2, 5, 4];

const NUMBER_OF: Readonly<Record<Member["state"], MemberState>> = {
  alive: MEMBER_STATE.ALIVE,
  suspect: MEMBER_STATE.SUSPECT,
  dead: MEMBER_STATE.DEAD,
  left: MEMBER_STATE.LEFT,
};

export type MemberStates = {
  readonly alive: (message: AliveMessage) => void;
  readonly suspect: (message: SuspectMessage) => void;
  readonly dead: (message: DeadMessage, onDone?: () => void) => void;
  /** This node has found a member silent. */
  readonly accuse: (node: Node) => void;
  /** What another member knows, of a push/pull. */
  readonly merge: (nodes: readonly NodeState[]) => void;
  /** What this node knows, for a push/pull. */
  readonly states: () => readonly NodeState[];
  /** Says anew what this node is, with a later incarnation than before. */
  readonly announce: () => void;
  /** Where it was; undefined where it is not known, or alive. */
  readonly forget: (name: string) => Endpoint | undefined;
};

export type MemberStatesOptions = {
  readonly table: NodeTable;
  readonly settings: MembershipSettings;
  readonly timers: Timers;
  readonly random: () => number;
  readonly health: LocalHealth;
  readonly counters: Counters;
  readonly delegate: Delegate;
  /** Says something once. */
  readonly note: (level: LogLevel, message: string) => void;
  readonly gossip: Pick<Gossip, "broadcast" | "send">;
  readonly isLeaving: () => boolean;
  /** Others suspect a member; it is worth a probe of one's own. */
  readonly onDoubt: (node: Node) => void;
  /** A member is dead or has left: there may be somebody to join again. */
  readonly onGone: () => void;
  /** Others have this node's name at another address. */
  readonly onNameTaken: () => void;
};

export function memberOf({ name, endpoint, meta, state, incarnation, sinceMs }: Node): Member {
  return { name, endpoint, meta, state, incarnation, sinceMs };
}

function aliveMessage({ incarnation, name, endpoint, meta, versions }: Node): AliveMessage {
  return { type: "alive", incarnation, node: name, endpoint, meta, versions };
}

export function endpointText({ address, port }: Endpoint): string {
  return address.length === 16 ? `[${ipToText(address)}]:${port}` : `${ipToText(address)}:${port}`;
}

/** Whether it speaks a protocol that we speak, from an address that can be one. */
function isFit({ node, incarnation, endpoint, meta, versions }: AliveMessage): boolean {
  if (node === "" || incarnation > INCARNATION_MAX || meta.length > META_BYTES_MAX) return false;
  return isReachable(endpoint) && versions[0] <= VERSIONS[1] && versions[1] >= VERSIONS[0];
}

/** What the rules work on. */
type Context = MemberStatesOptions & {
  /** Removed members and the incarnation up to which nothing about them counts. */
  readonly forgotten: Map<string, number>;
};

function enter(context: Context, node: Node, state: Member["state"], incarnation: number): void {
  node.suspicion?.cancel();
  node.suspicion = undefined;
  if (node.state !== state) node.sinceMs = context.timers.now();
  node.state = state;
  node.incarnation = incarnation;
  context.table.changed();
}

/** `heard`: the incarnation that somebody else has of this node. */
function announce({ table: { self }, gossip }: Context, heard = self.incarnation): void {
  self.incarnation = laterThan(self.incarnation, heard);
  gossip.broadcast({ message: aliveMessage(self), about: self.name });
}

function refute(context: Context, incarnation: number, accuser?: string): void {
  const { table, gossip, counters, health } = context;
  const { self } = table;
  if (context.isLeaving()) return;
  announce(context, incarnation);
  counters.refutations++;
  health.change(1);
  // Gossip is on its way; who accuses hears it at once.
  const node = accuser === undefined ? undefined : table.get(accuser);
  if (node !== undefined && node !== self) gossip.send(node.endpoint, node.versions[1], aliveMessage(self));
}

/** Whoever has come back under a name that is held for dead has to hear it, to come with a later incarnation. */
function tellItsDeath({ gossip, table }: Context, claim: AliveMessage, incarnation: number): void {
  const { node, endpoint, versions } = claim;
  gossip.send(endpoint, versions[1], { type: "dead", incarnation, node, from: table.self.name });
}

function isRefused({ delegate, counters, note }: Context, { node: name, endpoint, meta }: AliveMessage): boolean {
  const reason = delegate.refusal({ name, endpoint, meta });
  if (reason === undefined) return false;
  counters.dropped.refused++;
  note("warn", `member ${name} at ${endpointText(endpoint)} is refused: ${reason}`);
  return true;
}

function accept(context: Context, node: Node, message: AliveMessage): void {
  const { delegate, gossip } = context;
  const was = node.state;
  const isOther = !sameBytes(node.meta, message.meta) || !sameEndpoint(node.endpoint, message.endpoint);
  node.endpoint = message.endpoint;
  node.meta = message.meta;
  node.versions = message.versions;
  enter(context, node, "alive", message.incarnation);
  gossip.broadcast({ message, about: node.name });
  if (was === "dead" || was === "left") delegate.onJoin(memberOf(node));
  else if (was === "suspect" || isOther) delegate.onUpdate(memberOf(node));
}

function welcome(context: Context, message: AliveMessage): void {
  const { table, forgotten, counters, note, timers } = context;
  const { node: name, endpoint, meta, versions, incarnation } = message;
  const last = forgotten.get(name);
  if (last !== undefined && !isLater(incarnation, last)) {
    tellItsDeath(context, message, last);
    return;
  }
  if (isRefused(context, message)) return;
  const sinceMs = timers.now();
  // It enters as dead, so that being alive is news.
  const node: Node = { name, endpoint, meta, versions, incarnation, state: "dead", sinceMs, suspicion: undefined };
  if (table.add(node)) {
    forgotten.delete(name);
    accept(context, node, message);
    return;
  }
  counters.dropped.full++;
  note("error", `there are ${MEMBERS_MAX} members; ${name} is not taken in`);
}

function aliveSelf(context: Context, message: AliveMessage): void {
  const { table, note } = context;
  const { self } = table;
  if (context.isLeaving()) return;
  if (!sameEndpoint(message.endpoint, self.endpoint)) {
    note("warn", `the name of this node, ${self.name}, is also that of a member at ${endpointText(message.endpoint)}`);
    context.onNameTaken();
    return;
  }
  const isSame = sameBytes(message.meta, self.meta) && message.versions.every((v, at) => v === self.versions[at]);
  if (isLater(self.incarnation, message.incarnation) || (message.incarnation === self.incarnation && isSame)) return;
  refute(context, message.incarnation);
}

function alive(context: Context, message: AliveMessage): void {
  const { table, counters, note } = context;
  const node = table.get(message.node);
  if (!isFit(message)) counters.dropped.unfit++;
  else if (node === undefined) welcome(context, message);
  else if (node === table.self) aliveSelf(context, message);
  else if (sameEndpoint(node.endpoint, message.endpoint)) {
    if (isLater(message.incarnation, node.incarnation) && !isRefused(context, message)) accept(context, node, message);
  } else if (isLive(node)) {
    counters.dropped.refused++;
    const where = `${endpointText(message.endpoint)} while it is alive at ${endpointText(node.endpoint)}`;
    note("warn", `member ${node.name} is refused at ${where}: every node needs a name of its own`);
  } else if (!isLater(message.incarnation, node.incarnation)) tellItsDeath(context, message, node.incarnation);
  else if (!isRefused(context, message)) accept(context, node, message);
}

/** The member that is spoken of, where nothing newer is known of it. */
function accused({ table }: Context, { node: name, incarnation }: SuspectMessage | DeadMessage): Node | undefined {
  const node = table.get(name);
  if (node === undefined || incarnation > INCARNATION_MAX || isLater(node.incarnation, incarnation)) return undefined;
  return node;
}

/** `isOurs`: this node itself has found it silent. */
function suspect(context: Context, message: SuspectMessage, isOurs: boolean): void {
  const { table, gossip, counters, delegate, random } = context;
  const node = accused(context, message);
  if (node === undefined) return;
  if (node === table.self) refute(context, message.incarnation, message.from);
  else if (node.suspicion !== undefined) {
    if (node.suspicion.confirm(message.from)) gossip.broadcast({ message, about: node.name });
  } else if (node.state === "alive") {
    enter(context, node, "suspect", message.incarnation);
    counters.suspicions++;
    node.suspicion = suspicionOf(context, node, message.from, isOurs);
    gossip.broadcast({ message, about: node.name });
    delegate.onSuspect(memberOf(node));
    if (!isOurs && random() < checkChance(table.count())) context.onDoubt(node);
  }
}

/** Who has waited for an answer beyond one interval began to suspect within, and suspects so much less long. */
function suspicionOf(context: Context, node: Node, from: string, isOurs: boolean): Suspicion {
  const { table, settings, timers } = context;
  const members = table.count();
  const { minMs, maxMs } = suspicionBounds(members, settings);
  const waitedMs = isOurs ? settings.silenceMs - settings.probeIntervalMs : 0;
  return createSuspicion({
    timers,
    minMs: minMs - waitedMs,
    maxMs,
    expected: confirmationsExpected(members, settings.suspicionMultiplier),
    from,
    onTimeout: () => {
      dead(context, { type: "dead", incarnation: node.incarnation, node: node.name, from: table.self.name });
    },
  });
}

function dead(context: Context, message: DeadMessage, onDone?: () => void): void {
  const { table, gossip, delegate } = context;
  const node = accused(context, message);
  if (node === undefined) return;
  if (node === table.self && !context.isLeaving()) refute(context, message.incarnation, message.from);
  else if (isLive(node)) {
    enter(context, node, message.from === node.name ? "left" : "dead", message.incarnation);
    gossip.broadcast({ message, about: node.name }, onDone);
    if (node === table.self) return;
    delegate.onLeave(memberOf(node));
    context.onGone();
  }
}

function merge(context: Context, { state, ...rest }: NodeState): void {
  const { node, incarnation } = rest;
  if (state === MEMBER_STATE.ALIVE) alive(context, { type: "alive", ...rest });
  else if (state === MEMBER_STATE.LEFT) dead(context, { type: "dead", incarnation, node, from: node });
  // The dead too are only suspected: who is alive after all has the time to say so.
  else suspect(context, { type: "suspect", incarnation, node, from: context.table.self.name }, false);
}

function forget({ table, forgotten }: Context, name: string): Endpoint | undefined {
  const node = table.get(name);
  if (node === undefined || node === table.self || isLive(node)) return undefined;
  table.remove(name);
  forgotten.delete(name);
  forgotten.set(name, node.incarnation);
  const [oldest] = forgotten.keys();
  if (forgotten.size > MEMBERS_MAX && oldest !== undefined) forgotten.delete(oldest);
  return node.endpoint;
}

export function createMemberStates(options: MemberStatesOptions): MemberStates {
  const context: Context = { ...options, forgotten: new Map() };
  const { table } = options;
  return {
    alive: (message) => alive(context, message),
    suspect: (message) => suspect(context, message, false),
    dead: (message, onDone) => dead(context, message, onDone),
    accuse: ({ name: node, incarnation }) =>
      suspect(context, { type: "suspect", incarnation, node, from: table.self.name }, true),
    merge: (nodes) => {
      for (const node of nodes.slice(0, 2 * MEMBERS_MAX)) merge(context, node);
    },
    states: () =>
      Array.from(table.all(), ({ name: node, state, incarnation, endpoint, meta, versions }) => {
        return { node, state: NUMBER_OF[state], incarnation, endpoint, meta, versions };
      }),
    announce: () => announce(context),
    forget: (name) => forget(context, name),
  };
}
