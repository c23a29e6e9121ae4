/** Lifeguard's local health: how far this node should doubt itself before it doubts others. */
const SCORE_MAX = 7;

export type LocalHealth = {
  /** 0 (good) to 7. */
  readonly score: () => number;
  /** Worse by a positive number, better by a negative one. */
  readonly change: (by: number) => void;
  /** A time, the longer the worse one's own health is. */
  readonly stretched: (ms: number) => number;
};

export function createLocalHealth(): LocalHealth {
  let score = 0;
  return {
    score: () => score,
    change: (by) => {
      score = Math.min(SCORE_MAX, Math.max(0, score + by));
    },
    stretched: (ms) => ms * (score + 1),
  };
}
