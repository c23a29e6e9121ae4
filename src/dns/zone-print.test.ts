import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import { RRTYPE } from "./codes.ts";
import { parseZoneFile } from "./zone-file.ts";
import { recordToText, type ZoneRecord } from "./zone-print.ts";

const ZONE_SUFFIX = [4, 0x7a, 0x6f, 0x6e, 0x65, 0];

function parse(text: string | Uint8Array): readonly ZoneRecord[] {
  const records: ZoneRecord[] = [];
  const report = parseZoneFile(typeof text === "string" ? new TextEncoder().encode(text) : text, {
    onRecord: (owner, ownerLength, type, ttl, rdata, rdataLength) => {
      records.push({ owner: owner.slice(0, ownerLength), type, ttl, rdata: rdata.slice(0, rdataLength) });
    },
  });
  assert.deepEqual(report.errors, []);
  return records;
}

const label = fc.uint8Array({ minLength: 1, maxLength: 12 }).map((bytes) => [bytes.length, ...bytes]);
const labels = fc.array(label, { maxLength: 5 }).map((each) => each.flat());
const nameBytes = labels.map((bytes) => [...bytes, 0]);
const uint16 = fc.uint8Array({ minLength: 2, maxLength: 2 }).map((bytes) => [...bytes]);
const address = fc.uint8Array({ minLength: 4, maxLength: 4 }).map((bytes) => [...bytes]);
const longAddress = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => [...bytes]);
const zeroAddress = fc.array(fc.constantFrom(0, 0, 0, 1), { minLength: 16, maxLength: 16 });
const string = fc.uint8Array({ maxLength: 255 }).map((bytes) => [bytes.length, ...bytes]);
const tag = fc.constantFrom("issue", "iodef", "ISSUEwild", "x1").map((text) => [text.length, ...Buffer.from(text)]);
const bytes = (...parts: fc.Arbitrary<readonly number[]>[]) => fc.tuple(...parts).map((each) => each.flat());
const numbers = fc.uint8Array({ minLength: 20, maxLength: 20 }).map((each) => [...each]);

const RDATA: Readonly<Record<number, fc.Arbitrary<readonly number[]>>> = {
  [RRTYPE.A]: address,
  [RRTYPE.AAAA]: fc.oneof(longAddress, zeroAddress),
  [RRTYPE.CNAME]: nameBytes,
  [RRTYPE.NS]: nameBytes,
  [RRTYPE.PTR]: nameBytes,
  [RRTYPE.ALIAS]: nameBytes,
  [RRTYPE.MX]: bytes(uint16, nameBytes),
  [RRTYPE.SRV]: bytes(uint16, uint16, uint16, nameBytes),
  [RRTYPE.TXT]: fc.array(string, { minLength: 1, maxLength: 4 }).map((each) => each.flat()),
  [RRTYPE.CAA]: bytes(fc.constantFrom([0], [128]), tag, string),
};

const recordOf = (type: number): fc.Arbitrary<ZoneRecord> =>
  fc.record(
    {
      owner: labels.map((each) => Uint8Array.from([...each, ...ZONE_SUFFIX])),
      type: fc.constant(type),
      ttl: fc.integer({ min: 0, max: 2_147_483_647 }),
      rdata: RDATA[type]!.map((each) => Uint8Array.from(each)),
    },
    { noNullPrototype: true },
  );

const soa: fc.Arbitrary<ZoneRecord> = fc.record(
  {
    owner: fc.constant(Uint8Array.from(ZONE_SUFFIX)),
    type: fc.constant(RRTYPE.SOA),
    ttl: fc.integer({ min: 0, max: 2_147_483_647 }),
    rdata: bytes(nameBytes, nameBytes, numbers).map((each) => Uint8Array.from(each)),
  },
  { noNullPrototype: true },
);

test("printing and parsing again gives the same bytes", () => {
  const record = fc.constantFrom(...Object.keys(RDATA).map(Number)).chain(recordOf);
  fc.assert(
    fc.property(soa, fc.array(record, { maxLength: 20 }), (first, others) => {
      const records = [first, ...others];
      assert.deepEqual(parse(records.map(recordToText).join("\n")), records);
    }),
    { numRuns: 300 },
  );
});

test("the example zone survives printing", () => {
  const records = parse(readFileSync(new URL("../../tests/vectors/example.test.zone", import.meta.url)));
  assert.ok(records.length > 25);
  assert.deepEqual(parse(records.map(recordToText).join("\n")), records);
});
