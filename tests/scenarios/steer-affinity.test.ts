/** Clients keep their value: thousands of them, told apart by the networks that a trusted resolver names. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { httpTemplate, type Steering, sharedSteering, startBackends, untilJudged, valuesOf } from "./steer-world.ts";

const VALUES = ["127.0.5.1", "127.0.5.2", "127.0.5.3", "127.0.5.4", "127.0.5.5"] as const;
const [DYING] = VALUES;
const CLIENTS = 4_096;
const AT_ONCE = 64;
/** A week: hardly a client's period ends while the test runs. */
const AFFINITY_SECONDS = 604_800;
/** So many clients may begin a new period meanwhile; a tenth of one is to be expected. */
const MOVED_BY_TIME = 4;

function networkOf(client: number): string {
  return `10.${100 + (client >> 8)}.${client & 0xff}.0/24`;
}

const start = sharedSteering({ env: { SVC_DNS_CLIENT_SUBNET_SOURCES: "127.0.0.1/32" } });

/** The value of each client, all of whose answers have just one. */
async function valuesByClient(world: Steering, name: string): Promise<string[]> {
  const values: string[] = [];
  for (let first = 0; first < CLIENTS; first += AT_ONCE) {
    const clients = Array.from({ length: AT_ONCE }, (_, index) => networkOf(first + index));
    const answers = await Promise.all(clients.map((network) => world.ask(name, { network })));
    for (const answer of answers) {
      assert.equal(answer.length, 1);
      values.push(answer[0] ?? "");
    }
  }
  return values;
}

function sharesOf(values: readonly string[]): Map<string, number> {
  const shares = new Map<string, number>();
  for (const value of values) shares.set(value, (shares.get(value) ?? 0) + 100 / values.length);
  return shares;
}

/** Percentages are within five standard deviations. */
function assertShares(values: readonly string[], expected: Readonly<Record<string, number>>): void {
  const shares = sharesOf(values);
  assert.deepEqual([...shares.keys()].toSorted(), Object.keys(expected).toSorted());
  for (const [value, percent] of Object.entries(expected)) {
    const allowed = 5 * Math.sqrt((percent * (100 - percent)) / values.length);
    const share = shares.get(value) ?? 0;
    assert.ok(Math.abs(share - percent) <= allowed, `${value}: ${share} % instead of ${percent} % +- ${allowed}`);
  }
}

/** How many clients moved though nothing happened to their value. */
function strays(before: readonly string[], after: readonly string[], gone: string | undefined): number {
  return before.filter((value, client) => value !== gone && value !== after[client]).length;
}

function states(dead: string | undefined): Record<string, string> {
  return Object.fromEntries(VALUES.map((value) => [value, value === dead ? "unhealthy" : "healthy"]));
}

for (const [method, rest, expected] of [
  ["round-robin", {}, [20, 20, 20, 20, 20]],
  ["weighted", { value_weights: { [VALUES[0]]: 40, [VALUES[1]]: 30, [VALUES[2]]: 20 } }, [40, 30, 20, 5, 5]],
] as const) {
  test(`${method} with affinity: when a value dies only its clients move, and when it is back only they return`, async () => {
    await using backends = await startBackends(...VALUES);
    await using world = await start();
    const id = await world.record({
      name: "sticky",
      type: "A",
      values: valuesOf(...VALUES),
      lb_policy: { method, client_affinity: true, affinity_ttl_seconds: AFFINITY_SECONDS, ...rest },
      health_check_template: httpTemplate(backends.port),
    });
    await untilJudged(world, id, states(undefined));
    const before = await valuesByClient(world, "sticky");
    assertShares(before, Object.fromEntries(VALUES.map((value, index) => [value, expected[index] ?? 0])));
    assert.ok(strays(before, await valuesByClient(world, "sticky"), undefined) <= MOVED_BY_TIME);

    await backends.at(DYING).kill();
    await untilJudged(world, id, states(DYING));
    const without = await valuesByClient(world, "sticky");
    assert.ok(!without.includes(DYING));
    assert.ok(strays(before, without, DYING) <= MOVED_BY_TIME);
    // Those that had to move are shared among the others as these are meant to be.
    const moved = without.filter((_, client) => before[client] === DYING);
    const left = 100 - expected[0];
    assertShares(
      moved,
      Object.fromEntries(VALUES.slice(1).map((value, at) => [value, (100 * (expected[at + 1] ?? 0)) / left])),
    );

    await backends.at(DYING).revive();
    await untilJudged(world, id, states(undefined));
    assert.ok(strays(before, await valuesByClient(world, "sticky"), undefined) <= MOVED_BY_TIME);
  });
}

test("clients of one /24 are one client, and one that names no network is its own address", async () => {
  await using world = await start();
  await world.record({
    name: "sticky",
    type: "A",
    values: valuesOf(...VALUES),
    lb_policy: { method: "round-robin", client_affinity: true, affinity_ttl_seconds: AFFINITY_SECONDS },
  });
  for (let client = 0; client < 50; client++) {
    const network = networkOf(client).replace(".0/24", "");
    const answers = [`${network}.0/24`, `${network}.7/32`, `${network}.200/32`].map((one) =>
      world.ask("sticky", { network: one }),
    );
    assert.equal(new Set((await Promise.all(answers)).flat()).size, 1, network);
  }
  const own = await world.ask("sticky", { from: "127.0.77.1" });
  assert.equal(own.length, 1);
  for (let asked = 0; asked < 50; asked++) assert.deepEqual(await world.ask("sticky", { from: "127.0.77.2" }), own);
});
