/**
 * DNS cookies (RFC 7873) in the interoperable form of RFC 9018: the server cookie is version 1, three zero bytes, a
 * timestamp, and SipHash-2-4 over client cookie, those eight bytes and the client's address. Every server that knows the
 * secret makes and accepts the same cookies.
 */

/** A whole cookie, 24 bytes: client cookie, version and zeros, timestamp, hash. */
export const COOKIE_WORDS = 6;
const VERSION_WORD = 2;
const TIME_WORD = 3;
const HASH_WORD = 4;
/** A cookie is accepted up to this age (RFC 9018 section 4.3), and handed out again while it is younger than half of it. */
const OLDEST_SECONDS = 3600;
const RENEW_SECONDS = 1800;
const AHEAD_SECONDS = 300;

/**
 * Hashes that a thread remembers. A resolver sends one cookie with all its queries, for half an hour, and most queries of
 * a server come from few resolvers; comparing what was hashed costs a fifth of hashing it again.
 */
const REMEMBERED = 64;
/** Words of a remembered hash: the message's 8, the secret's 4, the address's length, the hash's 2, and one for alignment. */
const ENTRY = { SECRET: 8, LENGTH: 12, HASH: 13, WORDS: 16 } as const;
const MESSAGE_WORDS = 8;

/** Scratch of one thread. */
export type CookieMaker = {
  /** Message words, little-endian, as SipHash takes them, and the zeros that it wants behind them. */
  readonly words: Int32Array;
  readonly hash: Int32Array;
  readonly remembered: Int32Array;
};

export function createCookieMaker(): CookieMaker {
  return {
    words: new Int32Array(MESSAGE_WORDS + 2),
    hash: new Int32Array(2),
    remembered: new Int32Array(REMEMBERED * ENTRY.WORDS),
  };
}

/**
 * SipHash-2-4 (Aumasson, Bernstein) of `length` bytes in `words` (little-endian, zeros behind) under the key in
 * key[at, at + 4) (Int32, little-endian). The result's low and high word go to `out`.
 */
export function sipHash24(key: Int32Array, at: number, words: Int32Array, length: number, out: Int32Array): void {
  const k0 = key[at]!;
  const k1 = key[at + 1]!;
  const k2 = key[at + 2]!;
  const k3 = key[at + 3]!;
  let v0l = k0 ^ 0x70736575;
  let v0h = k1 ^ 0x736f6d65;
  let v1l = k2 ^ 0x6e646f6d;
  let v1h = k3 ^ 0x646f7261;
  let v2l = k0 ^ 0x6e657261;
  let v2h = k1 ^ 0x6c796765;
  let v3l = k2 ^ 0x79746573;
  let v3h = k3 ^ 0x74656462;
  const blocks = length >>> 3;
  // Two rounds after each block, then four after the last, which carries the length in its highest byte.
  for (let block = 0; block <= blocks + 1; block++) {
    let low = 0;
    let high = 0;
    let rounds = 2;
    if (block <= blocks) {
      low = words[block * 2]!;
      high = words[block * 2 + 1]!;
      if (block === blocks) high |= length << 24;
      v3l ^= low;
      v3h ^= high;
    } else {
      v2l ^= 0xff;
      rounds = 4;
    }
    for (; rounds > 0; rounds--) {
      // 64-bit sums of 32-bit halves: a sum that wrapped is below either summand. `Number` of a comparison compiles to no
      // branch: a carry is a coin toss that no processor predicts.
      v0l = (v0l + v1l) | 0;
      v0h = (v0h + v1h + Number(v0l >>> 0 < v1l >>> 0)) | 0;
      v2l = (v2l + v3l) | 0;
      v2h = (v2h + v3h + Number(v2l >>> 0 < v3l >>> 0)) | 0;
      let swap = (v1h << 13) | (v1l >>> 19);
      v1l = ((v1l << 13) | (v1h >>> 19)) ^ v0l;
      v1h = swap ^ v0h;
      swap = (v3h << 16) | (v3l >>> 16);
      v3l = ((v3l << 16) | (v3h >>> 16)) ^ v2l;
      v3h = swap ^ v2h;
      // v0 rotates by 32: its halves change places.
      swap = v0l;
      v0l = v0h;
      v0h = swap;
      v2l = (v2l + v1l) | 0;
      v2h = (v2h + v1h + Number(v2l >>> 0 < v1l >>> 0)) | 0;
      v0l = (v0l + v3l) | 0;
      v0h = (v0h + v3h + Number(v0l >>> 0 < v3l >>> 0)) | 0;
      swap = (v1h << 17) | (v1l >>> 15);
      v1l = ((v1l << 17) | (v1h >>> 15)) ^ v2l;
      v1h = swap ^ v2h;
      swap = (v3h << 21) | (v3l >>> 11);
      v3l = ((v3l << 21) | (v3h >>> 11)) ^ v0l;
      v3h = swap ^ v0h;
      swap = v2l;
      v2l = v2h;
      v2h = swap;
    }
    v0l ^= low;
    v0h ^= high;
  }
  out[0] = v0l ^ v1l ^ v2l ^ v3l;
  out[1] = v0h ^ v1h ^ v2h ^ v3h;
}

