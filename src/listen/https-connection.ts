/** What connections of either version of HTTP have in common: what they hold, for how long, and how their answers look. */
import { COUNTER } from "../image/counters.ts";
import type { Answering, DohAnswer } from "./https-answering.ts";
import { freshSeconds } from "./https-freshness.ts";
import { DNS_HEADER_BYTES, DOH_MEDIA_TYPE, DOH_METHODS, type RefusedStatus } from "./https-request.ts";
import { type HttpsLimits, STREAM_MESSAGE_BYTES } from "./limits.ts";

/** What the connections of a thread share. */
export type HttpsContext = {
  readonly answering: Answering;
  readonly counters: Float64Array;
  readonly limits: HttpsLimits;
  /** Milliseconds of a clock that never runs backwards. */
  readonly now: () => number;
  /** The time as HTTP writes it (RFC 9110 section 6.6.1). */
  readonly date: () => string;
};

/** Spells each second once. `wallMs` gives milliseconds since 1970. */
export function createHttpDate(wallMs: () => number): () => string {
  let second = Number.NaN;
  let text = "";
  return () => {
    const now = Math.floor(wallMs() / 1000);
    if (now !== second) text = new Date(now * 1000).toUTCString();
    second = now;
    return text;
  };
}

export type HttpsConnection = {
  /** Looks at the times; cuts or closes the connection where one has passed. */
  readonly sweep: (nowMs: number) => void;
  /** Bodies and answers, in bytes. */
  readonly queuedBytes: () => number;
  /** Ends it against its client's will, and counts it. */
  readonly cut: () => void;
  /** Takes no further request, and ends when those under way have. */
  readonly retire: () => void;
};

/** A request from its head to the end of its answer. */
export type Exchange = {
  readonly sinceMs: number;
  /** Of the body, then of the answer. */
  bytes: number;
};

/** The books of one connection. */
export type Book = {
  readonly begin: () => Exchange;
  readonly hold: (exchange: Exchange, bytes: number) => void;
  readonly end: (exchange: Exchange) => void;
  readonly queuedBytes: () => number;
  readonly isFull: () => boolean;
  /** Nothing is under way. */
  readonly isIdle: () => boolean;
  /** What the connection is to come to by its times. */
  readonly verdict: (nowMs: number) => "stays" | "idle" | "overdue";
};

export function openBook({ limits, now }: HttpsContext): Book {
  const openedMs = now();
  /** In the order in which they began. */
  const open = new Set<Exchange>();
  let queued = 0;
  let activeMs = openedMs;
  return {
    begin: () => {
      const exchange: Exchange = { sinceMs: now(), bytes: 0 };
      open.add(exchange);
      return exchange;
    },
    hold: (exchange, bytes) => {
      queued += bytes - exchange.bytes;
      exchange.bytes = bytes;
    },
    end: (exchange) => {
      if (!open.delete(exchange)) return;
      queued -= exchange.bytes;
      activeMs = now();
    },
    queuedBytes: () => queued,
    isFull: () => queued > limits.maxQueuedBytes,
    isIdle: () => open.size === 0,
    verdict: (nowMs) => {
      const [oldest] = open;
      if (oldest !== undefined && nowMs - oldest.sinceMs >= limits.requestMs) return "overdue";
      if (nowMs - openedMs >= limits.lifetimeMs) return "overdue";
      return oldest === undefined && nowMs - activeMs >= limits.idleMs ? "idle" : "stays";
    },
  };
}

export type AnswerFields = {
  readonly "content-type": string;
  readonly "content-length": number;
  readonly "cache-control": string;
};

export function answerFields(answer: DohAnswer): AnswerFields {
  return {
    "content-type": DOH_MEDIA_TYPE,
    "content-length": answer.bytes.length,
    "cache-control": freshness(answer),
  };
}

/** RFC 8484 section 5.1; what is for one client is not for a cache that others ask (RFC 9111 section 5.2.2.7). */
export function freshness({ bytes, isForClient }: DohAnswer): string {
  const maxAge = `max-age=${freshSeconds(bytes)}`;
  return isForClient ? `private, ${maxAge}` : maxAge;
}

const REFUSAL_FIELDS = { "content-length": 0, "cache-control": "no-store" };

export function refusalFields(
  counters: Float64Array,
  status: RefusedStatus,
): Readonly<Record<string, string | number>> {
  counters[COUNTER.HTTPS_REFUSED]! += 1;
  return status === 405 ? { ...REFUSAL_FIELDS, allow: DOH_METHODS } : REFUSAL_FIELDS;
}

/** Takes a body. */
export type Body = {
  readonly kind: "collected" | "passed-over";
  /** False: there is more than a message may have, or than the connection may hold. */
  readonly add: (chunk: Buffer) => boolean;
  /** The message; a status where it is none. */
  readonly end: () => Buffer | RefusedStatus;
};

/**
 * Takes no note of a body that cannot change the status any more. It is heard out as far as `limits.passedBytes`, since some
 * clients fail where they are answered before they have sent it.
 */
export function passOverBody(status: RefusedStatus, { passedBytes }: HttpsLimits): Body {
  let bytes = 0;
  return {
    kind: "passed-over",
    add: (chunk) => {
      bytes += chunk.length;
      return bytes <= passedBytes;
    },
    end: () => status,
  };
}

export function collectBody(book: Book, exchange: Exchange): Body {
  let collected: Buffer | undefined;
  return {
    kind: "collected",
    add: (chunk) => {
      collected = collected === undefined ? chunk : Buffer.concat([collected, chunk]);
      book.hold(exchange, collected.length);
      return collected.length <= STREAM_MESSAGE_BYTES;
    },
    end: () => (collected === undefined || collected.length < DNS_HEADER_BYTES ? 400 : collected),
  };
}
