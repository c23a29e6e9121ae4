/**
 * An authoritative server in plain maps, straight from RFC 1034 section 4.3.2 and RFC 4592, that the real one is held
 * against. It gives the lines that `answerLines` of the zone lab gives. Names are lower-case text, types mnemonics.
 */

export type NaiveRecord = {
  readonly owner: string;
  readonly type: string;
  readonly ttl: number;
  readonly rdata: string;
};

export type NaiveZone = {
  readonly apex: string;
  /** In the order of the file, without duplicates; an RRset has the TTL of its first record. */
  readonly records: readonly NaiveRecord[];
};

/** Overrides are a server's, not a zone's: full names, each with all that it has. */
export type NaiveOverrides = readonly NaiveRecord[];

type World = { readonly zones: readonly NaiveZone[]; readonly overrides: NaiveOverrides };

type Found =
  | { readonly kind: "records"; readonly records: readonly NaiveRecord[] }
  | { readonly kind: "cut"; readonly cut: string; readonly records: readonly NaiveRecord[] }
  | { readonly kind: "nothing" };

type Draft = { status: string; aa: boolean; answer: string[]; authority: string[]; additional: string[] };

const LINKS_MAX = 16;
const ADDRESS_TYPES = ["A", "AAAA"];

function labelsOf(name: string): readonly string[] {
  return name === "." ? [] : name.slice(0, -1).split(".");
}

function nameOf(labels: readonly string[]): string {
  return `${labels.join(".")}.`;
}

/** The name itself, then its ancestors up to the root. */
function suffixesOf(name: string): readonly string[] {
  const labels = labelsOf(name);
  return Array.from({ length: labels.length + 1 }, (_, index) => nameOf(labels.slice(index)));
}

export function isAtOrBelow(name: string, ancestor: string): boolean {
  return suffixesOf(name).includes(ancestor);
}

function zoneFor(zones: readonly NaiveZone[], name: string): NaiveZone | undefined {
  for (const suffix of suffixesOf(name)) {
    const zone = zones.find(({ apex }) => apex === suffix);
    if (zone !== undefined) return zone;
  }
  return undefined;
}

/** DS belongs to the parent's side of a cut (RFC 4035 section 3.1.4.1). */
function zoneForQuestion(zones: readonly NaiveZone[], name: string, type: string): NaiveZone | undefined {
  const zone = zoneFor(zones, name);
  if (type !== "DS" || zone?.apex !== name || name === ".") return zone;
  return zoneFor(zones, suffixesOf(name)[1]!) ?? zone;
}

function exists({ records }: NaiveZone, name: string): boolean {
  return records.some(({ owner }) => isAtOrBelow(owner, name));
}

function recordsAt({ records }: NaiveZone, name: string): readonly NaiveRecord[] {
  return records.filter(({ owner }) => owner === name);
}

function find(zone: NaiveZone, name: string): Found {
  const below = suffixesOf(name).filter((suffix) => suffix !== zone.apex && isAtOrBelow(suffix, zone.apex));
  const isCut = (suffix: string) => recordsAt(zone, suffix).some(({ type }) => type === "NS");
  const cut = below.findLast(isCut);
  if (cut !== undefined) return { kind: "cut", cut, records: recordsAt(zone, cut) };
  if (exists(zone, name) || name === zone.apex) return { kind: "records", records: recordsAt(zone, name) };
  const encloser = suffixesOf(name).find((suffix) => suffix === zone.apex || exists(zone, suffix))!;
  const asterisk = nameOf(["*", ...labelsOf(encloser)]);
  return exists(zone, asterisk) ? { kind: "records", records: recordsAt(zone, asterisk) } : { kind: "nothing" };
}

function ofType(records: readonly NaiveRecord[], type: string): readonly NaiveRecord[] {
  const found = records.filter((record) => record.type === type);
  return found.map((record) => ({ ...record, ttl: found[0]!.ttl }));
}

function line(section: string, owner: string, { ttl, type, rdata }: NaiveRecord): string {
  return `${section} ${owner} ${ttl} IN ${type} ${rdata}`;
}

