import assert from "node:assert/strict";
import { test } from "node:test";
import { negative, openLab, type ZoneLab, zone } from "../../tests/support/zone-lab.ts";
import { CLASS, EDE, FLAG } from "../dns/codes.ts";
import { FORWARDING, ROUTE } from "../image/shared.ts";
import { setDefaultRoute } from "../image/writer.ts";

const RECORDS = `
www A 192.0.2.1
out CNAME www.outside.net.
out2 CNAME out
wild CNAME x.cut
cut NS ns.elsewhere.net.
alias ALIAS www.outside.net.
alias-cname ALIAS out
to-alias CNAME alias
below-cut ALIAS x.cut
mx MX 10 mail.outside.net.
loop CNAME loop
`;
const DEFAULT = 99;
const RD = { flags: FLAG.RD };

function forwardingLab(): ZoneLab {
  const lab = openLab([zone("example.test.", RECORDS)], { answerer: { forwards: true } });
  lab.route(".", DEFAULT);
  return lab;
}

const LACKING = [
  ["a question in none of our zones", "www.outside.net. A", `${DEFAULT} www.outside.net. A 0`],
  ["a CNAME's target", "out.example.test. TXT", `${DEFAULT} www.outside.net. TXT 0`],
  ["the target of a chain", "out2.example.test. A", `${DEFAULT} www.outside.net. A 0`],
  ["a name below a cut", "x.cut.example.test. A", `${ROUTE.DELEGATED} x.cut.example.test. A 0`],
  ["the cut itself", "cut.example.test. NS", `${ROUTE.DELEGATED} cut.example.test. NS 0`],
  ["a CNAME's target below a cut", "wild.example.test. A", `${ROUTE.DELEGATED} x.cut.example.test. A 0`],
  ["an ALIAS's target", "alias.example.test. A", `${DEFAULT} www.outside.net. A 0`],
  ["an ALIAS's target for ANY", "alias.example.test. ANY", `${DEFAULT} www.outside.net. A 0`],
  ["an ALIAS's target behind a CNAME of it", "alias-cname.example.test. AAAA", `${DEFAULT} www.outside.net. AAAA 0`],
  ["an ALIAS's target at the end of a CNAME", "to-alias.example.test. A", `${DEFAULT} www.outside.net. A 0`],
  ["an ALIAS's target below a cut", "below-cut.example.test. A", `${ROUTE.DELEGATED} x.cut.example.test. A 0`],
] as const;

for (const [why, question, need] of LACKING) {
  test(`${why} is lacking: ${question}`, () => assert.equal(forwardingLab().lack(question, RD), need));
}

test("who does not forward refuses what is not ours, whatever routes there are", () => {
  const lab = openLab([zone("example.test.", RECORDS)]);
  const before = LACKING.map(([, question]) => lab.ask(question, RD));
  lab.route(".", DEFAULT);
  lab.route("outside.net.", 50);
  assert.deepEqual(
    LACKING.map(([, question]) => lab.ask(question, RD)),
    before,
  );
});

for (const question of [
  "www.example.test. A",
  "www.example.test. TXT",
  "nope.example.test. A",
  "cut.example.test. DS",
  "mx.example.test. MX",
  "loop.example.test. A",
  "out.example.test. CNAME",
  "alias.example.test. TXT",
]) {
  test(`nothing is lacking of what is ours, and recursion is offered: ${question}`, () => {
    const [status, ...records] = openLab([zone("example.test.", RECORDS)]).ask(question, RD);
    assert.deepEqual(forwardingLab().ask(question, RD), [status!.replace(/ rd/, " rd ra"), ...records]);
  });
}

test("nor of what is refused before its name is looked at", () => {
  const lab = forwardingLab();
  for (const question of ["x.outside.net. AXFR", "x.outside.net. TKEY", "x.outside.net. OPT"]) lab.ask(question, RD);
  lab.ask("x.outside.net. A", { class: 3, ...RD });
  lab.ask("x.outside.net. A", { class: CLASS.ANY, ...RD });
  lab.ask("x.outside.net. A", { edns: { version: 1 }, ...RD });
});

test("the longest match over zones and routes decides, a zone of ours at equal length", () => {
  const lab = openLab([zone("example.test.", RECORDS), zone("deep.corp.test.", "a A 192.0.2.9\n")], {
    answerer: { forwards: true },
  });
  lab.route("corp.test.", 50);
  lab.route("sub.example.test.", 51);
  lab.route("example.test.", 52);
  assert.equal(lab.lack("corp.test. A", RD), "50 corp.test. A 0");
  assert.equal(lab.lack("x.y.corp.test. A", RD), "50 x.y.corp.test. A 0");
  assert.equal(lab.ask("a.deep.corp.test. A", RD)[1], "answer a.deep.corp.test. 300 IN A 192.0.2.9");
  assert.deepEqual(lab.ask("x.deep.corp.test. A", RD), ["NXDOMAIN aa rd", negative("deep.corp.test.")]);
  assert.equal(lab.lack("x.sub.example.test. A", RD), "51 x.sub.example.test. A 0");
  assert.equal(lab.ask("www.example.test. A", RD)[1], "answer www.example.test. 300 IN A 192.0.2.1");
  assert.deepEqual(lab.ask("test. A", RD), ["REFUSED rd ede=20"]);
  assert.deepEqual(lab.ask("elsewhere. A", RD), ["REFUSED rd ede=20"]);
  lab.route("corp.test.", 53);
  assert.equal(lab.lack("corp.test. A", RD), "53 corp.test. A 0");
  lab.route("corp.test.", 0);
  assert.deepEqual(lab.ask("corp.test. A", RD), ["REFUSED rd ede=20"]);
  assert.equal(lab.ask("a.deep.corp.test. A", RD).length, 2);
});

