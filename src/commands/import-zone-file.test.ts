import assert from "node:assert/strict";
import { test } from "node:test";
import { IMPORT_ZONE_RECORDS_MAX } from "../model/limits.ts";
import { Refusal } from "../model/refusal.ts";
import { readZoneFile, type ZoneFileOptions } from "./import-zone-file.ts";

const HEAD = "$ORIGIN c.test.\n$TTL 300\n@ 3600 IN SOA ns1 hostmaster 9 7200 900 1209600 300\n";

function read(text: string, options?: ZoneFileOptions) {
  const outcome = readZoneFile("c.zone", Buffer.from(text), options);
  if (outcome.kind !== "zone") assert.fail(outcome.error.detail);
  return outcome.draft;
}

function shown(text: string) {
  return read(HEAD + text).records.map(({ body }) => {
    const { id, zone, protected: _, auto_populate, ...rest } = body;
    return auto_populate ? { ...rest, auto_populate } : rest;
  });
}

function refused(text: string, pattern: RegExp, options?: ZoneFileOptions): void {
  assert.throws(
    () => read(text, options),
    (error) => {
      assert.ok(error instanceof Refusal && error.code === "invalid_request", String(error));
      assert.match(error.message, pattern);
      return true;
    },
  );
}

test("RRs of one name and type are one record; numbers that all share stand at the record", () => {
  assert.deepEqual(
    shown("WWW A 192.0.2.1\n A 192.0.2.2\nwww A 192.0.2.1\n@ MX 10 Mail\n@ MX 20 b.\n_s._tcp SRV 1 2 3 h\n"),
    [
      {
        name: "@",
        type: "MX",
        ttl: 300,
        values: [
          { value: "Mail.c.test.", priority: 10 },
          { value: "b.", priority: 20 },
        ],
      },
      { name: "_s._tcp", type: "SRV", ttl: 300, values: [{ value: "h.c.test." }], priority: 1, weight: 2, port: 3 },
      { name: "www", type: "A", ttl: 300, values: [{ value: "192.0.2.1" }, { value: "192.0.2.2" }] },
    ],
  );
});

test("the SOA makes the zone: names, timers, serial, and its TTL as the default", () => {
  const { create, serial } = read(HEAD);
  assert.equal(serial, 9);
  assert.deepEqual(create, {
    name: "c.test.",
    default_ttl: 3600,
    soa: {
      mname: "ns1.c.test.",
      rname: "hostmaster.c.test.",
      refresh: 7200,
      retry: 900,
      expire: 1_209_600,
      minimum: 300,
    },
  });
});

test("where TTLs of one record differ the smallest holds, with a warning", () => {
  const { records, warnings } = read(`${HEAD}www 60 A 192.0.2.1\nwww 30 A 192.0.2.2\n`);
  assert.equal(records[0]?.body.ttl, 30);
  assert.match(warnings[0] ?? "", /www\.c\.test\. A: its TTLs differ/);
});

test("what is wrong costs its own record, and says file, line and column", () => {
  const { records, parseErrors } = read(
    `${HEAD}good A 192.0.2.1\nbad A 192.0.2\nx DS 1 8 2 00\ngood CNAME other\n@ CNAME other\nhost CAA 0 contactemail "x"\n  CAA 0 issue "ca"\nlast A 192.0.2.2\n`,
  );
  assert.deepEqual(
    records.map(({ body }) => `${body.name} ${body.type}`),
    ["good A", "host CAA", "last A"],
  );
  assert.deepEqual(
    parseErrors.map(({ file, line }) => [file, line]),
    [5, 6, 7, 8, 9].map((line) => ["c.zone", line]),
  );
  assert.ok(parseErrors.every(({ column, detail }) => column >= 1 && detail.length > 0));
});

test("without a whole and absolute SOA the file is refused", () => {
  refused("", /"c\.zone" has no complete SOA record/);
  refused("$ORIGIN c.test.\n@ 300 A 192.0.2.1\n", /no complete SOA record/);
  refused("$ORIGIN c.test.\n@ 300 SOA ns1 hostmaster 1 2 3\n", /no complete SOA record: line 2/);
  refused("c.test. 300 SOA ns1 hostmaster 1 2 3 4 5\n", /no complete SOA record/);
  const lacksOrigin =
    /no complete SOA record: line 2, column \d+: .*; a line "\$ORIGIN" with the zone's full name is missing/;
  refused("$TTL 300\n@ 300 SOA ns1.c.test. hostmaster.c.test. 1 2 3 4 5\n", lacksOrigin);
  refused("www A nonsense\nc.test. 300 SOA ns1 hostmaster.c.test. 1 2 3 4 5\n", lacksOrigin);
  refused(
    "www A nonsense\nc.test. 300 CH SOA ns1. hostmaster.c.test. 1 2 3 4 5\n",
    /SOA record: line 2, column 13: class/,
  );
  refused("$ORIGIN c.test.\nwww A nonsense\n", /SOA record: line 3, column 1: the file has no SOA record$/);
  assert.equal(read("c.test. 300 SOA ns1.c.test. h.c.test. 1 2 3 4 5\n").create.name, "c.test.");
  assert.equal(read("@ 300 SOA ns1 h 1 2 3 4 5\n", { origin: "c.test." }).create.name, "c.test.");
  refused("\0\0\0\0", /no complete SOA record/);
});