function targetOf({ rdata }: NaiveRecord): string {
  return rdata.split(" ").at(-1)!;
}

function soaOf(zone: NaiveZone): NaiveRecord {
  return ofType(recordsAt(zone, zone.apex), "SOA")[0]!;
}

/** An override's name that lies in no zone is the owner of a SOA that is made for it. */
function addOverrideNegative(draft: Draft, { zones }: World, name: string, type: string): void {
  const zone = zoneForQuestion(zones, name, type);
  if (zone !== undefined) addNegative(draft, zone);
  else draft.authority.push(`authority ${name} 30 IN SOA . nobody.invalid. 1 3600 600 86400 30`);
}

function addNegative(draft: Draft, zone: NaiveZone): void {
  const soa = soaOf(zone);
  draft.authority.push(line("authority", zone.apex, { ...soa, ttl: Math.min(soa.ttl, Number(targetOf(soa))) }));
}

/** Addresses that the zone has for a target: what stands there, also below a cut, else what a wildcard gives. */
function addAddresses(
  draft: Draft,
  { overrides }: World,
  zone: NaiveZone | undefined,
  target: string,
  isGlue: boolean,
): void {
  if ((zone !== undefined && !isAtOrBelow(target, zone.apex)) || target === ".") return;
  const overridden = overrides.filter(({ owner }) => owner === target);
  const records = overridden.length > 0 || zone === undefined ? overridden : addressesIn(zone, target, isGlue);
  const lines = ADDRESS_TYPES.flatMap((type) => ofType(records, type)).map((record) =>
    line("additional", target, record),
  );
  draft.additional.push(...lines.filter((each) => !draft.additional.includes(each)));
}

function addressesIn(zone: NaiveZone, target: string, isGlue: boolean): readonly NaiveRecord[] {
  const found = exists(zone, target) || isGlue ? undefined : find(zone, target);
  return found?.kind === "records" ? found.records : recordsAt(zone, target);
}

function addReferral(draft: Draft, world: World, zone: NaiveZone, cut: string, records: readonly NaiveRecord[]): void {
  const servers = ofType(records, "NS");
  draft.authority.push(...servers.map((record) => line("authority", cut, record)));
  const targets = servers.map(targetOf);
  for (const target of targets.filter((each) => isAtOrBelow(each, cut))) addAddresses(draft, world, zone, target, true);
  for (const target of targets.filter((each) => !isAtOrBelow(each, cut))) {
    addAddresses(draft, world, zone, target, false);
  }
}

type AliasEnd =
  | { readonly kind: "addresses"; readonly records: readonly NaiveRecord[] }
  | { readonly kind: "no data" }
  | { readonly kind: "failure" };

function resolveAlias({ zones, overrides }: World, alias: NaiveRecord, type: string): AliasEnd {
  let link = alias;
  let ttl = alias.ttl;
  for (let links = 0; links < LINKS_MAX; links++) {
    const target = targetOf(link);
    const zone = zoneFor(zones, target);
    const overridden = overrides.filter(({ owner }) => owner === target);
    const inZone = zone === undefined ? undefined : find(zone, target);
    const found: Found | undefined = overridden.length > 0 ? { kind: "records", records: overridden } : inZone;
    if (found === undefined || found.kind === "cut") return { kind: "failure" };
    if (found.kind === "nothing") return { kind: "no data" };
    const addresses = ofType(found.records, type);
    const next = found.records.find((record) => record.type === "CNAME" || record.type === "ALIAS");
    ttl = Math.min(ttl, addresses[0]?.ttl ?? next?.ttl ?? ttl);
    if (addresses.length > 0) return { kind: "addresses", records: addresses.map((record) => ({ ...record, ttl })) };
    if (next === undefined) return { kind: "no data" };
    link = next;
  }
  return { kind: "failure" };
}

/** SOA stays the zone's at an apex with an override, and so does NS where it has none. */
function isOfTheZone({ zones }: World, name: string, type: string, overridden: readonly NaiveRecord[]): boolean {
  const isLeft = type === "SOA" || (type === "NS" && ofType(overridden, "NS").length === 0);
  return isLeft && zoneForQuestion(zones, name, type)?.apex === name;
}

