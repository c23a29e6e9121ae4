import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nameFromText, nameToText } from "./name.ts";
import { rdataToText } from "./rdata.ts";
import { typeToText } from "./type-names.ts";
import { parseZoneFile } from "./zone-file.ts";
import type { ZoneFileReport } from "./zone-report.ts";

const HEAD = "$ORIGIN example.test.\n$TTL 300\n@ SOA ns1 host 1 2 3 4 5\n";

type Parsed = { readonly records: readonly string[]; readonly report: ZoneFileReport };

function parse(text: string | Uint8Array, origin?: string): Parsed {
  const records: string[] = [];
  const name = origin === undefined ? undefined : nameFromText(origin);
  const report = parseZoneFile(typeof text === "string" ? new TextEncoder().encode(text) : text, {
    ...(name?.kind === "name" ? { origin: name.name } : {}),
    onRecord: (owner, _ownerLength, type, ttl, rdata, rdataLength) => {
      records.push(`${nameToText(owner)} ${ttl} ${typeToText(type)} ${rdataToText(type, rdata, 0, rdataLength)}`);
    },
  });
  return { records, report };
}

/** The records of lines below a sound SOA. */
function body(lines: string): Parsed {
  const parsed = parse(HEAD + lines);
  return { records: parsed.records.slice(1), report: parsed.report };
}

function errorsOf(report: ZoneFileReport): readonly string[] {
  return report.errors.map((error) => `${error.line}:${error.column} ${error.detail}`);
}

test("records that are read", () => {
  const table: readonly (readonly [string, ...string[]])[] = [
    ["a A 10.0.0.1", "a.example.test. 300 A 10.0.0.1"],
    ["A A 10.0.0.1", "A.example.test. 300 A 10.0.0.1"],
    ["300 IN A 10.0.0.1", "300.example.test. 300 A 10.0.0.1"],
    ["IN IN A 10.0.0.1", "IN.example.test. 300 A 10.0.0.1"],
    ["MX 3600 IN MX 10 a", "MX.example.test. 3600 MX 10 a.example.test."],
    ["a in 1h a 10.0.0.1", "a.example.test. 3600 A 10.0.0.1"],
    ["a 1W2D3h4m5S iN A 10.0.0.1", "a.example.test. 788645 A 10.0.0.1"],
    ["a 0 A 10.0.0.1", "a.example.test. 0 A 10.0.0.1"],
    ["a 2147483647 A 10.0.0.1", "a.example.test. 2147483647 A 10.0.0.1"],
    ["a CLASS1 TYPE1 10.0.0.1", "a.example.test. 300 A 10.0.0.1"],
    [
      "a A 10.0.0.1\n A 10.0.0.2\n\tA 10.0.0.3",
      "a.example.test. 300 A 10.0.0.1",
      "a.example.test. 300 A 10.0.0.2",
      "a.example.test. 300 A 10.0.0.3",
    ],
    ["a AAAA 2001:DB8::1", "a.example.test. 300 AAAA 2001:db8::1"],
    ["a AAAA ::ffff:1.2.3.4", "a.example.test. 300 AAAA ::ffff:1.2.3.4"],
    ["@ MX 010 @", "example.test. 300 MX 10 example.test."],
    ["@ MX 0 .", "example.test. 300 MX 0 ."],
    ["_ldap._tcp SRV 0 100 389 dc1.corp.", "_ldap._tcp.example.test. 300 SRV 0 100 389 dc1.corp."],
    ["*.w CNAME @", "*.w.example.test. 300 CNAME example.test."],
    ["\\@ A 10.0.0.1", "\\@.example.test. 300 A 10.0.0.1"],
    ["\\$TTL A 10.0.0.1", "\\$TTL.example.test. 300 A 10.0.0.1"],
    ['"q" A 10.0.0.1', "q.example.test. 300 A 10.0.0.1"],
    ["a\\.b\\032c A 10.0.0.1", "a\\.b\\032c.example.test. 300 A 10.0.0.1"],
    ["a ALIAS b", "a.example.test. 300 ALIAS b.example.test."],
    ['a CAA 0 issue "ca.test; x=1"', 'a.example.test. 300 CAA 0 issue "ca.test; x=1"'],
    ["a CAA 128 tbs Unknown", 'a.example.test. 300 CAA 128 tbs "Unknown"'],
    ['a TXT one "two three" f\\"our', 'a.example.test. 300 TXT "one" "two three" "f\\"our"'],
    ['a TXT "semi;colon" un\\;quoted;comment', 'a.example.test. 300 TXT "semi;colon" "un;quoted"'],
    ['a TXT "\\255\\000" ""', 'a.example.test. 300 TXT "\\255\\000" ""'],
    ['a TXT "(" ")" ( ")"\n"(" ) ; )', 'a.example.test. 300 TXT "(" ")" ")" "("'],
    ['a TXT foo"bar"', 'a.example.test. 300 TXT "foo" "bar"'],
    ["a TXT \u00e9", 'a.example.test. 300 TXT "\\195\\169"'],
    [`a TXT ${"x".repeat(256)}`, `a.example.test. 300 TXT "${"x".repeat(255)}" "x"`],
    [`a TXT ${"x".repeat(255)}`, `a.example.test. 300 TXT "${"x".repeat(255)}"`],
    ["a A \\# 4 0A 0000 01", "a.example.test. 300 A 10.0.0.1"],
    ["a TYPE1 \\# 4 0A000001", "a.example.test. 300 A 10.0.0.1"],
    ['a TXT "\\#" 0', 'a.example.test. 300 TXT "#" "0"'],
    ["a A(10.0.0.1)", "a.example.test. 300 A 10.0.0.1"],
    ["a ( ; comment (\r\n A\r\n 10.0.0.1 )", "a.example.test. 300 A 10.0.0.1"],
    ["$origin sub\na A 10.0.0.1", "a.sub.example.test. 300 A 10.0.0.1"],
    ["$ttl 1d\na A 10.0.0.1", "a.example.test. 86400 A 10.0.0.1"],
    ["a [AGE:3585462] 600 A 10.0.0.1", "a.example.test. 600 A 10.0.0.1"],
    ["a [Aging:3585462] A 10.0.0.1", "a.example.test. 300 A 10.0.0.1"],
    ["\n  \n;c\n ; c\n\t\na A 10.0.0.1;c", "a.example.test. 300 A 10.0.0.1"],
  ];
  for (const [text, ...records] of table) {
    const parsed = body(text);
    assert.deepEqual(errorsOf(parsed.report), [], text);
    assert.deepEqual(parsed.records, records, text);
  }
});

