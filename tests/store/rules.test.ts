import assert from "node:assert/strict";
import test from "node:test";
import { Refusal } from "../../src/model/refusal.ts";
import { type NodeStore, openStore } from "../../src/store/open-store.ts";
import type { RawItem } from "../../src/store/raw-items.ts";
import type { StoreTransaction } from "../../src/store/store.ts";
import { temporaryStore } from "../support/store.ts";
import { auditInput, recordBody, zoneBody } from "../support/store-objects.ts";
import { exchange, pair, START, send, withZone } from "./two-stores.ts";

const DAY_MS = 86_400_000;

test("of a CNAME and an A made at once the first stays, and the other returns when it goes", async () => {
  const { first, second } = pair();
  await using left = await first;
  await using right = await second;
  await withZone(left.store);
  await send(left.store, right.store);
  await left.store.write((tx) => tx.put("record", recordBody("corp.", "www", { id: "rec_a" })));
  const cname = { id: "rec_c", type: "CNAME", values: [{ value: "x.corp." }] } as const;
  await right.store.write((tx) => tx.put("record", recordBody("corp.", "www", cname)));
  await exchange(left.store, right.store);
  for (const { store } of [left, right]) {
    assert.equal(store.get("record", ["corp.", "www", "A"])?.shadowedBy, undefined);
    assert.equal(store.get("record", ["corp.", "www", "CNAME"])?.shadowedBy, "rec_a");
  }
  const heard: (string | undefined)[] = [];
  right.store.onChange(({ changes }) =>
    heard.push(...changes.map(({ after }) => (after?.body && "type" in after.body ? after.body.type : undefined))),
  );
  await right.store.write((tx) => tx.delete("record", ["corp.", "www", "A"]));
  assert.equal(right.store.get("record", ["corp.", "www", "CNAME"])?.shadowedBy, undefined);
  assert.deepEqual(heard, [undefined, "CNAME"]);
});

test("the id that loses a merge of two creates still leads to the object", async () => {
  const { first, second } = pair();
  await using left = await first;
  await using right = await second;
  await withZone(left.store);
  await send(left.store, right.store);
  await left.store.write((tx) => tx.put("record", recordBody("corp.", "a", { id: "rec_left" })));
  await right.store.write((tx) => tx.put("record", recordBody("corp.", "a", { id: "rec_right", ttl: 5 })));
  await exchange(left.store, right.store);
  for (const { store } of [left, right]) {
    assert.equal(store.byId("record", "rec_right")?.body.ttl, 5);
    assert.equal(store.byId("record", "rec_left")?.body.id, "rec_right");
    assert.equal(store.count("record", "corp."), 1);
  }
  assert.deepEqual(
    left.store.journalPage({ limit: 10 }).entries.map(({ reason }) => reason),
    ["replaced"],
  );
});

test("an edit that never heard of a rename is journalled and brings nothing back", async () => {
  const { first, second } = pair();
  await using left = await first;
  await using right = await second;
  await withZone(left.store);
  await left.store.write((tx) => tx.put("record", recordBody("corp.", "a", { id: "rec_1" })));
  await send(left.store, right.store);
  await left.store.write((tx) => tx.move("record", ["corp.", "a", "A"], recordBody("corp.", "b", { id: "rec_1" })));
  await right.store.write((tx) => tx.put("record", recordBody("corp.", "a", { id: "rec_1", ttl: 77 })));
  await exchange(left.store, right.store);
  for (const { store } of [left, right]) {
    const names = store.list("record", { prefix: ["corp."], limit: 10 }).map(({ body }) => body.name);
    assert.deepEqual(names, ["b"]);
    assert.equal(store.byId("record", "rec_1")?.body.name, "b");
  }
  const journal = right.store.journalPage({ limit: 10 }).entries;
  assert.ok(journal.some(({ reason, body }) => reason === "renamed" && JSON.stringify(body).includes("77")));
});