/** Answers at one name; returns the name that comes next, where a CNAME leads there. */
function step(draft: Draft, world: World, name: string, type: string, isFirst: boolean): string | undefined {
  const { zones, overrides } = world;
  const overridden = overrides.filter(({ owner }) => owner === name);
  if (overridden.length > 0 && !isOfTheZone(world, name, type, overridden)) {
    if (isFirst) draft.aa = true;
    return answerFrom(draft, world, undefined, name, type, overridden);
  }
  const zone = zoneForQuestion(zones, name, type);
  if (zone === undefined) {
    if (isFirst) draft.status = "REFUSED";
    return undefined;
  }
  let found = find(zone, name);
  if (found.kind === "cut" && found.cut === name && type === "DS") found = { kind: "records", records: found.records };
  if (found.kind === "cut") {
    addReferral(draft, world, zone, found.cut, found.records);
    return undefined;
  }
  if (isFirst) draft.aa = true;
  if (found.kind === "nothing") draft.status = "NXDOMAIN";
  return answerFrom(draft, world, zone, name, type, found.kind === "nothing" ? [] : found.records);
}

/** Answers from what a name has; `zone` is undefined where it has an override. */
function answerFrom(
  draft: Draft,
  world: World,
  zone: NaiveZone | undefined,
  name: string,
  type: string,
  records: readonly NaiveRecord[],
): string | undefined {
  const wanted = ofType(records, type);
  if (wanted.length > 0) {
    draft.answer.push(...wanted.map((record) => line("answer", name, record)));
    if (["MX", "SRV", "NS"].includes(type)) {
      for (const record of wanted) addAddresses(draft, world, zone, targetOf(record), false);
    }
    return undefined;
  }
  const cname = records.find((record) => record.type === "CNAME");
  if (cname !== undefined) {
    if (draft.answer.includes(line("answer", name, cname)) || draft.answer.length === LINKS_MAX) return undefined;
    draft.answer.push(line("answer", name, cname));
    return targetOf(cname);
  }
  const alias = records.find((record) => record.type === "ALIAS");
  const end = alias !== undefined && ADDRESS_TYPES.includes(type) ? resolveAlias(world, alias, type) : undefined;
  if (end?.kind === "addresses") draft.answer.push(...end.records.map((record) => line("answer", name, record)));
  else if (end?.kind === "failure") {
    draft.status = "SERVFAIL";
    draft.aa = false;
  } else if (zone === undefined) addOverrideNegative(draft, world, name, type);
  else addNegative(draft, zone);
  return undefined;
}

/** The SOA's MNAME serves a zone that names no NS. */
function withApexNs(zone: NaiveZone): NaiveZone {
  const soa = soaOf(zone);
  if (ofType(recordsAt(zone, zone.apex), "NS").length > 0) return zone;
  const ns = { owner: zone.apex, type: "NS", ttl: soa.ttl, rdata: soa.rdata.split(" ")[0]! };
  return { apex: zone.apex, records: [...zone.records, ns] };
}

const EXTENDED_ERRORS: ReadonlyMap<string, string> = new Map([
  ["REFUSED", " ede=20"],
  ["SERVFAIL", " ede=22"],
]);

/** The answer's lines to a question with EDNS, as large as it may be. */
export function naiveAnswer(
  zones: readonly NaiveZone[],
  name: string,
  type: string,
  overrides: NaiveOverrides = [],
): readonly string[] {
  const world: World = { zones: zones.map(withApexNs), overrides };
  const draft: Draft = { status: "NOERROR", aa: false, answer: [], authority: [], additional: [] };
  let next = step(draft, world, name, type, true);
  while (next !== undefined) next = step(draft, world, next, type, false);
  const status = `${draft.status}${draft.aa ? " aa" : ""}${EXTENDED_ERRORS.get(draft.status) ?? ""}`;
  return [status, ...draft.answer, ...draft.authority, ...draft.additional];
}
