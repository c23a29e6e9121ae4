import assert from "node:assert/strict";
import { Readable } from "node:stream";
import test from "node:test";
import fc from "fast-check";
import { Refusal } from "../model/refusal.ts";
import { PAGE_BYTES_MAX } from "./limits.ts";
import { cursorOf, jsonReply, keyOfCursor, linesReply, pageOf, type Turns } from "./paging.ts";
import type { Reply } from "./route.ts";

async function textOf(reply: Promise<Reply>): Promise<string> {
  const { body } = await reply;
  if (Buffer.isBuffer(body)) return body.toString();
  assert.ok(body instanceof Readable);
  return Buffer.concat(await Array.fromAsync(body)).toString();
}

/** The items in turns of so many. */
function turnsOf(items: readonly unknown[], each: number, next?: string): Turns {
  let at = 0;
  return () => {
    const some = items.slice(at, at + each);
    at += each;
    return at < items.length ? { items: some } : { items: some, end: { next } };
  };
}

/** Turns without end, of one item of a thousand characters. */
function endless(): { readonly turns: Turns; readonly taken: () => number } {
  let taken = 0;
  const turns: Turns = (isFull) => {
    if (isFull) return { items: [], end: { next: `behind-${taken}` } };
    taken++;
    return { items: ["\u2603".repeat(1000)] };
  };
  return { turns, taken: () => taken };
}

test("a list is the JSON of its items, however they come", async () => {
  const items = fc.oneof(
    fc.array(fc.jsonValue(), { maxLength: 50 }),
    fc.array(fc.constant("\u2603".repeat(3_000)), { maxLength: 90 }),
  );
  await fc.assert(
    fc.asyncProperty(items, fc.integer({ min: 1, max: 20 }), async (given, each) => {
      const sent = JSON.parse(JSON.stringify(given));
      const text = await textOf(jsonReply(turnsOf(given, each, "on"), { isPage: true }));
      assert.deepEqual(JSON.parse(text), { items: sent, next_cursor: "on" });
      const whole = await textOf(jsonReply(turnsOf(given, each), {}));
      assert.deepEqual(JSON.parse(whole), { items: sent, next_cursor: null });
      const lines = (await textOf(linesReply(turnsOf(given, each), {}))).split("\n");
      assert.equal(lines.pop(), "");
      assert.deepEqual(
        lines.map((line) => JSON.parse(line)),
        sent,
      );
    }),
    { numRuns: 50 },
  );
});

test("items are taken as the reader reads, and no further", async () => {
  const { turns, taken } = endless();
  const { body } = await jsonReply(turns, {});
  assert.ok(body instanceof Readable);
  const reader = body[Symbol.asyncIterator]();
  await reader.next();
  const afterOne = taken();
  assert.ok(afterOne < 400, `${afterOne} items for one piece`);
  await reader.next();
  assert.ok(taken() < afterOne + 400);
  await reader.return?.();
});

test("a page ends at so many bytes and says where to go on; a list that is none does not", async () => {
  const { turns } = endless();
  const text = await textOf(jsonReply(turns, { isPage: true }));
  const { items, next_cursor } = JSON.parse(text);
  assert.equal(next_cursor, `behind-${items.length}`);
  const bytes = Buffer.byteLength(text);
  assert.ok(bytes > 0.95 * PAGE_BYTES_MAX && bytes < 1.05 * PAGE_BYTES_MAX, `${bytes} bytes`);

  const many = Array(3_000).fill("\u2603".repeat(1000));
  assert.equal(JSON.parse(await textOf(jsonReply(turnsOf(many, 20), {}))).items.length, many.length);
});

test("a search that finds nothing ends when its client has gone", async () => {
  const client = new AbortController();
  let count = 0;
  const turns: Turns = () => {
    if (++count === 10) client.abort();
    return { items: [] };
  };
  await jsonReply(turns, { signal: client.signal });
  assert.equal(count, 10);
});

test("a fault on the way ends the stream with it, and one at the beginning is no answer", async () => {
  let count = 0;
  const turns: Turns = () => {
    if (++count > 3) throw new Error("gone");
    return { items: ["x".repeat(50_000)] };
  };
  await assert.rejects(textOf(jsonReply(turns, {})), /gone/);
  await assert.rejects(jsonReply(turns, {}), /gone/);
});

test("a cursor leads back to its key, and anything else is refused", () => {
  fc.assert(
    fc.property(fc.array(fc.string(), { maxLength: 4 }), (key) => assert.deepEqual(keyOfCursor(cursorOf(key)), key)),
  );
  fc.assert(
    fc.property(fc.string(), (text) => {
      try {
        assert.ok(Array.isArray(keyOfCursor(text)));
      } catch (error) {
        assert.ok(error instanceof Refusal && error.code === "invalid_request");
        assert.equal(error.faults[0]?.pointer, "?cursor");
      }
    }),
  );
  assert.deepEqual(pageOf([1], undefined), { items: [1], next_cursor: null });
  assert.equal(keyOfCursor(undefined), undefined);
});
