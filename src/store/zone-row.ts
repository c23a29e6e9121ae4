/**
 * What the store keeps of a zone besides its object: registers that merge by maximum, each on its own. They outlive the
 * zone. A register belongs to a life of the zone: the floor at its creation, "" before the first deletion.
 */
import { compareText } from "./envelope.ts";
import { STAMP_ZERO } from "./stamp.ts";
import type { Stamp } from "./store.ts";
import { collectionMs } from "./tombstones.ts";

/** The deletion that raised the floor: what it knew of the life that it ended. */
export type Ending = {
  readonly life: Stamp;
  /** Of the zone's last version that it had seen. */
  readonly zoneStamp: Stamp;
  /** Of the records that it ended. */
  readonly digest: string;
};
export type ZoneRow = {
  readonly zone: string;
  readonly floor: Stamp;
  readonly ending?: Ending;
  readonly serial?: { readonly life: Stamp; readonly serial: number };
  readonly activation?: { readonly life: Stamp; readonly state: "pending" | "active" };
  /** Worked out: whether the zone's object is alive, above the floor. */
  readonly alive: boolean;
};

export function freshZoneRow(zone: string): ZoneRow {
  return { zone, floor: STAMP_ZERO, alive: false };
}

/** Whether the zone is dead and its tombstone has left, here or elsewhere: nobody is told of its registers any more. */
export function isForgotten({ alive, floor }: ZoneRow, nowMs: number): boolean {
  return !alive && collectionMs(floor) <= nowMs;
}

/** Of the zone's present life: what was said of an earlier one says nothing of it. Undefined where there is no such zone. */
export function stateOfZone({ alive, floor, activation }: ZoneRow): "pending" | "active" | undefined {
  if (!alive) return undefined;
  return activation?.life === floor ? activation.state : "pending";
}

export type Serial = NonNullable<ZoneRow["serial"]>;
export type Activation = NonNullable<ZoneRow["activation"]>;

export function greaterSerial(left: Serial | undefined, right: Serial): Serial {
  if (left === undefined) return right;
  return (compareText(left.life, right.life) || left.serial - right.serial) >= 0 ? left : right;
}

/** `active` wins over `pending` within a life. */
export function greaterActivation(left: Activation | undefined, right: Activation): Activation {
  if (left === undefined) return right;
  const order = compareText(left.life, right.life);
  if (order !== 0) return order > 0 ? left : right;
  return left.state === "active" ? left : right;
}

export const SERIAL_MAX = 0xffff_ffff;
export const IMPORTED_SERIAL_MAX = 4_000_000_000;

/** The serial after a change: the time, or one more where the clock has not passed the last one. */
export function raisedSerial(current: number | undefined, nowMs: number): number {
  return Math.min(Math.max((current ?? 0) + 1, Math.floor(nowMs / 1000)), SERIAL_MAX);
}
