/** What the image has as numbers, in the words of the store: which record, whose policy, which probe, which region. */
import { ipToText } from "../base/ip.ts";
import { type Book, entryKey, type GatedProbe } from "../health/book.ts";
import { regionNumber } from "../image/regions.ts";
import { inheritsPolicy } from "../model/lb-policy.ts";
import { relativeTo } from "../model/names.ts";
import { type OverrideBody, RECORD_TYPES, type RecordBody, type RecordType } from "../model/objects.ts";
import { isNewerRoute } from "../publish/store-routes.ts";
import type { StoreReader } from "../store/store.ts";

export type NamedRecord = {
  /** Undefined: there is no such record any more, or it is made by itself. */
  readonly id: string | undefined;
  readonly policy: "record" | "zone" | "none";
  /** By health slot. */
  readonly probes: ReadonlyMap<number, GatedProbe>;
  /** The regions that it names itself, by number. */
  readonly regions: ReadonlyMap<number, string>;
};

export type NamedRoute = { readonly by: "forwarder" | "stub_zone"; readonly id: string };

export type ExplainNames = {
  readonly zoneId: (zone: string) => string | undefined;
  /** The longest stored zone that a canonical name lies in, where it is pending. */
  readonly pendingZone: (name: string) => { readonly zone: string; readonly id: string } | undefined;
  /** Who resolves the names of a domain. */
  readonly route: (domain: string) => NamedRoute | undefined;
  /** `zone` is empty for an override; all are canonical texts, `owner` absolute. */
  readonly record: (zone: string, owner: string, type: string) => NamedRecord;
  /** The region of a number that a mapping or this node has. */
  readonly region: (number: number) => string | undefined;
  /** The longest mapping that covers an address. */
  readonly mapping: (address: Uint8Array) => { readonly id: string; readonly subnet: string } | undefined;
};

export type ExplainSources = {
  readonly store: Pick<StoreReader, "get" | "stateOf">;
  readonly book: Pick<Book, "zones">;
  readonly regionName: (number: number) => string | undefined;
};

const NO_RECORD: NamedRecord = { id: undefined, policy: "none", probes: new Map(), regions: new Map() };

export function createExplainNames(sources: ExplainSources): ExplainNames {
  const { store, regionName } = sources;
  return {
    zoneId: (zone) => store.get("zone", [zone])?.body.id,
    pendingZone: (name) => pendingZone(store, name),
    route: (domain) => namedRoute(store, domain),
    record: (zone, owner, type) => {
      const known = RECORD_TYPES.find((each) => each === type);
      return known === undefined ? NO_RECORD : namedRecord(sources, zone, owner, known);
    },
    region: regionName,
    mapping: (address) => longestMapping(sources, address),
  };
}

/** A label and its dot; what is escaped ends no label. */
const FIRST_LABEL = /^(?:[^.\\]|\\.)+\./;

function pendingZone(store: ExplainSources["store"], name: string): ReturnType<ExplainNames["pendingZone"]> {
  for (let domain = name; domain !== ""; domain = domain.replace(FIRST_LABEL, "")) {
    const stored = store.get("zone", [domain]);
    if (stored !== undefined) {
      return store.stateOf(domain) === "active" ? undefined : { zone: domain, id: stored.body.id };
    }
    if (!FIRST_LABEL.test(domain)) return undefined;
  }
  return undefined;
}

function namedRoute(store: ExplainSources["store"], domain: string): NamedRoute | undefined {
  const forwarder = store.get("forwarder", [domain]);
  const stub = store.get("stub-zone", [domain]);
  if (stub !== undefined && (forwarder === undefined || isNewerRoute(stub, forwarder))) {
    return { by: "stub_zone", id: stub.body.id };
  }
  return forwarder === undefined ? undefined : { by: "forwarder", id: forwarder.body.id };
}

function namedRecord({ store, book }: ExplainSources, zone: string, owner: string, type: RecordType): NamedRecord {
  const name = zone === "" ? owner : (relativeTo(owner, zone) ?? owner);
  const body: RecordBody | OverrideBody | undefined =
    zone === "" ? store.get("override", [name, type])?.body : store.get("record", [zone, name, type])?.body;
  const inherited = inheritsPolicy(type) && zone !== "" ? store.get("zone", [zone])?.body.lb_policy : undefined;
  const policy = body?.lb_policy ?? inherited;
  const probes = new Map<number, GatedProbe>();
  for (const { probe } of book.zones.get(zone)?.entries.get(entryKey(name, type))?.values ?? []) {
    if (probe !== undefined) probes.set(probe.slot, probe);
  }
  const tags = body?.values.map(({ region }) => region) ?? [];
  const regions = [...tags, ...(policy?.region_preference ?? [])].filter((region) => region !== undefined);
  return {
    id: body?.id,
    policy: body?.lb_policy !== undefined ? "record" : policy === undefined ? "none" : "zone",
    probes,
    regions: new Map(regions.map((region) => [regionNumber(region), region])),
  };
}

function longestMapping({ store }: ExplainSources, address: Uint8Array): ReturnType<ExplainNames["mapping"]> {
  for (let bits = address.length * 8; bits >= 0; bits--) {
    const found = store.get("subnet-mapping", [networkText(address, bits)]);
    if (found !== undefined) return { id: found.body.id, subnet: found.body.subnet };
  }
  return undefined;
}

/** The network of an address, as `canonicalSubnet` spells it. */
export function networkText(address: Uint8Array, prefixBits: number): string {
  const network = address.map((byte, index) => {
    const kept = Math.max(0, Math.min(8, prefixBits - index * 8));
    return byte & (0xff00 >> kept) & 0xff;
  });
  return `${ipToText(network)}/${prefixBits}`;
}
