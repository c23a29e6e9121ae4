/** Lives of zones that have ended and whose records are still to be removed. */
import { type Database, TABLE } from "./database.ts";
import { textKey } from "./objects.ts";
import type { Stamp } from "./store.ts";

export type Sweep = {
  readonly zone: string;
  readonly life: Stamp;
  /** Whether there may be records that the deletion had not seen; they go to the journal. */
  readonly hasUnseen: boolean;
};

export function enlistSweep(database: Database, sweep: Sweep): void {
  database.put(TABLE.SWEEP, textKey(sweep.zone, sweep.life), JSON.stringify(sweep));
}

export function strikeSweep(database: Database, { zone, life }: Sweep): void {
  database.remove(TABLE.SWEEP, textKey(zone, life));
}

export function hasUnseen(database: Database, zone: string, life: Stamp): boolean {
  const text = database.get(TABLE.SWEEP, textKey(zone, life));
  if (text === undefined) return false;
  const sweep: Sweep = JSON.parse(text);
  return sweep.hasUnseen;
}

/** Whether records of ended lives of that zone are still to be removed. */
export function isSwept(database: Database, zone: string): boolean {
  return database.range(TABLE.SWEEP, { prefix: textKey(zone), limit: 1 }).length > 0;
}

/** The lives that have ended of the first zone that has any. */
export function nextSweeps(database: Database): readonly Sweep[] {
  const rows = database.range(TABLE.SWEEP, { prefix: new Uint8Array(), limit: SWEEPS_READ });
  const sweeps: Sweep[] = rows.map(({ value }) => JSON.parse(value));
  return sweeps.filter(({ zone }) => zone === sweeps[0]?.zone);
}
const SWEEPS_READ = 100;
