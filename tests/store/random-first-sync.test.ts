/** A first sync by rows of a store that is written meanwhile, whose changes and those of others arrive between its pages. */
import assert from "node:assert/strict";
import test from "node:test";
import type { NodeStore } from "../../src/store/open-store.ts";
import type { RawItem } from "../../src/store/raw-items.ts";
import { type Chance, seededChance } from "../support/chance.ts";
import { temporaryStore } from "../support/store.ts";
import { assertTakenAnew, clockAt, following, history, localOperation, pause, seedOf, shown } from "./random-stores.ts";
import { perform } from "./random-work.ts";
import { exchange, START } from "./two-stores.ts";

const PARTIAL = { firstSync: true, partial: true } as const;
const OPERATIONS = 40;
/** Pages that are applied at once. */
const PAGES_AT_ONCE = 2;

/** As a node that joins takes everything: by pages, and what makes zones active at the end. */
async function takeAll(from: NodeStore, to: NodeStore, chance: Chance): Promise<void> {
  const activations: RawItem[] = [];
  const applying: Promise<unknown>[] = [];
  let cursor: string | undefined;
  do {
    const limit = chance.pick([2, 4, 12]);
    const page = from.rawItems({ limit, asRows: true, ...(cursor !== undefined && { cursor }) });
    cursor = page.cursor;
    activations.push(...page.items.filter(({ item }) => item === "activation"));
    if (applying.length >= PAGES_AT_ONCE) await applying.shift();
    applying.push(to.applyRemote(page.items, { ...PARTIAL, rows: page.rows }));
    if (chance.below(2) === 0) await new Promise((resolve) => setImmediate(resolve));
  } while (cursor !== undefined);
  await Promise.all(applying);
  await to.applyRemote(activations, { firstSync: true });
}

async function writeOn(store: NodeStore, chance: Chance, name: string): Promise<void> {
  for (let index = 0; index < OPERATIONS; index++) {
    await perform(store, localOperation(chance, `${name}${index}`), pause);
  }
}

async function run(seed: number): Promise<void> {
  const chance = seededChance(seed);
  const moments = await history(chance);
  // Of other ids at the same keys.
  const elsewhere = await history(chance, "n2");
  await using giver = await temporaryStore(clockAt("n1", START));
  await using taker = await temporaryStore(clockAt("n4", START));
  await giver.store.applyRemote(moments.at(-1) ?? []);
  for (const name of ["a", "b", "c"]) await writeOn(giver.store, chance, name);
  // Some of it only, so that what comes is partly new.
  await taker.store.applyRemote(
    (elsewhere.at(-1) ?? []).filter(() => chance.below(3) === 0),
    PARTIAL,
  );
  if (chance.below(2) === 0) await taker.store.digest.ready();
  const followed = following(giver.store, taker.store, PARTIAL);
  const others = async () => {
    for (const items of moments) await taker.store.applyRemote(items, PARTIAL);
  };
  const writing = Promise.all([writeOn(giver.store, chance, "one"), writeOn(giver.store, chance, "other")]);
  await Promise.all([takeAll(giver.store, taker.store, seededChance(seed + 1)), others(), writing]);
  await followed();
  await exchange(giver.store, taker.store);
  for (const { store } of [giver, taker]) await store.digest.ready();
  assert.equal(taker.store.digest.root(), giver.store.digest.root());
  const { audit: _, ...given } = shown(giver.store);
  const { audit: __, ...taken } = shown(taker.store);
  assert.deepEqual(taken, given);
  for (const { store } of [giver, taker]) await assertTakenAnew(store, true);
}

const RUNS = 4;

for (let index = 0; index < RUNS; index++) {
  const seed = seedOf() + index;
  test(`a first sync beside changes leaves what the other has (SIGNPOST_SEED=${seed})`, () => run(seed));
}
