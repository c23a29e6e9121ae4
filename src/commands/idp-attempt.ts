/**
 * What a sign-in through the identity provider has to remember until the browser is back: sealed, in the browser's own
 * cookie, so that no node keeps it and any node can take the browser back.
 */
import type { KeyObject } from "node:crypto";
import { EncryptJWT, errors, jwtDecrypt } from "jose";
import { IDP_SIGN_IN_SECONDS } from "../model/limits.ts";
import type { Attempt } from "./idp-provider.ts";

export type SealedAttempt = Attempt & { readonly returnTo: string };

const AUDIENCE = "signpost/sign-in-attempt";
const KEY_MANAGEMENT = "dir";
const CIPHER = "A256GCM";

/** Compact JWE (RFC 7516) under AES-256-GCM that holds for IDP_SIGN_IN_SECONDS. */
export function seal(
  key: KeyObject,
  { state, nonce, verifier, returnTo }: SealedAttempt,
  nowMs: number,
): Promise<string> {
  const issuedAt = Math.floor(nowMs / 1000);
  return new EncryptJWT({ state, nonce, verifier, returnTo })
    .setProtectedHeader({ alg: KEY_MANAGEMENT, enc: CIPHER })
    .setAudience(AUDIENCE)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + IDP_SIGN_IN_SECONDS)
    .encrypt(key);
}

/** The attempt, or undefined: not sealed by this key, altered, or too old. */
export async function unseal(key: KeyObject, sealed: string, nowMs: number): Promise<SealedAttempt | undefined> {
  try {
    const { payload } = await jwtDecrypt(sealed, key, {
      keyManagementAlgorithms: [KEY_MANAGEMENT],
      contentEncryptionAlgorithms: [CIPHER],
      audience: AUDIENCE,
      requiredClaims: ["exp"],
      currentDate: new Date(nowMs),
    });
    const { state, nonce, verifier, returnTo } = payload;
    const isWhole = [state, nonce, verifier, returnTo].every((part) => typeof part === "string");
    return isWhole
      ? { state: String(state), nonce: String(nonce), verifier: String(verifier), returnTo: String(returnTo) }
      : undefined;
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}
