/** The prerequisites of a dynamic update (RFC 2136 section 3.2), held against what the zone has in effect. */
import { RCODE, RRTYPE } from "../dns/codes.ts";
import { rdataToText } from "../dns/rdata.ts";
import { typeToText } from "../dns/type-names.ts";
import type { UpdateFault, UpdatePrerequisite } from "../dns/update.ts";
import { RECORD_TYPES, type RecordType } from "../model/objects.ts";
import { soaRdata } from "../model/soa.ts";
import { readRdata, visibleSet, type WorkingName, type WorkingZone } from "./update-names.ts";

/** Why the update is not carried out. */
export type UpdateRefusal = { readonly rcode: number; readonly detail: string };

/** What the RRs of value-dependent prerequisites come to for one name and type. */
type WantedSet = { readonly name: WorkingName; readonly type: number; readonly rdatas: Uint8Array[] };

/** The first prerequisite that does not hold, in the order of section 3.2.5; undefined where all do. It yields between them. */
export function* failedPrerequisite(
  working: WorkingZone,
  serial: number,
  prerequisites: readonly (UpdatePrerequisite | UpdateFault)[],
): Generator<void, UpdateRefusal | undefined> {
  const wanted = new Map<string, WantedSet>();
  for (const prerequisite of prerequisites) {
    if (prerequisite.kind === "fault") return prerequisite;
    const name = working.at(prerequisite.name);
    if (prerequisite.kind === "rr") {
      const key = `${prerequisite.type} ${name.name}`;
      const set = wanted.get(key) ?? { name, type: prerequisite.type, rdatas: [] };
      set.rdatas.push(prerequisite.rdata);
      wanted.set(key, set);
      yield;
      continue;
    }
    const failed = failedPresence(name, prerequisite);
    if (failed !== undefined) return failed;
    yield;
  }
  for (const set of wanted.values()) {
    if (!isExactly(working, serial, set)) {
      return { rcode: RCODE.NXRRSET, detail: `${titleOf(set.name, set.type)} is another RRset` };
    }
  }
  return undefined;
}

type Presence = Exclude<UpdatePrerequisite, { readonly kind: "rr" }>;

function failedPresence(name: WorkingName, prerequisite: Presence): UpdateRefusal | undefined {
  switch (prerequisite.kind) {
    case "name-in-use":
      return isInUse(name) ? undefined : { rcode: RCODE.NXDOMAIN, detail: `${name.name} has no record` };
    case "name-not-in-use":
      return isInUse(name) ? { rcode: RCODE.YXDOMAIN, detail: `${name.name} has records` } : undefined;
    case "rrset-exists":
      return hasRRset(name, prerequisite.type)
        ? undefined
        : { rcode: RCODE.NXRRSET, detail: `there is no ${titleOf(name, prerequisite.type)}` };
    case "rrset-absent":
      return hasRRset(name, prerequisite.type)
        ? { rcode: RCODE.YXRRSET, detail: `there is ${titleOf(name, prerequisite.type)}` }
        : undefined;
  }
}

/** Section 2.4.4: some RR, so an empty non-terminal is not. An ALIAS is one here: no other record may come to its name. */
function isInUse(name: WorkingName): boolean {
  return name.isApex || RECORD_TYPES.some((type) => visibleSet(name, type) !== undefined);
}

function hasRRset(name: WorkingName, type: number): boolean {
  if (type === RRTYPE.SOA) return name.isApex;
  const held = heldType(type);
  return held !== undefined && visibleSet(name, held) !== undefined;
}

/** Section 3.2.3: the same RRs, whatever their order, and none besides. Case in names does not count. */
function isExactly({ zone }: WorkingZone, serial: number, { name, type, rdatas }: WantedSet): boolean {
  if (type === RRTYPE.SOA) {
    const text = rdataToText(type, soaRdata(zone.soa, serial)).toLowerCase();
    return name.isApex && rdatas.every((rdata) => rdataToText(type, rdata).toLowerCase() === text);
  }
  const held = heldType(type);
  const set = held === undefined ? undefined : visibleSet(name, held);
  if (held === undefined || set === undefined) return false;
  const keys = new Set<string>();
  for (const rdata of rdatas) {
    const read = readRdata(held, rdata);
    if (read.kind === "fault" || !set.values.has(read.key)) return false;
    keys.add(read.key);
  }
  return keys.size === set.values.size;
}

/** The type of a record with that number. ALIAS has none outside of this server. */
export function heldType(type: number): RecordType | undefined {
  return type === RRTYPE.ALIAS ? undefined : RECORD_TYPES.find((each) => RRTYPE[each] === type);
}

export function titleOf(name: WorkingName, type: number): string {
  return `${name.name} ${typeToText(type)}`;
}
