import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { keyBytes } from "../../src/model/keys.ts";
import { auditSequenceKey, makeAuditEntry, putAuditEntry } from "../../src/store/audit.ts";
import { type Database, openDatabase, TABLE, type Table } from "../../src/store/database.ts";
import { SLICE_CHARACTERS_MAX, startHousekeeping } from "../../src/store/housekeeping.ts";
import type { NodeStore } from "../../src/store/open-store.ts";
import type { AuditEntry, AuditFilter } from "../../src/store/store.ts";
import { enlistSweep } from "../../src/store/sweep-list.ts";
import { temporaryStore } from "../support/store.ts";
import { auditInput, recordBody, zoneBody } from "../support/store-objects.ts";
import { waitFor } from "../support/wait.ts";

const START = Date.parse("2026-03-01T12:00:00Z");
const DAY_MS = 86_400_000;
const RECORDS = 3_000;

async function fill(store: NodeStore, zone: string): Promise<void> {
  await store.write((tx) => {
    tx.put("zone", zoneBody(zone));
    for (let index = 0; index < RECORDS; index++) tx.put("record", recordBody(zone, `host${index}`));
  });
}

/** All pages of a query, however short each is. */
function allEntries(
  store: NodeStore,
  filter: AuditFilter,
  options: { limit: number; oldestFirst?: true },
): AuditEntry[] {
  const found: AuditEntry[] = [];
  let cursor: string | undefined;
  do {
    const page = store.auditPage(filter, { ...options, ...(cursor !== undefined && { cursor }) });
    assert.ok(page.entries.length <= options.limit);
    found.push(...page.entries);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

test("the records of a deleted zone are gone at once and removed in slices, those of its next life stay", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await fill(store, "corp.");
  await fill(store, "other.");
  await store.write((tx) => tx.deleteZone("corp."));
  assert.equal(store.count("record"), RECORDS);
  assert.equal(store.count("record", "corp."), 0);
  assert.equal(store.list("record", { prefix: ["corp."], limit: 5 }).length, 0);
  assert.deepEqual([...new Set(store.list("record", { limit: 4000 }).map(({ body }) => body.zone))], ["other."]);
  assert.equal(store.list("record", { limit: 4000 }).length, RECORDS);
  await store.write((tx) => {
    tx.put("zone", zoneBody("corp.", { id: "zon_2" }));
    tx.put("record", recordBody("corp.", "host7", { id: "rec_new" }));
  });
  await store.idle();
  assert.deepEqual(
    store.list("record", { prefix: ["corp."], limit: 5 }).map(({ body }) => body.id),
    ["rec_new"],
  );
  assert.equal(store.byId("record", recordBody("corp.", "host8").id), undefined);
  assert.equal(store.byId("record", recordBody("corp.", "host7").id), undefined);
  assert.equal(store.count("record", "other."), RECORDS);
  assert.deepEqual(store.journalPage({ limit: 10 }).entries, []);
});

test("others write and read while records are removed", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await fill(store, "corp.");
  await store.write((tx) => tx.deleteZone("corp."));
  let isIdle = false;
  const idle = store.idle().then(() => {
    isIdle = true;
  });
  await store.write((tx) => tx.put("zone", zoneBody("meanwhile.")));
  assert.ok(!isIdle, "nothing was left to remove when the write came back");
  await idle;
});

test("a reader is let go of within a turn of the event loop", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await fill(store, "corp.");
  assert.equal(store.list("record", { limit: 500 }).length, 500);
  assert.ok(store.readerAgeMs() > 0);
  await waitFor("no reader", 1_000, () => store.readerAgeMs() === 0);
});

