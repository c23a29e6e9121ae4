/**
 * The servers of routes: which one is asked first, and what is known of each, whoever else has it too. An upstream that
 * the settings have by name is as many servers as the name has addresses.
 */
import { ipFromText } from "../base/ip.ts";
import { type Upstream, upstreamText } from "../dns/upstream.ts";
import { type Member as BagMember, createBag } from "./bag.ts";
import type { ExchangeOutcome, Exchanger, Server } from "./exchange.ts";
import { createHostNames, type HostNames, type ResolveHost } from "./host-names.ts";
import { QUESTION_MS, SERVERS_REMEMBERED } from "./limits.ts";
import { type Runner, startRace, type Tally } from "./race.ts";
import { createRecent, type Recent } from "./recent.ts";
import type { AskServers, Pool } from "./resolver-options.ts";
import { serverKey } from "./server-facts.ts";
import { createServerState, type ServerState } from "./server-state.ts";
import { UPSTREAM_LATENCY_BOUNDS_MS, type UpstreamFigures } from "./settings.ts";
import type { Timers } from "./timers.ts";

export type ServersOptions = {
  readonly exchanger: Pick<Exchanger, "ask">;
  readonly timers: Timers;
  /** Addresses of upstreams that the settings have by name. */
  readonly resolveHost: ResolveHost;
};

export type Servers = {
  readonly openPool: (upstreams: readonly Upstream[]) => Pool;
  readonly askServers: AskServers;
};

export function createServers(options: ServersOptions): Servers {
  const shared: Shared = {
    options,
    states: createRecent(SERVERS_REMEMBERED, (key) => createServerState(key.startsWith("tls"))),
    hosts: createHostNames(options.resolveHost, options.timers),
  };
  return {
    openPool: (upstreams) => openPool(shared, upstreams),
    askServers: (servers, question, timeoutMs, onDone, isLame) => {
      const runners = servers.map((server) => ({ server, state: stateOf(shared, server), tally: undefined }));
      return startRace({ ...options, countLatency }, runners, question, timeoutMs, onDone, isLame);
    },
  };
}

type Shared = {
  readonly options: ServersOptions;
  readonly states: Recent<ServerState>;
  readonly hosts: HostNames;
};

/** A question that is open. */
type Ask = BagMember & { stopNow: () => void };

const nothing = (): void => {};

type Member = {
  readonly upstream: Upstream;
  readonly tally: Tally;
  /** Of the addresses that are known, and of which list of them they were made. */
  runners: readonly Runner[];
  addresses: readonly Uint8Array[] | undefined;
};

function stateOf(shared: Shared, server: Server): ServerState {
  return shared.states.get(serverKey(server));
}

function openPool(shared: Shared, upstreams: readonly Upstream[]): Pool {
  const { options, hosts } = shared;
  const members = upstreams.map((upstream) => openMember(shared, upstream));
  const raceOptions = { exchanger: options.exchanger, timers: options.timers, countLatency };
  const open = createBag<Ask>();
  return {
    ask: (question, onDone, isLame) => {
      const startedMs = options.timers.nowMs();
      const ask: Ask = { place: -1, stopNow: nothing };
      open.add(ask);
      const finish = (outcome: ExchangeOutcome): void => {
        open.remove(ask);
        onDone(outcome);
      };
      const race = (): void => {
        const leftMs = Math.max(1, QUESTION_MS - (options.timers.nowMs() - startedMs));
        const runners = members.flatMap((member) => runnersOf(shared, member));
        ask.stopNow = startRace(raceOptions, runners, question, leftMs, finish, isLame);
      };
      const unknown = members.filter((member) => !member.upstream.isAddress && runnersOf(shared, member).length === 0);
      // Nobody waits for the address of one server while there is another.
      if (unknown.length < members.length || unknown.length === 0) race();
      else ask.stopNow = afterFirst(hosts, unknown, race);
      return () => {
        open.remove(ask);
        ask.stopNow();
      };
    },
    figures: () => members.map((member) => figuresOf(shared, member)),
    close: () => {
      for (const ask of open.all()) {
        open.remove(ask);
        ask.stopNow();
      }
    },
  };
}

/** Goes on when the first host has addresses, or all have none; the result calls it off. */
function afterFirst(hosts: HostNames, unknown: readonly Member[], run: () => void): () => void {
  let left = unknown.length;
  let isOver = false;
  for (const { upstream } of unknown) {
    hosts.whenKnown(upstream.host, () => {
      left--;
      if (isOver || (left > 0 && (hosts.addresses(upstream.host)?.length ?? 0) === 0)) return;
      isOver = true;
      run();
    });
  }
  return () => {
    isOver = true;
  };
}

function openMember(shared: Shared, upstream: Upstream): Member {
  const counts = new Array<number>(UPSTREAM_LATENCY_BOUNDS_MS.length + 1).fill(0);
  const tally: Tally = {
    queries: 0,
    answers: 0,
    timeouts: 0,
    networkErrors: 0,
    failures: 0,
    rejected: 0,
    latencySumMs: 0,
    latencyCounts: counts,
  };
  const member: Member = { upstream, tally, runners: [], addresses: undefined };
  const address = upstream.isAddress ? ipFromText(upstream.host) : undefined;
  if (address !== undefined) setAddresses(shared, member, [address]);
  return member;
}

function setAddresses(shared: Shared, member: Member, addresses: readonly Uint8Array[]): void {
  const { transport, port, tlsName, isAddress, host } = member.upstream;
  member.addresses = addresses;
  member.runners = addresses.map((address) => {
    const server: Server = { transport, address, port, tlsName: tlsName ?? (isAddress ? undefined : host) };
    return { server, state: stateOf(shared, server), tally: member.tally };
  });
}

function runnersOf(shared: Shared, member: Member): readonly Runner[] {
  if (member.upstream.isAddress) return member.runners;
  const addresses = shared.hosts.addresses(member.upstream.host);
  if (addresses !== undefined && addresses !== member.addresses) setAddresses(shared, member, addresses);
  return member.runners;
}

function countLatency(tally: Tally, ms: number): void {
  const found = UPSTREAM_LATENCY_BOUNDS_MS.findIndex((bound) => ms <= bound);
  const bucket = found < 0 ? UPSTREAM_LATENCY_BOUNDS_MS.length : found;
  tally.latencyCounts[bucket] = tally.latencyCounts[bucket]! + 1;
  tally.latencySumMs += ms;
}

function figuresOf(shared: Shared, member: Member): UpstreamFigures {
  const { tally, upstream } = member;
  const states = member.runners.map(({ server }) => stateOf(shared, server));
  const known = states.filter(({ isKnown }) => isKnown);
  return {
    upstream: upstreamText(upstream),
    queries: tally.queries,
    answers: tally.answers,
    timeouts: tally.timeouts,
    networkErrors: tally.networkErrors,
    failures: tally.failures,
    rejected: tally.rejected,
    smoothedRttMs: known.length === 0 ? 0 : Math.min(...known.map(({ smoothedMs }) => smoothedMs)),
    isFailing: states.length > 0 && states.every(({ isFailing }) => isFailing),
    latencySumMs: tally.latencySumMs,
    latencyCounts: [...tally.latencyCounts],
  };
}
