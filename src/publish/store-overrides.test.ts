import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { auditArena } from "../../tests/image/audit.ts";
import { openStoreLab, type StoreLab } from "../../tests/support/store-lab.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { openLab } from "../../tests/support/zone-lab.ts";
import { newId } from "../commands/run.ts";
import { CONTROL } from "../image/shared.ts";
import { collect, openImageWriter } from "../image/writer.ts";
import type { OverrideBody } from "../model/objects.ts";
import { type OverrideCreate, overrideFromCreate } from "../model/override.ts";
import { openOverridePublisher, RECHECK_MS } from "./store-overrides.ts";
import { openStorePublisher } from "./store-publisher.ts";
import { createZoneTools } from "./store-zone.ts";

const A = { name: "a.far.", type: "A", values: [{ value: "10.0.0.1" }], ttl: 60 } as const satisfies OverrideCreate;
const ANSWER = ["NOERROR aa", "answer a.far. 60 IN A 10.0.0.1"];
const REFUSED = ["REFUSED ede=20"];

function bodyOf(given: OverrideCreate): OverrideBody {
  return overrideFromCreate(given, newId("override"));
}

function put(world: StoreLab, ...given: readonly OverrideCreate[]): Promise<void> {
  return world.store.write((tx) => {
    for (const each of given) tx.put("override", bodyOf(each));
  });
}

function shown({ lab }: StoreLab): number {
  return new Int32Array(lab.shared.control)[CONTROL.OVERRIDES]!;
}

test("an override answers when its write is acknowledged, and the image has none when the last is gone", async () => {
  await using world = await openStoreLab();
  assert.equal(shown(world), 0);
  await put(world, A);
  assert.deepEqual(world.lab.ask("a.far. A"), ANSWER);
  assert.notEqual(shown(world), 0);
  await put(world, { ...A, enabled: false });
  assert.deepEqual(world.lab.ask("a.far. A"), REFUSED);
  assert.equal(shown(world), 0);
  await put(world, A, { ...A, type: "TXT", values: [{ value: "x" }] });
  assert.deepEqual(world.lab.ask("a.far. A"), ANSWER);
  await world.store.write((tx) => void tx.delete("override", ["a.far.", "A"]));
  assert.equal(world.lab.ask("a.far. A")[0], "NOERROR aa");
  await world.store.write((tx) => void tx.delete("override", ["a.far.", "TXT"]));
  assert.deepEqual(world.lab.ask("a.far. A"), REFUSED);
  assert.equal(shown(world), 0);
  while (collect(world.lab.writer));
  auditArena(world.lab.writer);
});

test("an override that moves leaves nothing at its former name", async () => {
  await using world = await openStoreLab();
  const body = bodyOf(A);
  await world.store.write((tx) => void tx.put("override", body));
  await world.store.write((tx) => void tx.move("override", ["a.far.", "A"], { ...body, name: "b.far." }));
  assert.deepEqual(world.lab.ask("a.far. A"), REFUSED);
  assert.deepEqual(world.lab.ask("b.far. A"), ["NOERROR aa", "answer b.far. 60 IN A 10.0.0.1"]);
});

test("an override goes by its policy, and without one all its values answer, but one of a CNAME or an ALIAS", async () => {
  await using world = await openStoreLab();
  const values = [{ value: "10.0.0.1" }, { value: "10.0.0.2" }];
  await put(world, { ...A, values });
  assert.equal(world.lab.ask("a.far. A").length, 3);
  await put(world, { ...A, values, lb_policy: { method: "failover", failover_order: ["10.0.0.2"] } });
  assert.deepEqual(world.lab.ask("a.far. A"), ["NOERROR aa", "answer a.far. 60 IN A 10.0.0.2"]);
  const targets = [{ value: "a.far." }, { value: "b.far." }];
  const answers = () => world.lab.ask("c.far. CNAME");
  await put(world, { name: "c.far.", type: "CNAME", values: targets });
  assert.deepEqual([answers(), answers()], [answers(), ["NOERROR aa", "answer c.far. 300 IN CNAME a.far."]]);
  await put(world, { name: "c.far.", type: "CNAME", values: targets, lb_policy: { method: "round-robin" } });
  assert.deepEqual(
    new Set([answers(), answers()].flat()),
    new Set(["NOERROR aa", "answer c.far. 300 IN CNAME a.far.", "answer c.far. 300 IN CNAME b.far."]),
  );
});

