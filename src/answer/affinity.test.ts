import assert from "node:assert/strict";
import test from "node:test";
import { openSelectionLab, type Policy, type SelectionLab, type Value } from "../../tests/support/selection-lab.ts";
import { zone } from "../../tests/support/zone-lab.ts";
import { networkHash, periodEnd, periodOf } from "./affinity.ts";

const WWW = "www.corp.test. A";
const VALUES: readonly Value[] = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"].map((value) => ({
  value,
  probe: value,
}));
const CLIENTS_COUNT = 4_000;
/** Each in a /24 of its own. */
const CLIENTS = Array.from({ length: CLIENTS_COUNT }, (_, index) => `10.${index >>> 8}.${index & 255}.7`);
const PERIOD_SECONDS = 300;

function open(policy: Partial<Policy> = {}, values = VALUES, hashSeed = 1): SelectionLab {
  const lab = openSelectionLab([zone("corp.test.")], { nowSeconds: 1_800_000_000, hashSeed });
  lab.select(WWW, { method: "ROUND_ROBIN", affinitySeconds: PERIOD_SECONDS, ...policy }, values);
  return lab;
}

function only(values: readonly string[]): string {
  assert.equal(values.length, 1, "one value for a client that is to keep it");
  return values[0]!;
}

function drawn(lab: SelectionLab): readonly string[] {
  return CLIENTS.map((client) => only(lab.values(WWW, client)));
}

function count(values: readonly string[]): Map<string, number> {
  return new Map([...Map.groupBy(values, (value) => value)].map(([value, all]) => [value, all.length]));
}

/** Within 4 standard deviations. */
function assertShare(actual: number, share: number, of = CLIENTS_COUNT): void {
  const deviation = Math.sqrt(of * share * (1 - share));
  assert.ok(Math.abs(actual - of * share) <= 4 * deviation, `${actual} of ${of} for a share of ${share}`);
}

for (const method of ["ALL", "ROUND_ROBIN", "REGION", "GEO_FAILOVER", "LATENCY", "WEIGHTED"] as const) {
  test(`${method}: a client keeps its value, clients spread evenly, another thread and node draws the same`, () => {
    const lab = open({ method });
    const first = drawn(lab);
    assert.deepEqual(drawn(lab), first);
    for (const clients of count(first).values()) assertShare(clients, 1 / 4);
    assert.deepEqual(drawn(open({ method }, VALUES, 2)), first);
    const reversed = open({ method }, VALUES.toReversed());
    assert.deepEqual(drawn(reversed), first, "whatever the order of the values");
  });

  test(`${method}: where a value falls out only its clients move, to all others; they come back with it`, () => {
    const lab = open({ method });
    const before = drawn(lab);
    lab.health("10.0.0.2", "UNHEALTHY");
    const without = drawn(lab);
    for (const [client, value] of before.entries()) {
      if (value === "10.0.0.2") assert.notEqual(without[client], value);
      else assert.equal(without[client], value);
    }
    const moved = without.filter((_, client) => before[client] === "10.0.0.2");
    for (const clients of count(moved).values()) assertShare(clients, 1 / 3, moved.length);
    lab.health("10.0.0.2", "HEALTHY");
    assert.deepEqual(drawn(lab), before);
  });
}

test("a value that is added takes its share from all others alike", () => {
  const before = drawn(open());
  const after = drawn(open({}, [...VALUES, { value: "10.0.0.5" }]));
  const moved = after.filter((value, client) => value !== before[client]);
  assert.ok(moved.every((value) => value === "10.0.0.5"));
  assertShare(moved.length, 1 / 5);
});

test("weights: clients in proportion, those of a value that falls out too", () => {
  const weights = [60, 30, 10, 0];
  const lab = open(
    { method: "WEIGHTED" },
    VALUES.map((value, index) => ({ ...value, weight: weights[index]! })),
  );
  const before = drawn(lab);
  const clients = count(before);
  for (const [index, { value }] of VALUES.entries()) assertShare(clients.get(value) ?? 0, weights[index]! / 100);
  lab.health("10.0.0.1", "UNHEALTHY");
  const after = drawn(lab);
  for (const [client, value] of before.entries()) if (value !== "10.0.0.1") assert.equal(after[client], value);
  assertShare(count(after).get("10.0.0.2")!, 3 / 4);
});

test("latency: drawn among those within 10 % of the nearest", () => {
  const lab = open({ method: "LATENCY" });
  for (const [probe, latencyUs] of [
    ["10.0.0.1", 1_000],
    ["10.0.0.2", 1_100],
    ["10.0.0.3", 1_101],
  ] as const) {
    lab.health(probe, "HEALTHY", latencyUs);
  }
  const clients = count(drawn(lab));
  assert.deepEqual([...clients.keys()].toSorted(), ["10.0.0.1", "10.0.0.2"]);
  assertShare(clients.get("10.0.0.1")!, 1 / 2);
});

test("region: drawn within the client's region", () => {
  const values = VALUES.map((value, index) => ({ ...value, region: index < 2 ? "west" : "east" }));
  const lab = open({ method: "REGION" }, values);
  lab.regions({ "10.0.0.0/13": "west", "10.8.0.0/13": "east" });
  for (const [client, value] of drawn(lab).entries()) {
    const isWest = ["10.0.0.1", "10.0.0.2"].includes(value);
    assert.equal(isWest, Number(CLIENTS[client]!.split(".")[1]) < 8);
  }
});

test("failover pays no heed to the client", () => {
  const lab = open({ method: "FAILOVER" });
  assert.deepEqual([...new Set(drawn(lab))], ["10.0.0.1"]);
});

test("a network is one client: /24 of IPv4, /56 of IPv6", () => {
  const lab = open();
  for (let network = 0; network < 64; network++) {
    const v4 = [1, 99, 255].map((host) => only(lab.values(WWW, `10.9.${network}.${host}`)));
    assert.equal(new Set(v4).size, 1);
    const hex = network.toString(16);
    const v6 = [`fd00::${hex}00:0:0:0:1`, `fd00:0:0:${hex}ff:f::`].map((client) => only(lab.values(WWW, client)));
    assert.equal(new Set(v6).size, 1);
  }
  const neighbours = Array.from({ length: 64 }, (_, network) =>
    only(lab.values(WWW, `fd00:0:0:${network.toString(16)}00::1`)),
  );
  assert.equal(new Set(neighbours).size, 4);
});

test("every client draws anew once a period, and not all of them at once", () => {
  const lab = open();
  const from = 1_800_000_000;
  let before = drawn(lab);
  const start = before;
  let moved = 0;
  for (let part = 1; part <= 10; part++) {
    lab.clock(from + (part * PERIOD_SECONDS) / 10);
    const now = drawn(lab);
    const changed = now.filter((value, client) => value !== before[client]).length;
    // A tenth of the clients draws, and three of four get another value.
    assertShare(changed, 0.075);
    moved += changed;
    before = now;
  }
  assert.equal(moved, before.filter((value, client) => value !== start[client]).length, "each of them once");
});

test("periods end when they are said to", () => {
  for (let network = 0; network < 500; network++) {
    const client = networkHash(Uint8Array.of(10, 0, network >>> 8, network & 255), 0, 4);
    for (const periodSeconds of [1, 7, 300, 86_400]) {
      const now = 1_800_000_000 + network;
      const period = periodOf(client, periodSeconds, now);
      const end = periodEnd(client, periodSeconds, period);
      assert.ok(end > now && end <= now + periodSeconds);
      assert.equal(periodOf(client, periodSeconds, end - 1), period);
      assert.equal(periodOf(client, periodSeconds, end), period + 1);
    }
  }
});
