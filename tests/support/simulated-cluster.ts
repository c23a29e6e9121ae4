/** Members on a simulated network, with what each was told, and what they have in common. */
import type { LogLine } from "../../src/base/log.ts";
import type { Membership } from "../../src/cluster/member.ts";
import { createMembership } from "../../src/cluster/membership.ts";
import type { MembershipSettings } from "../../src/cluster/settings.ts";
import {
  createSimulatedCodec,
  createSimulatedNetwork,
  type SimulatedNetwork,
  type SimulatedProcess,
} from "./cluster-network.ts";

export type SimulatedEvent = {
  readonly atMs: number;
  readonly kind: "join" | "leave" | "suspect" | "update";
  readonly name: string;
  readonly state: string;
};

export type SimulatedMember = {
  readonly host: number;
  readonly name: string;
  readonly membership: Membership;
  readonly process: SimulatedProcess;
  readonly events: SimulatedEvent[];
  readonly payloads: string[];
  readonly log: LogLine[];
  /** What is refused, by name. */
  readonly refused: Set<string>;
};

export type StartOptions = {
  readonly name?: string;
  readonly meta?: string;
  readonly key?: number;
  readonly settings?: Partial<MembershipSettings>;
};

export type SimulatedCluster = {
  readonly network: SimulatedNetwork;
  /** Those that run. */
  readonly members: () => readonly SimulatedMember[];
  readonly member: (host: number) => SimulatedMember;
  /** "node-N" on host N, which joins nobody yet. */
  readonly start: (host: number, options?: StartOptions) => SimulatedMember;
  /** Starts hosts 1 to `size`, each joining the first, and waits until all know all. */
  readonly form: (size: number, options?: StartOptions) => Promise<void>;
  readonly kill: (host: number) => void;
  /** Lets time pass until it holds; how many milliseconds that took. Throws after `maxMs`. */
  readonly passUntil: (what: string, maxMs: number, holds: () => boolean) => Promise<number>;
  /** Whether each that runs holds all that run for alive, and nobody else. */
  readonly agrees: () => boolean;
};

const STEP_MS = 20;

/** Names of the alive, and those of the suspects with a question mark. */
function namesLive({ membership }: SimulatedMember): string {
  return membership
    .members()
    .flatMap(({ name, state }) => (state === "alive" ? [name] : state === "suspect" ? [`${name}?`] : []))
    .sort()
    .join(" ");
}

function startMember(network: SimulatedNetwork, host: number, options: StartOptions): SimulatedMember {
  const process = network.open(host);
  const events: SimulatedEvent[] = [];
  const payloads: string[] = [];
  const log: LogLine[] = [];
  const refused = new Set<string>();
  const { name = `node-${host}`, meta = "", key = 1, settings = {} } = options;
  const note = (kind: SimulatedEvent["kind"]) => (member: { readonly name: string; readonly state: string }) =>
    void events.push({ atMs: network.now(), kind, name: member.name, state: member.state });
  const membership = createMembership({
    name,
    meta: Buffer.from(meta),
    advertise: process.endpoint,
    settings,
    codec: createSimulatedCodec(key),
    transport: process.transport,
    timers: process.timers,
    random: process.random,
    delegate: {
      onJoin: note("join"),
      onLeave: note("leave"),
      onSuspect: note("suspect"),
      onUpdate: note("update"),
      onUserMessage: (payload) => void payloads.push(Buffer.from(payload).toString()),
      localState: () => new Uint8Array(0),
      mergeState: () => undefined,
      refusal: (candidate) => (refused.has(candidate.name) ? "it was removed" : undefined),
    },
    log: (level, message) => void log.push({ level, message }),
    resolveHost: network.resolveHost,
  });
  return { host, name, membership, process, events, payloads, log, refused };
}

export function createSimulatedCluster(seed: number): SimulatedCluster {
  const network = createSimulatedNetwork(seed);
  const running = new Map<number, SimulatedMember>();
  const members = (): readonly SimulatedMember[] => [...running.values()];
  const start = (host: number, options: StartOptions = {}): SimulatedMember => {
    const member = startMember(network, host, options);
    running.set(host, member);
    return member;
  };
  const agrees = (): boolean => {
    const expected = members()
      .map(({ name }) => name)
      .sort()
      .join(" ");
    return members().every((member) => namesLive(member) === expected);
  };
  const passUntil = async (what: string, maxMs: number, holds: () => boolean): Promise<number> => {
    const startMs = network.now();
    while (!holds()) {
      if (network.now() - startMs > maxMs) {
        const views = members().map((member) => `${member.name} holds for alive: ${namesLive(member)}`);
        throw new Error([`seed ${seed}: ${what}: not within ${maxMs} ms`, ...views].join("\n"));
      }
      await network.pass(STEP_MS);
    }
    return network.now() - startMs;
  };
  return {
    network,
    members,
    member: (host) => {
      const member = running.get(host);
      if (member === undefined) throw new Error(`host ${host} does not run`);
      return member;
    },
    start,
    form: async (size, options = {}) => {
      for (let host = 1; host <= size; host++) {
        const { membership } = start(host, options);
        if (host > 1) void membership.join(["host-1:7946"]);
      }
      await passUntil("all know all", 5_000, agrees);
    },
    kill: (host) => {
      running.get(host)?.process.kill();
      running.delete(host);
    },
    passUntil,
    agrees,
  };
}
