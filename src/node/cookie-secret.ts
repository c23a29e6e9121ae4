import { hkdfSync } from "node:crypto";
import { CONTROL, type SharedImage } from "../image/shared.ts";

const DAY_MS = 86_400_000;
const SECRET_BYTES = 16;
const CHECK_MS = 1_000;

/**
 * The DNS cookie secret of a day (days since 1970, UTC): 16 bytes. Whoever has the key derives the same secret, so that
 * all servers behind one address accept each other's cookies (RFC 9018 section 5).
 */
export function cookieSecret(key: Uint8Array, day: number): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", key, "signpost dns cookie", String(day), SECRET_BYTES));
}

function writeSecret(control: Int32Array, at: number, secret: Uint8Array): void {
  const view = new DataView(secret.buffer, secret.byteOffset);
  for (let word = 0; word < SECRET_BYTES / 4; word++) control[at + word] = view.getInt32(word * 4, true);
}

/** Writes the secrets of the day of `nowMs` and of the day before into the image's control words. */
export function writeCookieSecrets(shared: SharedImage, key: Uint8Array, nowMs: number): void {
  const control = new Int32Array(shared.control);
  const day = Math.floor(nowMs / DAY_MS);
  writeSecret(control, CONTROL.COOKIE_SECRET_BEFORE, cookieSecret(key, day - 1));
  writeSecret(control, CONTROL.COOKIE_SECRET, cookieSecret(key, day));
}

/** Writes them now and whenever the day has changed, a clock that was set included; and every second the clock. */
export function renewCookieSecrets(shared: SharedImage, key: Uint8Array, now = Date.now): Disposable {
  const control = new Int32Array(shared.control);
  let day = Number.NaN;
  const renew = () => {
    const nowMs = now();
    Atomics.store(control, CONTROL.CLOCK_SECONDS, Math.floor(nowMs / 1000) | 0);
    if (Math.floor(nowMs / DAY_MS) === day) return;
    day = Math.floor(nowMs / DAY_MS);
    writeCookieSecrets(shared, key, nowMs);
  };
  renew();
  const timer = setInterval(renew, CHECK_MS);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