test("records that are refused, with their place", () => {
  const table: readonly (readonly [string, RegExp])[] = [
    ["a A", /^4:4 A address: missing/],
    ["a", /^4:2 the record has no type/],
    ["a 300", /^4:6 the record has no type/],
    ["a IN IN A 10.0.0.1", /^4:6 a second class/],
    ["a 300 300 A 10.0.0.1", /^4:7 a second TTL/],
    ["a CH TXT x", /^4:3 class 'CH'/],
    ["a CLASS3 TXT x", /^4:3 class 'CLASS3'/],
    ["a 1h30 A 10.0.0.1", /^4:3 '1h30' is neither/],
    ["a 2147483648 A 10.0.0.1", /^4:3 TTL longer/],
    ["a 99999999999999999999 A 10.0.0.1", /^4:3 '9+' is neither/],
    ["a -1 A 10.0.0.1", /^4:3 '-1' is not a type/],
    ["a FOO bar", /^4:3 'FOO' is not a type/],
    ["a TYPE65536 \\# 0", /^4:3 'TYPE65536' is not a type/],
    ["a TYPE0 \\# 0", /^4:3 type TYPE0 is for messages/],
    ["a AXFR \\# 0", /^4:3 type AXFR is for messages/],
    ["a TYPE65400 x", /^4:13 TYPE65400 needs generic/],
    ["a A 10.0.0.1 x", /^4:14 text behind/],
    ['a A "10.0.0.1"', /^4:5 A address: quoted/],
    ["a A 010.0.0.1", /^4:5 A address: not an IPv4/],
    ["a A 10.1", /^4:5 A address: not an IPv4/],
    ["a A ::1", /^4:5 A address: not an IPv4/],
    ["a AAAA 10.0.0.1", /^4:8 AAAA address: not an IPv6/],
    ["a AAAA fe80::1%eth0", /^4:8 AAAA address: not an IPv6/],
    ["a MX 65536 b", /^4:6 MX preference: not a number/],
    ["a MX +1 b", /^4:6 MX preference: not a number/],
    ["a MX b", /^4:6 MX preference: not a number/],
    ["a SRV 0 0 b", /^4:11 SRV port: not a number/],
    ["a CNAME b..c", /^4:9 CNAME target: empty label/],
    [`a CNAME ${"x".repeat(64)}`, /^4:9 CNAME target: label longer/],
    ["a..b A 10.0.0.1", /^4:1 owner 'a..b': empty label/],
    ["a\\256 A 10.0.0.1", /^4:1 owner .*bad escape/],
    ["a TXT", /^4:6 TXT text: no text/],
    ['a TXT "x\ny A 10.0.0.1', /^4:7 the quoted text does not end/],
    ['a TXT "\\25"', /^4:7 TXT text: bad escape/],
    ["a TXT x\\", /^4:7 TXT text: bad escape/],
    ["a CAA 256 issue x", /^4:7 CAA flags/],
    ["a CAA 0 is-sue x", /^4:9 CAA tag/],
    ["a CAA 0 issue", /^4:14 CAA value: no text/],
    ["a A \\# 5 0a000001", /^4:8 not the 5 bytes/],
    ["a A \\# 3 0a0000", /^4:5 A: not a valid address/],
    ["a NS \\# 2 c00c", /^4:6 NS: not a valid name server/],
    ["a A \\# 4 0g000001", /^4:10 not hexadecimal/],
    ["a A \\#", /^4:7 generic rdata needs/],
    ["a A (10.0.0.1", /^4:5 the parenthesis is not closed/],
    ["a A ((10.0.0.1))", /^4:5 the parenthesis is not closed/],
    ["a A 10.0.0.1)", /^4:13 closing parenthesis/],
    ["a.other. A 10.0.0.1", /^4:1 owner a\.other\. is outside/],
    ["@ SOA ns1 host 2 2 3 4 5", /^4:1 a second SOA/],
    ["$INCLUDE other.zone", /^4:1 \$INCLUDE is refused/],
    ["$GENERATE 1-10 a$ A 10.0.0.$", /^4:1 \$GENERATE is refused/],
    ["$FOO", /^4:1 unknown directive '\$FOO'/],
    ["$ORIGIN", /^4:8 \$ORIGIN needs/],
    ["$ORIGIN a. b.", /^4:12 \$ORIGIN takes one/],
    ["$TTL x", /^4:6 \$TTL: 'x' is not a time/],
    ["$TTL 2147483648", /^4:6 \$TTL: longer/],
    [" $TTL 300", /^4:2 '\$TTL' is not a type/],
    ["a\0b A 10.0.0.1", /^4:2 NUL byte/],
    ["\u00e9\u00e9 A x", /^4:6 A address/],
  ];
  for (const [text, error] of table) {
    const { report } = body(`${text}\nlast.example.test. 300 A 10.0.0.9\n`);
    assert.match(errorsOf(report)[0] ?? "no error", error, text);
  }
});

