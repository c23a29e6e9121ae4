import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import test from "node:test";
import { drain } from "./drain.ts";

function request() {
  return Object.assign(new PassThrough(), { complete: false, httpVersionMajor: 1 });
}

test("what is still sent is taken in to its end", async () => {
  const raw = request();
  const drained = drain(raw, { bytesMax: 100, timeoutMs: 60_000 });
  raw.write(Buffer.alloc(60));
  raw.end(Buffer.alloc(40));
  await drained;
  assert.equal(raw.readableEnded, true);
});

test("a body that is too long, or takes too long, is cut off", async () => {
  const long = request();
  const drained = drain(long, { bytesMax: 100, timeoutMs: 60_000 });
  long.write(Buffer.alloc(101));
  await drained;
  assert.equal(long.destroyed, true);
  const slow = request();
  // The timer of the drain does not keep the process alive.
  const alive = setInterval(() => slow.write("x"), 1);
  await drain(slow, { bytesMax: 1_000_000, timeoutMs: 20 });
  clearInterval(alive);
  assert.equal(slow.destroyed, true);
});

test("a request that is all there needs nothing", async () => {
  const raw = Object.assign(request(), { complete: true });
  await drain(raw, { bytesMax: 1, timeoutMs: 1 });
  assert.equal(raw.destroyed, false);
});
