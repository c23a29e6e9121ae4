import assert from "node:assert/strict";
import { test } from "node:test";
import { negative, openLab, zone } from "../../tests/support/zone-lab.ts";
import { TRANSPORT } from "../image/counters.ts";
import { publishZoneFile, removeZone, type ZoneFileResult } from "./zone-file-source.ts";

const SOA = "example.test. 300 SOA ns1.example.test. h.example.test. 42 1 1 1 60\n";

function publish(lab: ReturnType<typeof openLab>, text: string, origin?: string): ZoneFileResult {
  return publishZoneFile(lab.writer, Buffer.from(text), origin);
}

test("what was published: name, records, serial", () => {
  const result = publish(openLab([]), `${SOA}example.test. 5 NS ns.else.\na.example.test. 5 A 192.0.2.1\n`);
  const { name, records, errors, errorsOmitted, serial } = result;
  assert.deepEqual([name, records, errors, errorsOmitted, serial], ["example.test.", 3, [], 0, 42]);
});

test("an RRset has the TTL of its first record, and a warning says so", () => {
  const lab = openLab([]);
  const { errors, warnings } = publish(lab, `${SOA}a.example.test. 10 A 192.0.2.1\na.example.test. 20 A 192.0.2.2\n`);
  assert.deepEqual(errors, []);
  assert(warnings.some((warning) => warning.startsWith("3:") && warning.includes("TTL 20 differs from 10")));
  assert.deepEqual(lab.ask("a.example.test. A"), [
    "NOERROR aa",
    "answer a.example.test. 10 IN A 192.0.2.1",
    "answer a.example.test. 10 IN A 192.0.2.2",
  ]);
});

test("that TTL holds for records that come later in the file, too", () => {
  const lab = openLab([
    `${SOA}a.example.test. 10 A 192.0.2.1\nb.example.test. 5 A 192.0.2.9\na.example.test. 20 A 192.0.2.2\n`,
  ]);
  assert.deepEqual(
    lab.message("a.example.test. A").answers.map(({ ttl }) => ttl),
    [10, 10],
  );
});

test("equal records are one (RFC 2181 section 5), names in them compared without regard to case", () => {
  const lab = openLab([
    zone("example.test.", "a A 192.0.2.1\na A 192.0.2.1\nm MX 1 x\nm MX 1 X\nm MX 2 X\nt TXT x\nt TXT X\n"),
  ]);
  assert.equal(lab.message("a.example.test. A").answers.length, 1);
  assert.equal(lab.message("m.example.test. MX").answers.length, 2);
  assert.equal(lab.message("t.example.test. TXT").answers.length, 2);
});

test("an equal record leaves nothing behind, for names from a wildcard either", () => {
  const lab = openLab([zone("example.test.", "*.w MX 1 aaaa\n*.w MX 1 AAAA\n*.w MX 2 b\n*.w MX 3 ccc\n")]);
  assert.deepEqual(lab.ask("long-label.w.example.test. MX").slice(1), [
    "answer long-label.w.example.test. 300 IN MX 1 aaaa.example.test.",
    "answer long-label.w.example.test. 300 IN MX 2 b.example.test.",
    "answer long-label.w.example.test. 300 IN MX 3 ccc.example.test.",
  ]);
});

test("records of one RRset need not follow each other", () => {
  const lab = openLab([
    zone("example.test.", "a A 192.0.2.1\nb A 192.0.2.9\na MX 1 a\nA A 192.0.2.2\na MX 2 b\na A 192.0.2.1\n"),
  ]);
  assert.deepEqual(lab.ask("a.example.test. A").slice(1), [
    "answer a.example.test. 300 IN A 192.0.2.1",
    "answer a.example.test. 300 IN A 192.0.2.2",
  ]);
  assert.deepEqual(lab.ask("a.example.test. MX").slice(1, 3), [
    "answer a.example.test. 300 IN MX 1 a.example.test.",
    "answer a.example.test. 300 IN MX 2 b.example.test.",
  ]);
});

test("records may stand before the SOA", () => {
  const lab = openLab([`x.a.example.test. 5 A 192.0.2.1\nexample.test. 5 NS x.a.example.test.\n${SOA}`]);
  assert.deepEqual(lab.ask("x.a.example.test. A"), ["NOERROR aa", "answer x.a.example.test. 5 IN A 192.0.2.1"]);
  assert.equal(lab.ask("a.example.test. A")[0], "NOERROR aa");
});

test("relative names are completed by the origin that the caller gives", () => {
  const lab = openLab([]);
  assert.deepEqual(publish(lab, "@ 5 SOA ns h 1 1 1 1 60\nns A 192.0.2.1\n", "given.test.").errors, []);
  assert.deepEqual(lab.ask("ns.given.test. A"), ["NOERROR aa", "answer ns.given.test. 5 IN A 192.0.2.1"]);
});

test("an origin that is no name is an error", () => {
  assert.equal(publish(openLab([]), SOA, "a..b").errors.length, 1);
});

/** `count` A records of one name: 16 bytes each in an answer. */
function manyAddresses(count: number): string {
  return Array.from({ length: count }, (_, index) => `big.example.test. 5 A 10.0.${index >> 8}.${index & 255}\n`).join(
    "",
  );
}

test("an RRset that fills a message is served whole over TCP", () => {
  const lab = openLab([]);
  assert.deepEqual(publish(lab, SOA + manyAddresses(4062)).errors, []);
  assert.equal(lab.message("big.example.test. A", { transport: TRANSPORT.TCP }).answers.length, 4062);
});

