/** Lets a writer die between two stores: everything that readers can see changes at an atomic store, and one of them never returns. */

class Died extends Error {}

const KINDS = ["store", "add", "sub"] as const;

/**
 * Runs `action` until its atomic store number `at` (from 0 on) and lets it die there: before that store where `at` is even,
 * behind it where it is odd, so that both sides of each are met. Returns false where the action came to its end before.
 */
export function dieAt(at: number, action: () => void): boolean {
  const stores = Math.floor(at / 2);
  const isBehind = at % 2 === 1;
  const originals = KINDS.map((kind) => ({ kind, original: Atomics[kind] }));
  let count = 0;
  for (const { kind, original } of originals) {
    const mortal = (words: Int32Array, index: number, value: number): number => {
      if (count++ !== stores) return original(words, index, value);
      if (isBehind) original(words, index, value);
      throw new Died();
    };
    Object.defineProperty(Atomics, kind, { value: mortal, configurable: true, writable: true });
  }
  try {
    action();
    return false;
  } catch (error) {
    if (error instanceof Died) return true;
    throw error;
  } finally {
    for (const { kind, original } of originals) {
      Object.defineProperty(Atomics, kind, { value: original, configurable: true, writable: true });
    }
  }
}
