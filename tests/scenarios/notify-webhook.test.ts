/** Events of a real node as a webhook receives them, signed, and what becomes of them where the receiver is in trouble. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { test } from "node:test";
import { type Answer, type EventCollector, ok, type Posted, startCollector } from "../support/event-collector.ts";
import { freePort } from "../support/ports.ts";
import { waitFor } from "../support/wait.ts";
import { type ApiClient, signIn } from "./api-client.ts";
import { dig } from "./dig.ts";
import { create, failingCheck, figure, untilFigure, WAIT_MS } from "./notify-world.ts";
import { type ScenarioNode, startNode } from "./running-node.ts";

const SECRET = "planted-secret-of-the-webhook";
const PATH = "/planted-path?token=planted-token";

type World = AsyncDisposable & {
  readonly node: ScenarioNode;
  readonly api: ApiClient;
  readonly collector: EventCollector;
};

async function open(answer: Answer = ok, env: Readonly<Record<string, string>> = {}): Promise<World> {
  const stack = new AsyncDisposableStack();
  const collector = stack.use(await startCollector(answer));
  const node = stack.use(
    await startNode({
      env: {
        SVC_NODE_ID: "node-a",
        SVC_NODE_REGION: "west",
        SVC_NOTIFICATIONS_ENABLED: "true",
        SVC_NOTIFICATIONS_WEBHOOK_URL: `http://127.0.0.1:${collector.port}${PATH}`,
        SVC_NOTIFICATIONS_WEBHOOK_SECRET: SECRET,
        SVC_NOTIFICATIONS_MIN_INTERVAL_SECONDS: "0",
        ...env,
      },
    }),
  );
  const api = stack.use(await signIn(node.api));
  return { node, api, collector, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** The event of a POST whose signature is right. */
function verified({ method, url, headers, body }: Posted) {
  assert.deepEqual([method, url], ["POST", PATH]);
  assert.equal(headers["content-type"], "application/json");
  const signature = createHmac("sha256", SECRET).update(body, "utf8").digest("hex");
  assert.equal(headers["x-svc-signature"], `sha256=${signature}`);
  const event = JSON.parse(body);
  assert.deepEqual(Object.keys(event).sort(), ["data", "node", "time", "type"]);
  assert.equal(headers["x-svc-event"], event.type);
  assert.equal(event.node, "node-a");
  assert.equal(new Date(event.time).toISOString(), event.time);
  assert.equal(typeof event.data.subject, "string");
  return event;
}

async function backend(address: string, port: number): Promise<AsyncDisposable & { readonly port: number }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    socket.on("close", () => sockets.delete(socket));
  });
  server.listen(port, address);
  await once(server, "listening");
  const bound = server.address();
  return {
    port: typeof bound === "object" && bound !== null ? bound.port : 0,
    [Symbol.asyncDispose]: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}

test("a backend that dies and comes back is told of, as transition and as failover", async () => {
  await using world = await open();
  const { node, api, collector } = world;
  const zone = await create(api, "/zones", { name: "steer.test." });
  let west = await backend("127.0.0.1", 0);
  await using _east = await backend("127.0.0.2", west.port);
  const record = await create(api, `/zones/${zone}/records`, {
    name: "app",
    type: "A",
    ttl: 5,
    values: [
      { value: "127.0.0.1", region: "west" },
      { value: "127.0.0.2", region: "east" },
    ],
    lb_policy: { method: "geo-failover" },
    health_check_template: { protocol: "tcp", port: west.port, interval_seconds: 1, timeout_seconds: 1 },
  });
  await west[Symbol.asyncDispose]();
  const received = () => collector.posted.map(verified);
  await waitFor("two events", WAIT_MS, () => received().length >= 2);
  west = await backend("127.0.0.1", west.port);
  await using _west = west;
  await waitFor("four events", WAIT_MS, () => received().length >= 4);
  const events = received();
  assert.deepEqual(
    events.map(({ type, data }) => [type, data.subject, data.status]),
    [
      ["health.check_transition", record, "degraded"],
      ["failover.activated", record, undefined],
      ["health.check_transition", record, "healthy"],
      ["failover.recovered", record, undefined],
    ],
  );
  assert.equal(events[1].data.record_id, record);
  await untilFigure(node, 'svc_notify_delivered_total{sink="webhook"}', 4);
  await untilFigure(node, 'svc_notify_queue{sink="webhook"}', 0);
  assert.equal(await figure(node, 'svc_notify_failed_total{sink="webhook"}'), 0);
  assert.equal(await figure(node, "svc_notify_dropped_total"), 0);
  assert.equal(await figure(node, "svc_notify_suppressed_total"), 0);
});

test("repeats within the interval are suppressed and counted, and types that nobody asked for are not sent", async () => {
  await using world = await open(ok, {
    SVC_NOTIFICATIONS_MIN_INTERVAL_SECONDS: "3600",
    SVC_NOTIFICATIONS_EVENT_TYPES: "health.check_transition,backup.failed",
  });
  const { node, api, collector } = world;
  const port = await freePort();
  const target = `127.0.0.1:${port}`;
  const given = { name: "flaps", protocol: "tcp", target, interval_seconds: 1, failure_threshold: 1 };
  const id = await create(api, "/healthchecks", given);
  await waitFor("the first event", WAIT_MS, () => collector.posted.length === 1);
  {
    await using _up = await backend("127.0.0.1", port);
    await untilFigure(node, "svc_notify_suppressed_total", 1);
  }
  await untilFigure(node, "svc_notify_suppressed_total", 2);
  const events = collector.posted.map(verified);
  assert.deepEqual(
    events.map(({ type, data }) => [type, data.subject]),
    [["health.check_transition", id]],
  );
});