function word(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

/** Hashes the cookie's first 16 bytes, all that stands before its hash, and the address into maker.hash. */
function hashCookie(
  maker: CookieMaker,
  secrets: Int32Array,
  secretAt: number,
  cookie: Int32Array,
  address: Uint8Array,
  addressOffset: number,
  addressLength: number,
): void {
  const { words, hash, remembered } = maker;
  for (let index = 0; index < 4; index++) words[index] = cookie[index]!;
  for (let index = 0; index < addressLength >>> 2; index++) {
    words[4 + index] = word(address, addressOffset + index * 4);
  }
  for (let index = 4 + (addressLength >>> 2); index < MESSAGE_WORDS; index++) words[index] = 0;
  const mixed = Math.imul(words[0]! ^ words[1]! ^ words[4]! ^ words[7]!, 0x9e3779b1);
  const entry = (mixed >>> 26) * ENTRY.WORDS;
  if (isRemembered(remembered, entry, words, secrets, secretAt, addressLength)) {
    hash[0] = remembered[entry + ENTRY.HASH]!;
    hash[1] = remembered[entry + ENTRY.HASH + 1]!;
    return;
  }
  sipHash24(secrets, secretAt, words, 16 + addressLength, hash);
  for (let index = 0; index < MESSAGE_WORDS; index++) remembered[entry + index] = words[index]!;
  for (let index = 0; index < 4; index++) remembered[entry + ENTRY.SECRET + index] = secrets[secretAt + index]!;
  remembered[entry + ENTRY.LENGTH] = addressLength;
  remembered[entry + ENTRY.HASH] = hash[0]!;
  remembered[entry + ENTRY.HASH + 1] = hash[1]!;
}

/** Whether an entry is the hash of just these words under this secret. An entry of length 0 is nobody's. */
function isRemembered(
  remembered: Int32Array,
  entry: number,
  words: Int32Array,
  secrets: Int32Array,
  secretAt: number,
  addressLength: number,
): boolean {
  if (remembered[entry + ENTRY.LENGTH] !== addressLength) return false;
  let difference = 0;
  for (let index = 0; index < 4; index++) {
    difference |= remembered[entry + ENTRY.SECRET + index]! ^ secrets[secretAt + index]!;
    difference |= remembered[entry + index]! ^ words[index]!;
    difference |= remembered[entry + 4 + index]! ^ words[4 + index]!;
  }
  return difference === 0;
}

/**
 * Turns the COOKIE option a client sent, `length` bytes of it in little-endian words, into the one to answer with, in
 * place: 24 bytes. A cookie of ours that is still young stays. `secretAt` and `secretBeforeAt` are where today's and
 * yesterday's secret stand in `secrets`; `now` is in seconds since 1970. Returns true where the client proved that it has
 * its address.
 */
export function answerCookie(
  maker: CookieMaker,
  secrets: Int32Array,
  secretAt: number,
  secretBeforeAt: number,
  cookie: Int32Array,
  length: number,
  address: Uint8Array,
  addressOffset: number,
  addressLength: number,
  now: number,
): boolean {
  let proved = false;
  if (length === COOKIE_WORDS * 4 && (cookie[VERSION_WORD]! & 0xff) === 1) {
    const age = (now - swapBytes(cookie[TIME_WORD]!)) | 0;
    if (age < OLDEST_SECONDS && age > -AHEAD_SECONDS) {
      hashCookie(maker, secrets, secretAt, cookie, address, addressOffset, addressLength);
      proved = isHash(maker.hash, cookie);
      if (proved && age < RENEW_SECONDS) return true;
      if (!proved) {
        hashCookie(maker, secrets, secretBeforeAt, cookie, address, addressOffset, addressLength);
        proved = isHash(maker.hash, cookie);
      }
    }
  }
  cookie[VERSION_WORD] = 1;
  cookie[TIME_WORD] = swapBytes(now);
  hashCookie(maker, secrets, secretAt, cookie, address, addressOffset, addressLength);
  cookie[HASH_WORD] = maker.hash[0]!;
  cookie[HASH_WORD + 1] = maker.hash[1]!;
  return proved;
}

/** A little-endian word of what stands in network order, and the other way round. */
function swapBytes(value: number): number {
  return (value << 24) | ((value & 0xff00) << 8) | ((value >>> 8) & 0xff00) | (value >>> 24);
}

/** Compares without a branch that depends on where the difference is. */
function isHash(hash: Int32Array, cookie: Int32Array): boolean {
  return ((hash[0]! ^ cookie[HASH_WORD]!) | (hash[1]! ^ cookie[HASH_WORD + 1]!)) === 0;
}
