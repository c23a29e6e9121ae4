/**
 * Joins, and keeps trying over TCP: join addresses that are no member's, and members that are dead. Whichever is reached first brings
 * both sides of a healed partition together, where the prober's packets have not; attempts grow rarer and never end.
 */
import { type HostAndPort, parseHostAndPort, type ResolveHost, resolveEndpoints } from "./addresses.ts";
import type { Exchanges } from "./exchanges.ts";
import { jittered } from "./formulas.ts";
import type { JoinOutcome } from "./member.ts";
import type { Endpoint } from "./messages.ts";
import { type NodeTable, sameEndpoint, shuffle } from "./node-table.ts";
import { JOIN_ADDRESSES_MAX, JOINS_AT_ONCE, type MembershipSettings, REJOINS_AT_ONCE } from "./settings.ts";
import type { Timers } from "./transport.ts";

const BACKOFF = 1.5;

export type Rejoin = {
  readonly join: (addresses: readonly string[]) => Promise<JoinOutcome>;
  /** There may be somebody to reach: tries soon. */
  readonly wake: () => void;
  /** Push/pull soon, with any member or that address: what others know of this node, or this one of others, is amiss. */
  readonly renew: (endpoint?: Endpoint) => void;
  /** Join addresses that are this one are dialed no more. */
  readonly forget: (endpoint: Endpoint) => void;
  readonly stop: () => void;
};

export type RejoinOptions = {
  readonly table: NodeTable;
  readonly exchanges: Pick<Exchanges, "pushPull">;
  readonly settings: MembershipSettings;
  readonly timers: Timers;
  readonly random: () => number;
  readonly resolveHost: ResolveHost;
};

/** `endpoints`: what the name was when it was last asked for. */
type JoinAddress = HostAndPort & { endpoints: readonly Endpoint[] };

/** All addresses of one host are tried in turn: they are as a rule one member's. False where it is this node's own. */
async function joinOne(address: JoinAddress, { table, exchanges, resolveHost }: RejoinOptions): Promise<boolean> {
  address.endpoints = await resolveEndpoints(address, resolveHost);
  // One's own address may stand in a list that all share.
  if (address.endpoints.some((endpoint) => sameEndpoint(endpoint, table.self.endpoint))) return false;
  let fault: unknown;
  for (const endpoint of address.endpoints) {
    try {
      await exchanges.pushPull(endpoint, true);
      return true;
    } catch (error) {
      fault = error;
    }
  }
  throw fault;
}

function isMember({ endpoints }: JoinAddress, table: NodeTable): boolean {
  const members = [table.self, ...table.live()];
  return endpoints.some((endpoint) => members.some((member) => sameEndpoint(member.endpoint, endpoint)));
}

function remember(text: string, known: Map<string, JoinAddress>): JoinAddress {
  const parsed = parseHostAndPort(text);
  if (parsed === undefined) throw new Error("it is not of the form host:port");
  const old = known.get(text);
  if (old !== undefined) return old;
  if (known.size >= JOIN_ADDRESSES_MAX) throw new Error(`there are ${JOIN_ADDRESSES_MAX} join addresses`);
  const address = { ...parsed, endpoints: [] };
  known.set(text, address);
  return address;
}

/** Joins each address now; those that do not answer stay in `known`. */
async function joinAll(
  addresses: readonly string[],
  known: Map<string, JoinAddress>,
  options: RejoinOptions,
): Promise<JoinOutcome> {
  const failures: { address: string; detail: string }[] = [];
  let joined = 0;
  const attempt = async (text: string): Promise<void> => {
    try {
      if (await joinOne(remember(text, known), options)) joined++;
    } catch (error) {
      failures.push({ address: text, detail: error instanceof Error ? error.message : String(error) });
    }
  };
  const waiting = new Set(addresses).values();
  const worker = async (): Promise<void> => {
    for (const text of waiting) await attempt(text);
  };
  await Promise.all(Array.from({ length: JOINS_AT_ONCE }, worker));
  return { joined, failures };
}

export function createRejoin(options: RejoinOptions): Rejoin {
  const { table, exchanges, settings, timers, random } = options;
  const known = new Map<string, JoinAddress>();
  let delayMs = settings.rejoinMinMs;
  let cancel: (() => void) | undefined;
  let isStopped = false;
  let isAmiss = false;
  let stranger: Endpoint | undefined;
  let wasReached = false;

  const attempts = (): (() => Promise<unknown>)[] => {
    const all: (() => Promise<unknown>)[] = [];
    for (const address of known.values()) if (!isMember(address, table)) all.push(() => joinOne(address, options));
    for (const { endpoint } of table.dead()) all.push(() => exchanges.pushPull(endpoint, false));
    const endpoint = stranger ?? table.some(1, "")[0]?.endpoint;
    if (isAmiss && endpoint !== undefined) all.push(() => exchanges.pushPull(endpoint, true));
    return all;
  };
  const round = async (): Promise<void> => {
    const chosen = shuffle(attempts(), random, REJOINS_AT_ONCE).slice(0, REJOINS_AT_ONCE);
    isAmiss = false;
    stranger = undefined;
    const outcomes = await Promise.allSettled(chosen.map((attempt) => attempt()));
    const isReached = outcomes.some(({ status }) => status === "fulfilled");
    // Who is reached for the first time may have to refute its death: the next attempt finds that done.
    delayMs = isReached && !wasReached ? settings.rejoinMinMs : Math.min(settings.rejoinMaxMs, delayMs * BACKOFF);
    wasReached = isReached;
    cancel = undefined;
    arm();
  };
  const arm = (): void => {
    if (isStopped || cancel !== undefined || attempts().length === 0) return;
    cancel = timers.after(jittered(delayMs, random), () => void round());
  };
  const wake = (): void => {
    delayMs = settings.rejoinMinMs;
    wasReached = false;
    arm();
  };

  return {
    join: async (addresses) => {
      const outcome = await joinAll(addresses, known, options);
      wake();
      return outcome;
    },
    wake,
    renew: (endpoint) => {
      isAmiss = true;
      stranger = endpoint ?? stranger;
      arm();
    },
    forget: (endpoint) => {
      for (const [text, { endpoints }] of known) {
        if (endpoints.some((one) => sameEndpoint(one, endpoint))) known.delete(text);
      }
    },
    stop: () => {
      isStopped = true;
      cancel?.();
    },
  };
}
