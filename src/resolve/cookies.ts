/**
 * The client's side of DNS cookies (RFC 7873 section 5, RFC 9018): for each server a cookie of our own, and the one that
 * it gave us with it. Who cannot read our queries cannot know either.
 */
import { createHmac, randomBytes } from "node:crypto";
import { EDNS_OPTION } from "../dns/codes.ts";
import { findOption } from "../dns/edns.ts";
import type { Message } from "../dns/message.ts";

export type CookieJar = {
  /** The option's data for a query: our cookie, and the server's behind it where it gave one. */
  readonly cookie: () => Uint8Array;
  /** How an answer's cookie stands to the query's. What the server gives is kept; nothing is kept of a wrong one. */
  readonly take: (message: Message, sent: Uint8Array) => CookieVerdict;
  /** It gives cookies no more, as was heard in a way that nobody else could have answered. */
  readonly forget: () => void;
};

export type CookieVerdict = "good" | "wrong" | "missing" | "none-expected";

const CLIENT_COOKIE_BYTES = 8;
const SERVER_COOKIE_BYTES_MIN = 8;
const SERVER_COOKIE_BYTES_MAX = 32;
/** Our cookies change after this time, as RFC 7873 section 7.1 has it for secrets of clients. */
const COOKIE_MS = 24 * 3_600_000;

/** Makes the jars of all servers: `key` names one, in text. */
export function createCookieJars(
  nowMs: () => number,
  secret: Uint8Array = randomBytes(32),
): (key: string) => CookieJar {
  return (key) => createJar(key, nowMs, secret);
}

function createJar(key: string, nowMs: () => number, secret: Uint8Array): CookieJar {
  let current: Uint8Array | undefined;
  let untilMs = 0;
  let period = 0;
  let isExpected = false;
  const cookie = (): Uint8Array => {
    if (current === undefined || nowMs() >= untilMs) {
      const digest = createHmac("sha256", secret).update(`${period} ${key}`).digest();
      current = Uint8Array.from(digest.subarray(0, CLIENT_COOKIE_BYTES));
      untilMs = nowMs() + COOKIE_MS;
      period++;
    }
    return current;
  };
  return {
    cookie,
    forget: () => {
      isExpected = false;
      current = current?.slice(0, CLIENT_COOKIE_BYTES);
    },
    take: (message, sent) => {
      const data = findOption(message.edns, EDNS_OPTION.COOKIE);
      if (data === undefined) return isExpected ? "missing" : "none-expected";
      const serverBytes = data.length - CLIENT_COOKIE_BYTES;
      const isWhole = serverBytes >= SERVER_COOKIE_BYTES_MIN && serverBytes <= SERVER_COOKIE_BYTES_MAX;
      if (!beginsWith(data, sent) || (serverBytes !== 0 && !isWhole)) return "wrong";
      if (!isWhole) return isExpected ? "missing" : "none-expected";
      isExpected = true;
      // An answer to a query of before the change says nothing about the new cookie.
      if (beginsWith(cookie(), sent)) current = data.slice();
      return "good";
    },
  };
}

function beginsWith(data: Uint8Array, sent: Uint8Array): boolean {
  if (data.length < CLIENT_COOKIE_BYTES) return false;
  for (let at = 0; at < CLIENT_COOKIE_BYTES; at++) if (data[at] !== sent[at]) return false;
  return true;
}
