/** From the store to the answer: what a policy, a verdict and a mapping change for clients. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type RecordingGates, recordingGates } from "../../tests/support/recording-gates.ts";
import { openStoreLab, type StoreLab } from "../../tests/support/store-lab.ts";
import { newId } from "../commands/run.ts";
import { HEALTH, type Health, setHealth } from "../image/health.ts";
import type { RecordType } from "../model/objects.ts";
import { overrideFromCreate } from "../model/override.ts";
import type { RecordCreate } from "../model/record.ts";

const [ONE, TWO, THREE] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
const VALUES = [ONE, TWO, THREE].map((value) => ({ value }));
const health_check_template = { protocol: "tcp" as const, port: 80 };

type World = StoreLab & {
  readonly gates: RecordingGates;
  readonly verdict: (name: string, type: RecordType, value: string, state: Health) => void;
  readonly put: (given: RecordCreate) => Promise<void>;
};

async function openT(): Promise<World> {
  const gates = recordingGates();
  const world = await openStoreLab({ gates, region: "home" });
  const words = new Int32Array(world.lab.shared.health);
  await world.write((edit) => edit.zone({ name: "t.", soa: { mname: "ns.t.", rname: "h.t." } }));
  return {
    ...world,
    gates,
    verdict: (name, type, value, state) => setHealth(words, gates.slotOf("t.", name, type, value), state, 1000),
    put: (given) => world.write((edit) => edit.record("t.", given)),
  };
}

/** The values of the section's RRs, in their order. */
function ask({ lab }: StoreLab, question: string, client?: string, section = "answer"): readonly string[] {
  const address = client === undefined ? {} : { client: Uint8Array.from(client.split("."), Number) };
  const lines = lab.ask(question, address).filter((line) => line.startsWith(`${section} `));
  return lines.map((line) => line.split(" ").slice(4).join(" ").replace(/^\S+ /, ""));
}

/** The values of many answers, each once. */
function seen(world: StoreLab, question: string, client?: string): readonly string[] {
  const values = Array.from({ length: 60 }, () => ask(world, question, client)).flat();
  return [...new Set(values)].sort();
}

test("an unhealthy value is in no answer from its verdict on; where all are, all are again", async () => {
  await using world = await openT();
  await world.put({ name: "a", type: "A", values: VALUES, health_check_template });
  assert.deepEqual(ask(world, "a.t. A").toSorted(), [ONE, TWO, THREE]);
  world.verdict("a", "A", TWO, HEALTH.UNHEALTHY);
  assert.deepEqual(ask(world, "a.t. A").toSorted(), [ONE, THREE]);
  world.verdict("a", "A", ONE, HEALTH.UNHEALTHY);
  assert.deepEqual(ask(world, "a.t. A"), [THREE]);
  world.verdict("a", "A", THREE, HEALTH.UNHEALTHY);
  assert.deepEqual(ask(world, "a.t. A").toSorted(), [ONE, TWO, THREE]);
  world.verdict("a", "A", ONE, HEALTH.HEALTHY);
  assert.deepEqual(ask(world, "a.t. A"), [ONE]);
});

test("failover answers the first healthy value of its order", async () => {
  await using world = await openT();
  const lb_policy = { method: "failover" as const, failover_order: [THREE, ONE] };
  await world.put({ name: "a", type: "A", values: VALUES, health_check_template, lb_policy });
  assert.deepEqual(ask(world, "a.t. A"), [THREE]);
  world.verdict("a", "A", THREE, HEALTH.UNHEALTHY);
  assert.deepEqual(ask(world, "a.t. A"), [ONE]);
  world.verdict("a", "A", ONE, HEALTH.UNHEALTHY);
  assert.deepEqual(ask(world, "a.t. A"), [TWO]);
  world.verdict("a", "A", THREE, HEALTH.HEALTHY);
  assert.deepEqual(ask(world, "a.t. A"), [THREE]);
});

test("a weight of nothing is never answered, but where nothing else is healthy", async () => {
  await using world = await openT();
  const lb_policy = { method: "weighted" as const, value_weights: { [ONE]: 60, [TWO]: 40, [THREE]: 0 } };
  await world.put({ name: "a", type: "A", values: VALUES, health_check_template, lb_policy });
  assert.deepEqual(seen(world, "a.t. A"), [ONE, TWO]);
  world.verdict("a", "A", ONE, HEALTH.UNHEALTHY);
  assert.deepEqual(seen(world, "a.t. A"), [TWO]);
  world.verdict("a", "A", TWO, HEALTH.UNHEALTHY);
  assert.deepEqual(seen(world, "a.t. A"), [THREE]);
});

