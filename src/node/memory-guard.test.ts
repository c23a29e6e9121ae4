import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryStore } from "../../tests/support/store.ts";
import { Refusal } from "../model/refusal.ts";
import { withHeapLeft } from "./memory-guard.ts";

test("a transaction does not begin while the heap is nearly full, and does again afterwards", async () => {
  await using temporary = await temporaryStore();
  let used = 0.5;
  const store = withHeapLeft(temporary.store, () => used);
  assert.equal(await store.write(() => 1), 1);
  used = 0.95;
  let begun = 0;
  for (const attempt of [store.write, store.rehearse]) {
    await assert.rejects(
      attempt(() => {
        begun += 1;
      }),
      (error) => error instanceof Refusal && error.code === "not_ready",
    );
  }
  assert.equal(begun, 0);
  used = 0.5;
  assert.equal(await store.rehearse(() => 2), 2);
});
