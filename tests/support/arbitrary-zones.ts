/** Small zones and questions by chance, over few names, so that they meet: cuts, wildcards, chains, overlapping zones. */
import fc from "fast-check";
import { isAtOrBelow, type NaiveRecord, type NaiveZone } from "./naive-resolver.ts";

const APEXES = ["t.", "a.t.", "b.a.t.", "u.", "b.u.", "."] as const;

const label = fc.constantFrom("a", "b", "*", "a", "b", "long-label-to-spell");

/** A name below one of the apexes, or one of no zone. */
export const arbitraryName: fc.Arbitrary<string> = fc
  .tuple(fc.array(label, { maxLength: 3 }), fc.constantFrom(...APEXES, "t.", "a.t.", "u.", "elsewhere."))
  .map(([labels, apex]) => [...labels, apex === "." ? "" : apex].join(".") || ".")
  .map((name) => (name.endsWith(".") ? name : `${name}.`));

export const QUESTION_TYPES = ["A", "AAAA", "CNAME", "NS", "MX", "TXT", "SRV", "SOA", "DS", "PTR"] as const;

const rdataByType = {
  A: fc.constantFrom("192.0.2.1", "192.0.2.2", "192.0.2.3"),
  AAAA: fc.constantFrom("2001:db8::1", "2001:db8::2"),
  TXT: fc.constantFrom('"x"', '"y"'),
  CNAME: arbitraryName,
  ALIAS: arbitraryName,
  NS: arbitraryName,
  PTR: arbitraryName,
  MX: arbitraryName.map((name) => `10 ${name}`),
  SRV: arbitraryName.map((name) => `1 2 3 ${name}`),
} as const;

/** Types and rdata, those with the most to go wrong more often. */
export const arbitraryTypeAndRdata: fc.Arbitrary<readonly [type: string, rdata: string]> = fc
  .constantFrom(
    "A",
    "A",
    "AAAA",
    "TXT",
    "CNAME",
    "CNAME",
    "CNAME",
    "ALIAS",
    "ALIAS",
    "NS",
    "NS",
    "PTR",
    "MX",
    "MX",
    "SRV",
  )
  .chain((type) => rdataByType[type as keyof typeof rdataByType].map((rdata) => [type, rdata] as const));

const arbitraryRecord = fc
  .tuple(arbitraryName, arbitraryTypeAndRdata, fc.integer({ min: 1, max: 9 }))
  .map(([owner, [type, rdata], ttl]): NaiveRecord => ({ owner, type, ttl, rdata }));

/** Whether a zone may hold the record beside those that it has: CNAME and ALIAS own their name. */
export function fits(zone: NaiveZone, record: NaiveRecord): boolean {
  const { owner, type, rdata } = record;
  if (!isAtOrBelow(owner, zone.apex)) return false;
  const others = zone.records.filter((other) => other.owner === owner);
  if (others.some((other) => other.type === type && other.rdata === rdata)) return false;
  const isApex = owner === zone.apex;
  if (type === "CNAME") return !isApex && others.length === 0;
  if (type === "ALIAS") return others.every((other) => isApex && (other.type === "SOA" || other.type === "NS"));
  if (others.some((other) => other.type === "CNAME")) return false;
  return !others.some((other) => other.type === "ALIAS") || (isApex && type === "NS");
}

export function soaOfZone(apex: string, ttl: number, minimum: number): NaiveRecord {
  const below = apex === "." ? "" : apex;
  return { owner: apex, type: "SOA", ttl, rdata: `a.${below} h.elsewhere. 1 2 3 4 ${minimum}` };
}

/** Zones that may lie in each other; every record is in each zone where it fits. */
export const arbitraryZones: fc.Arbitrary<readonly NaiveZone[]> = fc
  .tuple(
    fc.uniqueArray(fc.constantFrom(...APEXES), { minLength: 1, maxLength: 4 }),
    fc.array(arbitraryRecord, { maxLength: 40 }),
    fc.integer({ min: 1, max: 9 }),
  )
  .map(([apexes, records, minimum]) =>
    apexes.map((apex) => {
      const zone: NaiveZone & { records: NaiveRecord[] } = { apex, records: [soaOfZone(apex, 5, minimum)] };
      for (const record of records) if (fits(zone, record)) zone.records.push(record);
      return zone;
    }),
  );

/** Overrides of a few of the names; CNAME and ALIAS own theirs. */
export const arbitraryOverrides: fc.Arbitrary<readonly NaiveRecord[]> = fc
  .array(arbitraryRecord, { maxLength: 12 })
  .map((records) => {
    const taken: NaiveRecord[] = [];
    for (const record of records) if (isFree(taken, record)) taken.push(record);
    return taken;
  });

function isFree(taken: readonly NaiveRecord[], { owner, type, rdata }: NaiveRecord): boolean {
  const others = taken.filter((other) => other.owner === owner);
  if (others.some((other) => other.type === type && other.rdata === rdata)) return false;
  const owns = (each: string) => each === "CNAME" || each === "ALIAS";
  return others.length === 0 || !(owns(type) || others.some((other) => owns(other.type)));
}

export function zoneText({ records }: NaiveZone): string {
  return records.map(({ owner, type, ttl, rdata }) => `${owner} ${ttl} ${type} ${rdata}\n`).join("");
}
