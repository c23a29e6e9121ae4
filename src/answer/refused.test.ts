import assert from "node:assert/strict";
import { test } from "node:test";
import { openLab, testAnswers, zone } from "../../tests/support/zone-lab.ts";
import { CLASS } from "../dns/codes.ts";
import { TRANSPORT } from "../image/counters.ts";

const lab = openLab([zone("example.test.", "www A 192.0.2.1\n")], { nodeId: "node-7" });

testAnswers(lab, [
  ["a name in no zone: EDE Not Authoritative", "www.elsewhere.test. A", ["REFUSED ede=20"]],
  ["the zone's parent", "test. NS", ["REFUSED ede=20"]],
  ["the root", ". NS", ["REFUSED ede=20"]],
  ["the zone's name as an ending of a label", "xexample.test. A", ["REFUSED ede=20"]],
  ["AXFR over UDP", "example.test. AXFR", ["NOTIMP"]],
  ["IXFR, on which secondaries fall back to AXFR", "example.test. IXFR", ["NOTIMP"]],
  ["TKEY", "example.test. TKEY", ["NOTIMP"]],
  ["MAILA", "example.test. MAILA", ["NOTIMP"]],
  ["MAILB", "example.test. MAILB", ["NOTIMP"]],
  ["OPT is no type of data", "example.test. OPT", ["FORMERR"]],
  ["TSIG is no type of data", "example.test. TSIG", ["FORMERR"]],
]);

testAnswers(lab, [["AXFR that is not permitted: EDE Prohibited", "example.test. AXFR", ["REFUSED ede=18"]]], {
  transport: TRANSPORT.TCP,
});

for (const other of [CLASS.HS, CLASS.NONE, 2, 0, 42]) {
  testAnswers(lab, [[`class ${other}`, "www.example.test. A", ["REFUSED"]]], { class: other });
}

test("an empty server refuses everything", () => {
  assert.deepEqual(openLab([]).ask("example.test. A"), ["REFUSED ede=20"]);
});

test("without EDNS there is no place for an EDE", () => {
  assert.deepEqual(lab.ask("www.elsewhere.test. A", { edns: false }), ["REFUSED"]);
});
