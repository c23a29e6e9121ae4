import assert from "node:assert/strict";
import { test } from "node:test";
import { givenZone } from "../../tests/support/commands.ts";
import type { Store } from "../store/store.ts";
import { scanPage, scanSlices } from "./scan.ts";

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
  const exact = await scanPage(world.store, "record", options, COUNT);
  assert.deepEqual([exact.items.length, exact.next], [COUNT, undefined]);
  const short = await scanPage(world.store, "record", options, COUNT - 1);
  assert.equal(short.items.length, COUNT - 1);
  const rest = await scanPage(world.store, "record", { ...options, after: short.next }, 10);
  assert.deepEqual([rest.items.length, rest.next], [1, undefined]);
});

test("a page behind a record that is gone goes on where it was", async () => {
  await using world = await givenZone("corp.");
  await fill(world.store);
  const first = await scanPage(world.store, "record", { prefix: ["corp."] }, 10);
  const expected = await scanPage(world.store, "record", { prefix: ["corp."], after: first.next }, 10);
  await world.store.write((tx) => tx.delete("record", first.next ?? []));
  const second = await scanPage(world.store, "record", { prefix: ["corp."], after: first.next }, 10);
  assert.deepEqual(second.items, expected.items);
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
