import assert from "node:assert/strict";
import { test } from "node:test";
import { startSignInApi } from "../../tests/support/sign-in.ts";
import { SESSIONS_PER_USER_MAX } from "../model/limits.ts";
import { openSession } from "./sessions.ts";

test("a user's sessions are bounded also where many begin before the first of them is on disk", async () => {
  await using api = await startSignInApi();
  const { signIn, store } = api;
  const admin = store.get("user", ["admin"])?.body;
  assert.ok(admin !== undefined);
  const open = () => store.write((tx) => openSession(signIn, tx, admin, Date.now()));
  await store.rehearse((tx) => openSession(signIn, tx, admin, Date.now()));
  const sessions = await Promise.all(Array.from({ length: 2 * SESSIONS_PER_USER_MAX }, open));
  assert.equal(store.count("session"), SESSIONS_PER_USER_MAX);
  const newest = sessions.at(-1);
  assert.ok(newest !== undefined && store.byId("session", newest.id) !== undefined);
  await open();
  const held = [...signIn.sessionsOfUser.idsOf(admin.id)];
  assert.equal(held.length, SESSIONS_PER_USER_MAX, "what was only rehearsed is forgotten");
  assert.ok(held.every((id) => store.byId("session", id) !== undefined));
});