test("an error costs its record and what hangs on it, and no more", () => {
  const { records, report } = body(
    "a A x\nb A 10.0.0.1\nc..d A 10.0.0.2\n A 10.0.0.3\ne A 10.0.0.4\n$TTL z\nf A 10.0.0.5\n$TTL 5\ng A 10.0.0.6\n",
  );
  assert.deepEqual(records, [
    "b.example.test. 300 A 10.0.0.1",
    "e.example.test. 300 A 10.0.0.4",
    "g.example.test. 5 A 10.0.0.6",
  ]);
  assert.deepEqual(
    report.errors.map((error) => error.line),
    [4, 6, 7, 9, 10],
  );
});

test("after a bad $ORIGIN relative names are refused until a good one", () => {
  const { records, report } = body(
    "$ORIGIN a..b.\nx A 10.0.0.1\ny.example.test. CNAME z\ny.example.test. A 10.0.0.2\n$ORIGIN c.example.test.\nx A 10.0.0.3\n",
  );
  assert.deepEqual(records, ["y.example.test. 300 A 10.0.0.2", "x.c.example.test. 300 A 10.0.0.3"]);
  assert.deepEqual(
    report.errors.map((error) => error.line),
    [4, 5, 6],
  );
});

test("errors and left-out records are counted where they are not kept", () => {
  const { report } = body("a FOO\n".repeat(250) + "a RRSIG x\n".repeat(130));
  assert.deepEqual([report.errors.length, report.errorsOmitted], [100, 150]);
  assert.deepEqual([report.leftOut.length, report.leftOutOmitted], [100, 30]);
});

