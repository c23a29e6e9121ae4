import assert from "node:assert/strict";
import { test } from "node:test";
import { openLab, type ZoneLab, zone } from "../../tests/support/zone-lab.ts";
import { FLAG } from "../dns/codes.ts";
import { COUNTER, sumCounter } from "../image/counters.ts";

const RD = { flags: FLAG.RD };
const ROUTE = 99;
const RECORDS = `
out CNAME www.ads.net.
alias ALIAS www.ads.net.
`;

function blockingLab(...names: readonly string[]): ZoneLab {
  const lab = openLab([zone("example.test.", RECORDS), zone("own.ads.net.", "www A 192.0.2.1\n")], {
    answerer: { forwards: true },
  });
  lab.route(".", ROUTE);
  lab.route("corp.ads.net.", 50);
  lab.block(...names);
  return lab;
}

function soa(owner: string): string {
  return `authority ${owner} 60 IN SOA localhost. nobody.invalid. 1 3600 600 86400 60`;
}

test("a listed name and all below it do not exist, with a SOA and an extended error, whatever recursion is wanted", () => {
  const lab = blockingLab("ads.net.", "x.tracker.org.");
  assert.deepEqual(lab.ask("ads.net. A", RD), ["NXDOMAIN rd ra ede=15", soa("ads.net.")]);
  assert.deepEqual(lab.ask("A.b.ads.net. AAAA"), ["NXDOMAIN ra ede=15", soa("ads.net.")]);
  assert.deepEqual(lab.ask("x.tracker.org. ANY", RD), ["NXDOMAIN rd ra ede=15", soa("x.tracker.org.")]);
  assert.equal(sumCounter(lab.shared, COUNTER.BLOCKED), 3);
  assert.equal(lab.lack("tracker.org. A", RD), `${ROUTE} tracker.org. A 0`);
  assert.equal(lab.lack("bads.net. A", RD), `${ROUTE} bads.net. A 0`);
  lab.block("tracker.org.");
  assert.equal(lab.lack("ads.net. A", RD), `${ROUTE} ads.net. A 0`);
  assert.equal(sumCounter(lab.shared, COUNTER.BLOCKED), 3);
});

test("the list comes before forwarders, behind zones of ours and overrides", () => {
  const lab = blockingLab("ads.net.");
  lab.override("over.ads.net. 300 A 192.0.2.3");
  assert.equal(lab.ask("x.corp.ads.net. A", RD)[0], "NXDOMAIN rd ra ede=15");
  assert.equal(lab.ask("www.own.ads.net. A", RD)[0], "NOERROR aa rd ra");
  assert.equal(lab.ask("over.ads.net. A", RD)[0], "NOERROR aa rd ra");
});

test("a chain of ours that leads there ends with NXDOMAIN, and an ALIAS has no addresses", () => {
  const lab = blockingLab("ads.net.");
  assert.deepEqual(lab.ask("out.example.test. A", RD), [
    "NXDOMAIN aa rd ra ede=15",
    "answer out.example.test. 300 IN CNAME www.ads.net.",
    soa("ads.net."),
  ]);
  assert.equal(lab.ask("alias.example.test. A", RD)[0], "NOERROR aa rd ra ede=15");
});

test("an answer of the cache does not count for a name that was listed since, nor one whose chain leads there", () => {
  const lab = blockingLab();
  lab.cached("a.free.net. A", { route: ROUTE, answers: "a.free.net. 300 CNAME b.ads.net.\nb.ads.net. 300 A 10.0.0.1" });
  assert.equal(lab.ask("a.free.net. A", RD).length, 3);
  lab.block("ads.net.");
  assert.equal(lab.lack("a.free.net. A", RD), `${ROUTE} a.free.net. A 0`);
  lab.block("a.free.net.");
  assert.equal(lab.ask("a.free.net. A", RD)[0], "NXDOMAIN rd ra ede=15");
  lab.block();
  assert.equal(lab.ask("a.free.net. A", RD).length, 3);
});

test("it blocks where there is no default forwarder too, and nothing where nothing is forwarded", () => {
  const lab = blockingLab("ads.net.");
  lab.route(".", 0);
  assert.deepEqual(lab.ask("ads.net. A", RD), ["NXDOMAIN rd ede=15", soa("ads.net.")]);
  const plain = openLab([]);
  plain.block("ads.net.");
  assert.deepEqual(plain.ask("ads.net. A", RD), ["REFUSED rd ede=20"]);
});
