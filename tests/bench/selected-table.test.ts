import assert from "node:assert/strict";
import test from "node:test";
import type { Sample } from "./dnsperf.ts";
import { renderSelectedTable, selectedPromiseLines } from "./selected-table.ts";
import type { Series } from "./table.ts";

function series(workload: string, server: string, figures: Partial<Sample>): Series {
  const sample = { queriesPerSecond: 100_000, userUs: 9, systemUs: 4, lost: 0, ...figures };
  return { workload, server, samples: [{ ...sample, rcodes: new Map([["NOERROR", 10]]) }] };
}

const ALL = [
  series("steer-static", "signpost", { answeringUserUs: 0.5 }),
  series("steer-static-4", "signpost", { answeringUserUs: 0.8 }),
  series("weighted", "signpost", { answeringUserUs: 0.6 }),
  series("weighted", "gdnsd", { answeringUserUs: 0.4 }),
  series("weighted", "powerdns", { userUs: 300 }),
  series("region", "signpost", { answeringUserUs: 0.76 }),
];

test("ratios are of the threads that answer, and of the whole process where they are not known", () => {
  const lines = renderSelectedTable(ALL).split("\n");
  assert.equal(
    lines.find((line) => line.startsWith("| weighted | signpost")),
    "| weighted | signpost | 100,000 | 9.00 | 0.60 | 4.00 | 0 | NOERROR 100.0 % | 1.20 / 0.75 | 1.50 / 0.0020 |",
  );
  assert.ok(lines.some((line) => line.startsWith("| weighted | powerdns | 100,000 | 300.00 | 300.00 |")));
});

test("a method is held against our own static answers", () => {
  assert.deepEqual(selectedPromiseLines(ALL), [
    "- weighted: user time a query 1.20 x our own static, promised at most 1.5: holds",
    "- region: user time a query 1.52 x our own static, promised at most 1.5: MISSED",
  ]);
});

test("nothing is said of a promise where the clock saw nothing to hold it against", () => {
  const [line, ...more] = selectedPromiseLines([series("steer-static", "signpost", { userUs: 0 }), ...ALL.slice(2)]);
  assert.match(line ?? "", /longer rounds are needed/);
  assert.deepEqual(more, []);
});
