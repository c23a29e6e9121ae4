/**
 * The names that a dynamic update is about: what each has, in the form that the update works on, so that nothing is written
 * before all of it is decided.
 */
import { nameFromText } from "../dns/name.ts";
import { APEX, canonicalName, relativeTo } from "../model/names.ts";
import type { RecordType, RecordValue, ZoneBody } from "../model/objects.ts";
import { canonicalValue, fieldsFromRdata } from "../model/record-values.ts";
import type { Stored, StoreReader } from "../store/store.ts";

/** A value that is stored, or the rdata of one that is not. */
export type WorkingValue =
  | { readonly kind: "stored"; readonly value: RecordValue }
  | { readonly kind: "rdata"; readonly rdata: Uint8Array };

/** The RRs of one name and type. A record without values stands for no RR. */
export type WorkingSet = {
  readonly type: RecordType;
  readonly stored: Stored<"record"> | undefined;
  /** What it began with, and what it has come to, by what tells values apart; see `canonicalValue`. */
  readonly before: ReadonlyMap<string, WorkingValue>;
  values: Map<string, WorkingValue>;
  readonly ttlBefore: number;
  /** Seconds; 0: the zone's default. */
  ttl: number;
};

export type WorkingName = {
  /** Relative to the zone. */
  readonly name: string;
  readonly isApex: boolean;
  readonly sets: Map<RecordType, WorkingSet>;
};

export type WorkingZone = {
  readonly zone: ZoneBody;
  /** The name, which lies in the zone, as it is or as this update has changed it so far. */
  readonly at: (name: Uint8Array) => WorkingName;
  /** All that were asked for. */
  readonly all: () => Iterable<WorkingName>;
};

export function openWorkingZone(reader: Pick<StoreReader, "list">, zone: ZoneBody): WorkingZone {
  const names = new Map<string, WorkingName>();
  return {
    zone,
    at: (wire) => {
      const full = canonicalName(wire);
      const known = names.get(full);
      if (known !== undefined) return known;
      const name = relativeTo(full, zone.name);
      if (name === undefined) throw new Error(`${full} does not lie in ${zone.name}`);
      const made = readName(reader, zone, name);
      names.set(full, made);
      return made;
    },
    all: () => names.values(),
  };
}

function readName(reader: Pick<StoreReader, "list">, zone: ZoneBody, name: string): WorkingName {
  const sets = new Map<RecordType, WorkingSet>();
  // There are fewer types than this, so the list is whole.
  for (const stored of reader.list("record", { prefix: [zone.name, name], limit: 100 })) {
    const { type, ttl } = stored.body;
    const before = new Map(
      stored.body.values.map((value) => [canonicalValue(type, stored.body, value), { kind: "stored", value }] as const),
    );
    sets.set(type, { type, stored, before, values: new Map(before), ttlBefore: ttl, ttl });
  }
  const isApex = name === APEX;
  if (isApex && !sets.has("NS")) sets.set("NS", impliedNs(zone));
  return { name, isApex, sets };
}

/** A zone without NS is answered with the server of its SOA, and so to an update that is what it has. */
function impliedNs({ soa }: ZoneBody): WorkingSet {
  const mname = nameFromText(soa.mname);
  if (mname.kind === "error") throw new Error(`${JSON.stringify(soa.mname)} is stored and no name: ${mname.reason}`);
  const read = readRdata("NS", mname.name);
  const before = new Map(read.kind === "value" ? [[read.key, { kind: "rdata", rdata: mname.name } as const]] : []);
  return { type: "NS", stored: undefined, before, values: new Map(before), ttlBefore: 0, ttl: 0 };
}

export type ReadRdata =
  /** `key` tells it apart from other values of its type. */
  | { readonly kind: "value"; readonly key: string }
  /** No record can hold it. */
  | { readonly kind: "fault"; readonly detail: string };

export function readRdata(type: RecordType, rdata: Uint8Array): ReadRdata {
  const read = fieldsFromRdata(type, [rdata]);
  if (read.kind === "fault") return { kind: "fault", detail: read.detail };
  const [value] = read.fields.values;
  if (value === undefined) throw new Error("the rdata came to no value");
  return { kind: "value", key: canonicalValue(type, read.fields, value) };
}

/** Of the set that the name has of the type: undefined where it has no such RR. */
export function visibleSet(name: WorkingName, type: RecordType): WorkingSet | undefined {
  const set = name.sets.get(type);
  return set === undefined || set.values.size === 0 || set.stored?.shadowedBy !== undefined ? undefined : set;
}
