import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import { keyBytes } from "../../src/model/keys.ts";
import type { HealthCheckTemplate, RecordBody } from "../../src/model/objects.ts";
import { openDatabase, TABLE } from "../../src/store/database.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { AnsweringRecord, StoreReader } from "../../src/store/store.ts";
import { temporaryStore } from "../support/store.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";

const ZONE = "answering.test.";

function answered(record: AnsweringRecord): unknown {
  const { id, name, type, ttl, values, priority, weight, port, tag, lb_policy, health_check_template, fault } = record;
  const read = { id, name, type, ttl, values, priority, weight, port, tag, lb_policy, health_check_template, fault };
  return JSON.parse(JSON.stringify(read));
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
  { name: "policy", lb_policy: { method: "failover", failover_order: ["192.0.2.1"] } },
  { name: "probed", health_check_template: { protocol: "tcp", port: 80 } },
  { name: "secret", health_check_template: withHeader("Bearer 1") },
  // More than one page takes.
  ...Array.from({ length: 20 }, (_, index) => ({
    name: `long${index}`,
    health_check_template: withHeader("x".repeat(30_000)),
  })),
];

function withHeader(authorization: string): HealthCheckTemplate {
  return { protocol: "https", port: 443, http_config: { headers: { authorization } } };
}

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

test("a record whose secrets are damaged is answered without its health check, and says so", async () => {
  const secretKey = { kind: "file", key: randomBytes(32) } as const;
  await using temporary = await temporaryStore({ secretKey });
  const { store, directory } = temporary;
  await store.write((tx) => {
    tx.put("zone", zoneBody(ZONE));
    tx.put("record", recordBody(ZONE, "www", { health_check_template: withHeader("Bearer 1"), ttl: 7 }));
  });
  await store[Symbol.asyncDispose]();
  {
    const database = openDatabase(join(directory, "store"));
    const key = keyBytes("record", [ZONE, "www", "A"]);
    const text = database.get(TABLE.OBJECT, key) ?? assert.fail("no row");
    const damaged = text.replace(/"authorization":"[^"]*"/, `"authorization":"${"A".repeat(60)}"`);
    assert.notEqual(damaged, text);
    await database.run(() => {
      database.put(TABLE.OBJECT, key, damaged);
      return true;
    });
    await database.close();
  }
  await using again = await openStore({ directory, nodeId: "test-node", secretKey });
  const { records } = again.answering(ZONE, { limit: 10 });
  assert.deepEqual(
    records.map(({ name, ttl, health_check_template }) => ({ name, ttl, health_check_template })),
    [{ name: "www", ttl: 7, health_check_template: undefined }],
  );
  assert.match(records[0]?.fault ?? "", /^its health check is left out: a secret in the store does not open/);
});
