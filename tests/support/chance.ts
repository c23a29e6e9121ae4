/** A stream of pseudo-random numbers that a seed fixes: the same seed gives the same zone, queries and packets. */
export type Chance = {
  /** An integer from 0 to `bound` - 1. */
  readonly below: (bound: number) => number;
  readonly pick: <Value>(values: readonly Value[]) => Value;
};

/** Mulberry32: one 32-bit word of state, good enough to spread tests, not for secrets. */
export function seededChance(seed: number): Chance {
  let state = seed | 0;
  const below = (bound: number): number => {
    state = (state + 0x6d2b79f5) | 0;
    let word = Math.imul(state ^ (state >>> 15), 1 | state);
    word = (word + Math.imul(word ^ (word >>> 7), 61 | word)) ^ word;
    return Math.floor((((word ^ (word >>> 14)) >>> 0) / 4294967296) * bound);
  };
  return {
    below,
    pick: (values) => {
      const value = values[below(values.length)];
      if (value === undefined) throw new Error("nothing to pick from");
      return value;
    },
  };
}
