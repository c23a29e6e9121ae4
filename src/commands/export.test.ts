import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ALONE, testCaller } from "../../tests/support/commands.ts";
import { temporaryStore } from "../../tests/support/store.ts";
import { IMPORT_ZONE_RECORDS_MAX } from "../model/limits.ts";
import type { RecordType } from "../model/objects.ts";
import { recordFromCreate } from "../model/record.ts";
import { Refusal } from "../model/refusal.ts";
import { bundleText } from "./export-bundle.ts";
import { zoneFileText } from "./export-zone-file.ts";
import { parseHere } from "./import-slices.ts";
import { importZones } from "./import-zones.ts";

const ZONE = { id: "zon_1", name: "p.test." };

const label = fc.oneof(
  fc.constantFrom("a", "b", "www", "_srv", "*", "x-1", "10"),
  fc.string({
    minLength: 1,
    maxLength: 6,
    unit: fc.constantFrom("a", "\\.", "\\;", '\\"', "\\032", "\\255", "\\@", "\\$", "\\("),
  }),
);
const name = fc.oneof(
  fc.constant("@"),
  fc.array(label, { minLength: 1, maxLength: 3 }).map((labels) => labels.join(".")),
);
const host = fc
  .array(fc.constantFrom("a", "B", "host-1", "_x"), { minLength: 1, maxLength: 3 })
  .map((labels) => `${labels.join(".")}.`);
const uint16 = fc.integer({ min: 0, max: 65_535 });

const valueOfType: { readonly [T in RecordType]: fc.Arbitrary<Record<string, unknown>> } = {
  A: fc.ipV4().map((value) => ({ value })),
  AAAA: fc
    .ipV6()
    .filter((value) => !value.includes("."))
    .map((value) => ({ value })),
  CNAME: host.map((value) => ({ value })),
  NS: host.map((value) => ({ value })),
  PTR: host.map((value) => ({ value })),
  ALIAS: host.map((value) => ({ value })),
  MX: fc.record({ value: host, priority: uint16 }),
  SRV: fc.record({ value: host, priority: uint16, weight: uint16, port: uint16 }),
  TXT: fc
    .oneof(
      fc.string({ minLength: 1, maxLength: 300, unit: "binary" }),
      fc.constantFrom('""', '"a" "b"', '"\\000\\255"'),
    )
    .map((value) => ({ value })),
  CAA: fc.record({
    value: fc.string({ maxLength: 20, unit: fc.constantFrom("a", " ", ";", '"', "\\", "=") }),
    tag: fc.constantFrom("issue", "issuewild", "iodef"),
    priority: fc.integer({ min: 0, max: 255 }),
  }),
};

const record = fc.constantFrom(...(Object.keys(valueOfType) as RecordType[])).chain((type) =>
  fc.record({
    name,
    type: fc.constant(type),
    ttl: fc.integer({ min: 0, max: 2_147_483_647 }),
    values: fc.array(valueOfType[type], { minLength: 1, maxLength: 3 }),
  }),
);

/** Those of the given that a POST would take. */
function takenBy(given: readonly object[]): object[] {
  return given.filter((each) => {
    try {
      recordFromCreate(each as Parameters<typeof recordFromCreate>[0], ZONE, "");
      return true;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return false;
    }
  });
}

async function textOf(chunks: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const chunk of chunks) text += chunk;
  return text;
}

test("whatever a zone holds, its export as either format, imported again, is no difference", async () => {
  await using world = await temporaryStore();
  const { context, store } = world;
  const tools = { parse: parseHere, peers: ALONE };
  const importing = (contentType: string, text: string) =>
    importZones(context, testCaller(), tools, { contentType, body: Buffer.from(text) });
  let records = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(record, { maxLength: 25 }), async (given) => {
      const zone = store.get("zone", ["p.test."]);
      if (zone !== undefined) await store.write((tx) => tx.deleteZone("p.test."));
      await importing("application/json", JSON.stringify({ zones: [{ name: "p.test." }] }));
      for (const each of takenBy(given)) {
        // One at a time: those that cannot stand beside the ones before are refused.
        const bundle = JSON.stringify({ zones: [{ name: "p.test.", records: [each] }] });
        await importing("application/json", bundle).catch((error) =>
          assert.ok(error instanceof Refusal, String(error)),
        );
      }
      const count = store.count("record", "p.test.");
      records += count;
      const stored = store.get("zone", ["p.test."])?.body;
      assert.ok(stored !== undefined);
      const zoneFile = await textOf(zoneFileText(store, stored));
      const fromFile = await importing("text/dns", zoneFile);
      assert.deepEqual(
        [fromFile.created, fromFile.updated, fromFile.unchanged, fromFile.parse_errors],
        [0, 0, count, []],
        zoneFile,
      );
      const bundle = await textOf(bundleText(store, 0));
      const fromBundle = await importing("application/json", bundle);
      assert.deepEqual([fromBundle.created, fromBundle.updated, fromBundle.unchanged], [0, 0, count], bundle);
    }),
    { numRuns: 40 },
  );
  assert.ok(records > 100, `${records} records in all`);
});

test("a zone with as many records as an import may bring can be imported again from its export", async () => {
  await using world = await temporaryStore();
  const { context, store } = world;
  const tools = { parse: parseHere, peers: ALONE };
  const importing = (contentType: string, text: string) =>
    importZones(context, testCaller(), tools, { contentType, body: Buffer.from(text) });
  const hosts = Array.from({ length: IMPORT_ZONE_RECORDS_MAX }, (_, index) => `h${index} A 192.0.2.1\n`).join("");
  const first = await importing("text/dns", `$ORIGIN p.test.\n$TTL 300\n@ SOA ns1 h 1 2 3 4 5\n${hosts}`);
  assert.deepEqual([first.created, first.parse_errors], [IMPORT_ZONE_RECORDS_MAX, []]);
  const zone = store.get("zone", ["p.test."])?.body ?? assert.fail();
  const zoneFile = await textOf(zoneFileText(store, zone));
  assert.match(zoneFile, /^; synthesised @ NS$/m);
  const bundle = await textOf(bundleText(store, 0));
  for (const [type, text] of Object.entries({ "text/dns": zoneFile, "application/json": bundle })) {
    const { created, updated, unchanged, parse_errors } = await importing(type, text);
    assert.deepEqual([created, updated, unchanged, parse_errors], [0, 0, IMPORT_ZONE_RECORDS_MAX, []], type);
  }
});
