import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { IMPORT_ZONE_RECORDS_MAX } from "../model/limits.ts";
import { Refusal } from "../model/refusal.ts";
import { readCsv } from "./import-csv.ts";

const HEADER = "zone,name,type,ttl,value,priority,weight,port,region";

function records(text: string | Uint8Array, target?: string) {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  return readCsv(bytes, target === undefined ? {} : { target }).flatMap((zone) => zone.records.map(({ body }) => body));
}

function refused(text: string | Uint8Array, pattern: RegExp, target?: string): void {
  assert.throws(
    () => records(text, target),
    (error) => {
      assert.ok(error instanceof Refusal && error.code === "invalid_request", String(error));
      assert.match(error.message, pattern);
      return true;
    },
  );
}

test("one row a value; rows of one name and type are one record", () => {
  const [a, mx, srv] = records(
    [
      HEADER,
      "corp.test.,www,A,300,192.0.2.1,,,,west",
      "corp.test.,@,MX,,mail.corp.test,10,,,",
      "corp.test.,www,A,,192.0.2.2,,,,",
      "corp.test.,@,MX,,backup.corp.test.,20,,,",
      "corp.test.,_ldap._tcp,SRV,60,dc1.corp.test.,0,100,389,",
    ].join("\n"),
  ).toSorted((left, right) => (left.type < right.type ? -1 : 1));
  assert.deepEqual(a?.values, [{ value: "192.0.2.1", region: "west" }, { value: "192.0.2.2" }]);
  assert.deepEqual([a?.name, a?.ttl], ["www", 300]);
  assert.deepEqual(mx?.values, [
    { value: "mail.corp.test.", priority: 10 },
    { value: "backup.corp.test.", priority: 20 },
  ]);
  assert.deepEqual([srv?.priority, srv?.weight, srv?.port, srv?.values], [0, 100, 389, [{ value: "dc1.corp.test." }]]);
});

test("rows that say the same count once; one value with two regions is a fault", () => {
  const [a, mx, y] = records(
    `${HEADER}\nc.test.,www,A,300,192.0.2.1,,,,\nc.test.,WWW,a,,192.0.2.1,,,,\nc.test.,www,A,300,192.0.2.2,,,,\n` +
      "c.test.,x,MX,,m.,10,,,\nc.test.,x,MX,,m.,010,,,\nc.test.,y,MX,,m.,10,,,\nc.test.,y,MX,,m.,20,,,\n",
  );
  assert.equal(y?.values.length, 2);
  assert.deepEqual(a?.values, [{ value: "192.0.2.1" }, { value: "192.0.2.2" }]);
  assert.deepEqual([mx?.priority, mx?.values], [10, [{ value: "m." }]]);
  refused(`${HEADER}\nc.test.,x,A,,192.0.2.1,,,,west\nc.test.,x,A,,192.0.2.1,,,,east\n`, /^row 3: /);
});

test("a byte order mark, CRLF, quoted fields with commas, quotes and line ends, columns in any order", () => {
  const text = `\ufeffValue,TYPE,name,zone\r\n"say ""hi"", then\nbye",txt,note,corp.test.\r\n\r\n`;
  assert.deepEqual(
    records(text).map(({ name, type, ttl, values }) => ({ name, type, ttl, values })),
    [{ name: "note", type: "TXT", ttl: 0, values: [{ value: 'say "hi", then\nbye' }] }],
  );
});

test("a CAA value is its tag and its quoted value, the flag is the priority; an empty value denies all", () => {
  const text = `${HEADER}\nc.test.,@,CAA,,"issue ""ca.example""",128,,,\nc.test.,@,CAA,,"issuewild """"",0,,,\nc.test.,x,CAA,,iodef mailto:a@b.test,,,,\n`;
  const [apex, x] = records(text);
  assert.deepEqual(apex?.values, [
    { value: "ca.example", tag: "issue", priority: 128 },
    { value: "", tag: "issuewild", priority: 0 },
  ]);
  assert.deepEqual([x?.tag, x?.values], ["iodef", [{ value: "mailto:a@b.test" }]]);
});

