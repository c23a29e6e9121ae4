import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryStore } from "../../tests/support/store.ts";
import type { RecordBody } from "../model/objects.ts";
import { zoneFromCreate } from "../model/zone.ts";
import { openStore } from "./open-store.ts";
import type { ChangeBatch, Store } from "./store.ts";

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

const OTHER_ZONE = "other.test.";

const SECRET = { kind: "file", key: Buffer.alloc(32, 7) } as const;

async function worldWithZone() {
  const world = await temporaryStore({ secretKey: SECRET });
  await world.store.write((tx) => {
    tx.put("zone", zoneFromCreate({ name: ZONE }, "zon_slices"));
    tx.put("zone", zoneFromCreate({ name: OTHER_ZONE }, "zon_other"));
    tx.put("record", record(0, 1));
  });
  return world;
}

/** Who waits for somebody that waits for him would never end. */
const TURNS_MAX = 200;

/** Writes 4 records in slices that each take a turn of the event loop, until `isEnough` holds. */
function writeSlowly({ writeInSlices }: Store, isEnough: () => boolean): Promise<void> {
  return writeInSlices(function* (tx) {
    for (let index = 1; index <= 4; index++) tx.put("record", record(index, 1));
    for (let turn = 0; turn < TURNS_MAX && !isEnough(); turn++) {
      pause();
      yield;
    }
  });
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

test("a write that meets nothing of a transaction in slices is on the disk and told before it, and both count", async () => {
  await using world = await worldWithZone();
  const { store } = world;
  const heard: (readonly string[])[] = [];
  store.onChange(({ changes }) => heard.push(changes.map(({ key }) => key.join(" "))));
  let isWritten = false;
  const sliced = writeSlowly(store, () => isWritten);
  await nextTurn();
  let runs = 0;
  const seen = await store.write((tx) => {
    runs++;
    tx.put("record", { ...record(5, 1), zone: OTHER_ZONE });
    return [tx.count("record", ZONE), tx.get("record", [ZONE, "host1", "A"])];
  });
  assert.deepEqual([seen, runs], [[1, undefined], 1]);
  assert.equal(store.get("record", [OTHER_ZONE, "host5", "A"])?.body.id, "rec_5");
  isWritten = true;
  await sliced;
  assert.deepEqual(heard, [[`${OTHER_ZONE} host5 A`], [1, 2, 3, 4].map((index) => `${ZONE} host${index} A`)]);
  assert.deepEqual([store.count("record"), store.count("record", ZONE), store.count("record", OTHER_ZONE)], [6, 5, 1]);
});

test("a write of what a transaction in slices has only read waits for it, and runs once more", async () => {
  await using world = await worldWithZone();
  const { store } = world;
  let hasBegun = false;
  let runs = 0;
  const sliced = store.writeInSlices(function* (tx) {
    const present = tx.get("record", [ZONE, "host0", "A"])?.body.values;
    const listed = tx.list("record", { prefix: [OTHER_ZONE], limit: 10 }).length;
    hasBegun = true;
    for (let turn = 0; turn < 5; turn++) {
      pause();
      yield;
    }
    assert.deepEqual(tx.get("record", [ZONE, "host0", "A"])?.body.values, present);
    assert.equal(tx.list("record", { prefix: [OTHER_ZONE], limit: 10 }).length, listed);
    tx.put("zone", zoneFromCreate({ name: "third.test." }, "zon_third"));
  });
  while (!hasBegun) await nextTurn();
  const seesThird = (body: RecordBody) =>
    store.write((tx) => {
      runs++;
      tx.put("record", body);
      return tx.get("zone", ["third.test."]) !== undefined;
    });
  const [changed, phantom] = [record(0, 7), { ...record(6, 1), zone: OTHER_ZONE }];
  assert.deepEqual(await Promise.all([seesThird(changed), seesThird(phantom)]), [true, true]);
  await sliced;
  assert.equal(runs, 4);
  assert.deepEqual(store.get("record", [ZONE, "host0", "A"])?.body.values, [{ value: "192.0.2.7" }]);
  assert.equal(store.count("record", OTHER_ZONE), 1);
});

test("two creates of one id in two zones, one of them in slices: it lives at one key, whichever was first", async () => {
  await using world = await worldWithZone();
  const { store } = world;
  let isWritten = false;
  const sliced = writeSlowly(store, () => isWritten);
  await nextTurn();
  const other = store.write((tx) => void tx.put("record", { ...record(1, 9), zone: OTHER_ZONE }));
  const beside = store.write((tx) => void tx.put("record", { ...record(9, 9), zone: OTHER_ZONE }));
  await beside;
  isWritten = true;
  await Promise.all([sliced, other.catch(() => undefined)]);
  const places = [ZONE, OTHER_ZONE].filter((zone) => store.get("record", [zone, "host1", "A"]) !== undefined);
  assert.equal(places.length, 1);
  assert.equal(store.byId("record", "rec_1")?.body.zone, places[0]);
  assert.equal(store.count("record"), 6);
});

test("what is written beside transactions in slices leaves the digest that a new scan finds", async () => {
  await using world = await worldWithZone();
  const { store } = world;
  await store.digest.ready();
  let left = 30;
  const long = async () => {
    for (let round = 0; round < 5; round++) {
      await store.writeInSlices(function* (tx) {
        for (let index = 1; index <= 5; index++) {
          tx.put("record", record(index, 10 + round));
          pause();
          yield;
        }
      });
    }
  };
  const short = async () => {
    for (; left > 0; left--) {
      const index = left;
      const zone = index % 3 === 0 ? ZONE : OTHER_ZONE;
      await store.write((tx) => void tx.put("record", { ...record(100 + index, index), zone }));
    }
  };
  await Promise.all([long(), short(), short()]);
  const kept = store.digest.root();
  assert.deepEqual(
    [store.count("record"), store.count("record", ZONE), store.count("record", OTHER_ZONE)],
    [36, 16, 20],
  );
  assert.equal(store.list("record", { prefix: [OTHER_ZONE], limit: 100 }).length, 20);
  await store[Symbol.asyncDispose]();
  await using again = await openStore({ directory: world.directory, nodeId: "test-node", secretKey: SECRET });
  await again.digest.ready();
  assert.equal(again.digest.root(), kept);
});

/** A write of the settings in slices that begins, waits until `meanwhile` is done, and only then looks at them. */
function writeLate(store: Store, value: number, meanwhile: () => Promise<unknown>): Promise<void> {
  return store.writeInSlices(function* (tx) {
    let isDone = false;
    const done = () => {
      isDone = true;
    };
    void meanwhile().then(done);
    for (let turn = 0; turn < TURNS_MAX && !isDone; turn++) {
      pause();
      yield;
    }
    tx.put("config", { name: "late", settings: { value } });
  });
}

const putSettings = (store: Store, value: number) =>
  store.write((tx) => tx.put("config", { name: "late", settings: { value } }).stamp);

test("a transaction in slices that writes over what came meanwhile does so under a later stamp", async () => {
  await using world = await worldWithZone();
  const { store } = world;
  let times = 0;
  let stamp = "";
  await writeLate(store, 1, async () => {
    if (times++ === 0) stamp = await putSettings(store, 2);
  });
  const after = store.get("config", ["late"]);
  assert.deepEqual([times, after?.body.settings], [2, { value: 1 }]);
  assert.ok(after !== undefined && after.stamp > stamp);
});

test("a transaction in slices that something comes before each time it is made is refused in the end", async () => {
  await using world = await worldWithZone();
  const { store } = world;
  let times = 0;
  await assert.rejects(
    writeLate(store, 1, () => putSettings(store, ++times + 1)),
    { code: "conflict" },
  );
  assert.deepEqual([times, store.get("config", ["late"])?.body.settings], [5, { value: 6 }]);
});