test("what was written while the zone was deleted elsewhere is in the journal, and not in the zone's next life", async () => {
  const { first, second } = pair();
  await using left = await first;
  await using right = await second;
  await withZone(left.store);
  await send(left.store, right.store);
  await left.store.write((tx) => tx.deleteZone("corp."));
  await right.store.write((tx) => tx.put("record", recordBody("corp.", "late")));
  await left.store.write((tx) => tx.put("zone", zoneBody("corp.", { id: "zon_2" })));
  await exchange(left.store, right.store);
  await right.store.idle();
  for (const { store } of [left, right]) {
    assert.equal(store.byId("zone", "zon_2")?.body.name, "corp.");
    assert.deepEqual(store.list("record", { limit: 10 }), []);
    assert.equal(store.count("record"), 0);
  }
  const lost = right.store.journalPage({ limit: 10 }).entries.filter(({ kind }) => kind === "record");
  assert.deepEqual(
    lost.map(({ key, reason }) => [key[1], reason]),
    [["late", "zone-deleted"]],
  );
});

test("a record that the deletion had not seen is journalled though the zone's next life has its key", async () => {
  const { first, second } = pair();
  await using left = await first;
  await using right = await second;
  await withZone(left.store);
  await send(left.store, right.store);
  await right.store.write((tx) => tx.put("record", recordBody("corp.", "a", { id: "rec_old", ttl: 11 })));
  await left.store.write((tx) => {
    tx.deleteZone("corp.");
    tx.put("zone", zoneBody("corp.", { id: "zon_2" }));
    tx.put("record", recordBody("corp.", "a", { id: "rec_new", ttl: 22 }));
  });
  await exchange(left.store, right.store);
  await right.store.idle();
  for (const { store } of [left, right]) {
    assert.equal(store.get("record", ["corp.", "a", "A"])?.body.id, "rec_new");
    assert.equal(store.count("record", "corp."), 1);
  }
  const lost = right.store.journalPage({ limit: 10 }).entries.filter(({ kind }) => kind === "record");
  assert.deepEqual(
    lost.map(({ reason, body }) => [reason, JSON.stringify(body).includes("rec_old")]),
    [["zone-deleted", true]],
  );
});

test("an active zone stays active whatever comes, and a later life begins anew", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await withZone(store);
  const state = (life: string, state: "pending" | "active"): RawItem => ({
    item: "activation",
    zone: "corp.",
    life,
    state,
  });
  await store.applyRemote([state("", "pending")]);
  assert.equal(store.stateOf("corp."), "active");
  await store.write((tx) => tx.setState("corp.", "pending"));
  assert.equal(store.stateOf("corp."), "active");
  await store.write((tx) => {
    tx.deleteZone("corp.");
    tx.put("zone", zoneBody("corp.", { id: "zon_2" }));
    tx.setState("corp.", "pending");
  });
  assert.equal(store.stateOf("corp."), "pending");
  await store.applyRemote([state("", "active")]);
  assert.equal(store.stateOf("corp."), "pending");
  await store.write((tx) => tx.setState("corp.", "active"));
  assert.equal(store.stateOf("corp."), "active");
});

test("serials merge by maximum, and a change that came without a greater one raises it", async () => {
  const { first, second } = pair();
  await using left = await first;
  await using right = await second;
  await withZone(left.store);
  await send(left.store, right.store);
  const before = left.store.serialOf("corp.") ?? 0;
  await right.store.write((tx) => tx.put("record", recordBody("corp.", "a")));
  const { items } = right.store.rawItems({ limit: 100 });
  await left.store.applyRemote(items.filter(({ item }) => item === "object"));
  assert.ok((left.store.serialOf("corp.") ?? 0) > before);
  const serial = (left.store.serialOf("corp.") ?? 0) + 100;
  await left.store.applyRemote([{ item: "serial", zone: "corp.", life: "", serial }]);
  await left.store.applyRemote([{ item: "serial", zone: "corp.", life: "", serial: serial - 50 }]);
  assert.equal(left.store.serialOf("corp."), serial);
});

test("stamps from too far ahead are refused, and named", async () => {
  const { first, second } = pair(11_000);
  await using left = await first;
  await using right = await second;
  await withZone(right.store);
  const { items } = right.store.rawItems({ limit: 100 });
  const refused = await left.store.applyRemote(items);
  const stamped = items.flatMap(({ item }, index) => (item === "object" ? [{ index, reason: "future" }] : []));
  assert.deepEqual(refused, stamped);
  assert.equal(left.store.get("zone", ["corp."]), undefined);
});

