/** Lets a writer die between two stores: everything that readers can see changes at an atomic store, and one of them never returns. */

class Died extends Error {}

const KINDS = ["store", "add", "sub"] as const;

/** Every atomic store of `action` goes through `store`, which is given the real one. */
function withStores<T>(store: (real: () => number) => number, action: () => T): T {
  const originals = KINDS.map((kind) => ({ kind, original: Atomics[kind] }));
  for (const { kind, original } of originals) {
    const replaced = (words: Int32Array, index: number, value: number) => store(() => original(words, index, value));
    Object.defineProperty(Atomics, kind, { value: replaced, configurable: true, writable: true });
  }
  try {
    return action();
  } finally {
    for (const { kind, original } of originals) {
      Object.defineProperty(Atomics, kind, { value: original, configurable: true, writable: true });
    }
  }
}

/**
 * Runs `action` until its atomic store number `at` (from 0 on) and lets it die there: before that store where `at` is even,
 * behind it where it is odd, so that both sides of each are met. Returns false where the action came to its end before.
 */
export function dieAt(at: number, action: () => void): boolean {
  const stores = Math.floor(at / 2);
  const isBehind = at % 2 === 1;
  let count = 0;
  const mortal = (real: () => number): number => {
    if (count++ !== stores) return real();
    if (isBehind) real();
    throw new Died();
  };
  try {
    withStores(mortal, action);
    return false;
  } catch (error) {
    if (error instanceof Died) return true;
    throw error;
  }
}

/**
 * The first death, numbered as for `dieAt`, that would leave behind what `isWanted` looks for; undefined where none does.
 * `action` runs to its end once, and `isWanted` is asked on both sides of each store: it must store nothing.
 */
export function firstDeath(action: () => void, isWanted: () => boolean): number | undefined {
  let count = 0;
  let found: number | undefined;
  const look = () => {
    if (found === undefined && isWanted()) found = count;
    count++;
  };
  withStores((real) => {
    look();
    const value = real();
    look();
    return value;
  }, action);
  return found;
}
