import assert from "node:assert/strict";
import { test } from "node:test";
import { openLab } from "../../tests/support/zone-lab.ts";

const SOA = "example.test. 900 SOA ns1.Example.test. hostmaster.example.test. 1 7200 900 1209600 60\n";

test("a zone without NS at its apex answers with the SOA's MNAME", () => {
  const { ask } = openLab([SOA]);
  assert.deepEqual(ask("example.test. NS"), ["NOERROR aa", "answer example.test. 900 IN NS ns1.example.test."]);
});

test("the addresses of that name go with it", () => {
  const { ask } = openLab([`${SOA}ns1.example.test. 5 A 192.0.2.1\n`]);
  assert.deepEqual(ask("example.test. NS"), [
    "NOERROR aa",
    "answer example.test. 900 IN NS ns1.example.test.",
    "additional ns1.example.test. 5 IN A 192.0.2.1",
  ]);
});

test("the MNAME may lie elsewhere", () => {
  const { ask } = openLab(["example.test. 900 SOA ns1.else.net. hostmaster.example.test. 1 7200 900 1209600 60\n"]);
  assert.deepEqual(ask("example.test. NS"), ["NOERROR aa", "answer example.test. 900 IN NS ns1.else.net."]);
});

test("a zone with NS at its apex answers with those alone", () => {
  const { ask } = openLab([`${SOA}example.test. 60 NS a.else.net.\nexample.test. 60 NS b.else.net.\n`]);
  assert.deepEqual(ask("example.test. NS"), [
    "NOERROR aa",
    "answer example.test. 60 IN NS a.else.net.",
    "answer example.test. 60 IN NS b.else.net.",
  ]);
});

test("NS below the apex does not stand in for it", () => {
  const { ask } = openLab([`${SOA}sub.example.test. 60 NS a.else.net.\n`]);
  assert.deepEqual(ask("example.test. NS"), ["NOERROR aa", "answer example.test. 900 IN NS ns1.example.test."]);
  assert.deepEqual(ask("sub.example.test. A"), ["NOERROR", "authority sub.example.test. 60 IN NS a.else.net."]);
});
