/** Events of a real node as an event topic receives them, over HTTPS and with tokens of the managed identity. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeCertificate } from "../support/certificates.ts";
import { type Answer, type EventCollector, ok, startCollector } from "../support/event-collector.ts";
import { type MetadataService, startMetadataService } from "../support/metadata-service.ts";
import { waitFor } from "../support/wait.ts";
import { type ApiClient, signIn } from "./api-client.ts";
import { failingCheck, figure, untilFigure, WAIT_MS } from "./notify-world.ts";
import { type ScenarioNode, startNode } from "./running-node.ts";

const DELIVERED = 'svc_notify_delivered_total{sink="eventgrid"}';
const FAILED = 'svc_notify_failed_total{sink="eventgrid"}';

type World = AsyncDisposable & {
  readonly node: ScenarioNode;
  readonly api: ApiClient;
  readonly topic: EventCollector;
  readonly metadata: MetadataService;
};

type Setup = {
  readonly answer?: (tokens: MetadataService["tokens"]) => Answer;
  /** Names in the topic's certificate. */
  readonly names?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
};

async function open({ answer = () => ok, names = ["127.0.0.1"], env = {} }: Setup = {}): Promise<World> {
  const stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "signpost-topic-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const authority = makeCertificate({ commonName: "authority of the test", isAuthority: true });
  const authorityFile = join(directory, "authority.pem");
  await writeFile(authorityFile, authority.cert);
  const metadata = stack.use(await startMetadataService());
  const certificate = makeCertificate({ commonName: "topic", names, issuer: authority });
  const topic = stack.use(await startCollector(answer(metadata.tokens), certificate));
  const node = stack.use(
    await startNode({
      env: {
        NODE_EXTRA_CA_CERTS: authorityFile,
        SVC_NODE_ID: "node-a",
        SVC_CLOUD_METADATA_URL: metadata.url,
        SVC_NOTIFICATIONS_ENABLED: "true",
        SVC_NOTIFICATIONS_EVENTGRID_TOPIC_ENDPOINT: `https://127.0.0.1:${topic.port}/api/events`,
        ...env,
      },
    }),
  );
  const api = stack.use(await signIn(node.api));
  return { node, api, topic, metadata, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

test("a topic and a webhook each have the event in their own form, and the token is fetched once", async () => {
  await using webhook = await startCollector();
  await using world = await open({ env: { SVC_NOTIFICATIONS_WEBHOOK_URL: `http://127.0.0.1:${webhook.port}/` } });
  const { node, api, topic, metadata } = world;
  assert.equal(metadata.tokens.length, 0);
  const beforeNs = BigInt(Date.now()) * 1_000_000n;
  const checks = [await failingCheck(api, "one"), await failingCheck(api, "two")];
  await untilFigure(node, DELIVERED, 2);
  await untilFigure(node, 'svc_notify_delivered_total{sink="webhook"}', 2);
  assert.deepEqual(metadata.tokens, [{ token: "planted-token-1", resource: "https://eventgrid.azure.net" }]);
  for (const { method, url, headers, body } of topic.posted) {
    assert.deepEqual([method, url], ["POST", "/api/events?api-version=2018-01-01"]);
    assert.equal(headers["content-type"], "application/json");
    assert.equal(headers.authorization, "Bearer planted-token-1");
    const events = JSON.parse(body);
    assert.equal(events.length, 1);
    const [{ id, subject, eventTime, data, ...rest }] = events;
    assert.deepEqual(rest, { eventType: "Svc.health.check_transition", dataVersion: "1" });
    assert.equal(subject, `svc/node-a/${data.subject}`);
    const [, timeNs = ""] = /^node-a-health\.check_transition-(\d{19})$/.exec(id) ?? [];
    assert.ok(BigInt(timeNs) >= beforeNs && BigInt(timeNs) <= BigInt(Date.now() + 1) * 1_000_000n, id);
    assert.equal(new Date(eventTime).getTime(), Number(BigInt(timeNs) / 1_000_000n));
    // The same event as the webhook has.
    const other = webhook.posted.map((one) => JSON.parse(one.body)).find((one) => one.data.subject === data.subject);
    assert.deepEqual([other.time, other.data], [eventTime, data]);
  }
  const subjects = topic.posted.map(({ body }) => JSON.parse(body)[0].data.subject);
  assert.deepEqual(subjects.sort(), checks.sort());
  assert.doesNotMatch(node.child.output(), /planted/);
});

test("a role granted after the start takes effect without a restart", async () => {
  // The topic believes tokens that were made after the grant.
  let granted: readonly string[] | undefined;
  const answer: Setup["answer"] = () => (posted, response) => {
    const token = posted.headers.authorization?.replace("Bearer ", "") ?? "";
    response.writeHead(granted === undefined || granted.includes(token) ? 403 : 200).end("{}");
  };
  await using world = await open({ answer });
  const { node, api, topic, metadata } = world;
  await failingCheck(api, "one");
  await untilFigure(node, FAILED, 1);
  assert.equal(topic.posted.length, 3);
  assert.ok(node.messages().some((message) => /answered 403 to the managed identity$/.test(message)));
  granted = metadata.tokens.map(({ token }) => token);
  await failingCheck(api, "two");
  await untilFigure(node, DELIVERED, 1);
  assert.equal(await figure(node, FAILED), 1);
  assert.equal(JSON.parse(topic.posted.at(-1)?.body ?? "")[0].data.name, "two");
  assert.doesNotMatch(node.child.output(), /planted/);
});

test("without a token nothing is posted; when there are tokens again, events are", async () => {
  await using world = await open();
  const { node, api, topic, metadata } = world;
  metadata.fail(400);
  await failingCheck(api, "one");
  await untilFigure(node, FAILED, 1);
  assert.equal(topic.posted.length, 0);
  assert.ok(node.messages().some((message) => /the metadata service answered 400$/.test(message)));
  metadata.fail(undefined);
  await failingCheck(api, "two");
  await untilFigure(node, DELIVERED, 1);
  assert.equal(topic.posted.length, 1);
});

for (const [what, setup] of [
  ["of another name", { names: ["topic.example"] }],
  ["that nobody vouches for", { env: { NODE_EXTRA_CA_CERTS: "" } }],
] as const) {
  test(`a topic with a certificate ${what} has neither token nor event`, async () => {
    await using world = await open(setup);
    const { node, api, topic } = world;
    await failingCheck(api, "one");
    await untilFigure(node, FAILED, 1);
    assert.equal(topic.posted.length, 0);
    const [line] = await waitFor("the failure is in the log", WAIT_MS, () => {
      const lines = node.messages().filter((message) => message.startsWith("events could not be delivered"));
      return lines.length > 0 && lines;
    });
    assert.match(line ?? "", /CERT|LEAF_SIGNATURE/);
  });
}
