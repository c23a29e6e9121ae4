import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { nameOf, openLab, type ZoneLab } from "../../tests/support/zone-lab.ts";
import { RRTYPE } from "../dns/codes.ts";
import { rdataFromText } from "../dns/rdata.ts";
import { typeFromText } from "../dns/type-names.ts";
import { activateZone } from "../image/writer.ts";
import { addRecord, changeRRset, finishZone, startZone, type ZonePublisher } from "./zone-publisher.ts";

let lab: ZoneLab = openLab([]);
let publisher: ZonePublisher = startZone(lab.writer, nameOf("t."));

function rdata(type: number, text: string): Uint8Array {
  const result = rdataFromText(type, text);
  return result.kind === "rdata" ? result.rdata : assert.fail(result.detail);
}

/** Changes an RRset of the zone `t.`; no texts take it away. */
function change(owner: string, typeText: string, ...texts: readonly string[]): string | undefined {
  const type = typeFromText(typeText)!;
  return changeRRset(
    publisher,
    nameOf(owner),
    type,
    30,
    texts.map((text) => rdata(type, text)),
  );
}

beforeEach(() => {
  lab = openLab([]);
  publisher = startZone(lab.writer, nameOf("t."));
  const soa = rdata(RRTYPE.SOA, "ns.t. h.t. 1 1 1 1 60");
  addRecord(publisher, nameOf("t."), 3, RRTYPE.SOA, 300, soa, soa.length, 1, 1);
  assert.equal(finishZone(publisher).ok, true);
  activateZone(lab.writer, publisher.zone, publisher.apex);
});

const NEGATIVE = "authority t. 60 IN SOA ns.t. h.t. 1 1 1 1 60";
const NXDOMAIN = ["NXDOMAIN aa", NEGATIVE];
const NODATA = ["NOERROR aa", NEGATIVE];

const EVERY_TYPE = [
  ["A", "192.0.2.1", "192.0.2.2"],
  ["AAAA", "2001:db8::1", "2001:db8::2"],
  ["MX", "10 mail.t.", "20 mail.elsewhere."],
  ["TXT", '"a"', '"b"'],
  ["PTR", "p.t.", "p.elsewhere."],
  ["SRV", "1 2 3 s.t.", "1 2 3 s.elsewhere."],
  ["CAA", '0 issue "a"', '0 issue "b"'],
] as const;

for (const [type, first, second] of EVERY_TYPE) {
  test(`${type} comes, changes and goes`, () => {
    const answer = (text: string) => `answer x.t. 30 IN ${type} ${text}`;
    assert.equal(change("x.t.", type, first), undefined);
    assert.deepEqual(lab.ask(`x.t. ${type}`), ["NOERROR aa", answer(first)]);
    assert.equal(change("x.t.", type, second, first), undefined);
    assert.deepEqual(lab.ask(`x.t. ${type}`), ["NOERROR aa", answer(second), answer(first)]);
    assert.equal(change("x.t.", type), undefined);
    assert.deepEqual(lab.ask(`x.t. ${type}`), NXDOMAIN);
  });
}

test("CNAME comes, changes and goes", () => {
  change("c.t.", "CNAME", "a.elsewhere.");
  assert.deepEqual(lab.ask("c.t. A"), ["NOERROR aa", "answer c.t. 30 IN CNAME a.elsewhere."]);
  change("c.t.", "CNAME", "b.elsewhere.");
  assert.deepEqual(lab.ask("c.t. A"), ["NOERROR aa", "answer c.t. 30 IN CNAME b.elsewhere."]);
  change("c.t.", "CNAME");
  assert.deepEqual(lab.ask("c.t. A"), NXDOMAIN);
});

test("ALIAS comes and goes", () => {
  change("a.t.", "A", "192.0.2.1");
  change("t.", "ALIAS", "a.t.");
  assert.deepEqual(lab.ask("t. A"), ["NOERROR aa", "answer t. 30 IN A 192.0.2.1"]);
  change("t.", "ALIAS");
  assert.deepEqual(lab.ask("t. A"), NODATA);
});

test("NS below the apex makes a cut, and its going unmakes it", () => {
  change("x.cut.t.", "A", "192.0.2.1");
  change("cut.t.", "NS", "ns.elsewhere.");
  assert.deepEqual(lab.ask("x.cut.t. A"), ["NOERROR", "authority cut.t. 30 IN NS ns.elsewhere."]);
  change("cut.t.", "NS", "ns2.elsewhere.");
  assert.deepEqual(lab.ask("cut.t. A"), ["NOERROR", "authority cut.t. 30 IN NS ns2.elsewhere."]);
  change("cut.t.", "NS");
  assert.deepEqual(lab.ask("x.cut.t. A"), ["NOERROR aa", "answer x.cut.t. 30 IN A 192.0.2.1"]);
  assert.deepEqual(lab.ask("cut.t. A"), NODATA);
});

test("one of two cuts going leaves the other", () => {
  change("a.t.", "NS", "ns.elsewhere.");
  change("b.t.", "NS", "ns.elsewhere.");
  change("a.t.", "NS");
  assert.deepEqual(lab.ask("x.a.t. A"), NXDOMAIN);
  assert.deepEqual(lab.ask("x.b.t. A"), ["NOERROR", "authority b.t. 30 IN NS ns.elsewhere."]);
});

test("NS at the apex takes the place of the one that the SOA stood in for", () => {
  assert.deepEqual(lab.ask("t. NS"), ["NOERROR aa", "answer t. 300 IN NS ns.t."]);
  change("t.", "NS", "other.elsewhere.");
  assert.deepEqual(lab.ask("t. NS"), ["NOERROR aa", "answer t. 30 IN NS other.elsewhere."]);
  assert.deepEqual(lab.ask("x.t. A"), NXDOMAIN);
});

