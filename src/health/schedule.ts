/** When a probe runs: pure arithmetic over milliseconds of one clock. */

/** FNV-1a with a last stir, 32 bits: spreads keys that differ in one character only. */
export function hashText(text: string, seed: number): number {
  let hash = (0x811c9dc5 ^ seed) >>> 0;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d) >>> 0;
  hash = Math.imul(hash ^ (hash >>> 15), 0x846ca68b) >>> 0;
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** The place of a probe within its interval, [0, intervalMs): the same in every process of this node, and another on others. */
export function phaseOf(key: string, seed: number, intervalMs: number): number {
  return hashText(key, seed) % intervalMs;
}

/** The first moment of the phase at or after `fromMs`. */
export function phasePoint(fromMs: number, phaseMs: number, intervalMs: number): number {
  return phaseMs + Math.ceil((fromMs - phaseMs) / intervalMs) * intervalMs;
}

/**
 * The first moment after `nowMs` that lies whole intervals behind `dueMs`, or the one before it where that is over for less than
 * a quarter of an interval: a run whose timeout is the whole interval ends just after the next moment, and a backend that hangs is
 * found as fast as one that refuses. What was missed for longer is not caught up.
 */
export function nextDue(dueMs: number, nowMs: number, intervalMs: number): number {
  return dueMs + Math.max(1, Math.floor((nowMs - dueMs) / intervalMs + 0.75)) * intervalMs;
}
