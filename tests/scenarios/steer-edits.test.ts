/** Records that are steered and changed: what is gated, probed and forgotten follows the write. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "../support/wait.ts";
import { figure } from "./notify-world.ts";
import {
  httpTemplate,
  type Steering,
  sharedSteering,
  startBackends,
  untilAnswered,
  untilJudged,
  valuesOf,
  WAIT_MS,
} from "./steer-world.ts";

const [A, B, C] = ["127.0.10.1", "127.0.10.2", "127.0.10.3"] as const;

const steering = sharedSteering();

async function put({ api }: Steering, id: string, json: object): Promise<void> {
  const { status, body } = await api.ask("PUT", `/records/${id}`, json);
  assert.equal(status, 200, JSON.stringify(body));
}

/** How many distinct probes the node has. */
async function probes({ node }: Steering): Promise<number> {
  const states = ["unknown", "healthy", "unhealthy"];
  const counts = await Promise.all(states.map((state) => figure(node, `svc_health_probes{state="${state}"}`)));
  return counts.reduce((sum, count) => sum + count, 0);
}

async function untilProbes(world: Steering, wanted: number): Promise<void> {
  await waitFor(`${wanted} probes`, WAIT_MS, async () => (await probes(world)) === wanted);
}

test("a template that is taken away gates no more from the next answer on, and the same again is known at once or soon", async () => {
  await using backends = await startBackends(A);
  await using world = await steering();
  const health_check_template = httpTemplate(backends.port);
  const id = await world.record({ name: "app", type: "A", values: valuesOf(A, B), health_check_template });
  await untilAnswered(world, "app", [A]);
  await put(world, id, { health_check_template: null });
  assert.deepEqual((await world.ask("app")).toSorted(), [A, B]);
  await untilProbes(world, 0);
  assert.deepEqual(await world.health(`record_id=${id}`), []);
  await put(world, id, { health_check_template });
  await untilAnswered(world, "app", [A]);
});

test("values come and go: the dead one that stays is never answered meanwhile, and what goes is probed no more", async () => {
  await using backends = await startBackends(A, C);
  await using world = await steering();
  const id = await world.record({
    name: "app",
    type: "A",
    values: valuesOf(A, B),
    health_check_template: httpTemplate(backends.port),
  });
  await untilAnswered(world, "app", [A]);
  await put(world, id, { values: valuesOf(B, C, A) });
  assert.deepEqual((await world.ask("app")).toSorted(), [A, C], "B is dead still, C counts as healthy");
  await untilJudged(world, id, { [A]: "healthy", [B]: "unhealthy", [C]: "healthy" });
  await put(world, id, { lb_policy: { method: "failover", failover_order: [B, C] } });
  assert.deepEqual(await world.ask("app"), [C]);
  await put(world, id, { values: valuesOf(B, A), lb_policy: { method: "failover", failover_order: [B] } });
  assert.deepEqual(await world.ask("app"), [A]);
  await untilProbes(world, 2);
  // What is under way at the write may arrive; the next round of the others may bring nothing more.
  const [goneBefore, othersBefore] = [backends.at(C).connections, backends.at(A).connections];
  await waitFor("three further rounds", WAIT_MS, () => backends.at(A).connections >= othersBefore + 3);
  assert.ok(backends.at(C).connections <= goneBefore + 1);
});

test("a probe that two records share ends with the last of them", async () => {
  await using backends = await startBackends(A);
  await using world = await steering();
  const health_check_template = httpTemplate(backends.port);
  const rest = { type: "A", values: valuesOf(A, B), health_check_template };
  const first = await world.record({ name: "one", ...rest });
  const second = await world.record({ name: "two", ...rest });
  await untilAnswered(world, "one", [A]);
  assert.deepEqual(await world.ask("two"), [A]);
  assert.equal((await world.health(`record_id=${first}`))[0].gates.count, 2);
  await untilProbes(world, 2);
  assert.equal((await world.api.ask("DELETE", `/records/${first}`)).status, 200);
  assert.deepEqual(await world.ask("two"), [A]);
  await waitFor("one record is gated", WAIT_MS, async () => {
    return (await world.health(`record_id=${second}`))[0].gates.count === 1;
  });
  assert.equal(await probes(world), 2);
  assert.equal((await world.api.ask("DELETE", `/zones/${world.zoneId}`)).status, 200);
  await untilProbes(world, 0);
  assert.deepEqual(await world.health("kind=value"), []);
});
