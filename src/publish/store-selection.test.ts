/** What reaches the image of policies, health checks and regions, and what is told to those who probe. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { auditArena } from "../../tests/image/audit.ts";
import { type RecordingGates, recordingGates } from "../../tests/support/recording-gates.ts";
import { type SelectedRRset, selectedRRsets } from "../../tests/support/selected-rrsets.ts";
import { openStoreLab, type StoreEdit, type StoreLab } from "../../tests/support/store-lab.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { openLab } from "../../tests/support/zone-lab.ts";
import { newId } from "../commands/run.ts";
import { regionNumber } from "../image/regions.ts";
import { CONTROL } from "../image/shared.ts";
import { collect } from "../image/writer.ts";
import type { LbPolicy } from "../model/objects.ts";
import { type OverrideCreate, overrideFromCreate } from "../model/override.ts";
import type { RecordCreate } from "../model/record.ts";
import type { Stored } from "../store/store.ts";
import { openStorePublisher, type StorePublisherOptions } from "./store-publisher.ts";

const T = { name: "t.", soa: { mname: "ns.t.", rname: "h.t.", minimum: 60 } };
const TEMPLATE = { protocol: "tcp" as const, port: 80, interval_seconds: 15, timeout_seconds: 5 };
const [ONE, TWO] = [{ value: "10.0.0.1" }, { value: "10.0.0.2" }];
const A = { name: "a", type: "A", values: [ONE, TWO] } as const satisfies RecordCreate;

const [EU, US] = [regionNumber("eu"), regionNumber("us")];
const REGIONAL = { method: "region" } as const;
type World = StoreLab & { readonly gates: RecordingGates };

async function openT(region = ""): Promise<World> {
  const gates = recordingGates();
  const world = { ...(await openStoreLab({ gates, region })), gates };
  await world.write((edit) => edit.zone(T));
  return world;
}

function record(world: StoreLab, given: RecordCreate): Promise<void> {
  return world.write((edit) => edit.record("t.", given));
}

function tables({ lab }: StoreLab): readonly SelectedRRset[] {
  return selectedRRsets(lab.writer);
}

/** Of the one RRset that is selected. */
function table(world: StoreLab): SelectedRRset {
  const [only, ...others] = tables(world);
  assert(only !== undefined && others.length === 0, `${others.length + (only === undefined ? 0 : 1)} are selected`);
  return only;
}

function map(world: StoreLab, mappings: Readonly<Record<string, string | undefined>>): Promise<void> {
  return world.store.write((tx) => {
    for (const [subnet, region_id] of Object.entries(mappings)) {
      if (region_id === undefined) tx.delete("subnet-mapping", [subnet]);
      else tx.put("subnet-mapping", { id: newId("subnet-mapping"), subnet, region_id, source: "manual" });
    }
  });
}

const valuesIn = ({ candidates }: SelectedRRset) => candidates.map(({ value }) => value);
const slotsIn = ({ candidates }: SelectedRRset) => candidates.map(({ health }) => health);

/** Every slot that the image names is handed out, and of the RRset that names it. */
function checkSlots(world: World): void {
  for (const { zone, owner, candidates } of tables(world)) {
    for (const { health } of candidates) assert(health === 0 || world.gates.held.has(health), `${zone} ${owner}`);
  }
}

test("a record with a health check names the slots of its values, in the order of its policy", async () => {
  await using world = await openT();
  const policy = { method: "failover" as const, failover_order: ["10.0.0.2"] };
  await record(world, { ...A, health_check_template: TEMPLATE, lb_policy: policy });
  const slots = ["10.0.0.2", "10.0.0.1"].map((value) => world.gates.slotOf("t.", "a", "A", value));
  const { owner, method, candidates } = table(world);
  assert.deepEqual(
    { owner, method, slots: candidates.map(({ health }) => health) },
    { owner: "a.t.", method: "FAILOVER", slots },
  );
  const [gated] = world.gates.book();
  const { id } = world.store.get("record", ["t.", "a", "A"])?.body ?? assert.fail();
  assert.deepEqual(gated, {
    zone: "t.",
    name: "a",
    type: "A",
    id,
    template: TEMPLATE,
    values: [ONE, TWO],
    method: "failover",
  });
});

