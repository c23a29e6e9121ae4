import assert from "node:assert/strict";
import { hkdfSync } from "node:crypto";
import { mock, test } from "node:test";
import { CONTROL, createSharedImage, type SharedImage } from "../image/shared.ts";
import { cookieSecret, renewCookieSecrets } from "./cookie-secret.ts";

const KEY = new Uint8Array(32).fill(7);
const DAY_MS = 86_400_000;

function secretAt(shared: SharedImage, word: number): Buffer {
  return Buffer.from(shared.control, word * 4, 16);
}

test("the secret of a day follows from the key and the day alone", () => {
  const expected = hkdfSync("sha256", KEY, "signpost dns cookie", "20000", 16);
  assert.deepEqual(cookieSecret(KEY, 20_000), new Uint8Array(expected));
  assert.notDeepEqual(cookieSecret(KEY, 20_001), cookieSecret(KEY, 20_000));
  assert.notDeepEqual(cookieSecret(new Uint8Array(32), 20_000), cookieSecret(KEY, 20_000));
});

test("at midnight UTC today's secret becomes yesterday's", () => {
  mock.timers.enable({ apis: ["setInterval"] });
  const shared = createSharedImage(1);
  let nowMs = 20_001 * DAY_MS - 1;
  {
    using _ = renewCookieSecrets(shared, KEY, () => nowMs);
    assert.deepEqual(secretAt(shared, CONTROL.COOKIE_SECRET), Buffer.from(cookieSecret(KEY, 20_000)));
    assert.deepEqual(secretAt(shared, CONTROL.COOKIE_SECRET_BEFORE), Buffer.from(cookieSecret(KEY, 19_999)));
    nowMs += 1;
    mock.timers.tick(60_000);
    assert.deepEqual(secretAt(shared, CONTROL.COOKIE_SECRET), Buffer.from(cookieSecret(KEY, 20_001)));
    assert.deepEqual(secretAt(shared, CONTROL.COOKIE_SECRET_BEFORE), Buffer.from(cookieSecret(KEY, 20_000)));
    assert.equal(new Int32Array(shared.control)[CONTROL.CLOCK_SECONDS], nowMs / 1000);
  }
  nowMs += DAY_MS;
  mock.timers.tick(60_000);
  assert.deepEqual(secretAt(shared, CONTROL.COOKIE_SECRET), Buffer.from(cookieSecret(KEY, 20_001)), "ended");
  mock.timers.reset();
});
