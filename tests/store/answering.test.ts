import assert from "node:assert/strict";
import { test } from "node:test";
import type { RecordBody } from "../../src/model/objects.ts";
import type { AnsweringRecord, StoreReader } from "../../src/store/store.ts";
import { temporaryStore } from "../support/store.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";

const ZONE = "answering.test.";

function answered({ name, type, ttl, values, priority, weight, port, tag }: AnsweringRecord): unknown {
  return JSON.parse(JSON.stringify({ name, type, ttl, values, priority, weight, port, tag }));
}

/** All pages of `limit` rows. */
function readAll(store: StoreReader, limit: number): readonly unknown[] {
  const records: unknown[] = [];
  let cursor: Uint8Array | undefined;
  do {
    const page = store.answering(ZONE, { limit, ...(cursor === undefined ? {} : { cursor }) });
    records.push(...page.records.map(answered));
    ({ cursor } = page);
  } while (cursor !== undefined);
  return records;
}

function listed(store: StoreReader): readonly unknown[] {
  const all = store.list("record", { prefix: [ZONE], limit: 5000 });
  return all.filter(({ shadowedBy }) => shadowedBy === undefined).map(({ body }) => answered(body));
}

const RECORDS: readonly Partial<RecordBody>[] = [
  { name: "plain" },
  { name: "two", values: [{ value: "192.0.2.1" }, { value: "192.0.2.2" }] },
  { name: "six", type: "AAAA", values: [{ value: "2001:db8::1" }], ttl: 60 },
  { name: "mail", type: "MX", values: [{ value: "plain.answering.test." }], priority: 10 },
  { name: "service", type: "SRV", values: [{ value: "plain.answering.test.", port: 80, weight: 1 }] },
  { name: "certificates", type: "CAA", values: [{ value: "ca.test", tag: "issue" }] },
  { name: "text", type: "TXT", values: [{ value: '"quoted" "\\"values\\":[{\\"value\\":\\"x\\"}]"' }] },
  { name: "texts", type: "TXT", values: [{ value: "größe" }] },
  { name: "regional", values: [{ value: "192.0.2.3", region: "eu" }] },
  { name: "remark", comment: '","type":"A","ttl":9,"values":[{"value":"192.0.2.66"}]' },
  { name: "kept", protected: true, auto_populate: true },
  { name: "odd\\000name\\\\" },
  { name: "@", type: "NS", values: [{ value: "ns1.answering.test." }] },
  { name: "empty", values: [], auto_populate: true },
];

test("what is answered of a zone is what its list shows, by pages of any size", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await store.write((tx) => {
    tx.put("zone", zoneBody(ZONE));
    for (const name of ["old", "plain", "two"]) tx.put("record", recordBody(ZONE, name));
  });
  // What is left of an earlier life is not answered.
  await store.write((tx) => tx.deleteZone(ZONE));
  await store.write((tx) => {
    tx.put("zone", zoneBody(ZONE));
    for (const record of RECORDS) tx.put("record", recordBody(ZONE, record.name ?? "", record));
    tx.put("record", recordBody(ZONE, "gone"));
    tx.put("record", recordBody(ZONE, "before"));
  });
  await store.write((tx) => {
    tx.delete("record", [ZONE, "gone", "A"]);
    tx.move("record", [ZONE, "before", "A"], recordBody(ZONE, "after", { id: `rec_before.${ZONE}A` }));
    tx.put("record", recordBody(ZONE, "plain", { ttl: 5, values: [{ value: "192.0.2.7" }] }));
    // It came later, and is hidden.
    tx.put("record", recordBody(ZONE, "plain", { type: "CNAME", values: [{ value: "two.answering.test." }] }));
  });
  const expected = listed(store);
  assert.equal(expected.length, RECORDS.length + 1);
  for (const limit of [1, 3, 500]) assert.deepEqual(readAll(store, limit), expected, `pages of ${limit}`);
  // A transaction sees what it wrote.
  const within = await store.rehearse((tx) => {
    tx.put("record", recordBody(ZONE, "fresh"));
    tx.delete("record", [ZONE, "mail", "MX"]);
    return { read: readAll(tx, 4), expected: listed(tx) };
  });
  assert.deepEqual(within.read, within.expected);
  assert.equal(within.read.length, expected.length);
});

test("of a zone that is gone nothing is answered", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await store.write((tx) => {
    tx.put("zone", zoneBody(ZONE));
    tx.put("record", recordBody(ZONE, "www"));
  });
  assert.equal(readAll(store, 10).length, 1);
  await store.write((tx) => tx.deleteZone(ZONE));
  assert.deepEqual(readAll(store, 10), []);
});