test("a health check that changes is gated anew; what was gated before is given back, and what is plain is gated no more", async () => {
  await using world = await openT();
  await record(world, { ...A, health_check_template: TEMPLATE });
  assert.deepEqual([table(world).method, world.gates.held.size], ["ALL", 2]);
  const before = slotsIn(table(world));
  await record(world, { ...A, health_check_template: { protocol: "tcp", port: 81 } });
  assert.equal(world.gates.held.size, 2);
  assert(slotsIn(table(world)).every((slot) => world.gates.held.has(slot) && !before.includes(slot)));
  await record(world, { ...A, values: [ONE], health_check_template: TEMPLATE });
  assert.equal(world.gates.held.size, 1);
  await record(world, A);
  assert.deepEqual([tables(world).length, world.gates.book().length, world.gates.held.size], [0, 0, 0]);
});

test("other changes of its name or its zone do not gate a record anew", async () => {
  await using world = await openT();
  await record(world, { ...A, health_check_template: TEMPLATE });
  await record(world, { name: "a", type: "TXT", values: [{ value: "x" }] });
  await world.write(({ tx }) => {
    const { body } = tx.get("zone", ["t."])!;
    tx.put("zone", { ...body, soa: { ...body.soa, minimum: 61 } });
  });
  assert.equal(world.gates.gatedTimes("t.", "a", "A"), 1);
  checkSlots(world);
});

test("a record that is deleted, renamed or hidden, and a zone that ends or waits, gate nothing", async () => {
  await using world = await openT();
  const gated = { ...A, health_check_template: TEMPLATE };
  const names = () => world.gates.book().map(({ zone, name, type }) => `${zone} ${name} ${type}`);
  await record(world, gated);
  await world.write(
    ({ tx }) => void tx.move("record", ["t.", "a", "A"], { ...tx.get("record", ["t.", "a", "A"])!.body, name: "b" }),
  );
  assert.deepEqual(names(), ["t. b A"]);
  await record(world, { name: "b", type: "CNAME", values: [{ value: "x." }], health_check_template: TEMPLATE });
  assert.deepEqual(names(), ["t. b A"], "the newer of two rivals waits");
  await world.write(({ tx }) => void tx.delete("record", ["t.", "b", "A"]));
  assert.deepEqual(names(), ["t. b CNAME"]);
  await world.write(({ tx }) => void tx.delete("record", ["t.", "b", "CNAME"]));
  assert.deepEqual(names(), []);
  await record(world, gated);
  await world.write(({ tx }) => void tx.deleteZone("t."));
  assert.deepEqual([names(), world.gates.held.size], [[], 0]);
  await world.write((edit) => {
    edit.zone(T, "pending");
    edit.record("t.", gated);
  });
  assert.deepEqual(names(), []);
  await world.write(({ tx }) => tx.setState("t.", "active"));
  assert.deepEqual(names(), ["t. a A"]);
  checkSlots(world);
});

test("SRV: each value has its own port, or the record's", async () => {
  await using world = await openT();
  const values = [{ value: "x.t.", port: 1 }, { value: "x.t." }];
  await record(world, { name: "s", type: "SRV", values, port: 2, health_check_template: { protocol: "tcp" } });
  assert.deepEqual(world.gates.book()[0]?.values, [
    { value: "x.t.", port: 1 },
    { value: "x.t.", port: 2 },
  ]);
  assert.deepEqual(valuesIn(table(world)), ["0 0 1 x.t.", "0 0 2 x.t."], "names are written out");
});