test("real types that zones do not hold are listed and left out", () => {
  const lines = [
    "a RRSIG A 8 2 300 x y z",
    "b TYPE65400 \\# 2 abcd",
    'c NAPTR 1 1 ( "u" \n "x" ) . .',
    "d 0 WINS L2 C900 ( 10.0.0.1 )",
    "e TYPE65401 \\# 1 00",
    "k. 0 ANY TSIG hmac-sha256. x",
  ];
  const { records, report } = body(lines.join("\n"));
  assert.deepEqual(records, []);
  assert.deepEqual(errorsOf(report), []);
  const listed = report.leftOut.map((each) => `${each.line}:${each.column} ${each.owner} ${each.type}`);
  assert.deepEqual(listed, [
    "4:1 a.example.test. RRSIG",
    "5:1 b.example.test. TYPE65400",
    "6:1 c.example.test. NAPTR",
    "8:1 d.example.test. WINS",
    "9:1 e.example.test. TYPE65401",
    "10:1 k. TSIG",
  ]);
});

test("TTLs that are not stated: $TTL, else the last one stated, else the SOA's minimum", () => {
  const soa = (ttl: string) => `@ ${ttl} SOA ns1 host 1 2 3 4 5\n`;
  const ttls = (text: string) => parse(text, "example.test.").records.map((record) => record.split(" ")[1]);
  assert.deepEqual(ttls(`${soa("")}a A 10.0.0.1\nb 7 A 10.0.0.1\nc A 10.0.0.1\n`), ["5", "5", "7", "5"]);
  assert.deepEqual(ttls(`${soa("9")}a A 10.0.0.1\nb 7 A 10.0.0.1\nc A 10.0.0.1\n`), ["9", "9", "7", "7"]);
  assert.deepEqual(ttls(`$TTL 3\n${soa("9")}a A 10.0.0.1\nb 7 A 10.0.0.1\nc A 10.0.0.1\n`), ["9", "3", "7", "3"]);
  assert.deepEqual(errorsOf(parse(`a A 10.0.0.1\n${soa("")}`, "example.test.").report), [
    "1:1 no TTL: neither the record, nor $TTL, nor a record before it states one",
  ]);
});

test("a file has one SOA, and the copy that ends the output of dig axfr is the same one", () => {
  const dig =
    "\n; <<>> DiG 9.18 <<>> axfr example.test\n;; global options: +cmd\nexample.test.\t300\tIN\tSOA\tns1. h. 1 2 3 4 5\na.example.test. 60 IN A 10.0.0.1\nexample.test.\t300\tIN\tSOA\tns1. h. 1 2 3 4 5\n;; Query time: 0 msec\n";
  const { records, report } = parse(dig);
  assert.equal(records.length, 2);
  assert.deepEqual(errorsOf(report), []);
  assert.ok(report.soaIsAbsolute);
  assert.match(errorsOf(parse("a.test. 1 A 10.0.0.1\n").report)[0] ?? "", /^2:1 the file has no SOA/);
  assert.match(errorsOf(parse("").report)[0] ?? "", /^1:1 the file has no SOA/);
  assert.deepEqual(errorsOf(parse("test. 1 SOA a. b. 1 2 3 4\n").report), ["1:26 SOA minimum: missing"]);
});

test("what lies before the SOA must be in its zone too", () => {
  const { records, report } = parse(
    "a.other. 1 A 10.0.0.1\na.example.test. 1 A 10.0.0.2\nexample.test. 1 SOA a. b. 1 2 3 4 5\n",
  );
  assert.deepEqual(records, ["a.example.test. 1 A 10.0.0.2", "example.test. 1 SOA a. b. 1 2 3 4 5"]);
  assert.deepEqual(errorsOf(report), ["1:1 owner a.other. is outside of the zone example.test."]);
  assert.equal(report.records, 2);
  assert.match(errorsOf(parse(" 1 A 10.0.0.1\n", "x.").report)[0] ?? "", /^1:2 no owner/);
});

test("the SOA is absolute by the file's text or by the caller's origin", () => {
  const table: readonly (readonly [string, boolean])[] = [
    ["$ORIGIN example.test.\n@ 1 SOA a b 1 2 3 4 5\n", true],
    ["$ORIGIN @\n@ 1 SOA a. b. 1 2 3 4 5\n", false],
    ["@ 1 SOA a. b. 1 2 3 4 5\n", false],
    ["example.test. 1 SOA a b. 1 2 3 4 5\n", false],
    ["example.test. 1 SOA a. b 1 2 3 4 5\n", false],
    ["example.test. 1 SOA a. b\\. 1 2 3 4 5\n", false],
    ["example.test. 1 SOA a. b. 1 2 3 4 5\n", true],
    ["example.test. 1 NS a.\n 1 SOA a. b. 1 2 3 4 5\n", true],
  ];
  for (const [text, isAbsolute] of table) {
    const { report } = parse(text, "example.test.");
    assert.deepEqual(errorsOf(report), [], text);
    assert.equal(report.soaIsAbsolute, isAbsolute, text);
    assert.equal(nameToText(report.origin ?? new Uint8Array([0])), "example.test.", text);
  }
  assert.match(errorsOf(parse("@ 1 SOA a. b. 1 2 3 4 5\n").report)[0] ?? "", /relative name without an origin/);
});

