import assert from "node:assert/strict";
import test from "node:test";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import type { RecordType } from "../../src/model/objects.ts";
import { effective } from "../../src/store/effective.ts";
import { type NodeStore, openStore } from "../../src/store/open-store.ts";
import type { RawItem } from "../../src/store/raw-items.ts";
import { type Chance, seededChance } from "../support/chance.ts";
import { type TemporaryStore, temporaryStore } from "../support/store.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";

const STORES = 3;
const ZONES = ["corp.", "sub.corp."];
const NAMES = ["a", "b"];
const TYPES: readonly RecordType[] = ["A", "CNAME", "TXT"];
/** Histories of a run; a change of what merges is worth some hundreds. */
const RUNS = Number(process.env.SIGNPOST_MERGE_RUNS ?? 24);

type Step =
  | { readonly do: "zone" | "delete-zone" | "edit-zone"; readonly at: number; readonly zone: number }
  | {
      readonly do: "create" | "edit" | "rename" | "delete";
      readonly at: number;
      readonly zone: number;
      readonly name: number;
      readonly type: number;
      readonly to: number;
    }
  | { readonly do: "exchange"; readonly at: number; readonly from: number; readonly seed: number };

const index = (bound: number) => fc.nat({ max: bound - 1 });
const arbitraryStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom("zone", "delete-zone", "edit-zone"),
      at: index(STORES),
      zone: index(2),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom("create", "edit", "rename", "delete"),
      at: index(STORES),
      zone: index(2),
      name: index(2),
      type: index(3),
      to: index(2),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("exchange" as const),
      at: index(STORES),
      from: index(STORES),
      seed: fc.nat(),
    }),
  },
);

/** A version that a store acknowledged: which object, and its stamp. */
type Write = { readonly kind: "zone" | "record"; readonly key: string; readonly stamp: string };

type World = {
  readonly stores: readonly NodeStore[];
  readonly writes: Write[];
  /** Of zones: they live on as floors. */
  readonly deletions: { readonly zone: string; readonly stamp: string }[];
  /** Versions that were replaced or deleted by someone who had held them. */
  readonly outdated: Set<string>;
  /** Each differs from all others, so that no edit is equal to what it replaces. */
  readonly next: () => number;
};

function versionName(kind: string, key: readonly string[], stamp: string): string {
  return `${kind} ${key.join(" ")} ${stamp}`;
}

