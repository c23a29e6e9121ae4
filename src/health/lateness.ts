/** How late probes began in the last minute: a histogram of counts, in slices of ten seconds that make way one by one. */

const SLICES = 6;
const SLICE_MS = 10_000;
/** Eight bins for every doubling: a figure is at most a tenth too high. */
const BINS_A_DOUBLING = 8;
const BINS = 20 * BINS_A_DOUBLING;

export type Lateness = { readonly slices: readonly Uint32Array[]; newest: number };

export function createLateness(): Lateness {
  return { slices: Array.from({ length: SLICES }, () => new Uint32Array(BINS)), newest: -1 };
}

export function noteLateness(lateness: Lateness, nowMs: number, lateMs: number): void {
  const slice = turnTo(lateness, nowMs);
  const bin = Math.min(Math.floor(Math.log2(Math.max(lateMs, 0) + 1) * BINS_A_DOUBLING), BINS - 1);
  slice[bin]! += 1;
}

/** The lateness that `share` of the probes of the last minute did not exceed, milliseconds; 0 where none has run. */
export function latenessAt(lateness: Lateness, nowMs: number, share: number): number {
  turnTo(lateness, nowMs);
  const counts = Array.from({ length: BINS }, (_, bin) => lateness.slices.reduce((sum, slice) => sum + slice[bin]!, 0));
  const wanted = counts.reduce((sum, count) => sum + count, 0) * share;
  let seen = 0;
  for (const [bin, count] of counts.entries()) {
    seen += count;
    if (count > 0 && seen >= wanted) return 2 ** ((bin + 1) / BINS_A_DOUBLING) - 1;
  }
  return 0;
}

/** The slice of now, with those emptied that time has passed over. */
function turnTo(lateness: Lateness, nowMs: number): Uint32Array {
  const newest = Math.floor(nowMs / SLICE_MS);
  const first = Math.max(lateness.newest + 1, newest - SLICES + 1);
  for (let passed = first; passed <= newest; passed++) lateness.slices[passed % SLICES]!.fill(0);
  lateness.newest = Math.max(lateness.newest, newest);
  return lateness.slices[lateness.newest % SLICES]!;
}
