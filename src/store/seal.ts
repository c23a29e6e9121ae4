/**
 * Secrets at rest: each is sealed on its own with AES-256-GCM, bound to its kind, key and field, so that a sealed text
 * put elsewhere does not open. What they are sealed under is derived from the cluster's key, or the node's own.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { OperatorError } from "../base/errors.ts";
import type { Kind, NaturalKey } from "../model/objects.ts";
import { mapSecrets } from "../model/secrets.ts";

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CHECK_BYTES = 16;

export type Seal = {
  /** The body with its secrets sealed, and whether there were any. */
  readonly seal: (kind: Kind, key: NaturalKey, body: unknown) => { readonly body: unknown; readonly sealed: boolean };
  /** Throws OperatorError where a sealed text is damaged. */
  readonly open: (kind: Kind, key: NaturalKey, body: unknown) => unknown;
  /** Any text, bound to what it is for. */
  readonly sealText: (purpose: string, text: string) => string;
  /** Throws OperatorError where the sealed text is damaged. */
  readonly openText: (purpose: string, sealed: string) => string;
  /** Tells keys apart without telling anything about them. */
  readonly check: string;
};

export function makeSeal(secretKey: Uint8Array): Seal {
  const derive = (purpose: string, bytes: number) =>
    Buffer.from(hkdfSync("sha256", secretKey, "signpost store", purpose, bytes));
  const sealKey = derive("secrets at rest", KEY_BYTES);
  return {
    sealText: (purpose, text) => sealText(sealKey, Buffer.from(purpose), text),
    openText: (purpose, sealed) => openText(sealKey, Buffer.from(purpose), sealed),
    check: derive("key check", CHECK_BYTES).toString("base64"),
    seal: (kind, key, body) => {
      let sealed = false;
      const copy = mapSecrets(kind, body, (secret, pointer) => {
        sealed = true;
        return sealText(sealKey, associatedData(kind, key, pointer), JSON.stringify(secret));
      });
      return { body: copy, sealed };
    },
    open: (kind, key, body) =>
      mapSecrets(kind, body, (secret, pointer) =>
        JSON.parse(openText(sealKey, associatedData(kind, key, pointer), String(secret))),
      ),
  };
}

function associatedData(kind: Kind, key: NaturalKey, pointer: string): Buffer {
  return Buffer.from(JSON.stringify([kind, key, pointer]));
}

function sealText(sealKey: Buffer, data: Buffer, text: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", sealKey, nonce).setAAD(data);
  return Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]).toString("base64");
}

function openText(sealKey: Buffer, data: Buffer, sealed: string): string {
  const bytes = Buffer.from(sealed, "base64");
  const end = bytes.length - TAG_BYTES;
  try {
    const decipher = createDecipheriv("aes-256-gcm", sealKey, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    }).setAAD(data);
    decipher.setAuthTag(bytes.subarray(end));
    return decipher.update(bytes.subarray(NONCE_BYTES, end), undefined, "utf8") + decipher.final("utf8");
  } catch {
    throw new OperatorError("a secret in the store does not open: it is damaged, or was sealed under another key");
  }
}
