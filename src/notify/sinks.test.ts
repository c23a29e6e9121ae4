import assert from "node:assert/strict";
import { test } from "node:test";
import { noticeAbout } from "../../tests/support/notify-lab.ts";
import type { ManagedIdentity } from "../base/managed-identity.ts";
import { createEventTopicSink } from "./event-topic.ts";
import type { Poster, PostRequest } from "./post.ts";
import type { Attempt } from "./sink.ts";
import { createWebhookSink, signatureOf } from "./webhook.ts";

const SIGNAL = new AbortController().signal;
const NOTICE = noticeAbout("r1", { status: "unhealthy", name: "ü.example." });

function recordingPoster(statuses: readonly number[]) {
  const requests: (Omit<PostRequest, "body"> & { readonly body: Buffer })[] = [];
  let isClosed = false;
  const poster: Poster = {
    post: (request) => {
      requests.push({ ...request, body: Buffer.from(request.body) });
      return Promise.resolve(statuses[requests.length - 1] ?? 204);
    },
    close: () => {
      isClosed = true;
    },
  };
  return { poster, requests, isClosed: () => isClosed };
}

test("the signature is HMAC-SHA256 of the body", () => {
  // RFC 4231 section 4.3.
  assert.equal(
    signatureOf(Buffer.from("what do ya want for nothing?"), "Jefe"),
    "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
  );
});

test("the webhook has the event as JSON, its type and a signature in headers, and its own URL whole", async () => {
  const { poster, requests } = recordingPoster([]);
  const sink = createWebhookSink({ url: "https://a.example/hook?token=t", secret: "schlüssel", poster });
  assert.deepEqual(await sink.attempt(NOTICE, SIGNAL), { kind: "delivered" });
  const [{ url, headers, body, timeoutMs }] = requests as [(typeof requests)[number]];
  assert.equal(url.href, "https://a.example/hook?token=t");
  assert.equal(timeoutMs, 10_000);
  assert.deepEqual(JSON.parse(body.toString("utf8")), {
    type: "health.check_transition",
    time: "2026-01-02T03:04:05.678Z",
    node: "node-1",
    data: { subject: "r1", status: "unhealthy", name: "ü.example." },
  });
  assert.deepEqual(headers, {
    "Content-Type": "application/json",
    "X-SVC-Event": "health.check_transition",
    "X-SVC-Signature": signatureOf(body, "schlüssel"),
  });
  // A further attempt is the same request.
  await sink.attempt(NOTICE, SIGNAL);
  assert.deepEqual(requests[1], requests[0]);
});

test("without a secret the webhook has no signature", async () => {
  const { poster, requests } = recordingPoster([]);
  await createWebhookSink({ url: "https://a.example/", secret: undefined, poster }).attempt(NOTICE, SIGNAL);
  assert.deepEqual(Object.keys(requests[0]?.headers ?? {}), ["Content-Type", "X-SVC-Event"]);
});

test("what a status means to the webhook", async () => {
  const kinds: readonly (readonly [number, Attempt["kind"]])[] = [
    [200, "delivered"],
    [202, "delivered"],
    [301, "refused"],
    [307, "refused"],
    [304, "refused"],
    [400, "refused"],
    [401, "refused"],
    [429, "refused"],
    [500, "failed"],
    [503, "failed"],
  ];
  const { poster } = recordingPoster(kinds.map(([status]) => status));
  const sink = createWebhookSink({ url: "https://a.example/", secret: "s", poster });
  for (const [status, kind] of kinds) {
    const outcome = await sink.attempt(NOTICE, SIGNAL);
    assert.deepEqual(outcome, kind === "delivered" ? { kind } : { kind, reason: `answered ${status}` });
  }
});

function identityOf(tokens: readonly string[]) {
  let index = 0;
  const dropped: unknown[][] = [];
  let isClosed = false;
  const identity: ManagedIdentity = {
    tokenFor: (resource) => Promise.resolve(`${resource} ${tokens[index]}`),
    drop: (...args) => {
      dropped.push(args);
      index += 1;
    },
    close: () => {
      isClosed = true;
    },
  };
  return { identity, dropped, isClosed: () => isClosed };
}

test("the topic has an array of one event in the cloud's schema, with a token for topics", async () => {
  const { poster, requests, isClosed } = recordingPoster([200]);
  const { identity, isClosed: isIdentityClosed } = identityOf(["one"]);
  const sink = createEventTopicSink({ endpoint: "https://t.example/api/events", identity, poster });
  assert.deepEqual(await sink.attempt(NOTICE, SIGNAL), { kind: "delivered" });
  const [{ url, headers, body }] = requests as [(typeof requests)[number]];
  assert.equal(url.href, "https://t.example/api/events?api-version=2018-01-01");
  assert.deepEqual(headers, {
    "Content-Type": "application/json",
    Authorization: "Bearer https://eventgrid.azure.net one",
  });
  assert.deepEqual(JSON.parse(body.toString("utf8")), [
    {
      id: `node-1-health.check_transition-${Date.UTC(2026, 0, 2, 3, 4, 5, 678)}000000`,
      eventType: "Svc.health.check_transition",
      subject: "svc/node-1/r1",
      eventTime: "2026-01-02T03:04:05.678Z",
      data: { subject: "r1", status: "unhealthy", name: "ü.example." },
      dataVersion: "1",
    },
  ]);
  sink.close();
  assert.deepEqual([isClosed(), isIdentityClosed()], [true, true]);
});

test("a topic that refuses the token gets another one with the next attempt; other refusals are final", async () => {
  const { poster, requests } = recordingPoster([401, 403, 200, 400, 503]);
  const { identity, dropped } = identityOf(["one", "two", "three"]);
  const sink = createEventTopicSink({ endpoint: "https://t.example/", identity, poster });
  const kinds = [];
  for (let index = 0; index < 5; index += 1) kinds.push((await sink.attempt(NOTICE, SIGNAL)).kind);
  assert.deepEqual(kinds, ["failed", "failed", "delivered", "refused", "failed"]);
  assert.deepEqual(
    requests.map(({ headers }) => headers.Authorization?.split(" ").at(-1)),
    ["one", "two", "three", "three", "three"],
  );
  assert.deepEqual(
    dropped.map(([resource]) => resource),
    ["https://eventgrid.azure.net", "https://eventgrid.azure.net"],
  );
});

test("without a token nothing is posted", async () => {
  const { poster, requests } = recordingPoster([]);
  const identity: ManagedIdentity = {
    tokenFor: () => Promise.reject(new Error("the metadata service answered 500")),
    drop: () => {},
    close: () => {},
  };
  const sink = createEventTopicSink({ endpoint: "https://t.example/", identity, poster });
  await assert.rejects(sink.attempt(NOTICE, SIGNAL), /answered 500/);
  assert.equal(requests.length, 0);
});