test("what costs a file its SOA is told, also behind the errors that are kept", () => {
  const broken = "www A x\n".repeat(120);
  const table: readonly (readonly [string, number, RegExp])[] = [
    ["@ 1 SOA a. b. 1 2 3 4 5\n", 121, /^owner '@': relative name/],
    ["b.a IN SOA a. b. 1 2 3 4 5\nc.a SOA a. b. 1 2 3 4 5\n", 121, /^owner 'b\.a'/],
    ["a. CH SOA a. b. 1 2 3 4 5\n", 121, /class/],
    ["a. 1 SOA a. b 1 2 3 4 5\n", 121, /^SOA rname/],
    ["soa CNAME soa\n", 122, /^the file has no SOA record$/],
  ];
  for (const [text, line, detail] of table) {
    const { soaError } = parse(broken + text).report;
    assert.equal(soaError?.line, line, text);
    assert.match(soaError?.detail ?? "", detail, text);
  }
  assert.equal(parse("x SOA a. b. 1 2 3 4 5\nx. 1 SOA a. b. 1 2 3 4 5\n").report.soaError, undefined);
});

test("line ends, byte order mark and a missing last newline do not matter; UTF-16 is named", () => {
  const expected = parse(`${HEAD}a A 10.0.0.1\nb A x\n`);
  assert.equal(expected.report.errors.length, 1);
  const text = `${HEAD}a A 10.0.0.1\nb A x`;
  for (const variant of [text, text.replaceAll("\n", "\r\n"), text.replaceAll("\n", "\r"), `\ufeff${text}`]) {
    assert.deepEqual(parse(variant).records, expected.records);
    assert.deepEqual(errorsOf(parse(variant).report), errorsOf(expected.report));
  }
  const wide = new Uint8Array(Buffer.from(`\ufeff${text}`, "utf16le"));
  assert.match(errorsOf(parse(wide).report)[0] ?? "", /UTF-16/);
});

test("TXT holds up to 65,535 bytes of rdata", () => {
  const fits = body(`a TXT ${'"'.concat("x".repeat(255), '" ').repeat(255)} "${"x".repeat(254)}"`);
  assert.deepEqual(errorsOf(fits.report), []);
  const tooLong = body(`a TXT ${'"'.concat("x".repeat(255), '" ').repeat(256)}`);
  assert.match(errorsOf(tooLong.report)[0] ?? "", /rdata longer than 65535/);
});

test("a parenthesis left open costs its own line only", () => {
  const { records, report } = body('a TXT (x\nb A 10.0.0.1\n A 10.0.0.2\nc TXT ("x)\nd A 10.0.0.3\n');
  assert.deepEqual(records, [
    "b.example.test. 300 A 10.0.0.1",
    "b.example.test. 300 A 10.0.0.2",
    "d.example.test. 300 A 10.0.0.3",
  ]);
  assert.deepEqual(
    report.errors.map((error) => error.line),
    [4, 7],
  );
});

test("one record cannot take memory without end", () => {
  const { records, report } = body(`a TXT (${" x".repeat(140_000)}\n)\nb A 10.0.0.1\n`);
  assert.match(errorsOf(report)[0] ?? "", /^4:7 the parenthesis is not closed: line 4: too many words for one record/);
  assert.deepEqual(records, ["b.example.test. 300 A 10.0.0.1"]);
});

test("any bytes give records and errors, never a throw", () => {
  const word = fc.constantFrom(
    "a",
    "@",
    "A",
    "MX",
    "SOA",
    "TXT",
    "300",
    "IN",
    "(",
    ")",
    '"',
    ";",
    "\\",
    "\\#",
    "\n",
    "\r",
    " ",
    "\t",
    "$ORIGIN",
    "$TTL",
    "10.0.0.1",
    "x.",
    "\0",
    "\u00e9",
    "4",
    "0a000001",
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(word, fc.string({ unit: "binary", maxLength: 4 })), { maxLength: 60 }), (words) => {
      const { report, records } = parse(words.join(" "), "example.test.");
      assert.equal(report.records, records.length);
      for (const error of report.errors) assert.ok(error.line >= 1 && error.column >= 1);
    }),
    { numRuns: 2000 },
  );
});