test("one that is larger is an error at the record that is too much", () => {
  const { errors } = publish(openLab([]), SOA + manyAddresses(4063));
  assert.deepEqual(
    errors.map(({ line, detail }) => [line, detail]),
    [[4064, "the RRset is too large for a DNS message"]],
  );
});

test("a zone without SOA is an error", () => {
  const { name, errors } = publish(openLab([]), "a.example.test. 5 A 192.0.2.1\n");
  assert.equal(name, undefined);
  assert.equal(errors.length, 1);
});

test("errors change nothing: not of a new zone, not of one that is served", () => {
  const lab = openLab([zone("old.test.", "a A 192.0.2.1\n")]);
  const bad = (apex: string) => zone(apex, "a A 192.0.2.2\nb CNAME c\nb A 192.0.2.3\nc A 300.1.1.1\n");
  assert.equal(publish(lab, bad("old.test.")).errors.length, 2);
  assert.equal(publish(lab, bad("new.test.")).errors.length, 2);
  assert.deepEqual(lab.ask("a.old.test. A"), ["NOERROR aa", "answer a.old.test. 300 IN A 192.0.2.1"]);
  assert.deepEqual(lab.ask("a.new.test. A"), ["REFUSED ede=20"]);
});

test("errors are sorted by line, those of the text and those of the zone together", () => {
  const { errors } = publish(openLab([]), zone("a.test.", "x A 1.2.3\nb CNAME c\nb TXT y\nz A 1.2.3\n"));
  assert.deepEqual(
    errors.map(({ line }) => line),
    [6, 8, 9],
  );
});

test("a zone published again replaces the former whole", () => {
  const lab = openLab([zone("example.test.", "a A 192.0.2.1\n*.w A 192.0.2.2\ncut NS ns.else.\n")]);
  lab.publish(zone("example.test.", "b A 192.0.2.3\n"));
  assert.equal(lab.ask("b.example.test. A")[0], "NOERROR aa");
  for (const name of ["a", "x.w", "w", "cut", "x.cut"]) {
    assert.deepEqual(lab.ask(`${name}.example.test. A`), ["NXDOMAIN aa", negative("example.test.")]);
  }
});

test("a zone that is removed answers no more, and may come back", () => {
  const lab = openLab([zone("example.test.", "a A 192.0.2.1\n"), zone("other.test.")]);
  assert.equal(removeZone(lab.writer, "Example.TEST."), true);
  assert.deepEqual(lab.ask("a.example.test. A"), ["REFUSED ede=20"]);
  assert.equal(lab.ask("other.test. NS")[0], "NOERROR aa");
  assert.equal(removeZone(lab.writer, "example.test."), false);
  lab.publish(zone("example.test.", "a A 192.0.2.1\n"));
  assert.equal(lab.ask("a.example.test. A")[0], "NOERROR aa");
});

test("what is no zone's name cannot be removed", () => {
  const lab = openLab([zone("example.test.")]);
  for (const name of ["a..b", "a.example.test.", "test.", "."]) assert.equal(removeZone(lab.writer, name), false);
});

test("the parent answers for the names of a zone that is removed from under it", () => {
  const lab = openLab([zone("test.", "a.sub A 192.0.2.1\n"), zone("sub.test.", "a A 192.0.2.2\n")]);
  assert.deepEqual(lab.ask("a.sub.test. A"), ["NOERROR aa", "answer a.sub.test. 300 IN A 192.0.2.2"]);
  removeZone(lab.writer, "sub.test.");
  assert.deepEqual(lab.ask("a.sub.test. A"), ["NOERROR aa", "answer a.sub.test. 300 IN A 192.0.2.1"]);
});

test("a primary server in the zone without an address, and an apex without NS, are warnings", () => {
  const { warnings } = publish(openLab([]), SOA);
  assert.equal(warnings.length, 2);
  assert.equal(publish(openLab([]), zone("example.test.")).warnings.length, 0);
});

test("records of types that zones here do not hold are left out with a warning", () => {
  const lab = openLab([]);
  const { errors, warnings } = publish(lab, zone("example.test.", "a HINFO x y\nb A 192.0.2.1\n"));
  assert.deepEqual(errors, []);
  assert(warnings.some((warning) => warning.includes("left out a.example.test. HINFO")));
  assert.equal(lab.ask("b.example.test. A")[0], "NOERROR aa");
});

test("errors beyond the first hundred are counted", () => {
  const { errors, errorsOmitted } = publish(openLab([]), `${SOA}${"x.example.test. 5 A 1\n".repeat(250)}`);
  assert.deepEqual([errors.length, errorsOmitted], [100, 150]);
});

test("a broken SOA hides no other error", () => {
  const text = "$ORIGIN example.test.\n@ 5 SOA ns1 host 1 2 3 4\nns1 5 A 1.2.3\nok 5 A 192.0.2.1\nx 5 MX\n";
  const { name, records, errors } = publish(openLab([]), text);
  assert.deepEqual([name, records, errors.map(({ line }) => line)], [undefined, 1, [2, 3, 5]]);
});

test("thousands of equal records at one name are one record, and cost no search each", () => {
  const many = Array.from({ length: 3_000 }, (_, index) => `m.example.test. 5 A 10.0.${index >> 8}.${index & 255}\n`);
  const repeated = "m.example.test. 5 A 10.0.0.77\n".repeat(100_000);
  const { records, errors } = publish(openLab([]), `${SOA}${many.join("")}${repeated}${many.join("")}`);
  assert.deepEqual([records, errors], [3_001, []]);
});