test("of overrides that a merge left beside each other the newer one answers", async () => {
  await using world = await openStoreLab();
  await put(world, A);
  await put(world, { name: "a.far.", type: "CNAME", values: [{ value: "elsewhere." }] });
  assert.deepEqual(world.lab.ask("a.far. A"), ["NOERROR aa", "answer a.far. 300 IN CNAME elsewhere."]);
  await put(world, { ...A, ttl: 61 });
  assert.deepEqual(world.lab.ask("a.far. A"), ["NOERROR aa", "answer a.far. 61 IN A 10.0.0.1"]);
});

test("a large transaction follows in slices, and a small one does not wait for it", async () => {
  await using world = await openStoreLab();
  const many = Array.from({ length: 1000 }, (_, index) => ({ ...A, name: `n${index}.far.` }));
  await put(world, ...many);
  assert.equal(world.publisher.stats().waitingZones, 1);
  await put(world, A);
  assert.deepEqual(world.lab.ask("a.far. A"), ANSWER);
  await world.publisher.settled();
  assert.equal(world.publisher.stats().waitingZones, 0);
  for (const { name } of many) assert.equal(world.lab.ask(`${name} A`)[0], "NOERROR aa");
});

test("a successor puts the overrides of its store in place of what it finds", async () => {
  await using world = await openStoreLab();
  await put(world, A, { ...A, name: "old.far." });
  world.publisher[Symbol.dispose]();
  await put(world, { ...A, name: "new.far." });
  await world.store.write((tx) => void tx.delete("override", ["old.far.", "A"]));
  const writer = openImageWriter(world.lab.shared);
  assert.equal(world.lab.ask("old.far. A")[0], "NOERROR aa", "what the predecessor left answers until then");
  using publisher = openStorePublisher({ store: world.store, writer, log: () => undefined });
  await publisher.start();
  assert.deepEqual(
    ["a", "old", "new"].map((label) => world.lab.ask(`${label}.far. A`)[0]),
    ["NOERROR aa", "REFUSED ede=20", "NOERROR aa"],
  );
  for (const label of ["a", "new"]) {
    await world.store.write((tx) => void tx.delete("override", [`${label}.far.`, "A"]));
  }
  assert.equal(shown(world), 0);
  while (collect(writer));
  auditArena(writer);
});

/** Overrides under a clock and timers that the test moves. */
async function underClock(t: TestContext) {
  const world = await openStoreLab();
  world.publisher[Symbol.dispose]();
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let nowMs = Date.parse("2030-01-01T00:00:00Z");
  const lab = openLab([]);
  const trouble = { isThere: false };
  const publisher = openOverridePublisher({
    store: {
      list: (kind, options) => {
        if (trouble.isThere) throw new Error("out of reach");
        return world.store.list(kind, options);
      },
    },
    tools: createZoneTools(lab.writer, () => undefined),
    log: () => undefined,
    now: () => nowMs,
    onChanged: () => undefined,
  });
  const end = world.store.onChange(publisher.hear);
  await publisher.start();
  return {
    world,
    publisher,
    trouble,
    after: (ms: number) => new Date(nowMs + ms).toISOString(),
    answers: (name = "a.far.") => lab.ask(`${name} A`)[0] === "NOERROR aa",
    /** The clock is set; no time passes. */
    setClock: (ms: number) => {
      nowMs += ms;
    },
    pass: (ms: number) => {
      nowMs += ms;
      t.mock.timers.tick(ms);
    },
    [Symbol.asyncDispose]: async () => {
      end();
      publisher[Symbol.dispose]();
      t.mock.timers.reset();
      await world[Symbol.asyncDispose]();
    },
  };
}

test("expiry takes effect at its moment, of each override by itself", async (t) => {
  await using clock = await underClock(t);
  await put(clock.world, { ...A, expires_at: clock.after(5000) });
  await put(clock.world, { ...A, name: "b.far.", expires_at: clock.after(200_000) });
  await put(clock.world, { ...A, name: "past.far.", expires_at: clock.after(-1) });
  assert.equal(clock.answers("past.far."), false);
  clock.pass(4999);
  assert.equal(clock.answers(), true);
  clock.pass(1);
  assert.equal(clock.answers(), false);
  assert.equal(clock.answers("b.far."), true);
  clock.pass(60_000);
  clock.pass(60_000);
  clock.pass(74_999);
  assert.equal(clock.answers("b.far."), true);
  clock.pass(1);
  assert.equal(clock.answers("b.far."), false);
});