test("the default policy of a zone is that of A, AAAA, CNAME and ALIAS without one, and follows its changes", async () => {
  await using world = await openT();
  await world.write((edit) => {
    edit.record("t.", A);
    edit.record("t.", { ...A, name: "own", lb_policy: { method: "latency" } });
    edit.record("t.", { name: "six", type: "AAAA", values: [{ value: "2001:db8::1" }, { value: "2001:db8::2" }] });
    edit.record("t.", { name: "c", type: "CNAME", values: [{ value: "a." }, { value: "b." }] });
    edit.record("t.", { name: "l", type: "ALIAS", values: [{ value: "a." }, { value: "b." }] });
    edit.record("t.", { name: "one", type: "A", values: [ONE] });
    edit.record("t.", { name: "t", type: "TXT", values: [{ value: "a" }, { value: "b" }] });
  });
  const methods = () => tables(world).map(({ owner, method, isSingle }) => `${owner} ${method}${isSingle ? " 1" : ""}`);
  const put = async (lb_policy: LbPolicy | undefined) => {
    await world.write(({ tx }) => {
      const { lb_policy: _, ...body } = tx.get("zone", ["t."])!.body;
      tx.put("zone", { ...body, ...(lb_policy === undefined ? {} : { lb_policy }) });
    });
    await world.publisher.settled();
  };
  assert.deepEqual(methods(), ["own.t. LATENCY"]);
  await put({ method: "round-robin" });
  const set = (method: string) => [
    `a.t. ${method}`,
    `c.t. ${method} 1`,
    `l.t. ${method} 1`,
    "own.t. LATENCY",
    `six.t. ${method}`,
  ];
  assert.deepEqual(methods(), set("ROUND_ROBIN"));
  await put({ method: "weighted" });
  assert.deepEqual(methods(), set("WEIGHTED"));
  await put({ method: "weighted", client_affinity: true });
  assert.deepEqual(
    tables(world).map(({ hasAffinity }) => hasAffinity),
    [true, true, true, false, true],
  );
  await put(undefined);
  assert.deepEqual(methods(), ["own.t. LATENCY"]);
  assert.equal(world.lab.ask("c.t. CNAME").length, 2);
});

test("a zone that is built anew keeps its gates until the new ones answer, and those of a build that is given up", async () => {
  await using world = await openT();
  const count = 2000;
  const gated = { ...A, health_check_template: TEMPLATE };
  await world.write((edit) => {
    edit.record("t.", gated);
    edit.record("t.", { ...gated, name: "goes" });
    for (let index = 0; index < count; index++) edit.record("t.", { name: `n${index}`, type: "A", values: [ONE] });
  });
  await world.publisher.settled();
  const touch = (default_ttl: number) =>
    world.write(({ tx }) => void tx.put("zone", { ...tx.get("zone", ["t."])!.body, default_ttl }));
  // While the new one is made: small changes of what answers, and another build in place of this one.
  const written = [
    world.write((edit) => {
      for (let index = 0; index < count; index++) edit.record("t.", { name: `n${index}`, type: "A", values: [TWO] });
    }),
    record(world, { ...gated, name: "new" }),
    world.write(({ tx }) => void tx.delete("record", ["t.", "goes", "A"])),
  ];
  await Promise.all(written);
  assert.equal(world.publisher.stats().waitingZones, 1);
  assert.deepEqual(
    tables(world).map(({ owner }) => owner),
    ["a.t.", "new.t."],
  );
  checkSlots(world);
  await touch(200);
  await world.publisher.settled();
  assert.deepEqual(
    world.gates.book().map(({ name }) => name),
    ["a", "new"],
  );
  assert.deepEqual(
    tables(world).map(({ owner, ttl }) => `${owner} ${ttl}`),
    ["a.t. 200", "new.t. 200"],
  );
  assert.equal(world.gates.held.size, 4);
  checkSlots(world);
  while (collect(world.lab.writer));
  auditArena(world.lab.writer);
});

