/**
 * When a block that was unlinked may be used again: once every reader that could hold a reference to it has left.
 * A block is tagged with the epoch in which it was unlinked; readers show the epoch in which they entered, 0 while outside.
 */
import { type Arena, release } from "./arena.ts";
import { CONTROL, EPOCH_STRIDE, EPOCHS_AT, MAX_THREADS } from "./shared.ts";

export type Retired = {
  references: number[];
  units: number[];
  epochs: number[];
};

export function createRetired(): Retired {
  return { references: [], units: [], epochs: [] };
}

export function retire(retired: Retired, control: Int32Array, reference: number, units: number): void {
  retired.references.push(reference);
  retired.units.push(units);
  retired.epochs.push(Atomics.load(control, CONTROL.EPOCH));
}

/** Begins a new epoch. It may wrap around; 0 is left out, because it marks a reader that is outside. */
export function advanceEpoch(control: Int32Array): void {
  // The prober may do so at the same time; whoever comes second has a new epoch already.
  const epoch = Atomics.load(control, CONTROL.EPOCH);
  const next = (epoch + 1) | 0;
  Atomics.compareExchange(control, CONTROL.EPOCH, epoch, next === 0 ? 1 : next);
}

/** True where no reader is left that entered in `epoch` or before. */
export function epochIsOver(control: Int32Array, epoch: number): boolean {
  for (let thread = 0; thread < MAX_THREADS; thread++) {
    const entered = Atomics.load(control, EPOCHS_AT + thread * EPOCH_STRIDE);
    if (entered !== 0 && ((entered - epoch) | 0) <= 0) return false;
  }
  return true;
}

/** Frees what no reader can hold any more. Returns the number of blocks that still wait. */
export function reclaim(retired: Retired, arena: Arena): number {
  const { control } = arena.view;
  const waiting = retired.references.length;
  if (waiting === 0) return 0;
  // Blocks retired in the current epoch become free only in a later one.
  if (retired.epochs[waiting - 1] === Atomics.load(control, CONTROL.EPOCH)) advanceEpoch(control);
  let done = 0;
  let known = 0;
  while (done < waiting) {
    const epoch = retired.epochs[done]!;
    if (epoch !== known && !epochIsOver(control, epoch)) break;
    known = epoch;
    release(arena, retired.references[done]!, retired.units[done]!);
    done++;
  }
  if (done > 0) {
    retired.references = retired.references.slice(done);
    retired.units = retired.units.slice(done);
    retired.epochs = retired.epochs.slice(done);
  }
  return waiting - done;
}
