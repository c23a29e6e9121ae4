/** What a webhook hears of a record that is steered: signed, in order, after the answers have changed, and not twice. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { type EventCollector, type Posted, startCollector } from "../support/event-collector.ts";
import { waitFor } from "../support/wait.ts";
import { create, figure } from "./notify-world.ts";
import {
  type Backends,
  httpTemplate,
  type Steering,
  startBackends,
  startSteering,
  untilAnswered,
  WAIT_MS,
} from "./steer-world.ts";

const SECRET = "secret of the collector";
const [HERE, THERE] = ["127.0.9.1", "127.0.9.2"] as const;

/** The event of a POST whose signature is right. */
function verified({ headers, body }: Posted) {
  const signature = createHmac("sha256", SECRET).update(body, "utf8").digest("hex");
  assert.equal(headers["x-svc-signature"], `sha256=${signature}`);
  const event = JSON.parse(body);
  assert.equal(headers["x-svc-event"], event.type);
  assert.equal(event.node, "node-eu");
  return event;
}

function startNotifying(collector: EventCollector, minIntervalSeconds: number): Promise<Steering> {
  return startSteering({
    env: {
      SVC_NODE_ID: "node-eu",
      SVC_NODE_REGION: "eu",
      SVC_NOTIFICATIONS_ENABLED: "true",
      SVC_NOTIFICATIONS_WEBHOOK_URL: `http://127.0.0.1:${collector.port}/events`,
      SVC_NOTIFICATIONS_WEBHOOK_SECRET: SECRET,
      SVC_NOTIFICATIONS_MIN_INTERVAL_SECONDS: String(minIntervalSeconds),
    },
  });
}

/** One value by a region tag, one by a mapping of its address; the clients are of the node's own region. */
async function steered(world: Steering, backends: Backends): Promise<string> {
  await create(world.api, "/subnet-mappings", { subnet: "127.0.9.2/32", region_id: "us" });
  const id = await world.record({
    name: "app",
    type: "A",
    values: [{ value: HERE, region: "eu" }, { value: THERE }],
    lb_policy: { method: "geo-failover" },
    health_check_template: httpTemplate(backends.port),
  });
  await waitFor("both are healthy", WAIT_MS, async () => {
    return (await world.health(`record_id=${id}`)).every(({ state }) => state === "healthy");
  });
  return id;
}

function received(collector: EventCollector): string[] {
  return collector.posted.map((posted) => {
    const { type, data } = verified(posted);
    return data.status === undefined ? type : `${data.status}`;
  });
}

async function untilReceived(collector: EventCollector, count: number): Promise<void> {
  await waitFor(`${count} events`, WAIT_MS, () => collector.posted.length >= count, 1);
}

test("failover is told when traffic has moved, and its end when traffic is back; fail open is a status", async () => {
  await using collector = await startCollector();
  await using backends = await startBackends(HERE, THERE);
  await using world = await startNotifying(collector, 0);
  const id = await steered(world, backends);
  assert.equal(collector.posted.length, 0, "the first good verdicts are no news");
  assert.deepEqual(await world.ask("app"), [HERE]);

  await backends.at(HERE).kill();
  await untilReceived(collector, 2);
  assert.deepEqual(await world.ask("app"), [THERE], "whoever hears of it finds it done");
  assert.deepEqual(received(collector), ["degraded", "failover.activated"]);
  const [transition, failover] = collector.posted.map(verified);
  assert.deepEqual(
    [transition.data.subject, transition.data.previous, transition.data.healthy, transition.data.total],
    [id, "healthy", 1, 2],
  );
  assert.deepEqual(
    [failover.data.subject, failover.data.record_id, failover.data.region, failover.data.method],
    [id, id, "eu", "geo-failover"],
  );

  // Nothing is healthy anywhere: not a failover any more, and all are candidates again.
  await backends.at(THERE).kill();
  await untilAnswered(world, "app", [HERE]);
  await untilReceived(collector, 3);
  const last = verified(collector.posted.at(2) as Posted);
  assert.deepEqual([last.data.status, last.data.failing_open], ["unhealthy", true]);

  await backends.at(HERE).revive();
  await waitFor("it has recovered", WAIT_MS, () => received(collector).includes("failover.recovered"), 1);
  assert.deepEqual(await world.ask("app"), [HERE]);
  await backends.at(THERE).revive();
  await waitFor("all is well", WAIT_MS, () => received(collector).at(-1) === "healthy");
  assert.deepEqual(received(collector), [
    "degraded",
    "failover.activated",
    "unhealthy",
    "degraded",
    "failover.recovered",
    "healthy",
  ]);
  assert.equal(await figure(world.node, "svc_notify_suppressed_total"), 0);
});

test("within the interval the same type about the same record is told once, and the status tells the rest", async () => {
  await using collector = await startCollector();
  await using backends = await startBackends(HERE, THERE);
  await using world = await startNotifying(collector, 3_600);
  const id = await steered(world, backends);
  for (let round = 1; round <= 2; round++) {
    await backends.at(HERE).kill();
    await untilAnswered(world, "app", [THERE]);
    await backends.at(HERE).revive();
    await untilAnswered(world, "app", [HERE]);
  }
  // Of eight events three are first of their type.
  await waitFor("the repeats are counted", WAIT_MS, async () => {
    return (await figure(world.node, "svc_notify_suppressed_total")) === 5;
  });
  await untilReceived(collector, 3);
  assert.deepEqual(received(collector), ["degraded", "failover.activated", "failover.recovered"]);
  assert.equal((await world.health(`record_id=${id}`))[0].record_status, "healthy");
});