test("DS of a route's own domain is asked where names above it are, where that is not us", () => {
  const lab = openLab([zone("example.test.", RECORDS)], { answerer: { forwards: true } });
  lab.route("corp.test.", 50);
  lab.route("sub.corp.test.", 51);
  lab.route("deep.example.test.", 52);
  assert.equal(lab.lack("sub.corp.test. DS", RD), "50 sub.corp.test. DS 0");
  assert.equal(lab.lack("x.sub.corp.test. DS", RD), "51 x.sub.corp.test. DS 0");
  assert.equal(lab.lack("sub.corp.test. NS", RD), "51 sub.corp.test. NS 0");
  assert.equal(lab.lack("deep.example.test. DS", RD), "52 deep.example.test. DS 0");
  assert.equal(lab.lack("corp.test. DS", RD), "50 corp.test. DS 0");
  lab.route(".", DEFAULT);
  assert.equal(lab.lack("corp.test. DS", RD), `${DEFAULT} corp.test. DS 0`);
});

test("recursion is offered where a route is, and for our own names where there is a default forwarder", () => {
  const lab = openLab([zone("example.test.", RECORDS)], { answerer: { forwards: true } });
  lab.route("corp.test.", 50);
  assert.equal(lab.ask("www.example.test. A", RD)[0], "NOERROR aa rd");
  assert.deepEqual(lab.ask("corp.test. A"), ["REFUSED ra ede=20"]);
  lab.route(".", DEFAULT);
  assert.equal(lab.ask("www.example.test. A")[0], "NOERROR aa ra");
});

test("without RD a cut of ours is a referral, a chain ends, what is not ours is refused; an ALIAS is ours", () => {
  const lab = forwardingLab();
  assert.deepEqual(lab.ask("x.cut.example.test. A"), [
    "NOERROR ra",
    "authority cut.example.test. 300 IN NS ns.elsewhere.net.",
  ]);
  assert.deepEqual(lab.ask("out.example.test. A"), [
    "NOERROR aa ra",
    "answer out.example.test. 300 IN CNAME www.outside.net.",
  ]);
  assert.deepEqual(lab.ask("www.outside.net. A"), ["REFUSED ra ede=20"]);
  assert.equal(lab.lack("alias.example.test. A"), `${DEFAULT} www.outside.net. A 0`);
});

test("a delegated name is not resolved where recursion is not offered for it", () => {
  const lab = openLab([zone("example.test.", RECORDS)], { answerer: { forwards: true } });
  lab.route("corp.test.", 50);
  assert.equal(lab.ask("x.cut.example.test. A", RD)[0], "NOERROR rd");
  assert.equal(lab.ask("below-cut.example.test. A", RD)[0], "SERVFAIL rd ede=22");
});

test("ANY is refused by the default forwarder where it is told to, and by no other route", () => {
  const lab = forwardingLab();
  lab.route("corp.test.", 50);
  assert.equal(lab.lack("outside.net. ANY", RD), `${DEFAULT} outside.net. ANY 0`);
  setDefaultRoute(lab.writer, DEFAULT, FORWARDING.REFUSE_ANY);
  assert.deepEqual(lab.ask("outside.net. ANY", RD), ["REFUSED rd ra ede=18"]);
  assert.equal(lab.lack("outside.net. A", RD), `${DEFAULT} outside.net. A 0`);
  assert.equal(lab.lack("corp.test. ANY", RD), "50 corp.test. ANY 0");
});

test("DO and CD make it another question", () => {
  const lab = forwardingLab();
  assert.equal(lab.lack("a.test. A", { ...RD, edns: { wantsDnssec: true } }), `${DEFAULT} a.test. A 1`);
  assert.equal(lab.lack("a.test. A", { flags: FLAG.RD | FLAG.CD }), `${DEFAULT} a.test. A 2`);
});

test("the query's bytes are as they were, also behind CNAMEs that were written over them", () => {
  const lab = forwardingLab();
  const options = [
    { code: 10, data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) },
    { code: 12, data: new Uint8Array(300) },
  ];
  // The lab compares them.
  assert.equal(lab.lack("out2.example.test. A", { ...RD, edns: { options } }), `${DEFAULT} www.outside.net. A 0`);
  assert.equal(lab.lack("out2.example.test. A", { ...RD, edns: false }), `${DEFAULT} www.outside.net. A 0`);
});

test("where nobody is to be waited for, what is lacking is SERVFAIL behind the CNAMEs that are there", () => {
  const lab = forwardingLab();
  const now = (question: string) => lab.askNow(question, EDE.OTHER, RD);
  assert.deepEqual(now("www.outside.net. A"), ["SERVFAIL rd ra ede=0"]);
  assert.deepEqual(now("out2.example.test. A"), [
    "SERVFAIL aa rd ra ede=0",
    "answer out2.example.test. 300 IN CNAME out.example.test.",
    "answer out.example.test. 300 IN CNAME www.outside.net.",
  ]);
  assert.deepEqual(now("alias.example.test. A"), ["SERVFAIL rd ra ede=0"]);
  assert.equal(now("www.example.test. A")[1], "answer www.example.test. 300 IN A 192.0.2.1");
  // It is that once only.
  assert.equal(lab.lack("www.outside.net. A", RD), `${DEFAULT} www.outside.net. A 0`);
});