test("a fault names its row", () => {
  const row = (cells: string) => `${HEADER}\nc.test.,ok,A,,192.0.2.1,,,,\n${cells}\n`;
  refused(row("c.test.,www,A,,192.0.2.999,,,,"), /^row 3: \/values\/0\/value must be an IPv4/);
  refused(row("c.test.,www,WKS,,x,,,,"), /^row 3, type: must be one of/);
  refused(row("c.test.,www,A,2147483648,192.0.2.1,,,,"), /^row 3: \/ttl/);
  refused(row("c.test.,www,A,-1,192.0.2.1,,,,"), /^row 3, ttl: must be a whole number/);
  refused(row("c.test.,ok,A,5,192.0.2.2,,,,\nc.test.,ok,A,6,192.0.2.3,,,,"), /^row 4, ttl: differs/);
  refused(row("c.test,www,A,,192.0.2.1,,,,"), /^row 3, zone: must be a full name that ends in a dot: "c.test."/);
  refused(row(",www,A,,192.0.2.1,,,,"), /^row 3, zone: must not be empty/);
  refused(row("c.test.,www..x,A,,192.0.2.1,,,,"), /^row 3: \/name/);
  refused(row("c.test.,ok,CNAME,,x.test.,,,,"), /^row 3, name: CNAME stands beside a record of type A/);
  refused(row("c.test.,www,A,,,,,,"), /^row 3: \/values\/0\/value/);
  refused(row("c.test.,www,A,,192.0.2.1"), /^row 3: 5 fields where the header has 9/);
  refused(row('c.test.,www,TXT,,"open,,,,'), /^row 3: a quotation mark is not closed/);
  refused(row('c.test.,www,TXT,,mid"dle,,,,'), /^row 3: a quotation mark in the middle/);
  refused(row("c.test.,www,SRV,,x.test.,1,2,,"), /^row 3: \/values\/0\/port is missing/);
  refused(row('c.test.,www,CAA,,"issue """,0,,,'), /^row 3, value: must be a tag/);
});

test("the header is needed, and has the columns that there are", () => {
  refused("", /row 1: there is no header/);
  refused("c.test.,www,A,,192.0.2.1,,,,", /row 1: unknown column "c.test."/);
  refused(`${HEADER},comment\n`, /row 1: unknown column "comment"/);
  refused("zone,name,type\n", /row 1, value: the column is missing/);
  refused("name,type,value\n", /row 1, zone: the column is missing/);
  refused("zone,name,type,value,name\n", /row 1, name: the column is there twice/);
});

test("into one zone: the column is not needed, another zone is refused, what is too much is cut off", () => {
  assert.equal(records("name,type,value\nwww,A,192.0.2.1\n", "c.test.")[0]?.zone, "c.test.");
  refused(
    `${HEADER}\nother.test.,www,A,,192.0.2.1,,,,\n`,
    /row 2, zone: the import is into the zone c.test./,
    "c.test.",
  );
  const rows = Array.from({ length: IMPORT_ZONE_RECORDS_MAX + 1 }, (_, index) => `h${index},A,192.0.2.1`);
  const text = Buffer.from(["name,type,value", ...rows].join("\n"));
  const [zone] = readCsv(text, { target: "c.test." });
  assert.equal(zone?.records.length, IMPORT_ZONE_RECORDS_MAX);
  assert.match(zone?.errors[0] ?? "", /more than 50000 records/);
});

test("bytes that are no text, and rows without end", () => {
  refused(Buffer.from([0x7a, 0xff]), /not valid UTF-8/);
  refused(`${HEADER}\nc.test.,\0,A,,192.0.2.1,,,,\n`, /NUL/);
  refused(`${HEADER}\n"${"x".repeat(2_000_000)}`, /row 2: longer than/);
  refused("x".repeat(2_000_000), /row 1: longer than/);
});

test("whatever text comes, there are records or a refusal", () => {
  const piece = fc.constantFrom(
    HEADER,
    "\n",
    ",",
    '"',
    "c.test.",
    "www",
    "A",
    "192.0.2.1",
    "\r",
    "TXT",
    "",
    "CAA",
    "1",
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, fc.string({ maxLength: 4 })), { maxLength: 40 }), (pieces) => {
      try {
        records(`${HEADER}\n${pieces.join("")}`);
      } catch (error) {
        assert.ok(error instanceof Refusal, String(error));
      }
    }),
    { numRuns: 1000 },
  );
});