test("an expiry that is changed or taken away counts anew", async (t) => {
  await using clock = await underClock(t);
  await put(clock.world, { ...A, expires_at: clock.after(5000) });
  await put(clock.world, { ...A, expires_at: clock.after(9000) });
  clock.pass(8999);
  assert.equal(clock.answers(), true);
  clock.pass(1);
  assert.equal(clock.answers(), false);
  await put(clock.world, A);
  assert.equal(clock.answers(), true);
  clock.pass(RECHECK_MS);
  assert.equal(clock.answers(), true);
});

test("a clock that jumps is noticed within a minute, in both directions", async (t) => {
  await using clock = await underClock(t);
  await put(clock.world, { ...A, expires_at: clock.after(3_600_000) });
  clock.setClock(3_600_000);
  clock.pass(RECHECK_MS);
  assert.equal(clock.answers(), false);
  clock.setClock(-3_600_000);
  clock.pass(RECHECK_MS);
  assert.equal(clock.answers(), true);
});

test("a moment that passes while another override is written is not lost", async (t) => {
  await using clock = await underClock(t);
  await put(clock.world, { ...A, expires_at: clock.after(5000) });
  clock.setClock(5001);
  await put(clock.world, { ...A, name: "b.far." });
  clock.pass(1);
  assert.equal(clock.answers(), false);
});

test("what could not be published is tried again by itself, and until then nothing is lost", async (t) => {
  await using clock = await underClock(t);
  await put(clock.world, A, { ...A, name: "b.far.", expires_at: clock.after(5000) });
  clock.trouble.isThere = true;
  await put(clock.world, { ...A, name: "c.far." });
  clock.pass(5000);
  await clock.publisher.settled();
  const answers = () => ["a", "b", "c"].map((label) => clock.answers(`${label}.far.`));
  assert.deepEqual([clock.publisher.isFailed(), ...answers()], [true, true, true, false]);
  clock.trouble.isThere = false;
  clock.pass(RECHECK_MS);
  await clock.publisher.settled();
  assert.deepEqual([clock.publisher.isFailed(), ...answers()], [false, true, false, true]);
});

test("expiry by the clock of the system", async () => {
  await using world = await openStoreLab();
  await put(world, { ...A, expires_at: new Date(Date.now() + 300).toISOString() });
  await waitFor("the override ends", 5000, () => world.lab.ask("a.far. A")[0] === "REFUSED ede=20");
});

test("overrides that could not be published answer as before, are told of, and come with the next change", async () => {
  await using world = await openStoreLab();
  const log: string[] = [];
  const lab = openLab([]);
  let fails = false;
  using publisher = openStorePublisher({
    store: {
      ...world.store,
      list: (kind, options) => {
        if (fails && kind === "override") throw new Error("out of reach");
        return world.store.list(kind, options);
      },
    },
    writer: lab.writer,
    log: (_, message) => void log.push(message),
  });
  const answers = (label: string) => lab.ask(`${label}.far. A`)[0];
  await publisher.start();
  await put(world, A, { ...A, name: "b.far." });
  fails = true;
  await put(world, { ...A, ttl: 61 }, { ...A, name: "c.far." });
  await world.store.write((tx) => void tx.delete("override", ["b.far.", "A"]));
  await publisher.settled();
  assert.deepEqual(["a", "b", "c"].map(answers), ["NOERROR aa", "NOERROR aa", "REFUSED ede=20"]);
  assert.equal(publisher.stats().failedZones, 1);
  assert.deepEqual(new Set(log), new Set(["the overrides cannot be published: out of reach"]));
  fails = false;
  await put(world, { ...A, name: "d.far." });
  await publisher.settled();
  assert.deepEqual(["a", "b", "c", "d"].map(answers), ["NOERROR aa", "REFUSED ede=20", "NOERROR aa", "NOERROR aa"]);
  assert.deepEqual(lab.ask("a.far. A"), ["NOERROR aa", "answer a.far. 61 IN A 10.0.0.1"]);
  assert.equal(publisher.stats().failedZones, 0);
  while (collect(lab.writer));
  auditArena(lab.writer);
});
