/** What a transaction did, as other stores see it: which items it made, and what came to and left the digest. */
import type { Kind, NaturalKey } from "../model/objects.ts";
import { COUNTED_ALIAS, countedObject, countedZone } from "./counted.ts";
import { type Counted, type Delta, deltaOf } from "./digest-tree.ts";
import type { StoredEnvelope } from "./envelope.ts";
import { aliasRef, objectRef, zoneRef } from "./refs.ts";
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
  readonly deltas: readonly Delta[];
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
  readonly noteZone: (before: ZoneRow, after: ZoneRow) => void;
  /** A new one. `isMade`: by this node, for the merge of two creates. */
  readonly noteAlias: (kind: Kind, id: string, key: NaturalKey, isMade: boolean) => void;
  readonly noteForeign: (ref: ItemRef, before: Counted | undefined, after: Counted) => void;
  /** The registers of that zone are of this node's own making. */
  readonly noteMade: (zone: string) => void;
  /** In steps, because it may be much. */
  readonly finish: () => Generator<void, Traced>;
};

/** What only its hiding tells apart is the same to all others, but for when it leaves. Stamp zero says nothing of a version. */
function areSame(before: StoredEnvelope | undefined, after: StoredEnvelope | undefined): boolean {
  if (before === undefined || after === undefined) return before === after;
  if (before.envelope === after.envelope) return true;
  const { stamp, life } = before.envelope;
  return stamp !== STAMP_ZERO && stamp === after.envelope.stamp && life === after.envelope.life;
}

type Edit = { readonly ref: ItemRef; readonly before: Counted | undefined; readonly after: Counted | undefined };

export function makeTrace({ isLocal, wantsDeltas, seal }: TraceOptions): Trace {
  const edits: Edit[] = [];
  const made = new Set<ItemRef>();
  const floors: (readonly [string, Stamp])[] = [];
  const edit = (ref: ItemRef, before: Counted | undefined, after: Counted | undefined) => {
    if (isLocal) made.add(ref);
    if (wantsDeltas) edits.push({ ref, before, after });
  };
  return {
    noteObject: (kind, key, before, after) => {
      const isSame = areSame(before, after);
      if (isSame && before?.hidden?.untilMs === after?.hidden?.untilMs) return;
      const ref = objectRef(kind, (after ?? before)?.key ?? [], key);
      if (isLocal && !isSame) made.add(ref);
      if (!wantsDeltas) return;
      const counted = (stored: StoredEnvelope | undefined) => stored && countedObject(kind, stored, seal);
      edits.push({ ref, before: counted(before), after: counted(after) });
    },
    noteZone: (before, after) => {
      if (before.floor !== after.floor) floors.push([after.zone, after.floor]);
      edit(zoneRef(after.zone), countedZone(before), countedZone(after));
    },
    noteAlias: (kind, id, key, isMade) => {
      const ref = aliasRef(kind, id, key);
      if (isMade) made.add(ref);
      edit(ref, undefined, COUNTED_ALIAS);
    },
    noteForeign: (ref, before, after) => edit(ref, before, after),
    noteMade: (zone) => {
      made.add(zoneRef(zone));
    },
    finish: function* () {
      const deltas: Delta[] = [];
      for (const { ref, before, after } of edits) {
        if (before !== undefined) deltas.push(deltaOf(ref, before));
        if (after !== undefined) deltas.push(deltaOf(ref, after));
        yield;
      }
      return { made: [...made], deltas, floors };
    },
  };
}
