/**
 * Incarnations go round, as serial numbers do (RFC 1982 section 3.2): there is one after each, so that nobody can be told of a
 * death that it cannot refute. Up to half of all, where memberlist's members stay, they are plain numbers.
 */

const HALF = 2 ** 31;

function distance(from: number, to: number): number {
  return (to - from) >>> 0;
}

/** Of two that are half of all apart neither is. */
export function isLater(incarnation: number, than: number): boolean {
  const ahead = distance(than, incarnation);
  return ahead > 0 && ahead < HALF;
}

/** One that is later than `heard`, and than `own` where that is later. */
export function laterThan(own: number, heard: number): number {
  return ((isLater(own, heard) ? own : heard) + 1) >>> 0;
}
