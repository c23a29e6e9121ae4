import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { PAGE_ROWS_MAX } from "./limits.ts";
import { decodeAnswer, decodeMessage, encodeChanges, encodeMessage, type Message } from "./messages.ts";
import { MalformedError } from "./shapes.ts";

const STATUS = { isComplete: true, collectedUpToMs: 1, lastAgreementMs: 2, agreements: { n1: 2 } };
const ROOT = "0123456789abcdef";
const ITEM = { item: "alias", kind: "zone", id: "zon_1", key: ["corp."] } as const;
const MESSAGES: readonly Message[] = [
  { type: "changes", first: 1, items: [ITEM] },
  { type: "acknowledgement", through: 7, refused: [[3, "future"]] },
  { type: "question", id: 1, ask: "root", body: { root: null, status: STATUS } },
  { type: "question", id: 1, ask: "root", body: { root: ROOT, status: STATUS } },
  { type: "question", id: 2, ask: "children", body: { level: 3, nodes: [0, 4095] } },
  { type: "question", id: 3, ask: "versions", body: { leaves: [65_535] } },
  { type: "question", id: 4, ask: "items", body: { refs: ["1\u0002corp\u0000"] } },
  { type: "question", id: 5, ask: "page", body: { cursor: null } },
  { type: "question", id: 5, ask: "page", body: { cursor: "k", asRows: true } },
  { type: "question", id: 6, ask: "audit", body: { vector: { abc: 4 } } },
  { type: "question", id: 7, ask: "standing", body: { zones: ["corp."] } },
  { type: "answer", id: 8, isLast: true, fault: undefined, body: { items: [ITEM] } },
  { type: "answer", id: 8, isLast: true, fault: "busy", body: undefined },
  { type: "audit-notice", vector: { abc: 4 } },
];

test("messages come back as they were", () => {
  for (const message of MESSAGES) assert.deepEqual(decodeMessage(encodeMessage(message)), message);
  const changes = encodeChanges(5, [JSON.stringify(ITEM), JSON.stringify(ITEM)]);
  assert.deepEqual(decodeMessage(changes), { type: "changes", first: 5, items: [ITEM, ITEM] });
});

test("the rows of a page come beside its body, a line each", () => {
  const rows = ['{"s":"0197a1b2c3d40000-n1"}', "größe", ""];
  const body = { items: [ITEM], rows, cursor: "next" };
  const message = decodeMessage(encodeMessage({ type: "answer", id: 9, isLast: false, fault: undefined, body }));
  assert.ok(message.type === "answer");
  const { rows: _, ...rest } = body;
  assert.deepEqual(message, { type: "answer", id: 9, isLast: false, fault: undefined, body: rest, rows });
  assert.deepEqual(decodeAnswer("page", message.body, message.rows), body);
  // As an earlier version answers, and as none does.
  assert.deepEqual(decodeAnswer("page", rest), { ...rest, rows: [] });
  assert.throws(() => decodeAnswer("page", rest, Array(4_097).fill("")), MalformedError);
  assert.throws(() => decodeAnswer("page", rest, ["x".repeat(65_537)]), MalformedError);
});

function malformed(type: number, body: unknown): string {
  const message = decodeMessage(Buffer.concat([Uint8Array.of(type), Buffer.from(JSON.stringify(body))]));
  return message.type === "malformed" ? message.reason : `not malformed: ${message.type}`;
}

test("what is no message is told apart, with a reason", () => {
  assert.equal(malformed(0, {}), "unknown type 0");
  assert.equal(malformed(99, {}), "unknown type 99");
  assert.equal(malformed(1, []), "changes: not an object");
  assert.equal(malformed(1, { first: -1, items: [] }), "changes: a number out of range");
  assert.equal(malformed(1, { first: 1, items: [1] }), "changes: not an object");
  assert.equal(malformed(1, { first: 1, items: Array(2_001).fill(ITEM) }), "changes: a list that is too long");
  assert.equal(malformed(2, { through: 1, refused: [[1]] }), "acknowledgement: a text that is none");
  assert.equal(malformed(3, { id: 1, ask: "everything", body: {} }), "question: an unknown question");
  assert.equal(
    malformed(3, { id: 1, ask: "children", body: { level: 4, nodes: [] } }),
    "question: a number out of range",
  );
  assert.equal(
    malformed(3, { id: 1, ask: "children", body: { level: 1, nodes: [16] } }),
    "question: a number out of range",
  );
  assert.equal(
    malformed(3, { id: 1, ask: "children", body: { level: 3, nodes: Array(257).fill(0) } }),
    "question: a list that is too long",
  );
  assert.equal(malformed(3, { id: 1, ask: "versions", body: { leaves: [65_536] } }), "question: a number out of range");
  assert.equal(
    malformed(3, { id: 1, ask: "items", body: { refs: ["x".repeat(5_000)] } }),
    "question: a text that is too long",
  );
  assert.equal(malformed(5, { vector: { a: "b" } }), "audit-notice: a number out of range");
  assert.equal(decodeMessage(Buffer.from([1, 0x7b])).type, "malformed");
});

test("arbitrary bytes and arbitrary JSON never throw", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      decodeMessage(bytes);
    }),
  );
  const names = ["first", "items", "through", "refused", "id", "ask", "body", "vector", "isLast", "fault"];
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      fc.dictionary(fc.constantFrom(...names), fc.jsonValue()),
      (type, body) => {
        decodeMessage(Buffer.concat([Uint8Array.of(type), Buffer.from(JSON.stringify(body))]));
      },
    ),
  );
});

test("an answer must be one to its question", () => {
  assert.deepEqual(decodeAnswer("versions", { versions: [["r", "v"]] }), { versions: [{ ref: "r", version: "v" }] });
  assert.throws(() => decodeAnswer("versions", { versions: [["r"]] }), MalformedError);
  assert.throws(() => decodeAnswer("root", { root: "x", status: STATUS, queued: 0 }), MalformedError);
  assert.throws(() => decodeAnswer("children", { children: [["zz"]] }), MalformedError);
  assert.throws(() => decodeAnswer("children", { children: Array(257).fill([]) }), MalformedError);
  assert.throws(() => decodeAnswer("audit", { entries: [{ id: 1 }], isMore: false }), MalformedError);
  assert.throws(() => decodeAnswer("page", { items: [] }), MalformedError);
});

test("of rows without an end no more are read than are refused", () => {
  const json = JSON.stringify({ id: 1, isLast: true, body: { items: [], cursor: null } });
  const decoded = decodeMessage(Buffer.from(`\u0004${json}${"\n".repeat(1_000_000)}`));
  assert.ok(decoded.type === "answer");
  assert.equal(decoded.rows?.length, PAGE_ROWS_MAX + 1);
  assert.throws(() => decodeAnswer("page", decoded.body, decoded.rows), MalformedError);
});
