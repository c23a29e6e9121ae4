import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { createHeadReader, HEAD_BYTES_MAX, type HeadOutcome } from "./response-head.ts";

/** Fed in pieces of `size` out of one buffer that is written over each time, as a socket's is. */
function read(text: string, size = text.length, isFinal: (status: number) => boolean = () => false): HeadOutcome {
  const reader = createHeadReader(isFinal);
  const shared = Buffer.alloc(Math.max(size, 1));
  let outcome: HeadOutcome = { kind: "more" };
  for (let at = 0; at < text.length && outcome.kind === "more"; at += size) {
    const length = shared.write(text.slice(at, at + size), "latin1");
    outcome = reader.feed(shared.subarray(0, length));
  }
  return outcome;
}

const heads: readonly (readonly [string, number | "more" | RegExp])[] = [
  ["HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody", 200],
  ["HTTP/1.0 204 \r\n\r\n", 204],
  ["HTTP/1.1 503\r\n\r\n", 503],
  ["HTTP/1.1 200 OK\nA: b\n\n", 200],
  ["HTTP/1.1 200 OK\r\n\n", 200],
  ["HTTP/1.1 999 Odd\r\n\r\n", 999],
  ["HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 200],
  ["HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 404 No\r\n\r\n", 404],
  ["HTTP/1.1 101 Switching Protocols\r\n\r\n", 101],
  [`${"HTTP/1.1 100 Continue\r\n\r\n".repeat(8)}HTTP/1.1 200 OK\r\n\r\n`, 200],
  ["HTTP/1.1 100 Continue\r\n\r\n".repeat(9), /interim/],
  ["", "more"],
  ["HTT", "more"],
  ["HTTP/1.1 200 OK\r\nA: b\r\n", "more"],
  ["HTTP/1.1 100 Continue\r\n\r\n", "more"],
  ["HTTP/2 200\r\n\r\n", /not HTTP/],
  ["HTTP/1.1 20 OK\r\n\r\n", /not HTTP/],
  ["HTTP/1.1 2000 OK\r\n\r\n", /not HTTP/],
  ["HTTP/1.1 099 OK\r\n\r\n", /not HTTP/],
  ["HTTP/1.1  200 OK\r\n\r\n", /not HTTP/],
  ["http/1.1 200 OK\r\n\r\n", /not HTTP/],
  ["SSH-2.0-OpenSSH\r\n", /not HTTP/],
  ["\x15\x03\x01\x00\x02\x02\x16", /not HTTP/],
  ["\r\n\r\n", /not HTTP/],
  [`HTTP/1.1 200 OK\r\nA: ${"b".repeat(HEAD_BYTES_MAX - 24)}\r\n\r\n`, 200],
  [`HTTP/1.1 200 OK\r\nA: ${"b".repeat(HEAD_BYTES_MAX - 23)}\r\n\r\n`, /above 16384/],
  [`HTTP/1.1 200 OK\r\nA: ${"b".repeat(HEAD_BYTES_MAX)}`, /above 16384/],
];
for (const [text, expected] of heads) {
  const name = JSON.stringify(text.slice(0, 60));
  test(`${name}... of ${text.length} is ${expected}, in whatever pieces`, () => {
    for (const size of [Math.max(text.length, 1), 4_096, 7, 1]) {
      const outcome = read(text, size);
      if (expected === "more") assert.equal(outcome.kind, "more");
      else if (typeof expected === "number") assert.deepEqual(outcome, { kind: "status", status: expected });
      else assert.match(outcome.kind === "fault" ? outcome.detail : outcome.kind, expected);
    }
  });
}

test("an interim status that is expected is the answer", () => {
  const outcome = read("HTTP/1.1 103 Early Hints\r\n\r\n", 5, (status) => status === 103);
  assert.deepEqual(outcome, { kind: "status", status: 103 });
});

test("property: how the bytes come makes no difference, and nothing throws", () => {
  const part = fc.constantFrom("HTTP/1.1 ", "HTTP/1.", "200", "100", " OK", "\r\n", "\n", "A: b", "\r", "\0\xff");
  fc.assert(
    fc.property(fc.array(part, { maxLength: 20 }), fc.integer({ min: 1, max: 9 }), (parts, size) => {
      const text = parts.join("");
      assert.deepEqual(read(text, size), read(text));
    }),
  );
});

test("a head that comes byte by byte, with as many lines as it can have, takes no time worth the name", () => {
  const text = `HTTP/1.1 200 OK\r\n${"x\n".repeat((HEAD_BYTES_MAX - 17) >> 1)}`;
  const startMs = performance.now();
  for (let round = 0; round < 10; round++) assert.equal(read(text, 1).kind, "more");
  const tookMs = (performance.now() - startMs) / 10;
  assert.ok(tookMs < 200, `${Math.round(tookMs)} ms; where every piece is read from the beginning, more than a second`);
});
