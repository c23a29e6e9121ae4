import assert from "node:assert/strict";
import { test } from "node:test";
import { givenZone } from "../../tests/support/commands.ts";
import type { Store, Stored } from "../store/store.ts";
import { openPage, type ScanOptions, scanSlices } from "./scan.ts";

const COUNT = 1203;

async function fill(store: Store): Promise<void> {
  await store.write((tx) => {
    for (let index = 0; index < COUNT; index++) {
      tx.put("record", {
        id: `rec_${index}`,
        zone: "corp.",
        name: `h${index}`,
        type: "A",
        ttl: 0,
        values: [{ value: "192.0.2.1" }],
        protected: false,
        auto_populate: false,
      });
    }
  });
}

/** A page from its turns. */
function scanPage(store: Store, options: ScanOptions<"record">, limit: number) {
  const turn = openPage(store, "record", options, limit);
  const items: Stored<"record">[] = [];
  for (;;) {
    const { items: some, end } = turn(false);
    items.push(...some);
    if (end !== undefined) return { items, next: end.next };
  }
}

test("a scan gives each object once, in slices of bounded size", async () => {
  await using world = await givenZone("corp.");
  await fill(world.store);
  const seen: string[] = [];
  let greatest = 0;
  for await (const slice of scanSlices(world.store, "record", { prefix: ["corp."] })) {
    greatest = Math.max(greatest, slice.length);
    seen.push(...slice.map(({ body }) => body.id));
  }
  assert.equal(seen.length, COUNT);
  assert.equal(new Set(seen).size, COUNT);
  assert.ok(greatest <= 500);
});

test("a page promises another only where there is one", async () => {
  await using world = await givenZone("corp.");
  await fill(world.store);
  const options = { prefix: ["corp."] };
  const exact = scanPage(world.store, options, COUNT);
  assert.deepEqual([exact.items.length, exact.next], [COUNT, undefined]);
  const short = scanPage(world.store, options, COUNT - 1);
  assert.equal(short.items.length, COUNT - 1);
  const rest = scanPage(world.store, { ...options, after: short.next }, 10);
  assert.deepEqual([rest.items.length, rest.next], [1, undefined]);
});

test("a page behind a record that is gone goes on where it was", async () => {
  await using world = await givenZone("corp.");
  await fill(world.store);
  const first = scanPage(world.store, { prefix: ["corp."] }, 10);
  const expected = scanPage(world.store, { prefix: ["corp."], after: first.next }, 10);
  await world.store.write((tx) => tx.delete("record", first.next ?? []));
  const second = scanPage(world.store, { prefix: ["corp."], after: first.next }, 10);
  assert.deepEqual(second.items, expected.items);
});

test("a slice ends early where objects are large, and what is turned down counts too", async () => {
  await using world = await givenZone("corp.");
  await world.store.write((tx) => {
    for (let index = 0; index < 60; index++) {
      const values = Array.from({ length: 40 }, (_, at) => ({ value: `${index}-${at}-${"x".repeat(900)}` }));
      const flags = { protected: false, auto_populate: false };
      tx.put("record", { id: `rec_${index}`, zone: "corp.", name: `h${index}`, type: "TXT", ttl: 0, values, ...flags });
    }
  });
  const slices = await Array.fromAsync(scanSlices(world.store, "record", { prefix: ["corp."] }));
  assert.equal(slices.flat().length, 60);
  assert.ok(Math.max(...slices.map(({ length }) => length)) <= 2);
  const none = await Array.fromAsync(scanSlices(world.store, "record", { prefix: ["corp."], accept: () => false }));
  assert.equal(none.length, slices.length);
});

test("a page that is full ends, and goes on behind its last object only where there is another", async () => {
  await using world = await givenZone("corp.");
  await fill(world.store);
  const full = openPage(world.store, "record", { prefix: ["corp."] }, COUNT);
  const first = full(false);
  assert.equal(first.end, undefined);
  assert.deepEqual(full(true), { items: [], end: { next: first.items.at(-1)?.key } });
  const last = ({ key }: Stored<"record">) => key[1] === first.items.at(-1)?.key[1];
  const single = openPage(world.store, "record", { prefix: ["corp."], accept: last }, COUNT);
  assert.equal(single(false).items.length, 1);
  for (;;) {
    const { items, end } = single(true);
    assert.deepEqual(items, []);
    if (end === undefined) continue;
    assert.equal(end.next, undefined);
    break;
  }
});

test("a scan ends when its reader has gone", async () => {
  await using world = await givenZone("corp.");
  await fill(world.store);
  const reader = new AbortController();
  let slices = 0;
  for await (const _ of scanSlices(world.store, "record", { prefix: ["corp."], signal: reader.signal })) {
    slices++;
    reader.abort();
  }
  assert.equal(slices, 1);
});