test("the audit log is asked by field and by time, from both ends", async () => {
  let nowMs = START;
  await using temporary = await temporaryStore({ now: () => nowMs });
  const { store } = temporary;
  for (let index = 0; index < 300; index++) {
    await store.write((tx) =>
      tx.audit(auditInput({ resource_id: `rec_${index}`, user_name: index % 3 === 0 ? "bob" : "alice" })),
    );
    if (index % 10 === 9) nowMs += 1_000;
  }
  const numbers = (filter: AuditFilter, options: { limit: number; oldestFirst?: true }) =>
    allEntries(store, filter, options).map(({ resource_id }) => Number(resource_id.slice(4)));
  const upwards = Array.from({ length: 300 }, (_, index) => index);
  assert.deepEqual(numbers({}, { limit: 7 }), [...upwards].reverse());
  assert.deepEqual(numbers({}, { limit: 7, oldestFirst: true }), upwards);
  const ofBob = upwards.filter((index) => index % 3 === 0);
  assert.deepEqual(numbers({ user_name: "bob" }, { limit: 9, oldestFirst: true }), ofBob);
  const between = { fromMs: START + 2_000, toMs: START + 4_000 };
  const inTime = upwards.slice(20, 40);
  assert.deepEqual(numbers(between, { limit: 3, oldestFirst: true }), inTime);
  assert.deepEqual(numbers(between, { limit: 3 }), [...inTime].reverse());
  assert.deepEqual(numbers({ resource_id: "rec_299", user_name: "bob" }, { limit: 3 }), []);
  const [newest] = store.auditPage({}, { limit: 1 }).entries;
  assert.equal(newest?.id, `${store.instanceId}-300`);
  assert.equal(newest?.time, new Date(nowMs - 1_000).toISOString());
  assert.equal(newest?.node_id, "test-node");
});

test("a filter that matches little is answered by short pages", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await store.write((tx) => {
    tx.audit(auditInput({ resource_id: "needle" }));
    for (let index = 0; index < 12_000; index++) tx.audit(auditInput());
  });
  const first = store.auditPage({ resource_id: "needle" }, { limit: 50 });
  assert.equal(first.entries.length, 0);
  assert.notEqual(first.cursor, undefined);
  assert.equal(allEntries(store, { resource_id: "needle" }, { limit: 50 }).length, 1);
});

test("a body of more than 64 KB is entered as its hash and size", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await store.write((tx) => tx.audit(auditInput({ before: { small: 1 }, after: { text: "x".repeat(70_000) } })));
  const [entry] = store.auditPage({}, { limit: 1 }).entries;
  assert.deepEqual(entry?.before, { small: 1 });
  const after = entry?.after as { sha256: string; bytes: number };
  assert.match(after.sha256, /^[0-9a-f]{64}$/);
  assert.equal(after.bytes, 70_011);
});

test("entries past their time are pruned, the oldest first and no others", async () => {
  let nowMs = START;
  const secretKey = { kind: "file", key: new Uint8Array(32) } as const;
  await using temporary = await temporaryStore({ now: () => nowMs, auditRetentionDays: 2, secretKey });
  const { store } = temporary;
  for (let day = 0; day < 5; day++) {
    await store.write((tx) => {
      for (let index = 0; index < 400; index++) tx.audit(auditInput({ resource_id: `day${day}` }));
    });
    nowMs += DAY_MS;
  }
  // A deletion wakes the housekeeping, which does all of its work.
  await store.write((tx) => tx.put("zone", zoneBody("corp.")));
  await store.write((tx) => tx.deleteZone("corp."));
  await store.idle();
  const days = new Set(allEntries(store, {}, { limit: 1000 }).map(({ resource_id }) => resource_id));
  assert.deepEqual([...days], ["day4", "day3"]);
  assert.equal(allEntries(store, {}, { limit: 1000 }).length, 800);
});