/** A second publisher of the store; while it is held, a build reads its first records and does not come to an end. */
function heldPublisher(world: World) {
  const gates = recordingGates();
  const lab = openLab([]);
  const held = { isHeld: false, hasBegun: false, zone: (stored: Stored<"zone">) => stored };
  const store: StorePublisherOptions["store"] = {
    ...world.store,
    get: (kind, key) => {
      const stored = world.store.get(kind, key);
      return stored?.kind === "zone" ? (held.zone(stored as Stored<"zone">) as typeof stored) : stored;
    },
    answering: (zone, { cursor, ...options }) => {
      held.hasBegun ||= cursor !== undefined;
      if (held.isHeld && cursor !== undefined) return { records: [], cursor };
      return world.store.answering(zone, { ...options, ...(cursor === undefined ? {} : { cursor }) });
    },
  };
  const publisher = openStorePublisher({ store, writer: lab.writer, log: () => undefined, gates });
  return { publisher, lab, gates, held, [Symbol.dispose]: () => publisher[Symbol.dispose]() };
}

test("what is gated only while its zone is built, and gone before that ends, is gated no more", async () => {
  await using world = await openT();
  const change = (count: number, value: { readonly value: string }, also?: (edit: StoreEdit) => void) =>
    world.write((edit) => {
      also?.(edit);
      for (let index = 0; index < count; index++) edit.record("t.", { name: `n${index}`, type: "A", values: [value] });
    });
  await change(2000, ONE);
  using second = heldPublisher(world);
  const { publisher, gates, held, lab } = second;
  await publisher.start();
  held.isHeld = true;
  await change(2000, TWO);
  await record(world, { ...A, health_check_template: TEMPLATE });
  assert.equal(gates.book().length, 1);
  // More than is changed at once: what answers waits for the build.
  await change(400, ONE, ({ tx }) => void tx.delete("record", ["t.", "a", "A"]));
  assert.equal(gates.book().length, 1);
  held.isHeld = false;
  await publisher.settled();
  assert.deepEqual([gates.book(), gates.held.size, selectedRRsets(lab.writer)], [[], 0, []]);
});

async function writeMany(world: World, count: number, given: Omit<RecordCreate, "name">): Promise<void> {
  await world.write((edit) => {
    for (let index = 0; index < count; index++) edit.record("t.", { ...given, name: `n${index}` } as RecordCreate);
  });
}

test("a default that is read before it is told of, at the end of a build, reaches all records all the same", async () => {
  await using world = await openT();
  await writeMany(world, 1000, { type: "A", values: [ONE, TWO] });
  using second = heldPublisher(world);
  const { publisher, held, lab } = second;
  held.isHeld = true;
  const started = publisher.start();
  await waitFor("the build has begun", 60_000, () => held.hasBegun);
  const changed = { default_ttl: 7, lb_policy: { method: "failover" } } as const;
  // Between its commit and the notice of it, others read what a transaction has written.
  held.zone = (stored) => ({ ...stored, body: { ...stored.body, ...changed } });
  held.isHeld = false;
  await started;
  await world.write(({ tx }) => void tx.put("zone", { ...tx.get("zone", ["t."])!.body, ...changed }));
  await publisher.settled();
  const made = new Set(selectedRRsets(lab.writer).map(({ ttl, method }) => `${ttl} ${method}`));
  assert.deepEqual([...made], ["7 FAILOVER"]);
});

test("a mapping that comes while a zone is built holds for what has been read of it", async () => {
  await using world = await openT();
  await writeMany(world, 1000, { type: "A", values: [ONE, TWO], lb_policy: REGIONAL });
  using second = heldPublisher(world);
  const { publisher, held, lab } = second;
  held.isHeld = true;
  const started = publisher.start();
  await waitFor("the build has begun", 60_000, () => held.hasBegun);
  await map(world, { "10.0.0.1/32": "us" });
  held.isHeld = false;
  await started;
  const found = selectedRRsets(lab.writer).map(({ candidates }) => candidates.map(({ region }) => region).join());
  assert.deepEqual([found.length, [...new Set(found)]], [1000, [`${US},0`]]);
});

