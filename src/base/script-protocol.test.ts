import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  createLineCutter,
  DETAIL_CHARACTERS_MAX,
  lineOf,
  requestFromLine,
  runnerMessageFromLine,
  SCRIPT_TIMEOUT_MS_MAX,
} from "./script-protocol.ts";

const argument = fc.string({ unit: "binary", maxLength: 50 }).filter((text) => !text.includes("\0"));
const request = fc.record(
  {
    kind: fc.constant("run" as const),
    id: fc.nat(),
    command: argument.map((text) => `/${text}`),
    args: fc.array(argument, { maxLength: 5 }),
    timeoutMs: fc.integer({ min: 1, max: SCRIPT_TIMEOUT_MS_MAX }),
  },
  { noNullPrototype: true },
);

/** The lines that a cutter gives, and whether it took all. */
function cut(chunks: readonly Uint8Array[], bytesMax: number) {
  const lines: string[] = [];
  const take = createLineCutter(bytesMax, (line) => lines.push(line));
  const taken = chunks.map((chunk) => take(chunk));
  return { lines, isTaken: taken.every((one) => one) };
}

test("a request arrives as it was sent, however the bytes are cut", () => {
  fc.assert(
    fc.property(fc.array(request, { maxLength: 5 }), fc.integer({ min: 1, max: 40 }), (requests, step) => {
      const bytes = Buffer.from(requests.map(lineOf).join(""));
      const chunks = Array.from({ length: Math.ceil(bytes.length / step) }, (_, at) =>
        bytes.subarray(at * step, (at + 1) * step),
      );
      const { lines, isTaken } = cut(chunks, 10_000);
      assert.ok(isTaken);
      assert.deepEqual(lines.map(requestFromLine), requests);
    }),
  );
});

test("a line longer than allowed is not taken, nor is anything behind it", () => {
  const line = Buffer.from(`${"x".repeat(11)}\n`);
  assert.deepEqual(cut([line, Buffer.from("y\n")], 10), { lines: [], isTaken: false });
  assert.deepEqual(cut([line.subarray(0, 6), line.subarray(6)], 10), { lines: [], isTaken: false });
  assert.deepEqual(cut([line], 11), { lines: ["x".repeat(11)], isTaken: true });
});

test("no text makes the readers throw", () => {
  const text = fc.oneof(fc.string(), fc.json());
  fc.assert(
    fc.property(text, (line) => {
      const read = requestFromLine(line);
      assert.ok(read === undefined || read.kind === "run");
      const message = runnerMessageFromLine(line);
      assert.ok(message === undefined || message.kind === "hello" || message.kind === "done");
    }),
  );
});

const VALID = { kind: "run", id: 1, command: "/usr/bin/true", args: ["a"], timeoutMs: 1000 };

for (const [what, change] of [
  ["a relative command", { command: "true" }],
  ["no command", { command: undefined }],
  ["a NUL in the command", { command: "/a\0b" }],
  ["a NUL in an argument", { args: ["a\0b"] }],
  ["an argument that is no text", { args: [1] }],
  ["arguments that are no list", { args: "a" }],
  ["no time", { timeoutMs: 0 }],
  ["endless time", { timeoutMs: SCRIPT_TIMEOUT_MS_MAX + 1 }],
  ["a broken id", { id: 1.5 }],
  ["another kind", { kind: "walk" }],
] as const) {
  test(`a request with ${what} is none`, () => {
    assert.ok(requestFromLine(JSON.stringify(VALID)) !== undefined);
    assert.equal(requestFromLine(JSON.stringify({ ...VALID, ...change })), undefined);
  });
}

test("an outcome must be whole, and its detail is cut", () => {
  const told = (outcome: unknown) => runnerMessageFromLine(JSON.stringify({ kind: "done", id: 7, outcome }));
  assert.deepEqual(told({ latencyUs: 5 }), { kind: "done", id: 7, outcome: { latencyUs: 5 } });
  const long = told({ latencyUs: 5, error: "script", detail: "x".repeat(500) });
  assert.ok(long?.kind === "done");
  assert.equal(long.outcome.detail?.length, DETAIL_CHARACTERS_MAX);
  for (const broken of [
    null,
    {},
    { latencyUs: -1 },
    { latencyUs: 1, error: "tired", detail: "" },
    { latencyUs: 1, error: "script" },
  ]) {
    assert.equal(told(broken), undefined);
  }
});