function allItems(store: NodeStore): readonly RawItem[] {
  const items: RawItem[] = [];
  let cursor: string | undefined;
  do {
    const page = store.rawItems({ limit: 7, ...(cursor !== undefined && { cursor }) });
    items.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return items;
}

function shuffled<Value>(values: readonly Value[], chance: Chance): Value[] {
  const left = [...values];
  const result: Value[] = [];
  while (left.length > 0) result.push(...left.splice(chance.below(left.length), 1));
  return result;
}

/** A part of what one store has reaches another: out of order, some of it twice, in two messages. */
async function exchange(world: World, from: number, to: number, chance: Chance | undefined): Promise<void> {
  const [source, target] = [world.stores[from], world.stores[to]];
  if (source === undefined || target === undefined || from === to) return;
  const all = allItems(source);
  const sent =
    chance === undefined ? all : shuffled([...all, ...all], chance).slice(0, chance.below(2 * all.length + 1));
  const cut = chance === undefined ? 0 : chance.below(sent.length + 1);
  for (const part of [sent.slice(0, cut), sent.slice(cut)]) {
    assert.deepEqual(await target.applyRemote(part), []);
  }
}

/** What is at a key of a store now is outdated by a write of that store: the writer has it. */
function outdate(world: World, store: NodeStore, isMeant: (kind: string, key: readonly string[]) => boolean): void {
  for (const item of allItems(store)) {
    if (item.item !== "object" || !isMeant(item.kind, item.key)) continue;
    world.outdated.add(versionName(item.kind, item.key, item.envelope.stamp));
  }
}

async function runStep(world: World, step: Step): Promise<void> {
  const store = world.stores[step.at];
  if (store === undefined) return;
  if (step.do === "exchange") {
    await exchange(world, step.from, step.at, seededChance(step.seed));
    return;
  }
  const zone = ZONES[step.zone] ?? "";
  if (!("name" in step)) await runZoneStep(world, store, step.do, zone);
  else if (store.get("zone", [zone]) !== undefined) {
    const name = NAMES[step.name] ?? "";
    await runRecordStep(world, store, step.do, [zone, name, TYPES[step.type] ?? "A"], NAMES[step.to] ?? "");
  }
}

async function runZoneStep(world: World, store: NodeStore, what: string, zone: string): Promise<void> {
  const current = store.get("zone", [zone]);
  if ((what === "zone") !== (current === undefined)) return;
  const number = world.next();
  if (what === "delete-zone") {
    outdate(world, store, (_, key) => key[0] === zone);
    const stamp = await store.write((tx) => {
      tx.deleteZone(zone);
      return tx.stamp;
    });
    world.deletions.push({ zone, stamp });
    return;
  }
  outdate(world, store, (kind, key) => kind === "zone" && key[0] === zone);
  const body = current?.body ?? zoneBody(zone, { id: `zon_${number}` });
  const { stamp } = await store.write((tx) => {
    const stored = tx.put("zone", { ...body, default_ttl: number });
    tx.setState(zone, number % 2 === 0 ? "active" : "pending");
    return stored;
  });
  world.writes.push({ kind: "zone", key: zone, stamp });
}

async function runRecordStep(
  world: World,
  store: NodeStore,
  what: "create" | "edit" | "rename" | "delete",
  key: readonly [string, string, RecordType],
  to: string,
): Promise<void> {
  const [zone, name, type] = key;
  const current = store.get("record", key);
  const number = world.next();
  const isAt =
    (...places: readonly string[]) =>
    (kind: string, each: readonly string[]) =>
      kind === "record" && each[0] === zone && each[2] === type && places.includes(each[1] ?? "");
  const noted = (name: string, stamp: string) =>
    world.writes.push({ kind: "record", key: `${zone} ${name} ${type}`, stamp });
  if (what === "create") {
    // As the commands have it: a create that replaces keeps the incumbent's id.
    const id = current?.body.id ?? `rec_${number}`;
    outdate(world, store, isAt(name));
    const { stamp } = await store.write((tx) => tx.put("record", recordBody(zone, name, { id, type, ttl: number })));
    noted(name, stamp);
  } else if (current === undefined) return;
  else if (what === "edit") {
    outdate(world, store, isAt(name));
    const { stamp } = await store.write((tx) => tx.put("record", { ...current.body, ttl: number }));
    noted(name, stamp);
  } else if (what === "rename" && to !== name) {
    outdate(world, store, isAt(name, to));
    const { stamp } = await store.write((tx) => tx.move("record", key, { ...current.body, name: to, ttl: number }));
    noted(to, stamp);
  } else if (what === "delete") {
    outdate(world, store, isAt(name));
    await store.write((tx) => tx.delete("record", key));
  }
}

/** All that a reader sees of a store, and what it would send. */
function everything(store: NodeStore) {
  const records = store.list("record", { limit: 1000 });
  const zones = store.list("zone", { limit: 1000 });
  const registers = ZONES.map((zone) => [store.serialOf(zone), store.stateOf(zone), store.count("record", zone)]);
  return { records, zones, registers, counts: [store.count("record"), store.count("zone")] };
}

function checkOne(store: NodeStore): void {
  const { records, zones } = everything(store);
  const ids = records.map(({ body }) => body.id);
  assert.equal(new Set(ids).size, ids.length, "an id is alive at two keys");
  for (const { body, key } of records) assert.deepEqual(store.byId("record", body.id)?.key, key);
  assert.equal(store.count("record"), records.length);
  assert.equal(store.count("zone"), zones.length);
  for (const zone of ZONES) {
    for (const name of NAMES) {
      const present = store.list("record", { prefix: [zone, name], limit: 10 });
      // Afresh, from the merged objects alone: what the store keeps up to date must say the same.
      const members = present.map(({ body, born }) => ({ id: body.id, type: body.type, born, life: "x" }));
      assert.deepEqual(
        present.map(({ shadowedBy }) => shadowedBy),
        effective(name, members, { floor: "x" }),
        `${name}.${zone}`,
      );
    }
  }
}

function checkNothingVanished(world: World): void {
  const journalled = new Set<string>();
  const inState = new Set<string>();
  for (const store of world.stores) {
    for (const { kind, key, stamp } of store.journalPage({ limit: 10_000 }).entries) {
      journalled.add(versionName(kind, key, stamp));
    }
    for (const item of allItems(store)) {
      if (item.item === "object") inState.add(versionName(item.kind, item.key, item.envelope.stamp));
    }
  }
  for (const { zone, stamp } of world.deletions) {
    const isRaised = (item: RawItem) => item.item === "floor" && item.zone === zone && item.floor >= stamp;
    for (const store of world.stores) assert.ok(allItems(store).some(isRaised), `the deletion of ${zone} is not known`);
  }
  for (const { kind, key, stamp } of world.writes) {
    const name = `${kind} ${key} ${stamp}`;
    const isKnown = inState.has(name) || journalled.has(name) || world.outdated.has(name);
    assert.ok(isKnown, `${name} is neither in the state nor in a journal`);
  }
}

/** Everything to everyone, until nobody has news. */
async function exchangeAll(world: World): Promise<void> {
  for (let round = 0; round < 3; round++) {
    for (let to = 0; to < STORES; to++)
      for (let from = 0; from < STORES; from++) await exchange(world, from, to, undefined);
  }
  for (const store of world.stores) await store.idle();
}

/** What two stores hold is equal where their digests are, and else not. */
async function checkDigests(stores: readonly NodeStore[]): Promise<void> {
  for (const store of stores) await store.digest.ready();
  const [first, ...others] = stores.map((store) => ({ root: store.digest.root(), items: allItems(store) }));
  for (const { root, items } of others) assert.equal(root === first?.root, isDeepStrictEqual(items, first?.items));
}

/** The versions that the leaves name are those of the items, however they are found. */
async function checkVersions(store: NodeStore): Promise<void> {
  const leaves = Array.from({ length: 65_536 }, (_, leaf) => leaf);
  const versions = await store.digest.versions(leaves);
  assert.deepEqual(versions.map(({ ref }) => ref).sort(), [...new Set(allItems(store).map(store.refOf))].sort());
  assert.deepEqual(store.items(versions.map(({ ref }) => ref)), allItems(store));
}

function checkAlike(world: World): void {
  const [first, ...others] = world.stores.map(everything);
  for (const other of others) assert.deepEqual(other, first);
  const [sent, ...sentByOthers] = world.stores.map((store) => allItems(store));
  for (const other of sentByOthers) assert.deepEqual(other, sent);
  for (const store of world.stores) checkOne(store);
}

type Opened = {
  readonly world: World;
  readonly pass: (ms: number) => void;
  readonly reopen: (at: number) => Promise<void>;
};

/** Stores whose clocks differ by a second, so that the order of stamps is not the order of events. */
async function withWorld(run: (opened: Opened) => Promise<void>): Promise<void> {
  let now = Date.parse("2026-01-01T00:00:00Z");
  const secretKey = { kind: "file", key: new Uint8Array(32) } as const;
  const options = Array.from({ length: STORES }, (_, at) => {
    return { nodeId: `node-${at}`, now: () => ++now + at * 1000, secretKey };
  });
  const temporaries: TemporaryStore[] = [];
  for (const each of options) temporaries.push(await temporaryStore(each));
  const stores = temporaries.map(({ store }) => store);
  try {
    let number = 0;
    const world: World = { stores, writes: [], deletions: [], outdated: new Set(), next: () => ++number };
    await run({
      world,
      pass: (ms) => {
        now += ms;
      },
      reopen: async (at) => {
        const [temporary, given] = [temporaries[at], options[at]];
        if (temporary === undefined || given === undefined) return;
        await stores[at]?.[Symbol.asyncDispose]();
        stores[at] = await openStore({ directory: temporary.directory, ...given });
      },
    });
  } finally {
    for (const store of stores) await store[Symbol.asyncDispose]();
    for (const temporary of temporaries) await temporary[Symbol.asyncDispose]();
  }
}

async function runHistory(steps: readonly Step[]): Promise<void> {
  await withWorld(async ({ world }) => {
    // The first digest is kept from the beginning, the second one is built beside writes, the third one at the end.
    const [first, second] = world.stores;
    await first?.digest.ready();
    for (const [at, step] of steps.entries()) {
      if (at === steps.length >> 1) void second?.digest.isReady();
      await runStep(world, step);
    }
    for (const store of world.stores) checkOne(store);
    await checkDigests(world.stores.slice(0, 2));
    await exchangeAll(world);
    checkAlike(world);
    checkNothingVanished(world);
    await checkDigests(world.stores);
    if (first !== undefined) await checkVersions(first);
  });
}

test("stores that exchange what they have, in any order and repeatedly, end alike and lose nothing", async () => {
  await fc.assert(fc.asyncProperty(fc.array(arbitraryStep, { minLength: 5, maxLength: 40, size: "max" }), runHistory), {
    numRuns: RUNS,
    interruptAfterTimeLimit: 60_000,
  });
});

test("stores agree when one of them has tidied up and the others have not, and go on alike", async () => {
  const arbitrarySteps = fc.array(arbitraryStep, { minLength: 5, maxLength: 25, size: "max" });
  const property = fc.asyncProperty(arbitrarySteps, arbitrarySteps, async (before, after) => {
    await withWorld(async ({ world, pass, reopen }) => {
      for (const store of world.stores) await store.digest.ready();
      for (const step of before) await runStep(world, step);
      await exchangeAll(world);
      pass(32 * 86_400_000);
      await checkDigests(world.stores);
      await reopen(0);
      await world.stores[0]?.idle();
      await checkDigests(world.stores);
      const roots = new Set(world.stores.map(({ digest }) => digest.root()));
      assert.equal(roots.size, 1, "what is due counts on those that have not collected it");
      for (const step of after) await runStep(world, step);
      await exchangeAll(world);
      checkAlike(world);
      await checkDigests(world.stores);
    });
  });
  await fc.assert(property, { numRuns: Math.ceil(RUNS / 3), interruptAfterTimeLimit: 60_000 });
});