test("without NS at the apex the SOA stands in for it again", () => {
  change("t.", "NS", "other.elsewhere.");
  assert.equal(change("t.", "NS"), undefined);
  assert.deepEqual(lab.ask("t. NS"), ["NOERROR aa", "answer t. 300 IN NS ns.t."]);
});

test("the NS that the SOA stands in for follows a new SOA, one that was given stays", () => {
  change("t.", "SOA", "ns2.elsewhere. h.t. 2 1 1 1 60");
  assert.deepEqual(lab.ask("t. NS"), ["NOERROR aa", "answer t. 30 IN NS ns2.elsewhere."]);
  change("t.", "NS", "own.elsewhere.");
  change("t.", "SOA", "ns3.elsewhere. h.t. 3 1 1 1 60");
  assert.deepEqual(lab.ask("t. NS"), ["NOERROR aa", "answer t. 30 IN NS own.elsewhere."]);
  change("t.", "NS");
  assert.deepEqual(lab.ask("t. NS"), ["NOERROR aa", "answer t. 30 IN NS ns3.elsewhere."]);
  change("t.", "SOA", "ns4.elsewhere. h.t. 4 1 1 1 60");
  assert.deepEqual(lab.ask("t. NS"), ["NOERROR aa", "answer t. 30 IN NS ns4.elsewhere."]);
});

test("a zone keeps its SOA", () => {
  assert.equal(change("t.", "SOA"), "a zone keeps its SOA record");
  assert.equal(lab.message("t. SOA").answers.length, 1);
});

test("a new SOA changes the negative answers", () => {
  change("t.", "SOA", "ns.t. h.t. 2 1 1 1 7");
  assert.deepEqual(lab.ask("x.t. A"), ["NXDOMAIN aa", "authority t. 7 IN SOA ns.t. h.t. 2 1 1 1 7"]);
  assert.deepEqual(lab.ask("t. SOA"), ["NOERROR aa", "answer t. 30 IN SOA ns.t. h.t. 2 1 1 1 7"]);
});

test("empty non-terminals appear with the name below them and vanish with it", () => {
  change("a.b.c.t.", "A", "192.0.2.1");
  change("z.c.t.", "A", "192.0.2.1");
  assert.deepEqual(lab.ask("b.c.t. A"), NODATA);
  assert.deepEqual(lab.ask("c.t. A"), NODATA);
  change("a.b.c.t.", "A");
  assert.deepEqual(lab.ask("b.c.t. A"), NXDOMAIN);
  assert.deepEqual(lab.ask("c.t. A"), NODATA);
  change("z.c.t.", "A");
  assert.deepEqual(lab.ask("c.t. A"), NXDOMAIN);
});

test("a name that loses its records and has names below it stays", () => {
  change("b.t.", "A", "192.0.2.1");
  change("a.b.t.", "A", "192.0.2.1");
  change("b.t.", "A");
  assert.deepEqual(lab.ask("b.t. A"), NODATA);
});

test("a wildcard comes and goes", () => {
  change("*.w.t.", "A", "192.0.2.1");
  assert.deepEqual(lab.ask("x.w.t. A"), ["NOERROR aa", "answer x.w.t. 30 IN A 192.0.2.1"]);
  change("*.w.t.", "A");
  assert.deepEqual(lab.ask("x.w.t. A"), NXDOMAIN);
});

test("a wildcard that loses its records and has names below it still is one", () => {
  change("*.w.t.", "A", "192.0.2.1");
  change("x.*.w.t.", "A", "192.0.2.1");
  change("*.w.t.", "A");
  assert.deepEqual(lab.ask("y.w.t. A"), NODATA);
  change("x.*.w.t.", "A");
  assert.deepEqual(lab.ask("y.w.t. A"), NXDOMAIN);
});

test("taking away what is not there does nothing", () => {
  assert.equal(change("nothing.t.", "NS"), undefined);
  change("x.t.", "A", "192.0.2.1");
  assert.equal(change("x.t.", "NS"), undefined);
  assert.deepEqual(lab.ask("x.t. A"), ["NOERROR aa", "answer x.t. 30 IN A 192.0.2.1"]);
});

test("the rules between records hold, and what breaks them changes nothing", () => {
  change("x.t.", "A", "192.0.2.1");
  assert.equal(change("x.t.", "CNAME", "y.t."), "CNAME beside other records of the same name");
  assert.equal(change("t.", "CNAME", "y.t."), "CNAME at the apex of a zone");
  assert.deepEqual(lab.ask("x.t. A"), ["NOERROR aa", "answer x.t. 30 IN A 192.0.2.1"]);
  assert.deepEqual(lab.ask("y.t. A"), NXDOMAIN);
});

test("a name that does not exist yet gets one CNAME or ALIAS as well", () => {
  assert.equal(change("new.t.", "CNAME", "a.t.", "b.t."), "several CNAME records at one name");
  assert.equal(change("new.t.", "ALIAS", "a.t.", "b.t."), "several ALIAS records at one name");
  assert.deepEqual(lab.ask("new.t. CNAME"), NXDOMAIN);
});

test("an RRset that is too large is refused and changes nothing", () => {
  change("x.t.", "A", "192.0.2.1");
  const many = Array.from({ length: 4063 }, (_, index) => `10.0.${index >> 8}.${index & 255}`);
  assert.equal(change("x.t.", "A", ...many), "the RRset is too large for a DNS message");
  assert.equal(lab.message("x.t. A").answers.length, 1);
});

test("equal records are one", () => {
  change("x.t.", "A", "192.0.2.1", "192.0.2.1");
  assert.equal(lab.message("x.t. A").answers.length, 1);
});
