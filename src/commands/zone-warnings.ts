/** What is allowed in a zone and is seldom meant. */
import { relativeTo } from "../model/names.ts";
import type { ZoneBody } from "../model/objects.ts";
import type { StoreReader } from "../store/store.ts";

type WarningReader = Pick<StoreReader, "get">;

/** The first label of a canonical name with its dot; an escaped character is no end of a label. */
const FIRST_LABEL = /^(?:\\.|[^.\\])*\./;

/** The name and the names above it, the root left out: longest first. */
function namesUpward(name: string): readonly string[] {
  const names: string[] = [];
  for (let rest = name; rest !== "" && rest !== "."; rest = rest.replace(FIRST_LABEL, "")) names.push(rest);
  return names;
}

/** The hosted zone that a full name lies in, the longest one. */
function zoneAround(reader: WarningReader, name: string): string | undefined {
  return [...namesUpward(name), "."].find((candidate) => reader.get("zone", [candidate]) !== undefined);
}

/** Whether the zone has an address for a full name within it, its own or that of a wildcard above. */
function hasAddress(reader: WarningReader, zone: string, name: string): boolean {
  const relative = relativeTo(name, zone);
  if (relative === undefined) return false;
  const above = namesUpward(`${relative}.`).slice(1);
  // A wildcard covers names below it only: none is above the apex.
  const wildcards = relative === "@" ? [] : [...above.map((parent) => `*.${parent.slice(0, -1)}`), "*"];
  return [relative, ...wildcards].some((owner) =>
    ["A", "AAAA", "ALIAS"].some((type) => reader.get("record", [zone, owner, type]) !== undefined),
  );
}

/**
 * Sentences about the zone for the person who wrote it. The name server of the SOA is also the zone's synthesised NS: a
 * name of a hosted zone that has no address leads nobody anywhere.
 */
export function zoneWarnings(reader: WarningReader, zone: ZoneBody): readonly string[] {
  const mname = zone.soa.mname.toLowerCase();
  const home = zoneAround(reader, mname);
  if (home === undefined || hasAddress(reader, home, mname)) return [];
  return [`soa.mname ${mname} lies in the zone ${home} and has no address there: add an A or AAAA record for it`];
}