test("comments tell of records without values, and of the NS that is not stored", () => {
  const marks =
    "; auto_populate web A\r\n;auto_populate deep.c.test. AAAA\n; auto_populate web NONE\nweb AAAA 2001:db8::1\n; synthesised @ NS\n@ NS ns1\n";
  assert.deepEqual(shown(marks), [
    { name: "deep", type: "AAAA", ttl: 0, values: [], auto_populate: true },
    { name: "web", type: "AAAA", ttl: 300, values: [{ value: "2001:db8::1" }] },
    { name: "web", type: "A", ttl: 0, values: [], auto_populate: true },
  ]);
  assert.equal(shown("@ NS ns1\n")[0]?.type, "NS");
  assert.equal(shown("; synthesised @ NS\n@ NS ns1\n@ NS ns2\n")[0]?.values.length, 2);
});

test("a record without values is a record: it obeys CNAME, is there once, and counts", () => {
  const { records, parseErrors } = read(
    `${HEAD}www CNAME other\n; auto_populate www A\n; auto_populate web CNAME\n; auto_populate web AAAA\n` +
      "; auto_populate dup A\n; auto_populate DUP a\n; auto_populate dup.c.test. A\n; auto_populate \\100up A\n; auto_populate x.d.test. A\n",
  );
  assert.deepEqual(
    records.map(({ body }) => `${body.name} ${body.type}`),
    ["dup A", "web CNAME", "www CNAME"],
  );
  assert.deepEqual(
    parseErrors.map(({ line, column, detail }) => [line, column, detail.slice(0, 65)]),
    [
      [5, 1, "auto_populate www A: www has a record of type CNAME already"],
      [7, 1, "auto_populate web AAAA: web has a record of type CNAME already"],
      [12, 1, 'auto_populate x.d.test. A: must be relative to the zone, and "x.d'],
    ],
  );
  const marks = "a A 192.0.2.1\n; auto_populate a A\n; auto_populate b A\n; auto_populate b A\n; auto_populate c A\n";
  const over = readZoneFile("c.zone", Buffer.from(HEAD + marks), { recordsMax: 2 });
  assert.ok(over.kind === "too-large");
  assert.equal(over.error.line, 8);
  assert.equal(readZoneFile("c.zone", Buffer.from(HEAD + marks), { recordsMax: 3 }).kind, "zone");
  const cut = read(HEAD + marks, { recordsMax: 2, cuts: true });
  assert.deepEqual(
    cut.records.map(({ body }) => body.name),
    ["a", "b"],
  );
  assert.equal(cut.errors.length, 1);
});

test("a file with too many records is not taken, or cut off", () => {
  const hosts = Array.from({ length: IMPORT_ZONE_RECORDS_MAX + 1 }, (_, index) => `h${index} A 192.0.2.1\n`).join("");
  const whole = readZoneFile("c.zone", Buffer.from(HEAD + hosts));
  assert.equal(whole.kind, "too-large");
  const cut = read(HEAD + hosts, { cuts: true });
  assert.equal(cut.records.length, IMPORT_ZONE_RECORDS_MAX);
  assert.match(cut.errors[0] ?? "", /more than 50000 records for the zone c\.test\./);
});

test("the NS that is not stored does not count, and one that is does", () => {
  const hosts = "a A 192.0.2.1\nb A 192.0.2.1\n";
  const names = (text: string, recordsMax: number) => {
    const outcome = readZoneFile("c.zone", Buffer.from(HEAD + text), { recordsMax, cuts: true });
    if (outcome.kind !== "zone") assert.fail(outcome.error.detail);
    const { records, errors } = outcome.draft;
    return [records.map(({ body }) => `${body.name} ${body.type}`).join(), errors.length];
  };
  const mark = "; synthesised @ NS\n";
  for (const text of [`${mark}@ NS ns1\n${hosts}`, `${hosts}${mark}@ NS NS1\n`]) {
    assert.deepEqual(names(text, 2), ["a A,b A", 0], text);
    assert.deepEqual(names(text, 1), ["a A", 1], text);
    assert.equal(readZoneFile("c.zone", Buffer.from(HEAD + text), { recordsMax: 1 }).kind, "too-large");
  }
  assert.deepEqual(names(`${mark}@ NS ns2\n${hosts}`, 2), ["@ NS,a A", 1]);
  assert.deepEqual(names(`${mark}@ NS ns2\n${hosts}`, 3), ["@ NS,a A,b A", 0]);
  assert.deepEqual(names(`@ NS ns1\n${hosts}`, 2), ["@ NS,a A", 1]);
  assert.deepEqual(names(`${mark}@ NS ns1\n${hosts}; auto_populate c A\n`, 2), ["a A,b A", 1]);
  assert.deepEqual(names(`${mark}@ NS ns1\n${hosts}; auto_populate c A\n`, 3), ["a A,b A,c A", 0]);
  const whole = readZoneFile("c.zone", Buffer.from(`${HEAD}${mark}@ NS ns2\n${hosts}`), { recordsMax: 2 });
  assert.ok(whole.kind === "too-large" && whole.error.line === 7);
});

test("faults that there is no room for are counted behind the last that is listed", () => {
  const { parseErrors } = read(HEAD + "bad A nonsense\n".repeat(150));
  assert.equal(parseErrors.length, 101);
  assert.deepEqual(parseErrors.at(-1), { ...parseErrors.at(-2), detail: "50 more lines or records were not taken" });
  assert.equal(parseErrors.at(-1)?.line, 103);
});
