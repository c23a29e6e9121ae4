/**
 * Addresses of the hosts that are probed: from this node's own zones and overrides as they answer now, else from the system's
 * resolver.
 */
import { Resolver } from "node:dns/promises";
import { ipToText } from "../base/ip.ts";
import { RRTYPE } from "../dns/codes.ts";
import { nameFromText, nameToText } from "../dns/name.ts";
import type { SharedImage } from "../image/shared.ts";
import { RESOLVE_MS, RESOLVE_TRIES, RESOLVED_MAX, RESOLVED_MS } from "./limits.ts";
import { type AskOwn, createAskOwn } from "./own-answers.ts";

/** The addresses of an absolute host name, IPv4 first; none where there are none. Never rejects. */
export type ResolveHost = (host: string) => Promise<readonly string[]>;

/** What our own zones say: addresses, or the name outside of them that they lead to. */
type OwnAnswer =
  | { readonly kind: "addresses"; readonly addresses: readonly string[] }
  | { readonly kind: "elsewhere"; readonly host: string };

/** Asks everything but our own zones. */
export type SystemResolver = (host: string) => Promise<readonly string[]>;

/** `thread` is a place among the readers of the image that nobody else has. */
export function createHealthResolver(
  shared: SharedImage,
  thread: number,
  system: SystemResolver = createSystemResolver(),
  now: () => number = () => performance.now(),
): ResolveHost {
  const askOwn = createOwnZones(createAskOwn(shared, thread));
  const kept = new Map<string, { readonly addresses: Promise<readonly string[]>; readonly untilMs: number }>();
  const askSystem = (host: string) => {
    const nowMs = now();
    const known = kept.get(host);
    if (known !== undefined && known.untilMs > nowMs) return known.addresses;
    kept.delete(host);
    const [oldest] = kept.keys();
    if (kept.size >= RESOLVED_MAX && oldest !== undefined) kept.delete(oldest);
    const addresses = system(host);
    kept.set(host, { addresses, untilMs: nowMs + RESOLVED_MS });
    return addresses;
  };
  return async (host) => {
    const own = askOwn(host);
    return own.kind === "addresses" ? own.addresses : await askSystem(own.host);
  };
}

const LOOPBACK = ["127.0.0.1", "::1"];

/** Both families of a host in the node's own zones and overrides. */
function createOwnZones(ask: AskOwn): (host: string) => OwnAnswer {
  return (host) => {
    // RFC 6761 section 6.3: no resolver is asked for it.
    if (host.toLowerCase() === "localhost.") return { kind: "addresses", addresses: LOOPBACK };
    const name = nameFromText(host);
    if (name.kind !== "name") return { kind: "addresses", addresses: [] };
    const messages = [RRTYPE.A, RRTYPE.AAAA].flatMap((type) => ask(name.name, type) ?? []);
    if (messages.length === 0) return { kind: "elsewhere", host };
    const records = messages.flatMap(({ answers }) => answers);
    const addresses = records.flatMap(({ type, rdata }) =>
      type === RRTYPE.A || type === RRTYPE.AAAA ? [ipToText(rdata)] : [],
    );
    if (addresses.length > 0) return { kind: "addresses", addresses };
    const target = records.findLast(({ type }) => type === RRTYPE.CNAME)?.rdata;
    if (target === undefined || ask(target, RRTYPE.A) !== undefined) return { kind: "addresses", addresses: [] };
    return { kind: "elsewhere", host: nameToText(target) };
  };
}

/** Asks the name servers of the system's configuration. It waits in no thread of the process, however many hosts there are. */
export function createSystemResolver(): SystemResolver {
  const resolver = new Resolver({ timeout: RESOLVE_MS, tries: RESOLVE_TRIES });
  return async (host) => {
    const both = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    return both.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
  };
}
