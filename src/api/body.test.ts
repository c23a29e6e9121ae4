import assert from "node:assert/strict";
import { PassThrough, Readable } from "node:stream";
import test from "node:test";
import Type from "typebox";
import { createBodyBudget, readBody } from "./body.ts";
import { BODY_BYTES_UNCOUNTED, BODY_GRACE_MS, REQUEST_MS } from "./limits.ts";
import { route } from "./route.ts";

const row = route({
  method: "POST",
  path: "/in",
  tag: "t",
  summary: "Takes bytes",
  access: "public",
  rawBody: ["text/plain"],
  bodyLimitBytes: 2 ** 20,
  response: Type.Unknown(),
  handle: () => ({ body: {} }),
});
const HEADERS = { "content-type": "text/plain" };

test("the bodies of one key leave room for those of others, and give back what they took", () => {
  const budget = createBodyBudget(100, 40);
  const [a, b, c] = [budget.of("a"), budget.of("b"), budget.of("c")];
  assert.equal(a.take(40), true);
  assert.equal(budget.of("a").take(1), false, "its share is used up");
  assert.equal(b.take(40), true);
  assert.equal(c.take(21), false, "there is no more for all together");
  assert.equal(c.take(20), true);
  a.giveBack(40);
  assert.equal(a.take(40), true);
});

test("a short body is taken in when there is no room, a long one is not", async () => {
  const none = createBodyBudget(0, 0).of("a");
  const take = (bytes: number) => readBody(row, HEADERS, Readable.from([Buffer.alloc(bytes)]), none, REQUEST_MS);
  const taken = await take(BODY_BYTES_UNCOUNTED);
  assert.ok(Buffer.isBuffer(taken) && taken.length === BODY_BYTES_UNCOUNTED);
  await assert.rejects(take(BODY_BYTES_UNCOUNTED + 1), { code: "not_ready" });
});

test("what a body took is given back when it is refused", async () => {
  const budget = createBodyBudget(2 ** 20, 2 ** 20);
  const pieces = Array.from({ length: 17 }, () => Buffer.alloc(65_536));
  const refused = readBody(row, HEADERS, Readable.from(pieces), budget.of("a"), REQUEST_MS);
  await assert.rejects(refused, { code: "body_too_large" });
  assert.equal(budget.of("b").take(2 ** 20), true);
});

test("a body that comes too slowly ends, one at the least rate does not", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
  let now = 0;
  t.mock.method(performance, "now", () => now);
  const pass = (ms: number): void => {
    for (let passed = 0; passed < ms; passed += 1_000) {
      now += 1_000;
      t.mock.timers.tick(1_000);
    }
  };
  const [slow, steady] = [new PassThrough(), new PassThrough()];
  const share = createBodyBudget().of("a");
  const ended = assert.rejects(readBody(row, HEADERS, slow, share, REQUEST_MS), { message: "the body ended early" });
  const taken = readBody(row, HEADERS, steady, share, REQUEST_MS);
  slow.write("x");
  steady.write(Buffer.alloc(20_000));
  await new Promise(setImmediate);
  pass(BODY_GRACE_MS);
  assert.equal(slow.destroyed, false);
  pass(10_000);
  await ended;
  assert.equal(steady.destroyed, false);
  steady.end();
  const bytes = await taken;
  assert.ok(Buffer.isBuffer(bytes) && bytes.length === 20_000);
});

test("a large body of a declared length is what came, in memory that can change threads; one that is longer is refused", async () => {
  const share = createBodyBudget().of("a");
  const large = { ...row, bodyLimitBytes: 2 ** 23 };
  const pieces = Array.from({ length: 100 }, (_, index) => Buffer.alloc(30_000, index));
  const declared = pieces.length * 30_000;
  const take = (bytes: number) => {
    const headers = { ...HEADERS, "content-length": String(bytes) };
    return readBody(large, headers, Readable.from(pieces), share, REQUEST_MS);
  };
  const taken = await take(declared);
  assert.ok(Buffer.isBuffer(taken) && taken.equals(Buffer.concat(pieces)));
  assert.ok(taken.buffer instanceof ArrayBuffer && taken.buffer.byteLength === declared);
  const moved = structuredClone(new Uint8Array(taken.buffer), { transfer: [taken.buffer] });
  assert.ok(Buffer.from(moved).equals(Buffer.concat(pieces)));
  await assert.rejects(take(declared - 1), { code: "invalid_request" });
});
