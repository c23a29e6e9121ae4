import assert from "node:assert/strict";
import test from "node:test";
import { type Aspects, aspectsOf } from "./aspects.ts";
import { differencesOf, explain } from "./compare.ts";
import type { Inquiry } from "./zone-questions.ts";

const inquiry: Inquiry = { name: "corp.test.", type: 1, transport: "udp" };

function aspects(verdict: string): Aspects {
  return { verdict, truncated: "", bits: "QR", question: "q", authority: "", additional: "", edns: "none" };
}

function differences(ours: string, ...theirs: readonly string[]) {
  const peers = Object.fromEntries(theirs.map((verdict, index) => [String(index), aspects(verdict)]));
  return differencesOf({ inquiry, ours: aspects(ours), peers });
}

test("an answer like one of disagreeing peers is no difference", () => {
  assert.equal(differences("a", "a", "b", "c").length, 0);
});

test("an answer like none of the peers is a difference", () => {
  assert.deepEqual(
    differences("a", "b", "b", "c").map(({ aspect }) => aspect),
    ["verdict"],
  );
});

test("being silent with a silent peer while another answers is a difference", () => {
  assert.equal(differences("(silence)", "(silence)", "b").length, 1);
});

test("a known difference explains only its own aspects", () => {
  const known = [{ id: "x", aspects: ["authority"], explains: () => true }] as const;
  const { unexplained, seen } = explain(differences("a", "b"), known);
  assert.equal(unexplained.length, 1);
  assert.equal(seen.get("x"), 0);
});

test("a known difference counts what it explains", () => {
  const known = [{ id: "x", aspects: ["verdict"], explains: () => true }] as const;
  const { unexplained, seen } = explain(differences("a", "b"), known);
  assert.equal(unexplained.length, 0);
  assert.equal(seen.get("x"), 1);
});

test("aspects read a response with a compressed name", () => {
  const response = Buffer.from(
    "000084000001000100000000026E7304636F72700474657374000001 0001 c00c 0001 0001 0000003c 0004 0a010001".replaceAll(
      " ",
      "",
    ),
    "hex",
  );
  const { verdict, question, bits } = aspectsOf(response);
  assert.equal(verdict, "rcode 0 AA\nns.corp.test. 60 CLASS1 TYPE1 0a010001");
  assert.equal(question, "ns.corp.test. 1 1");
  assert.equal(bits, "QR opcode 0");
});

test("aspects refuse bytes after the message", () => {
  assert.throws(() => aspectsOf(Buffer.from(`000084000000000000000000${"00"}`, "hex")), /left over/);
});
