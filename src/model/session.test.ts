import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionBody, UserBody } from "./objects.ts";
import { REFRESH_GRACE_MS, refreshOutcome, SESSION_IDLE_MS, sessionHolds } from "./session.ts";

const SESSION: SessionBody = { id: "s", user_id: "u", generation: 5, rotated_at: 1_000, revoked: false, epoch: "e" };
const USER: UserBody = { id: "u", username: "u", role: "editor", enabled: true, session_epoch: "e" };

test("a refresh token of some generation rotates, repeats, or shows that it was copied", () => {
  const last = 1_000 + REFRESH_GRACE_MS;
  const cases: [generation: number, nowMs: number, outcome: string][] = [
    [5, last + 1, "rotate"],
    [6, last + 1, "rotate"],
    [4, last, "repeat"],
    [4, last + 1, "reuse"],
    [3, 1_000, "reuse"],
    [-1, 1_000, "reuse"],
  ];
  for (const [generation, nowMs, outcome] of cases) assert.equal(refreshOutcome(SESSION, generation, nowMs), outcome);
});

test("a session holds while it is used, its user enabled and their epochs the same", () => {
  const last = 1_000 + SESSION_IDLE_MS;
  assert.equal(sessionHolds(SESSION, USER, last), true);
  assert.equal(sessionHolds(SESSION, USER, last + 1), false);
  assert.equal(sessionHolds({ ...SESSION, revoked: true }, USER, 1_000), false);
  assert.equal(sessionHolds(SESSION, { ...USER, enabled: false }, 1_000), false);
  assert.equal(sessionHolds(SESSION, { ...USER, session_epoch: "f" }, 1_000), false);
  const { epoch: _, ...without } = SESSION;
  assert.equal(sessionHolds(without, USER, 1_000), false);
});
