/** The webhook sink: one POST an event, signed with a key that both sides know. */
import { createHmac } from "node:crypto";
import { ATTEMPT_TIMEOUT_MS } from "./limits.ts";
import { isoTime, type Notice } from "./notice.ts";
import type { Poster } from "./post.ts";
import { attemptOf, type Sink } from "./sink.ts";

export type WebhookOptions = {
  readonly url: string;
  /** Undefined: events are not signed. */
  readonly secret: string | undefined;
  readonly poster: Poster;
};

export function createWebhookSink({ url, secret, poster }: WebhookOptions): Sink {
  const target = new URL(url);
  return {
    name: "webhook",
    attempt: async (notice, signal) => {
      const body = Buffer.from(webhookBody(notice), "utf8");
      const headers = {
        "Content-Type": "application/json",
        "X-SVC-Event": notice.type,
        ...(secret === undefined ? {} : { "X-SVC-Signature": signatureOf(body, secret) }),
      };
      return attemptOf(await poster.post({ url: target, headers, body, timeoutMs: ATTEMPT_TIMEOUT_MS, signal }));
    },
    close: poster.close,
  };
}

function webhookBody(notice: Notice): string {
  const { type, node, data } = notice;
  return JSON.stringify({ type, time: isoTime(notice), node, data });
}

/** HMAC-SHA256 (RFC 2104) of exactly these bytes, keyed with the UTF-8 form of the secret. */
export function signatureOf(body: Uint8Array, secret: string): string {
  return `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
}
