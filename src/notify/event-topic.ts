/**
 * The event-topic sink: an array of one event in the cloud's event schema, posted with a token of the managed identity. The
 * URI is the topic's endpoint with api-version 2018-01-01, as the service documents it.
 */
import type { ManagedIdentity } from "../base/managed-identity.ts";
import { ATTEMPT_TIMEOUT_MS, RETRY_PAUSES_MS } from "./limits.ts";
import { isoTime, type Notice } from "./notice.ts";
import type { Poster } from "./post.ts";
import { attemptOf, type Sink } from "./sink.ts";

/** What the token is asked for, whichever topic it goes to. */
export const TOPIC_RESOURCE = "https://eventgrid.azure.net";
const API_VERSION = "2018-01-01";
const DATA_VERSION = "1";
/** One that is younger was fetched after the refusal of the one before: another would be refused too. */
const TOKEN_AGE_LEAST_MS = RETRY_PAUSES_MS[0] ?? 0;

export type EventTopicOptions = {
  /** Without a query. */
  readonly endpoint: string;
  readonly identity: ManagedIdentity;
  readonly poster: Poster;
};

export function createEventTopicSink({ endpoint, identity, poster }: EventTopicOptions): Sink {
  const target = new URL(endpoint);
  target.searchParams.set("api-version", API_VERSION);
  return {
    name: "eventgrid",
    attempt: async (notice, signal) => {
      const token = await identity.tokenFor(TOPIC_RESOURCE);
      const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` };
      const body = Buffer.from(topicBody(notice), "utf8");
      const status = await poster.post({ url: target, headers, body, timeoutMs: ATTEMPT_TIMEOUT_MS, signal });
      if (status !== 401 && status !== 403) return attemptOf(status);
      // The identity may have been granted its role since the token was made: the next attempt has another.
      identity.drop(TOPIC_RESOURCE, undefined, TOKEN_AGE_LEAST_MS);
      return { kind: "failed", reason: `answered ${status} to the managed identity` };
    },
    close: () => {
      poster.close();
      identity.close();
    },
  };
}

function topicBody(notice: Notice): string {
  const { type, subject, node, timeNs, data } = notice;
  return JSON.stringify([
    {
      id: `${node}-${type}-${timeNs}`,
      eventType: `Svc.${type}`,
      subject: `svc/${node}/${subject}`,
      eventTime: isoTime(notice),
      data,
      dataVersion: DATA_VERSION,
    },
  ]);
}
