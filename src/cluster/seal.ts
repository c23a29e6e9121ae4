/**
 * Packets and frames under the cluster's key, as memberlist seals them: AES-GCM with a random nonce of 12 bytes and a tag of 16,
 * behind one byte of version. Nonces are random and the key stays (NIST SP 800-38D section 8.3), so only membership goes
 * this way, at a few messages a second; state goes over TLS.
 */
import { type CipherGCMTypes, createCipheriv, createDecipheriv, createSecretKey, randomBytes } from "node:crypto";

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const BLOCK_BYTES = 16;

/** Version 0 pads the plain text to whole blocks (RFC 5652 section 6.3); 1 does not, and is what is written. */
const VERSION_PADDED = 0;
const VERSION = 1;

/** What sealing adds. */
export const SEAL_BYTES = 1 + NONCE_BYTES + TAG_BYTES;

const ALGORITHMS: Readonly<Record<number, CipherGCMTypes>> = {
  16: "aes-128-gcm",
  24: "aes-192-gcm",
  32: "aes-256-gcm",
};

export type Sealer = {
  readonly seal: (plain: Uint8Array, additional: Uint8Array) => Uint8Array;
  /** Undefined where it was not sealed with this key and this additional data, or is not whole. */
  readonly open: (sealed: Uint8Array, additional: Uint8Array) => Uint8Array | undefined;
};

/** What is left without the padding of version 0; undefined where there is none. */
function unpadded(plain: Uint8Array): Uint8Array | undefined {
  const count = plain.at(-1) ?? 0;
  if (count === 0 || count > BLOCK_BYTES || plain.length % BLOCK_BYTES !== 0) return undefined;
  const isPadding = plain.subarray(plain.length - count).every((byte) => byte === count);
  return isPadding ? plain.subarray(0, plain.length - count) : undefined;
}

/** `key`: 16, 24 or 32 bytes; throws RangeError for any other. */
export function createSealer(key: Uint8Array): Sealer {
  const algorithm = ALGORITHMS[key.length];
  if (algorithm === undefined) throw new RangeError(`a key of 16, 24 or 32 bytes is needed, not of ${key.length}`);
  const secret = createSecretKey(key);
  return {
    seal: (plain, additional) => {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(algorithm, secret, nonce);
      cipher.setAAD(additional);
      const text = cipher.update(plain);
      cipher.final();
      return Buffer.concat([Uint8Array.of(VERSION), nonce, text, cipher.getAuthTag()]);
    },
    open: (sealed, additional) => {
      const version = sealed[0];
      if (sealed.length < SEAL_BYTES || (version !== VERSION && version !== VERSION_PADDED)) return undefined;
      const textAt = 1 + NONCE_BYTES;
      const tagAt = sealed.length - TAG_BYTES;
      const decipher = createDecipheriv(algorithm, secret, sealed.subarray(1, textAt), { authTagLength: TAG_BYTES });
      decipher.setAAD(additional);
      decipher.setAuthTag(sealed.subarray(tagAt));
      const plain = decipher.update(sealed.subarray(textAt, tagAt));
      try {
        decipher.final();
      } catch {
        return undefined;
      }
      return version === VERSION_PADDED ? unpadded(plain) : plain;
    },
  };
}
