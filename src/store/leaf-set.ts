/** What a group of versions adds to the leaves of a digest: few bytes each, for a node has as many groups as zones. */

export type LeafSet = {
  /** An exclusive or: what is mixed in twice is out again. */
  readonly mix: (leaf: number, high: number, low: number) => void;
  readonly forEach: (visit: (leaf: number, high: number, low: number) => void) => void;
};

/** Leaf + 1, or 0 where nothing is, and the two halves. */
const WORDS = 3;
const SLOTS_FIRST = 4;

/** Open addressing; there are 65,536 leaves, and so an end of growth. */
export function makeLeafSet(): LeafSet {
  let slots = new Int32Array(SLOTS_FIRST * WORDS);
  let count = 0;
  const place = (leaf: number): number => {
    const mask = slots.length / WORDS - 1;
    for (let at = Math.imul(leaf, 40503) & mask; ; at = (at + 1) & mask) {
      const head = slots[at * WORDS];
      if (head === 0 || head === leaf + 1) return at * WORDS;
    }
  };
  const forEach = (visit: (leaf: number, high: number, low: number) => void) => {
    const all = slots;
    for (let at = 0; at < all.length; at += WORDS) {
      if (all[at] !== 0) visit(all[at]! - 1, all[at + 1]!, all[at + 2]!);
    }
  };
  const put = (leaf: number, high: number, low: number) => {
    const at = place(leaf);
    if (slots[at] === 0) {
      slots[at] = leaf + 1;
      count++;
    }
    slots[at + 1]! ^= high;
    slots[at + 2]! ^= low;
  };
  const grow = () => {
    const old = slots;
    slots = new Int32Array(old.length * 2);
    count = 0;
    for (let at = 0; at < old.length; at += WORDS) if (old[at] !== 0) put(old[at]! - 1, old[at + 1]!, old[at + 2]!);
  };
  return {
    forEach,
    mix: (leaf, high, low) => {
      if ((count + 1) * 4 > (slots.length / WORDS) * 3) grow();
      put(leaf, high, low);
    },
  };
}
