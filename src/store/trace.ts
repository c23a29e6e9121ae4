/** What a transaction did, as other stores see it: which items it made, and what came to and left the digest. */
import type { Kind, NaturalKey } from "../model/objects.ts";
import { COUNTED_ALIAS, countedObject, countedZone, dueMsOf } from "./counted.ts";
import { TABLE } from "./database.ts";
import { type Counted, type DeltaRun, type HashedVersion, hashVersion } from "./digest-tree.ts";
import type { StoredEnvelope } from "./envelope.ts";
import type { KeyText } from "./overlay.ts";
import type { PlainRow } from "./plain-row.ts";
import { aliasRef, objectRef, rowRef, zoneRef } from "./refs.ts";
import type { ItemRef } from "./replica.ts";
import type { Seal } from "./seal.ts";
import { STAMP_ZERO } from "./stamp.ts";
import type { Stamp } from "./store.ts";
import type { ZoneRow } from "./zone-row.ts";

export type TraceOptions = {
  /** A local transaction made all that it wrote. */
  readonly isLocal: boolean;
  readonly wantsDeltas: boolean;
  readonly seal: Seal;
};

export type Traced = {
  readonly made: readonly ItemRef[];
  readonly deltas: readonly DeltaRun[];
  /** Zones whose floor changed, with their present one. */
  readonly floors: readonly (readonly [string, Stamp])[];
};
export const NOTHING_TRACED: Traced = { made: [], deltas: [], floors: [] };

export type Trace = {
  readonly noteObject: (
    kind: Kind,
    key: Uint8Array,
    before: StoredEnvelope | undefined,
    after: StoredEnvelope | undefined,
  ) => void;
  /** A plain record of another store that lies where nothing was; its stamp is not zero. */
  readonly noteRow: (key: KeyText, row: Pick<PlainRow, "zone" | "life" | "stamp">) => void;
  readonly noteZone: (before: ZoneRow, after: ZoneRow) => void;
  /** A new one. `isMade`: by this node, for the merge of two creates. */
  readonly noteAlias: (kind: Kind, id: string, key: NaturalKey, isMade: boolean) => void;
  readonly noteForeign: (ref: ItemRef, before: Counted | undefined, after: Counted) => void;
  /** The registers of that zone are of this node's own making. */
  readonly noteMade: (zone: string) => void;
  readonly traced: () => Traced;
};

/** Stamp zero says nothing of a version. */
function areSame(before: StoredEnvelope | undefined, after: StoredEnvelope | undefined): boolean {
  if (before === undefined || after === undefined) return before === after;
  if (before.envelope === after.envelope) return true;
  const { stamp, life } = before.envelope;
  return stamp !== STAMP_ZERO && stamp === after.envelope.stamp && life === after.envelope.life;
}

export function makeTrace({ isLocal, wantsDeltas, seal }: TraceOptions): Trace {
  const deltas: DeltaRun[] = [];
  const made: ItemRef[] = [];
  const floors: (readonly [string, Stamp])[] = [];
  const hashed: HashedVersion = { leaf: 0, high: 0, low: 0 };
  let run: DeltaRun | undefined;
  const enter = (ref: ItemRef, { zone, life, dueMs }: Counted) => {
    if (run === undefined || run.zone !== zone || run.life !== life || run.dueMs !== dueMs) {
      run = { zone, life, dueMs, words: [], refs: [] };
      deltas.push(run);
    }
    run.words.push(hashed.leaf, hashed.high, hashed.low);
    run.refs.push(ref);
  };
  const change = (ref: ItemRef, before: Counted | undefined, after: Counted | undefined) => {
    if (!wantsDeltas) return;
    for (const counted of [before, after]) {
      if (counted === undefined) continue;
      hashVersion(hashed, ref, counted.version);
      enter(ref, counted);
    }
  };
  const changeObject = (kind: Kind, ref: ItemRef, stored: StoredEnvelope) => {
    const counted = countedObject(kind, stored, seal);
    hashVersion(hashed, ref, counted.version);
    enter(ref, counted);
  };
  return {
    noteObject: (kind, key, before, after) => {
      if (!isLocal && !wantsDeltas) return;
      // Of this transaction already, or the same version with something else about it.
      const isNoted = areSame(before, after);
      // What only its hiding tells apart is the same to all others, but for when it leaves.
      if (isNoted && before !== undefined && after !== undefined && dueMsOf(before) === dueMsOf(after)) return;
      const ref = objectRef(kind, (after ?? before)?.key ?? [], key);
      if (isLocal && !isNoted) made.push(ref);
      if (!wantsDeltas) return;
      if (before !== undefined) changeObject(kind, ref, before);
      if (after !== undefined) changeObject(kind, ref, after);
    },
    noteRow: (key, { zone, life, stamp }) => {
      if (!wantsDeltas) return;
      const ref = rowRef(TABLE.OBJECT, key);
      hashVersion(hashed, ref, stamp);
      enter(ref, { zone, life, dueMs: 0, version: stamp });
    },
    noteZone: (before, after) => {
      if (before.floor !== after.floor) floors.push([after.zone, after.floor]);
      const ref = zoneRef(after.zone);
      if (isLocal) made.push(ref);
      change(ref, countedZone(before), countedZone(after));
    },
    noteAlias: (kind, id, key, isMade) => {
      const ref = aliasRef(kind, id, key);
      if (isMade) made.push(ref);
      change(ref, undefined, COUNTED_ALIAS);
    },
    noteForeign: change,
    noteMade: (zone) => {
      made.push(zoneRef(zone));
    },
    traced: () => ({ made, deltas, floors }),
  };
}
