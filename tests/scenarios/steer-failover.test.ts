/** A backend in trouble: when answers change, when they do not, and what outlives the node. */
import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { waitFor } from "../support/wait.ts";
import {
  httpTemplate,
  type Steering,
  sharedSteering,
  startBackends,
  startSteering,
  untilAnswered,
  untilJudged,
  valuesOf,
  WAIT_MS,
} from "./steer-world.ts";

const [A, B] = ["127.0.4.1", "127.0.4.2"] as const;
const BOTH = [A, B];
const INTERVAL_MS = 1_000;
const TIMEOUT_MS = 1_000;
/** What the machine may take besides, with other work and a slow disk. */
const GENEROUS_MS = 20_000;
const HELD_UP_MS = 500;

const steering = sharedSteering();

function gated(world: Steering, port: number): Promise<string> {
  return world.record({
    name: "app",
    type: "A",
    values: valuesOf(...BOTH),
    lb_policy: { method: "round-robin" },
    health_check_template: httpTemplate(port),
  });
}

/** Asks without a pause until the answer has that many values; when the last other and the first such answer came. */
async function untilCount(
  world: Steering,
  count: number,
): Promise<{ readonly lastMs: number; readonly firstMs: number }> {
  let lastMs = Date.now();
  return await waitFor(
    `an answer with ${count} values`,
    WAIT_MS,
    async () => {
      const askedMs = Date.now();
      if ((await world.ask("app")).length === count) return { lastMs, firstMs: Date.now() };
      lastMs = askedMs;
      return false;
    },
    0,
  );
}

async function sinceMs(world: Steering, id: string, value: string, state: string): Promise<number> {
  const items = await untilJudged(world, id, { [value]: state });
  return Date.parse(items.find((item) => item.value === value).since);
}

/** The answers changed with the verdict: none before it, and the next query after it. */
function assertFollows(
  t: TestContext,
  what: string,
  verdictMs: number,
  change: Awaited<ReturnType<typeof untilCount>>,
) {
  t.diagnostic(
    `${what}: verdict at 0 ms, last answer before ${change.lastMs - verdictMs} ms, first after ${change.firstMs - verdictMs} ms`,
  );
  // The verdict is timed when it can be seen already, by a thread that may be held up in between.
  assert.ok(
    change.firstMs >= verdictMs - HELD_UP_MS,
    `${what}: answers changed ${verdictMs - change.firstMs} ms before the verdict`,
  );
  assert.ok(change.lastMs <= verdictMs + GENEROUS_MS, `${what}: ${change.lastMs - verdictMs} ms after the verdict`);
}

for (const [how, deathOf] of [
  ["that is gone", "refused"],
  ["that hangs", "read_timeout"],
  ["that answers 503", "status"],
] as const) {
  test(`a backend ${how} is withheld after three failures, and answered again after two successes`, async (t) => {
    await using backends = await startBackends(...BOTH);
    await using world = await steering();
    const id = await gated(world, backends.port);
    await untilJudged(world, id, { [A]: "healthy", [B]: "healthy" });
    const backend = backends.at(B);
    const killedMs = Date.now();
    if (deathOf === "refused") await backend.kill();
    else if (deathOf === "status") backend.status = 503;
    else backend.delayMs = 60_000;
    const withheld = await untilCount(world, 1);
    assert.deepEqual(await world.ask("app"), [A]);
    const deadMs = await sinceMs(world, id, B, "unhealthy");
    assertFollows(t, "withheld", deadMs, withheld);
    t.diagnostic(`noticed after ${deadMs - killedMs} ms`);
    assert.ok(deadMs - killedMs <= 3 * INTERVAL_MS + TIMEOUT_MS + GENEROUS_MS);
    const [item] = (await world.health(`record_id=${id}`)).filter(({ value }) => value === B);
    assert.equal(item.probes.at(-1).error, deathOf);
    assert.ok(item.failures >= 3);

    if (deathOf === "refused") await backend.revive();
    backend.status = 200;
    backend.delayMs = 0;
    const back = await untilCount(world, 2);
    assertFollows(t, "answered again", await sinceMs(world, id, B, "healthy"), back);
  });
}

test("two failures withhold nothing, and one success brings nothing back", async () => {
  await using backends = await startBackends(...BOTH);
  await using world = await steering();
  const id = await gated(world, backends.port);
  await untilJudged(world, id, { [A]: "healthy", [B]: "healthy" });
  const backend = backends.at(B);
  /** Asks until the backend has given all planned answers and one more; every answer must have that many values. */
  const through = async (plan: readonly number[], count: number) => {
    backend.plan.push(...plan);
    const probesBefore = backend.connections;
    await waitFor("the planned probes", WAIT_MS, async () => {
      assert.equal((await world.ask("app")).length, count);
      return backend.connections > probesBefore + plan.length;
    });
  };
  await through([503, 503, 200, 503, 503], 2);
  backend.status = 503;
  await untilAnswered(world, "app", [A]);
  await through([200, 503, 200, 503], 1);
  backend.status = 200;
  await untilAnswered(world, "app", BOTH);
});

test("a node that is killed and starts again knows who was dead, and since when, before its first answer", async () => {
  await using backends = await startBackends(...BOTH);
  const disposing = new AsyncDisposableStack();
  try {
    const first = disposing.use(await startSteering());
    const id = await gated(first, backends.port);
    await backends.at(B).kill();
    await untilAnswered(first, "app", [A]);
    const deadMs = await sinceMs(first, id, B, "unhealthy");
    const { directory, child } = first.node;
    await waitFor("the state is on the disk", WAIT_MS, async () => {
      const file = await stat(join(directory, "data", "health-state")).catch(() => undefined);
      return file !== undefined && file.mtimeMs > deadMs;
    });
    process.kill(child.pid, "SIGKILL");
    await child.exited;
    // Nothing tells the dead from the living but what is remembered: the first probes are still to come.
    await using again = await startSteering({ directory });
    for (let asked = 0; asked < 1_000; asked++) assert.deepEqual(await again.ask("app"), [A], `answer ${asked}`);
    assert.equal(await sinceMs(again, id, B, "unhealthy"), deadMs);
    const checked = await waitFor("a probe by the new process", WAIT_MS, async () => {
      const items = await again.health(`record_id=${id}`);
      const item = items.find(({ value }) => value === B);
      return item.probes.length > 0 && item;
    });
    assert.deepEqual([checked.state, Date.parse(checked.since)], ["unhealthy", deadMs]);
    await backends.at(B).revive();
    await untilAnswered(again, "app", BOTH);
    assert.ok((await sinceMs(again, id, B, "healthy")) > deadMs);
  } finally {
    await disposing.disposeAsync();
  }
});