test("a client gets the values of its region: by its own mapping, by those of the values, by their tags", async () => {
  await using world = await openT();
  await world.store.write((tx) => {
    const put = (subnet: string, region_id: string) =>
      tx.put("subnet-mapping", { id: newId("subnet-mapping"), subnet, region_id, source: "manual" });
    put("10.0.0.0/24", "home");
    put("192.0.2.0/24", "eu");
    put("198.51.100.0/24", "us");
  });
  const values = [{ value: ONE }, { value: "192.0.2.1" }, { value: "203.0.113.1", region: "us" }];
  const lb_policy = { method: "region" as const, region_preference: ["us"] };
  await world.put({ name: "a", type: "A", values, health_check_template, lb_policy });
  const answers = () => ["198.51.100.9", "192.0.2.9", "203.0.113.9"].map((client) => ask(world, "a.t. A", client));
  assert.deepEqual(answers(), [["203.0.113.1"], ["192.0.2.1"], [ONE]], "who is not covered is where the node is");
  world.verdict("a", "A", "192.0.2.1", HEALTH.UNHEALTHY);
  assert.deepEqual(ask(world, "a.t. A", "192.0.2.9"), ["203.0.113.1"], "the preferred region comes next");
  await world.store.write((tx) => void tx.delete("subnet-mapping", ["198.51.100.0/24"]));
  assert.deepEqual(ask(world, "a.t. A", "198.51.100.9"), [ONE]);
});

test("a CNAME and an ALIAS with several targets have the first, and with a policy or a health check one of the healthy", async () => {
  await using world = await openT();
  const targets = [{ value: "one.t." }, { value: "two.t." }];
  await world.write((edit) => {
    edit.record("t.", { name: "one", type: "A", values: [{ value: ONE }] });
    edit.record("t.", { name: "two", type: "A", values: [{ value: TWO }] });
    edit.record("t.", { name: "c", type: "CNAME", values: targets });
    edit.record("t.", { name: "l", type: "ALIAS", values: targets });
  });
  const both = () => [seen(world, "c.t. A"), seen(world, "l.t. A")];
  assert.deepEqual(both(), [[ONE, "one.t."], [ONE]]);
  for (const [name, type] of [
    ["c", "CNAME"],
    ["l", "ALIAS"],
  ] as const) {
    await world.put({ name, type, values: targets, health_check_template });
  }
  assert.deepEqual(both(), [
    [ONE, TWO, "one.t.", "two.t."],
    [ONE, TWO],
  ]);
  world.verdict("c", "CNAME", "one.t.", HEALTH.UNHEALTHY);
  world.verdict("l", "ALIAS", "one.t.", HEALTH.UNHEALTHY);
  assert.deepEqual(both(), [[TWO, "two.t."], [TWO]]);
});

test("addresses that go along with an MX or a service are healthy ones, and so are services themselves", async () => {
  await using world = await openT();
  await world.put({ name: "mx", type: "MX", values: [{ value: "a.t.", priority: 10 }] });
  await world.put({ name: "a", type: "A", values: VALUES });
  const additionals = (name: string) => ask(world, name, undefined, "additional").toSorted();
  assert.deepEqual(additionals("mx.t. MX"), [ONE, TWO, THREE]);
  await world.put({ name: "a", type: "A", values: VALUES, health_check_template });
  world.verdict("a", "A", TWO, HEALTH.UNHEALTHY);
  assert.deepEqual(additionals("mx.t. MX"), [ONE, THREE]);
  const services = [
    { value: "a.t.", port: 1 },
    { value: "ns.other.", port: 2 },
  ];
  await world.put({ name: "s", type: "SRV", values: services, health_check_template });
  world.verdict("s", "SRV", "ns.other.", HEALTH.UNHEALTHY);
  assert.deepEqual(ask(world, "s.t. SRV"), ["0 0 1 a.t."]);
  assert.deepEqual(additionals("s.t. SRV"), [ONE, THREE]);
  await world.put({ name: "a", type: "A", values: VALUES });
  assert.deepEqual(additionals("mx.t. MX"), [ONE, TWO, THREE]);
});

test("a wildcard answers by its health check for every name below it", async () => {
  await using world = await openT();
  await world.put({ name: "*", type: "A", values: VALUES, health_check_template });
  world.verdict("*", "A", ONE, HEALTH.UNHEALTHY);
  assert.deepEqual(seen(world, "any.t. A"), [TWO, THREE]);
});

test("an override goes by its own health check", async () => {
  await using world = await openT();
  await world.store.write((tx) => {
    const given = { name: "x.far.", type: "A" as const, values: VALUES, health_check_template };
    tx.put("override", overrideFromCreate(given, newId("override")));
  });
  const words = new Int32Array(world.lab.shared.health);
  setHealth(words, world.gates.slotOf("", "x.far.", "A", ONE), HEALTH.UNHEALTHY, 1000);
  assert.deepEqual(seen(world, "x.far. A"), [TWO, THREE]);
});

test("clients keep their value with affinity, whatever zone default gives it", async () => {
  await using world = await openT();
  await world.put({ name: "a", type: "A", values: VALUES });
  await world.write(({ tx }) => {
    const lb_policy = { method: "round-robin", client_affinity: true } as const;
    tx.put("zone", { ...tx.get("zone", ["t."])!.body, lb_policy });
  });
  const clients = Array.from({ length: 200 }, (_, index) => `172.16.${index}.1`);
  const first = clients.map((client) => ask(world, "a.t. A", client).join());
  assert.deepEqual(new Set(first), new Set([ONE, TWO, THREE]));
  assert.deepEqual(
    clients.map((client) => ask(world, "a.t. A", client).join()),
    first,
  );
});
