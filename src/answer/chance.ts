/** Chance for answers: xoshiro128** (Blackman, Vigna), four words of state. It spreads load; it guards no secret. */
import { randomFillSync } from "node:crypto";

const CHANCE_WORDS = 4;

/** A state to begin with. One of zeros would stay so. */
export function createChance(): Int32Array {
  const state = randomFillSync(new Int32Array(CHANCE_WORDS));
  if (state.every((word) => word === 0)) state[0] = 1;
  return state;
}

/** A whole number from 0 to `bound` - 1; `bound` is at most 2^32. */
export function drawBelow(state: Int32Array, bound: number): number {
  const second = state[1]!;
  let word = Math.imul(second, 5);
  word = Math.imul((word << 7) | (word >>> 25), 9);
  const third = state[2]! ^ state[0]!;
  const fourth = state[3]! ^ second;
  state[1] = second ^ third;
  state[0] = state[0]! ^ fourth;
  state[2] = third ^ (second << 9);
  state[3] = (fourth << 11) | (fourth >>> 21);
  return Math.floor(((word >>> 0) * bound) / 2 ** 32);
}
