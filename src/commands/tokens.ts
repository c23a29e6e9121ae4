/**
 * The tokens of sessions: JWTs (RFC 7519, RFC 8725) signed with HMAC-SHA-256. Access and refresh tokens have keys of their
 * own, besides audiences and types of their own, so that none is ever taken for the other. Nodes with the same signing key
 * take each other's.
 */
import { createSecretKey, hash, hkdfSync, type KeyObject } from "node:crypto";
import { errors, type JWTPayload, jwtVerify, SignJWT } from "jose";
import { ACCESS_TOKENS_REMEMBERED_MAX } from "../model/limits.ts";
import { ACCESS_TOKEN_SECONDS, SESSION_IDLE_MS } from "../model/session.ts";

const ISSUER = "signpost";
const ALGORITHM = "HS256";
const KEY_BYTES = 32;

type Purpose = { readonly type: string; readonly audience: string; readonly seconds: number; readonly key: KeyObject };

export type Tokens = {
  readonly signAccess: (userId: string, sessionId: string) => Promise<string>;
  readonly signRefresh: (sessionId: string, generation: number) => Promise<string>;
  /** The session that the token names, or undefined: not ours, not of this kind, altered, or too old. */
  readonly readAccess: (token: string) => Promise<{ readonly sessionId: string } | undefined>;
  readonly readRefresh: (
    token: string,
  ) => Promise<{ readonly sessionId: string; readonly generation: number } | undefined>;
};

/** A key for one purpose out of the node's signing key (RFC 5869). */
export function deriveKey(signingKey: Uint8Array, purpose: string): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync("sha256", signingKey, "", `signpost ${purpose}`, KEY_BYTES)));
}

/** `now` gives milliseconds since 1970. */
export function createTokens(signingKey: Uint8Array, now: () => number): Tokens {
  const access: Purpose = {
    type: "at+jwt",
    audience: "signpost/api",
    seconds: ACCESS_TOKEN_SECONDS,
    key: deriveKey(signingKey, "access token"),
  };
  const refresh: Purpose = {
    type: "rt+jwt",
    audience: "signpost/refresh",
    seconds: SESSION_IDLE_MS / 1000,
    key: deriveKey(signingKey, "refresh token"),
  };
  const remembered = rememberTokens(now);
  return {
    signAccess: (userId, sessionId) => sign(access, { sub: userId, sid: sessionId }, now()),
    signRefresh: (sessionId, generation) => sign(refresh, { sid: sessionId, gen: generation }, now()),
    readAccess: async (token) => {
      const known = remembered.find(token);
      if (known !== undefined) return { sessionId: known };
      const { sid, exp } = (await read(access, token, now())) ?? {};
      if (typeof sid !== "string" || exp === undefined) return undefined;
      remembered.add(token, sid, exp);
      return { sessionId: sid };
    },
    readRefresh: async (token) => {
      const { sid, gen } = (await read(refresh, token, now())) ?? {};
      if (typeof sid !== "string" || typeof gen !== "number" || !Number.isSafeInteger(gen)) return undefined;
      return { sessionId: sid, generation: gen };
    },
  };
}

/**
 * Access tokens that were verified, by hash: each verification is two turns through the thread pool, and a client sends
 * the same token with every request. Whether its session still holds is asked of the store each time.
 */
function rememberTokens(now: () => number) {
  const sessions = new Map<string, { readonly sessionId: string; readonly expiresAtSeconds: number }>();
  return {
    find: (token: string): string | undefined => {
      const digest = hash("sha256", token, "base64");
      const found = sessions.get(digest);
      if (found === undefined || found.expiresAtSeconds > Math.floor(now() / 1000)) return found?.sessionId;
      sessions.delete(digest);
      return undefined;
    },
    add: (token: string, sessionId: string, expiresAtSeconds: number): void => {
      const [oldest] = sessions.keys();
      if (sessions.size >= ACCESS_TOKENS_REMEMBERED_MAX && oldest !== undefined) sessions.delete(oldest);
      sessions.set(hash("sha256", token, "base64"), { sessionId, expiresAtSeconds });
    },
  };
}

function sign({ type, audience, seconds, key }: Purpose, claims: JWTPayload, nowMs: number): Promise<string> {
  const issuedAt = Math.floor(nowMs / 1000);
  return new SignJWT(claims)
    .setProtectedHeader({ alg: ALGORITHM, typ: type })
    .setIssuer(ISSUER)
    .setAudience(audience)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + seconds)
    .sign(key);
}

async function read({ type, audience, key }: Purpose, token: string, nowMs: number): Promise<JWTPayload | undefined> {
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: [ALGORITHM],
      typ: type,
      issuer: ISSUER,
      audience,
      requiredClaims: ["exp", "iat", "sid"],
      currentDate: new Date(nowMs),
    });
    return payload;
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}
