/** Transactions of all sorts beside each other leave what they leave one after the other, in the order in which they were told. */
import assert from "node:assert/strict";
import test from "node:test";
import { type NodeStore, openStore } from "../../src/store/open-store.ts";
import type { RawItem } from "../../src/store/raw-items.ts";
import { type Chance, seededChance } from "../support/chance.ts";
import { temporaryStore } from "../support/store.ts";
import {
  assertTakenAnew,
  clockAt,
  following,
  HOUR_MS,
  history,
  localOperation,
  pause,
  seedOf,
  shown,
} from "./random-stores.ts";
import { markItem, marksOf, type Operation, perform } from "./random-work.ts";
import { exchange, START } from "./two-stores.ts";

const OPERATIONS = 60;
/** Operations that are begun before one of them has ended. */
const AT_ONCE = 6;
function mergeOf(chance: Chance, mark: string, moments: readonly (readonly RawItem[])[]): Operation {
  const all = chance.pick(moments);
  const share = chance.pick([1, 4, 20]);
  const items = all.filter(() => chance.below(share) === 0);
  const stamp = `${(START - HOUR_MS).toString(16).padStart(12, "0")}ffff-n0`;
  const options = chance.below(4) === 0 ? ({ firstSync: true } as const) : {};
  return { mark, seed: 0, kind: "merge", items: [...items, markItem(mark, stamp)], options };
}

/** Makes them, some at once, and gives what each has seen, and in which order they were told. */
async function performAll(store: NodeStore, operations: readonly Operation[], chance: Chance) {
  const order: string[] = [];
  const end = store.onChange((batch) => order.push(...marksOf(batch)));
  const seen = new Map<string, unknown>();
  let next = 0;
  const worker = async () => {
    for (let own = operations[next++]; own !== undefined; own = operations[next++]) {
      seen.set(own.mark, await perform(store, own, pause));
      if (chance.below(3) === 0) await new Promise((resolve) => setImmediate(resolve));
      if (chance.below(20) === 0) store.digest.ready().catch(() => undefined);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  end();
  return { order, seen };
}

async function assertSerial(
  operations: readonly Operation[],
  done: Awaited<ReturnType<typeof performAll>>,
  store: NodeStore,
) {
  await using serial = await temporaryStore(clockAt("n1", START));
  const kept = operations.filter(({ kind }) => kind === "short" || kind === "long" || kind === "merge");
  assert.deepEqual([...done.order].sort(), kept.map(({ mark }) => mark).sort());
  for (const mark of done.order) {
    const operation = kept.find((each) => each.mark === mark);
    assert.ok(operation);
    assert.deepEqual(await perform(serial.store, operation), done.seen.get(mark), `${operation.kind} ${mark}`);
  }
  assert.deepEqual(shown(store), shown(serial.store));
  assert.deepEqual(store.journalTotals(), serial.store.journalTotals());
}

async function run(seed: number): Promise<void> {
  const chance = seededChance(seed);
  const moments = await history(chance);
  const operations = Array.from({ length: OPERATIONS }, (_, index) => {
    return chance.below(4) === 0 ? mergeOf(chance, `m${index}`, moments) : localOperation(chance, `m${index}`);
  });
  await using world = await temporaryStore(clockAt("n1", START));
  await using replica = await temporaryStore(clockAt("n3", START));
  const followed = following(world.store, replica.store);
  const done = await performAll(world.store, operations, chance);
  await followed();
  await assertSerial(operations, done, world.store);
  for (const asRows of [false, true]) await assertTakenAnew(world.store, asRows);
  const { objects, kinds } = shown(world.store);
  await exchange(world.store, replica.store);
  const after = shown(world.store);
  assert.deepEqual([after.objects, after.kinds], [objects, kinds]);
  for (const { store } of [world, replica]) await store.digest.ready();
  const root = world.store.digest.root();
  assert.equal(replica.store.digest.root(), root);
  await world.store[Symbol.asyncDispose]();
  await using again = await openStore({ directory: world.directory, ...clockAt("n1", START) });
  await again.digest.ready();
  assert.equal(again.digest.root(), root);
}

const RUNS = 4;

for (let index = 0; index < RUNS; index++) {
  const seed = seedOf() + index;
  test(`transactions beside each other are as one after the other (SIGNPOST_SEED=${seed})`, () => run(seed));
}
