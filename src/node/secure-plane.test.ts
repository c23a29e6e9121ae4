import assert from "node:assert/strict";
import { test } from "node:test";
import { testCaller } from "../../tests/support/commands.ts";
import { temporaryStore } from "../../tests/support/store.ts";
import { putConfig } from "../commands/config-documents.ts";
import { createSecurePlane } from "./secure-plane.ts";
import type { SecureWish } from "./secure-thread.ts";

test("what was told last is in force when it is said to be so, and at the latest when its time is over", async () => {
  await using temporary = await temporaryStore();
  const told: SecureWish[] = [];
  const plane = createSecurePlane((wish) => told.push(wish), 50);
  plane.follow(temporary.store);
  plane.settled(1);
  const patient = createSecurePlane((wish) => told.push(wish), 60_000);
  patient.follow(temporary.store);
  patient.settled(1);
  await Promise.all([plane.inForce(), patient.inForce()]);
  await putConfig(temporary.context, testCaller({ role: "admin" }), "transport", { dot_enabled: true });
  assert.deepEqual(
    told.map(({ number, settings }) => [number, settings.dot !== undefined]),
    [
      [1, false],
      [1, false],
      [2, true],
      [2, true],
    ],
  );
  let isInForce = false;
  const waiting = patient.inForce().then(() => {
    isInForce = true;
  });
  patient.settled(1);
  await plane.inForce();
  assert.equal(isInForce, false);
  patient.settled(2);
  await waiting;
  await patient.inForce();
});
