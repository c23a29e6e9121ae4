/** Where secrets are sent to, and whether a change of a body sends them elsewhere. Bodies may have any shape. */
import { checkTarget } from "./endpoint.ts";

/**
 * A probe of a record or an override: the name that it asks for, how it proves to speak to it, and whether in the clear.
 * The values of the record are no part of that, as changing them is what records are for.
 */
export function isOtherProbeTarget(stored: unknown, given: unknown): boolean {
  return isOtherPeer(memberAt(stored, TEMPLATE), memberAt(given, TEMPLATE));
}

/** A standalone check: as a probe of a record, and its target is its own. */
export function isOtherCheckTarget(stored: unknown, given: unknown): boolean {
  return targetHost(stored) !== targetHost(given) || isOtherPeer(stored, given);
}

function targetHost(check: unknown): unknown {
  const target = memberAt(check, TARGET);
  return typeof target === "string" ? (checkTarget(target)?.host ?? target) : target;
}

function isOtherPeer(before: unknown, after: unknown): boolean {
  if (memberAt(before, ["protocol"]) === "https" && memberAt(after, ["protocol"]) !== "https") return true;
  if (foldHost(memberAt(before, HOST)) !== foldHost(memberAt(after, HOST))) return true;
  // Whoever may choose the authority may be any host.
  return memberAt(before, AUTHORITY) !== memberAt(after, AUTHORITY);
}

export function isOtherTokenUrl(stored: unknown, given: unknown): boolean {
  return isOtherCheckTokenUrl(memberAt(stored, TEMPLATE), memberAt(given, TEMPLATE));
}

export function isOtherCheckTokenUrl(stored: unknown, given: unknown): boolean {
  return foldUrl(memberAt(stored, TOKEN_URL)) !== foldUrl(memberAt(given, TOKEN_URL));
}

/** Of the document of the metrics export. Without an endpoint nothing is sent. */
export function isOtherCollector(stored: unknown, given: unknown): boolean {
  const after = memberAt(given, ENDPOINT);
  return after !== null && after !== undefined && foldUrl(memberAt(stored, ENDPOINT)) !== foldUrl(after);
}

const TEMPLATE = ["health_check_template"];
const TARGET = ["target"];
const HOST = ["http_config", "host"];
const AUTHORITY = ["http_config", "ca_pem"];
const TOKEN_URL = ["http_config", "oauth2", "token_url"];
const ENDPOINT = ["settings", "endpoint"];

function memberAt(value: unknown, path: readonly string[]): unknown {
  let member = value;
  for (const name of path) {
    if (typeof member !== "object" || member === null || !Object.hasOwn(member, name)) return undefined;
    member = Object.entries(member).find(([each]) => each === name)?.[1];
  }
  return member;
}

function foldHost(host: unknown): unknown {
  return typeof host === "string" ? host.toLowerCase().replace(/\.$/, "") : host;
}

function foldUrl(url: unknown): unknown {
  return typeof url === "string" ? (URL.parse(url)?.href ?? url) : url;
}

/** Link-local addresses (RFC 3927, RFC 4291 section 2.5.6): there clouds give out credentials to whoever asks from here. */
export function isLinkLocal({ hostname }: URL): boolean {
  // A parsed URL has one spelling of each address; the IPv6 one of an IPv4 address ends in two groups of hexadecimals.
  return /^169\.254\./.test(hostname) || /^\[(fe[89ab][0-9a-f]:|::(ffff:)?a9fe:)/.test(hostname);
}

export function isLoopback({ hostname }: URL): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.[0-9]+){3}$/.test(hostname);
}
