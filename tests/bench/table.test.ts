import assert from "node:assert/strict";
import test from "node:test";
import type { Sample } from "./dnsperf.ts";
import { promiseLines } from "./promises.ts";
import { median, rcodeFaults, renderTable, type Series } from "./table.ts";

function series(server: string, rcodes: Readonly<Record<string, number>>, figures: Partial<Sample> = {}): Series {
  const sample = { queriesPerSecond: 100_000, userUs: 1, systemUs: 4, lost: 0, ...figures };
  return { workload: "mixed", server, samples: [{ ...sample, rcodes: new Map(Object.entries(rcodes)) }] };
}

test("the median is the middle of any order", () => {
  assert.equal(median([9, 1, 5]), 5);
  assert.equal(median([9, 1, 5, 7]), 6);
});

test("equal shares of response codes are no fault", () => {
  const all = [series("nsd", { NOERROR: 7500, NXDOMAIN: 2500 }), series("knot", { NOERROR: 15_001, NXDOMAIN: 4_999 })];
  assert.deepEqual(rcodeFaults(all), []);
});

test("SERVFAIL is a fault although every server gives it", () => {
  const all = [series("nsd", { SERVFAIL: 10 }), series("knot", { SERVFAIL: 10 })];
  assert.equal(rcodeFaults(all).length, 2);
});

test("NXDOMAIN where others have data is a fault", () => {
  const all = [series("nsd", { NOERROR: 100 }), series("signpost", { NOERROR: 90, NXDOMAIN: 10 })];
  assert.match(rcodeFaults(all).join("\n"), /mixed: signpost answers NXDOMAIN to 10\.0 %, unlike nsd/);
});

test("the table gives ratios against Knot, gdnsd and NSD, and a dash for one that did not run", () => {
  const all = [series("signpost", { NOERROR: 1 }, { userUs: 1.5 }), series("knot", { NOERROR: 1 }, { userUs: 2 })];
  assert.match(
    renderTable(all),
    /\| mixed \| signpost \| 100,000 \| 1\.50 \| 4\.00 \| 0 \| NOERROR 100\.0 % \| 0\.75 \/ - \/ - \|/,
  );
});

test("a promise is held against the peer of the same workload", () => {
  const all = [
    series("signpost", { NOERROR: 1 }, { userUs: 1.5 }),
    series("knot", { NOERROR: 1 }),
    series("gdnsd", { NOERROR: 1 }),
  ];
  assert.deepEqual(promiseLines(all), [
    "- mixed: user time a query 1.50 x knot, promised at most 1: MISSED",
    "- mixed: user time a query 1.50 x gdnsd, promised at most 1.5: holds",
  ]);
});