test("what is no stamp is refused", async () => {
  await using temporary = await temporaryStore();
  const item: RawItem = { item: "floor", zone: "corp.", floor: "zzz" };
  assert.deepEqual(await temporary.store.applyRemote([item]), [{ index: 0, reason: "malformed" }]);
});

test("stamps go on over a restart and with a clock that is set back; far back, writes are refused", async () => {
  let nowMs = START;
  const now = () => nowMs;
  const secretKey = { kind: "file", key: new Uint8Array(32) } as const;
  await using temporary = await temporaryStore({ nodeId: "n1", now, secretKey });
  const stamps: string[] = [];
  const note = (store: NodeStore) =>
    store.write((tx) => {
      tx.audit(auditInput());
      return stamps.push(tx.stamp);
    });
  for (const step of [0, 0, 5, -5_000, 0, 1]) {
    nowMs += step;
    await note(temporary.store);
  }
  await temporary.store[Symbol.asyncDispose]();
  nowMs = START - 8_000;
  await using again = await openStore({ directory: temporary.directory, nodeId: "n1", now, secretKey });
  assert.equal(again.instanceId, temporary.store.instanceId);
  await note(again);
  assert.equal(new Set(stamps).size, stamps.length);
  assert.deepEqual([...stamps].sort(), stamps);
  nowMs = START - 60_000;
  await assert.rejects(note(again), (thrown) => thrown instanceof Refusal && thrown.code === "clock_skew");
});

test("stamp zero loses to any edit, and of two the older one stays", async () => {
  const { first, second } = pair();
  await using left = await first;
  await using right = await second;
  const admin = (hash: string) =>
    ({ id: `usr_${hash}`, username: "admin", role: "admin", enabled: true, password_hash: hash }) as const;
  await left.store.write((tx) => tx.put("user", admin("left"), { stampZero: true }));
  await right.store.write((tx) => tx.put("user", admin("right"), { stampZero: true }));
  await exchange(left.store, right.store);
  for (const { store } of [left, right]) assert.equal(store.get("user", ["admin"])?.body.password_hash, "left");
  await right.store.write((tx) => tx.put("user", { ...admin("left"), password_hash: "edited" }));
  await exchange(left.store, right.store);
  for (const { store } of [left, right]) assert.equal(store.get("user", ["admin"])?.body.password_hash, "edited");
});

test("serials follow the clock, rise by one within a second, and move with changes only", async () => {
  let nowMs = START;
  await using temporary = await temporaryStore({ now: () => nowMs });
  const { store } = temporary;
  await withZone(store);
  const seconds = START / 1000;
  assert.equal(store.serialOf("corp."), seconds);
  await store.write((tx) => tx.put("record", recordBody("corp.", "a")));
  assert.equal(store.serialOf("corp."), seconds + 1);
  await store.write((tx) => tx.put("record", recordBody("corp.", "a")));
  await store.write((tx) => tx.put("zone", zoneBody("corp.", { deletion_lock: true })));
  assert.equal(store.serialOf("corp."), seconds + 1);
  nowMs += 60_000;
  await store.write((tx) => tx.put("zone", zoneBody("corp.", { deletion_lock: true, default_ttl: 60 })));
  assert.equal(store.serialOf("corp."), seconds + 60);
  await assert.rejects(
    store.write((tx) => tx.setSerial("corp.", 7)),
    /not created in this transaction/,
  );
  const imported = (serial: number) =>
    store.write((tx) => {
      tx.put("zone", zoneBody("import."));
      tx.setSerial("import.", serial);
      tx.put("record", recordBody("import.", "a"));
    });
  await assert.rejects(imported(4_000_000_001), RangeError);
  assert.equal(store.get("zone", ["import."]), undefined);
  await imported(4_000_000_000);
  assert.equal(store.serialOf("import."), 4_000_000_000);
  assert.equal(store.stateOf("corp."), "active");
});

