/** Round-robin, failover, weighted and latency: what clients get while backends live, die, slow down and come back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "../support/wait.ts";
import {
  type Backends,
  httpTemplate,
  type Steering,
  sharedSteering,
  startBackends,
  tally,
  untilAnswered,
  untilJudged,
  valuesOf,
  WAIT_MS,
} from "./steer-world.ts";

const [A, B, C] = ["127.0.1.1", "127.0.1.2", "127.0.1.3"] as const;

const steering = sharedSteering();

function gated(world: Steering, backends: Backends, name: string, lb_policy?: object): Promise<string> {
  const health_check_template = httpTemplate(backends.port);
  return world.record({
    name,
    type: "A",
    values: valuesOf(A, B, C),
    health_check_template,
    ...(lb_policy === undefined ? {} : { lb_policy }),
  });
}

test("all healthy values are answered, round-robin begins with another each time, and the dead are left out", async () => {
  await using backends = await startBackends(A, B, C);
  await using world = await steering();
  const id = await gated(world, backends, "rr", { method: "round-robin" });
  await gated(world, backends, "plain");
  await untilJudged(world, id, { [A]: "healthy", [B]: "healthy", [C]: "healthy" });
  assert.deepEqual(
    [...(await tally(world, "rr", 30))].toSorted(),
    [
      [`${A} ${B} ${C}`, 10],
      [`${B} ${C} ${A}`, 10],
      [`${C} ${A} ${B}`, 10],
    ],
    "each begins a third of the answers",
  );
  await untilAnswered(world, "plain", [A, B, C]);
  await backends.at(B).kill();
  await untilAnswered(world, "rr", [A, C]);
  await untilAnswered(world, "plain", [A, C]);
  assert.deepEqual([...(await tally(world, "rr", 20))].toSorted(), [
    [`${A} ${C}`, 10],
    [`${C} ${A}`, 10],
  ]);
  await backends.at(B).revive();
  await untilAnswered(world, "rr", [A, B, C]);
});

test("failover answers the first healthy value of its order, goes back to it, and fails open when none is left", async () => {
  await using backends = await startBackends(A, B, C);
  await using world = await steering();
  const id = await gated(world, backends, "fo", { method: "failover", failover_order: [B, C] });
  assert.deepEqual([...(await tally(world, "fo", 20))], [[B, 20]]);
  await backends.at(B).kill();
  await untilAnswered(world, "fo", [C]);
  await backends.at(C).kill();
  await untilAnswered(world, "fo", [A]);
  await backends.at(A).kill();
  await untilAnswered(world, "fo", [B]);
  const items = await untilJudged(world, id, { [A]: "unhealthy", [B]: "unhealthy", [C]: "unhealthy" });
  assert.deepEqual(
    items.map(({ failing_open, record_status }) => [failing_open, record_status]),
    [
      [true, "unhealthy"],
      [true, "unhealthy"],
      [true, "unhealthy"],
    ],
  );
  await backends.at(A).revive();
  await untilAnswered(world, "fo", [A]);
  await waitFor("fail open ends", WAIT_MS, async () => !(await world.health(`record_id=${id}`))[0].failing_open);
  await backends.at(C).revive();
  await untilAnswered(world, "fo", [C]);
  await backends.at(B).revive();
  await untilAnswered(world, "fo", [B]);
});

/** Shares in percent are within five standard deviations of what is expected of that many questions. */
function assertShares(counts: ReadonlyMap<string, number>, expected: Readonly<Record<string, number>>): void {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  for (const [value, percent] of Object.entries(expected)) {
    const share = (100 * (counts.get(value) ?? 0)) / total;
    const allowed = 5 * Math.sqrt((percent * (100 - percent)) / total);
    assert.ok(Math.abs(share - percent) <= allowed, `${value}: ${share} % instead of ${percent} % +- ${allowed}`);
  }
  for (const value of counts.keys()) assert.ok(value in expected, value);
}

test("weighted answers one value in proportion, the unlisted get the rest, and a dead one's share goes to the others", async () => {
  await using backends = await startBackends(A, B, C);
  await using world = await steering();
  await gated(world, backends, "w", { method: "weighted", value_weights: { [A]: 60, [B]: 30 } });
  assertShares(await tally(world, "w", 4_000), { [A]: 60, [B]: 30, [C]: 10 });
  await backends.at(A).kill();
  await waitFor("the heaviest is withheld", WAIT_MS, async () => !(await tally(world, "w", 20)).has(A));
  assertShares(await tally(world, "w", 4_000), { [B]: 75, [C]: 25 });
});

test("weights that are changed hold from the next answer on, and 0 is no traffic while others are healthy", async () => {
  await using backends = await startBackends(A, B, C);
  await using world = await steering();
  const policy = (weights: object) => ({ method: "weighted", value_weights: weights });
  const id = await gated(world, backends, "w", policy({ [A]: 100, [B]: 0, [C]: 0 }));
  assert.deepEqual([...(await tally(world, "w", 200))], [[A, 200]]);
  const changed = await world.api.ask("PUT", `/records/${id}`, { lb_policy: policy({ [A]: 0, [B]: 100, [C]: 0 }) });
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  assert.deepEqual([...(await tally(world, "w", 200))], [[B, 200]]);
  await backends.at(B).kill();
  await waitFor("the others share", WAIT_MS, async () => !(await tally(world, "w", 20)).has(B));
  assertShares(await tally(world, "w", 1_000), { [A]: 50, [C]: 50 });
});

test("latency answers the value that its own probes find nearest, moves when it slows down, and does not flap", async () => {
  await using backends = await startBackends(A, B, C);
  backends.at(B).delayMs = 250;
  backends.at(C).delayMs = 250;
  await using world = await steering();
  const id = await gated(world, backends, "near", { method: "latency" });
  const items = await untilJudged(world, id, { [A]: "healthy", [B]: "healthy", [C]: "healthy" });
  assert.ok(items.every(({ latency_ms }) => latency_ms > 0));
  assert.deepEqual([...(await tally(world, "near", 100))], [[A, 100]]);
  backends.at(A).delayMs = 800;
  await waitFor("the slow one is left", WAIT_MS, async () => !(await tally(world, "near", 10)).has(A));
  const seen: string[] = [];
  const probesSeen = backends.at(B).connections;
  await waitFor("three further rounds of probes", WAIT_MS, async () => {
    seen.push(...(await world.ask("near")));
    return backends.at(B).connections >= probesSeen + 3;
  });
  const moves = seen.filter((value, at) => at > 0 && value !== seen[at - 1]).length;
  assert.ok(moves <= 2, `${moves} moves in ${seen.length} answers between two that are equally near`);
  assert.ok(seen.length > 50 && !seen.includes(A));
});
