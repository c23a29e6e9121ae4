import assert from "node:assert/strict";
import { Readable } from "node:stream";
import test from "node:test";
import fc from "fast-check";
import { Refusal } from "../model/refusal.ts";
import { cursorOf, keyOfCursor, pageOf, streamItems, streamLines } from "./paging.ts";
import type { Reply } from "./route.ts";

async function textOf({ body }: Reply): Promise<string> {
  assert.ok(body instanceof Readable);
  return Buffer.concat(await Array.fromAsync(body)).toString();
}

test("a streamed list is the JSON of its items, however they come", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.jsonValue(), { maxLength: 50 }), async (items) => {
      assert.deepEqual(JSON.parse(await textOf(streamItems(items))), {
        items: JSON.parse(JSON.stringify(items)),
        next_cursor: null,
      });
      const lines = (await textOf(streamLines(items))).split("\n");
      assert.equal(lines.pop(), "");
      assert.deepEqual(
        lines.map((line) => JSON.parse(line)),
        JSON.parse(JSON.stringify(items)),
      );
    }),
    { numRuns: 50 },
  );
});

test("items are taken as the reader reads, and no further", async () => {
  let taken = 0;
  const items = (function* () {
    for (;;) {
      taken++;
      yield "x".repeat(1000);
    }
  })();
  const { body } = streamItems(items);
  assert.ok(body instanceof Readable);
  const reader = body[Symbol.asyncIterator]();
  await reader.next();
  const afterOne = taken;
  assert.ok(afterOne < 400, `${afterOne} items for one piece`);
  await reader.next();
  assert.ok(taken < afterOne + 400);
  await reader.return?.();
});

test("a fault on the way ends the stream with it", async () => {
  const items = (function* () {
    yield 1;
    throw new Error("gone");
  })();
  await assert.rejects(textOf(streamItems(items)), /gone/);
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