test("tombstones leave thirty days later, rounded up to a day, and are refused from then on", async () => {
  const { first, second, pass } = pair();
  await using left = await first;
  await using right = await second;
  await withZone(left.store);
  await left.store.write((tx) => tx.put("record", recordBody("corp.", "a")));
  await send(left.store, right.store);
  await left.store.write((tx) => tx.delete("record", ["corp.", "a", "A"]));
  const isTombstone = (item: RawItem) => item.item === "object" && item.envelope.content.kind === "tombstone";
  const tombstones = left.store.rawItems({ limit: 100 }).items.filter(isTombstone);
  assert.equal(tombstones.length, 1);
  pass(30 * DAY_MS);
  assert.equal(left.store.rawItems({ limit: 100 }).items.filter(isTombstone).length, 1);
  pass(DAY_MS / 2);
  assert.equal(left.store.rawItems({ limit: 100 }).items.filter(isTombstone).length, 0);
  assert.deepEqual(await right.store.applyRemote(tombstones), [{ index: 0, reason: "collected" }]);
});

/** One of each way to write, behind which a command may still throw. */
const WRITES: Readonly<Record<string, (tx: StoreTransaction) => unknown>> = {
  create: (tx) => tx.put("record", recordBody("corp.", "new")),
  edit: (tx) => tx.put("record", recordBody("corp.", "a", { ttl: 9 })),
  delete: (tx) => tx.delete("record", ["corp.", "a", "A"]),
  move: (tx) => tx.move("record", ["corp.", "a", "A"], recordBody("corp.", "z", { id: "rec_a.corp.A" })),
  "delete a zone": (tx) => tx.deleteZone("corp."),
  "create a zone": (tx) => {
    tx.put("zone", zoneBody("other."));
    tx.setSerial("other.", 5);
    tx.setState("other.", "active");
  },
  audit: (tx) => tx.audit(auditInput()),
  "edit a zone": (tx) => tx.put("zone", zoneBody("corp.", { default_ttl: 1 })),
  "create a user": (tx) => tx.put("user", { id: "usr_1", username: "a", role: "admin", enabled: true }),
};

for (const [what, write] of Object.entries(WRITES)) {
  test(`a throw behind "${what}" leaves nothing written`, async () => {
    await using temporary = await temporaryStore();
    const { store } = temporary;
    await withZone(store);
    await store.write((tx) => tx.put("record", recordBody("corp.", "a")));
    const everything = () => [
      store.rawItems({ limit: 1000 }),
      store.auditPage({}, { limit: 10 }),
      store.count("record"),
      store.count("zone"),
      store.count("user"),
    ];
    const before = everything();
    // Beside others in the same commit, which stay.
    const outcomes = await Promise.allSettled([
      store.write((tx) => {
        write(tx);
        throw new Error("half-way");
      }),
      store.rehearse(write),
    ]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["rejected", "fulfilled"],
    );
    assert.deepEqual(everything(), before);
    await store.write(write);
    assert.notDeepEqual(everything(), before, "the write itself does nothing");
  });
}

test("a transaction that has ended takes no more writes, and no async work", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  let kept: StoreTransaction | undefined;
  await store.write((tx) => {
    kept = tx;
  });
  assert.throws(() => kept?.put("zone", zoneBody("corp.")), /has ended/);
  await assert.rejects(
    store.write(async (tx) => tx.put("zone", zoneBody("corp."))),
    /must not be async/,
  );
  assert.equal(store.count("zone"), 0);
});

test("a listener that throws does not disturb the writer or the other listeners", async () => {
  const logged: string[] = [];
  await using temporary = await temporaryStore({ log: (_, message) => logged.push(message) });
  const { store } = temporary;
  let heard = 0;
  store.onChange(() => {
    throw new Error("deaf");
  });
  const end = store.onChange(() => heard++);
  await withZone(store);
  end();
  await store.write((tx) => tx.put("record", recordBody("corp.", "a")));
  assert.equal(heard, 1);
  assert.match(logged.join(), /deaf/);
  assert.equal(store.count("record"), 1);
});
