import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryStore } from "../../tests/support/store.ts";
import type { RecordBody } from "../model/objects.ts";
import { zoneFromCreate } from "../model/zone.ts";
import type { ChangeBatch } from "./store.ts";

const ZONE = "slices.test.";

function record(index: number, octet: number): RecordBody {
  return {
    id: `rec_${index}`,
    zone: ZONE,
    name: `host${index}`,
    type: "A",
    ttl: 300,
    values: [{ value: `192.0.2.${octet}` }],
    protected: false,
    auto_populate: false,
  };
}

/** Lets the event loop turn once. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Waits long enough between steps that every step is a slice of its own. */
function pause(): void {
  const end = performance.now() + 5;
  while (performance.now() < end);
}

async function worldWithZone() {
  const world = await temporaryStore();
  await world.store.write((tx) => {
    tx.put("zone", zoneFromCreate({ name: ZONE }, "zon_slices"));
    tx.put("record", record(0, 1));
  });
  return world;
}

test("until a transaction in slices is done, reads see nothing of it, by key, by id, in lists and in counts", async () => {
  await using world = await worldWithZone();
  const { store } = world;
  const serial = store.serialOf(ZONE);
  let isOver = false;
  let looks = 0;
  const look = () => ({
    old: store.get("record", [ZONE, "host0", "A"])?.body.values,
    byKey: store.get("record", [ZONE, "host1", "A"]),
    byId: store.byId("record", "rec_1"),
    list: store.list("record", { prefix: [ZONE], limit: 100 }).length,
    zones: store.list("zone", { limit: 10 }).length,
    count: store.count("record", ZONE),
    serial: store.serialOf(ZONE),
  });
  const before = look();
  const writing = store.writeInSlices(function* (tx) {
    tx.put("record", record(0, 2));
    for (let index = 1; index <= 10; index++) {
      tx.put("record", record(index, 1));
      assert.equal(tx.list("record", { prefix: [ZONE], limit: 100 }).length, index + 1);
      pause();
      yield;
    }
    return "done";
  });
  const watching = (async () => {
    while (!isOver) {
      const seen = look();
      if (!isOver && store.count("record", ZONE) === 1) {
        assert.deepEqual(seen, before);
        looks++;
      }
      await nextTurn();
    }
  })();
  assert.equal(await writing, "done");
  isOver = true;
  await watching;
  assert.ok(looks >= 5, `looked ${looks} times`);
  const after = look();
  assert.deepEqual(after.old, [{ value: "192.0.2.2" }]);
  assert.equal(after.byKey?.body.id, "rec_1");
  assert.equal(after.byId?.body.id, "rec_1");
  assert.deepEqual([after.list, after.count], [11, 11]);
  assert.ok((after.serial ?? 0) > (serial ?? 0));
});

test("what a transaction in slices throws leaves nothing written, and listeners hear nothing", async () => {
  await using world = await worldWithZone();
  const { store } = world;
  const heard: ChangeBatch[] = [];
  store.onChange((batch) => heard.push(batch));
  const serial = store.serialOf(ZONE);
  await assert.rejects(
    store.writeInSlices(function* (tx) {
      for (let index = 1; index <= 4; index++) {
        tx.put("record", record(index, 1));
        pause();
        yield;
      }
      throw new Error("half-way");
    }),
    /half-way/,
  );
  assert.equal(store.count("record", ZONE), 1);
  assert.equal(store.get("record", [ZONE, "host1", "A"]), undefined);
  assert.equal(store.byId("record", "rec_1"), undefined);
  assert.equal(store.serialOf(ZONE), serial);
  assert.deepEqual(heard, []);
  await store.write((tx) => void tx.put("record", record(9, 9)));
  assert.equal(store.count("record", ZONE), 2);
});

test("other writes wait for a transaction in slices, see what it wrote, and are told after it", async () => {
  await using world = await worldWithZone();
  const { store } = world;
  const heard: (readonly string[])[] = [];
  store.onChange(({ changes }) => heard.push(changes.map(({ key }) => key.join(" "))));
  const sliced = store.writeInSlices(function* (tx) {
    for (let index = 1; index <= 4; index++) {
      tx.put("record", record(index, 1));
      pause();
      yield;
    }
  });
  await nextTurn();
  const others = [5, 6, 7].map((index) =>
    store.write((tx) => {
      tx.put("record", record(index, 1));
      return tx.count("record", ZONE);
    }),
  );
  await sliced;
  assert.deepEqual(await Promise.all(others), [6, 7, 8]);
  assert.equal(heard.length, 4);
  assert.deepEqual(
    heard[0],
    [1, 2, 3, 4].map((index) => `${ZONE} host${index} A`),
  );
});