test("entries are pruned a few at a time where they are long, and nothing of them is left", async () => {
  const directory = await mkdtemp(join(tmpdir(), "signpost-database-"));
  const database = openDatabase(directory);
  try {
    const instanceId = "an-instance";
    const lengths = [120_000, 10, 120_000, 120_000, 300, 60_000];
    await database.run(() => {
      for (let sequence = 1; sequence <= 60; sequence++) {
        const at = { instanceId, sequence, timeMs: START + sequence, nodeId: "n" };
        const after = { text: "x".repeat(lengths[sequence % lengths.length] ?? 0) };
        putAuditEntry(database, makeAuditEntry(auditInput({ after }), at), at);
      }
      return true;
    });
    const read: number[] = [];
    const watched: Database = {
      ...database,
      range: (table, options) => {
        const rows = database.range(table, options);
        read.push(rows.reduce((sum, { value }) => sum + value.length, 0));
        return rows;
      },
    };
    const kept = 10;
    const now = () => START + DAY_MS + 60 - kept + 1;
    const housekeeping = startHousekeeping({ database: watched, now, auditRetentionMs: DAY_MS, log: assert.fail });
    housekeeping.wake();
    await housekeeping.idle();
    await housekeeping.stop();
    const longest = 120_400;
    assert.ok(Math.max(...read) <= SLICE_CHARACTERS_MAX + longest, `${Math.max(...read)} characters at once`);
    assert.ok(Math.max(...read) > longest, "never more than one at once");
    const left = (table: Table) => database.range(table, { prefix: new Uint8Array(), limit: 100 });
    const sequences = Array.from({ length: kept }, (_, index) => 61 - kept + index);
    assert.deepEqual(
      left(TABLE.AUDIT).map(({ value }) => JSON.parse(value).id),
      sequences.map((sequence) => `${instanceId}-${sequence}`),
    );
    assert.deepEqual(
      left(TABLE.AUDIT_SEQUENCE).map(({ key }) => Buffer.from(key)),
      sequences.map((sequence) => Buffer.from(auditSequenceKey(instanceId, sequence))),
    );
  } finally {
    await database.close();
    await rm(directory, { recursive: true, force: true });
  }
});

test("tombstones are collected when they are due", async () => {
  let nowMs = START;
  await using temporary = await temporaryStore({ now: () => nowMs });
  const { store } = temporary;
  await fill(store, "corp.");
  await store.write((tx) => tx.delete("record", ["corp.", "host1", "A"]));
  await store.write((tx) =>
    tx.move("record", ["corp.", "host2", "A"], recordBody("corp.", "moved", { id: "rec_host2.corp.A" })),
  );
  assert.equal(store.collectedUpToMs(), 0);
  nowMs += 31 * DAY_MS;
  await store.write((tx) => tx.put("zone", zoneBody("other.")));
  await store.write((tx) => tx.deleteZone("other."));
  await store.idle();
  assert.equal(store.collectedUpToMs(), Date.parse("2026-04-01T00:00:00Z"));
  assert.equal(store.byId("record", "rec_host2.corp.A")?.body.name, "moved");
  assert.equal(store.count("record", "corp."), RECORDS - 1);
});

test("a record of a life that ended while the sweeper waited is entered in the journal, where the deletion had not seen it", async () => {
  const directory = await mkdtemp(join(tmpdir(), "signpost-sweep-"));
  const database = openDatabase(directory);
  try {
    const [life, floor] = [START, START + 1].map((ms) => `${ms.toString(16).padStart(12, "0")}0000-n1`) as [
      string,
      string,
    ];
    const stamp = `${(START + 1).toString(16).padStart(12, "0")}0000-n2`;
    const zoneKey = keyBytes("zone", ["corp."]);
    const writeZone = (present: string) =>
      database.put(TABLE.ZONE, zoneKey, JSON.stringify({ zone: "corp.", floor: present, alive: false }));
    await database.run(() => {
      writeZone(life);
      enlistSweep(database, { zone: "corp.", life: "", hasUnseen: false });
      const row = JSON.stringify({ s: stamp, l: life, v: recordBody("corp.", "unseen") });
      database.put(TABLE.OBJECT, keyBytes("record", ["corp.", "unseen", "A"]), row);
      return true;
    });
    let hasEnded = false;
    const run: Database["run"] = async (work, takenBack) => {
      if (!hasEnded) {
        hasEnded = true;
        await database.run(() => {
          writeZone(floor);
          enlistSweep(database, { zone: "corp.", life, hasUnseen: true });
          return true;
        });
      }
      return database.run(work, takenBack);
    };
    const parts = { now: () => START, auditRetentionMs: DAY_MS, log: () => undefined };
    const housekeeping = startHousekeeping({ database: { ...database, run }, ...parts });
    housekeeping.wake();
    await housekeeping.idle();
    await housekeeping.stop();
    const left = (table: Table) => database.range(table, { prefix: new Uint8Array(), limit: 10 }).length;
    assert.deepEqual([left(TABLE.OBJECT), left(TABLE.SWEEP), left(TABLE.JOURNAL)], [0, 0, 1]);
  } finally {
    await database.close();
    await rm(directory, { recursive: true, force: true });
  }
});
