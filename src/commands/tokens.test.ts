import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { ACCESS_TOKEN_SECONDS } from "../model/session.ts";
import { createTokens } from "./tokens.ts";

test("an access token that was read before ends when it expires, and no other is taken for it", async () => {
  let nowMs = Date.UTC(2026, 0, 1);
  const tokens = createTokens(randomBytes(32), () => nowMs);
  const token = await tokens.signAccess("usr_1", "ses_1");
  for (let read = 0; read < 3; read++) assert.deepEqual(await tokens.readAccess(token), { sessionId: "ses_1" });
  assert.equal(await tokens.readAccess(`${token}x`), undefined);
  assert.equal(await tokens.readRefresh(token), undefined);
  assert.equal(await createTokens(randomBytes(32), () => nowMs).readAccess(token), undefined);
  nowMs += ACCESS_TOKEN_SECONDS * 1000 - 1;
  assert.deepEqual(await tokens.readAccess(token), { sessionId: "ses_1" });
  nowMs += 1;
  assert.equal(await tokens.readAccess(token), undefined);
  assert.equal(await tokens.readAccess(token), undefined);
});