test("nothing is given back while a zone could not be published", async () => {
  await using world = await openT();
  const gates = recordingGates();
  const lab = openLab([]);
  let fails = false;
  using publisher = openStorePublisher({
    store: {
      ...world.store,
      serialOf: (zone) => {
        if (fails) throw new Error("out of reach");
        return world.store.serialOf(zone);
      },
    },
    writer: lab.writer,
    log: () => undefined,
    gates,
  });
  await publisher.start();
  await record(world, { ...A, health_check_template: TEMPLATE });
  const [before] = selectedRRsets(lab.writer);
  fails = true;
  await record(world, { ...A, health_check_template: { protocol: "tcp", port: 81 } });
  assert.equal(publisher.stats().failedZones, 1);
  assert(slotsIn(before!).every((slot) => gates.held.has(slot)));
  fails = false;
  await record(world, { name: "b", type: "A", values: [ONE] });
  await publisher.settled();
  const [after] = selectedRRsets(lab.writer);
  assert.deepEqual(new Set(slotsIn(after!)), gates.held);
});

test("overrides have policies and health checks of their own", async () => {
  await using world = await openT();
  const put = (given: OverrideCreate) =>
    world.store.write((tx) => void tx.put("override", overrideFromCreate(given, newId("override"))));
  const given: OverrideCreate = { name: "x.far.", type: "A", values: [ONE, TWO], health_check_template: TEMPLATE };
  const inBook = () => world.gates.book().map(({ zone, name, type }) => `${zone}${name} ${type}`);
  await put(given);
  assert.deepEqual(inBook(), ["x.far. A"]);
  assert.deepEqual(
    slotsIn(table(world)),
    [ONE, TWO].map(({ value }) => world.gates.slotOf("", "x.far.", "A", value)),
  );
  await put({ ...given, lb_policy: { method: "failover", failover_order: ["10.0.0.2"] } });
  assert.deepEqual(valuesIn(table(world)), ["10.0.0.2", "10.0.0.1"]);
  checkSlots(world);
  await put({ ...given, enabled: false });
  assert.deepEqual([inBook(), world.gates.held.size, tables(world).length], [[], 0, 0]);
  await put(given);
  await put({ ...given, name: "y.far." });
  await world.store.write((tx) => void tx.delete("override", ["x.far.", "A"]));
  assert.deepEqual([inBook(), world.gates.held.size], [["y.far. A"], 2]);
  await put({ name: "y.far.", type: "CNAME", values: [{ value: "a." }], health_check_template: TEMPLATE });
  assert.deepEqual(inBook(), ["y.far. CNAME"], "the newer of two that exclude each other");
  checkSlots(world);
});

function regionsIn(world: StoreLab, owner: string): readonly number[] {
  const found = tables(world).find((each) => each.owner === owner);
  return found?.candidates.map(({ region }) => region) ?? assert.fail(`${owner} is not selected`);
}

test("a value is where its tag says, else where the longest mapping of its address says, else nowhere", async () => {
  await using world = await openT();
  await map(world, { "10.0.0.0/8": "eu", "10.1.0.0/16": "us", "2001:db8::/32": "us" });
  const values = [{ value: "10.1.0.1", region: "eu" }, { value: "10.1.0.2" }, ONE, { value: "192.0.2.1" }];
  await record(world, { ...A, values, lb_policy: REGIONAL });
  assert.deepEqual(regionsIn(world, "a.t."), [EU, US, EU, 0]);
  const six = [{ value: "2001:db8::1" }, { value: "2001:db9::1" }];
  await record(world, { name: "six", type: "AAAA", values: six, lb_policy: REGIONAL });
  assert.deepEqual(regionsIn(world, "six.t."), [US, 0]);
  const hosts = [{ value: "a.", region: "us" }, { value: "b." }];
  await record(world, { name: "c", type: "CNAME", values: hosts, lb_policy: REGIONAL });
  assert.deepEqual(regionsIn(world, "c.t."), [US, 0]);
  assert.deepEqual([EU, US].map(world.publisher.regionName), ["eu", "us"]);
  assert.equal(world.publisher.regionName(5), undefined);
});