test("500s are tried again with the same bytes, other refusals and redirects are not, and no proxy is asked", async () => {
  await using proxy = await startCollector();
  // By event, each one's name tells what becomes of it.
  const answers: Readonly<Record<string, readonly number[]>> = {
    "comes-back": [500, 503, 200],
    "stays-broken": [500, 502, 504],
    "is-refused": [400],
    "is-redirected": [307],
  };
  const attempts = new Map<string, Posted[]>();
  const answer: Answer = (posted, response) => {
    const { name } = verified(posted).data;
    const earlier = attempts.get(name) ?? [];
    attempts.set(name, [...earlier, posted]);
    const status = answers[name]?.[earlier.length] ?? 404;
    response.writeHead(status, { location: `http://127.0.0.1:${proxy.port}/` }).end("thanks");
  };
  const asked = `http://127.0.0.1:${proxy.port}`;
  await using world = await open(answer, { NODE_USE_ENV_PROXY: "1", HTTP_PROXY: asked, http_proxy: asked });
  const { node, api } = world;
  for (const name of Object.keys(answers)) await failingCheck(api, name);
  await untilFigure(node, 'svc_notify_failed_total{sink="webhook"}', 3);
  await untilFigure(node, 'svc_notify_delivered_total{sink="webhook"}', 1);
  for (const [name, statuses] of Object.entries(answers)) {
    const posted = attempts.get(name) ?? [];
    assert.equal(posted.length, statuses.length, name);
    assert.equal(new Set(posted.map(({ body }) => body)).size, 1, name);
  }
  const [first, second, third] = attempts.get("stays-broken") ?? [];
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  assert.ok(second.atMs - first.atMs >= 990, `${second.atMs - first.atMs} ms`);
  assert.ok(third.atMs - second.atMs >= 4_990, `${third.atMs - second.atMs} ms`);
  assert.equal(proxy.posted.length, 0);
  assert.ok(node.messages().some((message) => /^events could not be delivered: answered/.test(message)));
  assert.doesNotMatch(node.child.output(), /planted/);
});

test("a receiver that never answers is given up after 10 s, tried again, and holds up neither answers nor the end", async () => {
  const answer: Answer = ({ body }, response, index) => {
    // The first attempt hangs, every answer goes on for ever.
    if (index === 0) return;
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write(body));
    };
    response.on("drain", more);
    more();
  };
  await using world = await open(answer);
  const { node, api, collector } = world;
  await failingCheck(api, "one");
  await waitFor("the first attempt", WAIT_MS, () => collector.posted.length === 1);
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  assert.match(await dig(endpoint, "example.test.", "SOA"), /example\.test\./);
  assert.equal(await figure(node, 'svc_notify_queue{sink="webhook"}'), 1);
  // An event about something else does not wait for it.
  await failingCheck(api, "two");
  await untilFigure(node, 'svc_notify_delivered_total{sink="webhook"}', 1);
  await untilFigure(node, 'svc_notify_delivered_total{sink="webhook"}', 2);
  assert.equal(collector.posted.length, 3);
  const [first, , third] = collector.posted;
  assert.equal(first?.body, third?.body);
  assert.ok((third?.atMs ?? 0) - (first?.atMs ?? 0) >= 10_000);
});

test("a node that ends delivers what it can, and ends in time where nobody answers", async () => {
  await using world = await open(() => {});
  const { node, api, collector } = world;
  await failingCheck(api, "one");
  await waitFor("the attempt", WAIT_MS, () => collector.posted.length === 1);
  const status = await node.child.stop();
  assert.deepEqual(status, { code: 0, signal: null });
  assert.ok(node.messages().includes("events are given up: the node stops"), node.child.output());
  assert.equal(node.messages().at(-1), "stopped");
});

test("nothing is sent unless notifications are enabled", async () => {
  await using world = await open(ok, { SVC_NOTIFICATIONS_ENABLED: "false" });
  const { node, api, collector } = world;
  const id = await failingCheck(api, "one");
  await waitFor("the check is unhealthy", WAIT_MS, async () => {
    const { body } = await api.ask("GET", `/healthchecks/${id}/status`);
    return body.state === "unhealthy";
  });
  assert.equal(collector.posted.length, 0);
  assert.equal(await figure(node, "svc_notify_dropped_total"), 0);
  await node.child.stop();
  assert.equal(collector.posted.length, 0);
});

test("a webhook without a secret is sent unsigned, and said so at the start", async () => {
  await using world = await open(ok, { SVC_NOTIFICATIONS_WEBHOOK_SECRET: "" });
  const { node, api, collector } = world;
  assert.ok(node.messages().some((message) => message.includes("notifications.webhook_secret is not set")));
  await failingCheck(api, "one");
  await waitFor("the event", WAIT_MS, () => collector.posted.length === 1);
  assert.equal(collector.posted[0]?.headers["x-svc-signature"], undefined);
});
