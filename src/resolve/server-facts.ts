/** What was learnt about each server, for a time: which extensions it takes, and its cookie. */
import { ipToText } from "../base/ip.ts";
import { type CookieJar, createCookieJars } from "./cookies.ts";
import type { Server } from "./exchange.ts";
import { createRecent } from "./recent.ts";

export type ServerFacts = {
  readonly cookies: CookieJar;
  /** Until then it is asked without EDNS. */
  plainUntilMs: number;
  /** Answers in a row whose letters had another case than the question's. */
  caseFaults: number;
  /** Until then it is asked over TCP, where letters need no case. */
  caselessUntilMs: number;
};

/** How long a server is treated as one that knows no EDNS, or changes letters. */
export const FACT_MS = 900_000;
/** So many answers in another case make a server that changes letters. */
export const CASE_FAULTS = 3;
const SERVERS_MAX = 4_096;

const keys = new WeakMap<Server, string>();

/** Names a server: the same for all that are equal. */
export function serverKey(server: Server): string {
  const known = keys.get(server);
  if (known !== undefined) return known;
  const key = `${server.transport} ${ipToText(server.address)} ${server.port} ${server.tlsName ?? ""}`;
  keys.set(server, key);
  return key;
}

export function createServerFacts(nowMs: () => number): (server: Server) => ServerFacts {
  const makeJar = createCookieJars(nowMs);
  const facts = createRecent<ServerFacts>(SERVERS_MAX, (key) => {
    return { cookies: makeJar(key), plainUntilMs: 0, caseFaults: 0, caselessUntilMs: 0 };
  });
  return (server) => facts.get(serverKey(server));
}