test("values follow the mappings; those with a tag and other methods are left alone", async () => {
  await using world = await openT();
  const gated = { health_check_template: TEMPLATE };
  await world.write((edit) => {
    edit.record("t.", { ...A, name: "blank", lb_policy: { method: "geo-failover" } });
    edit.record("t.", { ...A, name: "robin", lb_policy: { method: "round-robin" } });
    edit.record("t.", { ...A, name: "probed", ...gated, lb_policy: REGIONAL });
    const tagged = [
      { ...ONE, region: "us" },
      { ...TWO, region: "us" },
    ];
    edit.record("t.", { ...A, name: "tagged", ...gated, values: tagged, lb_policy: REGIONAL });
  });
  const all = () => ["blank", "probed", "tagged", "robin"].map((name) => regionsIn(world, `${name}.t.`));
  const nowhere = [0, 0];
  assert.deepEqual(all(), [nowhere, nowhere, [US, US], nowhere]);
  await map(world, { "10.0.0.0/8": "eu" });
  assert.deepEqual(all(), [[EU, EU], [EU, EU], [US, US], nowhere]);
  assert.equal(world.gates.gatedTimes("t.", "tagged", "A"), 1);
  const gatedRegions = () =>
    world.gates
      .book()
      .find(({ name }) => name === "probed")
      ?.values.map(({ region }) => region);
  assert.deepEqual(gatedRegions(), ["eu", "eu"]);
  await map(world, { "10.0.0.1/32": "us" });
  assert.deepEqual(all(), [[US, EU], [US, EU], [US, US], nowhere]);
  await map(world, { "10.0.0.0/8": undefined });
  assert.deepEqual(all(), [[US, 0], [US, 0], [US, US], nowhere]);
  assert.deepEqual(gatedRegions(), ["us", undefined]);
  checkSlots(world);
});

test("values of overrides follow the mappings too", async () => {
  await using world = await openT();
  const given: OverrideCreate = { name: "x.far.", type: "A", values: [ONE, TWO], lb_policy: REGIONAL };
  await world.store.write((tx) => void tx.put("override", overrideFromCreate(given, newId("override"))));
  assert.deepEqual(regionsIn(world, "x.far."), [0, 0]);
  await map(world, { "10.0.0.0/8": "eu" });
  assert.deepEqual(regionsIn(world, "x.far."), [EU, EU]);
});

test("the node's own region is in the image", async () => {
  await using world = await openT("eu");
  assert.equal(world.lab.writer.view.control[CONTROL.OWN_REGION], EU);
  assert.equal(world.publisher.regionName(EU), "eu");
  using publisher = openStorePublisher({ store: world.store, writer: world.lab.writer, log: () => undefined });
  await publisher.start();
  assert.equal(world.lab.writer.view.control[CONTROL.OWN_REGION], 0);
});

test("10,000 gated records with 20,000 values", async () => {
  await using world = await openT();
  const count = 10_000;
  await world.write((edit) => {
    for (let index = 0; index < count; index++) {
      const values = [{ value: `10.0.${index >> 8}.${index & 255}` }, { value: `10.1.${index >> 8}.${index & 255}` }];
      edit.record("t.", { name: `n${index}`, type: "A", values, health_check_template: TEMPLATE });
    }
  });
  await world.publisher.settled();
  assert.equal(world.gates.held.size, 2 * count);
  assert.equal(tables(world).length, count);
  checkSlots(world);
});
