import assert from "node:assert/strict";
import test from "node:test";
import { createBook, type GatedProbe, type HealthEvent, putEntry, zoneBook } from "./book.ts";
import type { ProbeSpec } from "./probe.ts";
import { createStateChanges, RECORDS_A_TURN } from "./state-changes.ts";

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

const SPEC: ProbeSpec = {
  key: "0000000000000001",
  slot: 1,
  protocol: "tcp",
  host: "192.0.2.1",
  port: 80,
  intervalMs: 5_000,
  timeoutMs: 1_000,
  failureThreshold: 3,
};

function openLab(records: number) {
  const events: HealthEvent[] = [];
  const book = createBook(undefined, (event) => events.push(event));
  const probe: GatedProbe = { key: SPEC.key, slot: 1, spec: SPEC, state: "healthy", holders: 0, rrsets: new Set() };
  const zone = zoneBook(book, "corp.");
  const put = (index: number) =>
    putEntry(book, zone, {
      zone: "corp.",
      name: `host${index}`,
      type: "A",
      id: `rec_${index}`,
      method: undefined,
      values: [{ value: "192.0.2.1", region: undefined, probe, lacksSlot: false }],
      build: 0,
    });
  for (let index = 0; index < records; index++) put(index);
  const changes = createStateChanges(book);
  const told = () => changes.put(probe, "unhealthy", () => "told");
  return { events, probe, changes, told, put, zone };
}

test("what gates few records is told of at once", () => {
  const { events, told } = openLab(10);
  told();
  assert.equal(events.length, 10);
});

test("what gates many lets others have their turn, and every record is told of once", async () => {
  const records = RECORDS_A_TURN * 10;
  const { events, told } = openLab(records);
  told();
  let turns = 0;
  for (let before = 0; events.length < records; turns++) {
    assert.ok(events.length - before <= RECORDS_A_TURN, `${events.length - before} records in one turn`);
    before = events.length;
    await nextTurn();
    assert.ok(turns < 100);
  }
  assert.ok(turns >= 9);
  await nextTurn();
  assert.equal(events.length, records);
  assert.equal(new Set(events.map(({ subject }) => subject)).size, records);
});

test("changes of one turn share what it may do, and none overtakes another", async () => {
  const records = RECORDS_A_TURN * 2;
  const { events, probe, changes, told } = openLab(records);
  told();
  changes.put(probe, "healthy", () => "told");
  assert.ok(events.length <= RECORDS_A_TURN);
  for (let turn = 0; turn < 20; turn++) await nextTurn();
  assert.equal(events.length, records * 2);
  for (const [index, { data }] of events.entries()) {
    assert.equal(data.status, index < records ? "unhealthy" : "healthy");
  }
  assert.equal(probe.state, "healthy");
});

test("a record that comes meanwhile is of the new state", async () => {
  const { events, told, put, zone } = openLab(RECORDS_A_TURN * 3);
  told();
  put(1_000_000);
  for (let turn = 0; turn < 20; turn++) await nextTurn();
  assert.equal([...zone.entries.values()].filter(({ status }) => status !== "unhealthy").length, 0);
  assert.ok(!events.some(({ subject }) => subject === "rec_1000000"), "it was never healthy");
});
