import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryStore } from "../../tests/support/store.ts";
import { zoneBody } from "../../tests/support/store-objects.ts";
import { createClockGuard } from "./clock-guard.ts";

test("a node whose clock is off takes no writes until it agrees with the others again, and says so once", async () => {
  await using temporary = await temporaryStore();
  const lines: string[] = [];
  let aheadMs = 0;
  const guard = createClockGuard((level, message) => lines.push(`${level} ${message}`));
  const store = guard.guarded(temporary.store);
  const put = () => store.write((tx) => tx.put("zone", zoneBody("corp.")).key);
  await put();
  guard.follow(() => aheadMs);
  await put();
  const refused = { code: "clock_skew", message: /300 s ahead of those of the other nodes/ };
  aheadMs = 300_000;
  await assert.rejects(put, refused);
  await assert.rejects(() => store.rehearse(() => 0), refused);
  await assert.rejects(
    () =>
      store.writeInSlices(function* () {
        yield;
      }),
    refused,
  );
  aheadMs = -10_001;
  await assert.rejects(put, { code: "clock_skew", message: /10 s behind those of the other nodes/ });
  aheadMs = -10_000;
  await put();
  assert.deepEqual(lines, [
    "error writes are refused: this node's clock lies 300 s ahead of those of the other nodes",
    "info writes are taken again: the clock agrees with those of the other nodes",
  ]);
  assert.equal(store.count("zone"), 1);
});
