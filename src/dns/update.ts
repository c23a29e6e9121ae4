/**
 * UPDATE messages (RFC 2136 section 2). What concerns the zone section, or keeps the message from being read at all, is
 * refused at once. A fault of a single RR stands in its place instead: the RFC has the prerequisites decided before the
 * update section is looked at, and each section in its order.
 */
import { CLASS, OPCODE, RCODE, RRTYPE } from "./codes.ts";
import { decodeMessage, MESSAGE_BYTES_MAX, type ResourceRecord } from "./message.ts";
import { isSubdomain } from "./name.ts";
import { isMetaType } from "./type-names.ts";

/** The RR breaks a rule; `detail` is for a log. Nothing follows it. */
export type UpdateFault = { readonly kind: "fault"; readonly rcode: number; readonly detail: string };

/** Section 2.4. Names are uncompressed wire names with their case, at or below the zone; rdata is uncompressed. */
export type UpdatePrerequisite =
  | { readonly kind: "name-in-use" | "name-not-in-use"; readonly name: Uint8Array }
  | { readonly kind: "rrset-exists" | "rrset-absent"; readonly name: Uint8Array; readonly type: number }
  /** One RR of an RRset that must be exactly those that prerequisites of this kind name. */
  | { readonly kind: "rr"; readonly name: Uint8Array; readonly type: number; readonly rdata: Uint8Array };

/** Section 2.5. */
export type UpdateOperation =
  | {
      readonly kind: "add";
      readonly name: Uint8Array;
      readonly type: number;
      /** Seconds. */
      readonly ttl: number;
      readonly rdata: Uint8Array;
    }
  | { readonly kind: "delete-rr"; readonly name: Uint8Array; readonly type: number; readonly rdata: Uint8Array }
  | { readonly kind: "delete-rrset"; readonly name: Uint8Array; readonly type: number }
  | { readonly kind: "delete-name"; readonly name: Uint8Array };

export type UpdateMessage = {
  readonly kind: "update";
  readonly id: number;
  /** Wire name, with its case. Of class IN. */
  readonly zone: Uint8Array;
  /** A fault can only be the last. */
  readonly prerequisites: readonly (UpdatePrerequisite | UpdateFault)[];
  /** A fault can only be the last, and then none of it is carried out (section 3.4.1). */
  readonly updates: readonly (UpdateOperation | UpdateFault)[];
};

export type UpdateParse = UpdateMessage | { readonly kind: "refused"; readonly rcode: number; readonly detail: string };

/**
 * The update in `bytes`: a request of opcode UPDATE, its TSIG taken off. Anything may be passed; nothing is thrown. How
 * many RRs there are is bounded by the bytes of a message, which has room for fewer than 6,000.
 */
export function parseUpdate(bytes: Uint8Array): UpdateParse {
  if (bytes.length > MESSAGE_BYTES_MAX) return refused(RCODE.FORMERR, "longer than a message");
  const decoded = decodeMessage(bytes);
  if (decoded.kind === "error") return refused(RCODE.FORMERR, decoded.reason);
  const { message } = decoded;
  if (message.opcode !== OPCODE.UPDATE) return refused(RCODE.FORMERR, "not an UPDATE");
  if (decoded.trailingBytes > 0) return refused(RCODE.FORMERR, "bytes behind the last record");
  // Section 3.1.1.
  const [zone] = message.questions;
  if (zone === undefined || message.questions.length > 1) return refused(RCODE.FORMERR, "not one zone");
  if (zone.type !== RRTYPE.SOA) return refused(RCODE.FORMERR, "the type of the zone section is not SOA");
  if (zone.class !== CLASS.IN) return refused(RCODE.NOTAUTH, "no zone of that class is held here");
  return {
    kind: "update",
    id: message.id,
    zone: zone.name,
    prerequisites: untilFault(message.answers, (record) => prerequisiteOf(record, zone.name)),
    updates: untilFault(message.authorities, (record) => operationOf(record, zone.name)),
  };
}

function refused(rcode: number, detail: string): UpdateParse {
  return { kind: "refused", rcode, detail };
}

function untilFault<Item>(
  records: readonly ResourceRecord[],
  read: (record: ResourceRecord) => Item | UpdateFault,
): readonly (Item | UpdateFault)[] {
  const items: (Item | UpdateFault)[] = [];
  for (const record of records) {
    const item = read(record);
    items.push(item);
    if (isFault(item)) break;
  }
  return items;
}

function isFault(item: unknown): item is UpdateFault {
  return typeof item === "object" && item !== null && "kind" in item && item.kind === "fault";
}

/** Section 3.2, in the order of its pseudocode: a meta type is one that no name has an RRset of. */
function prerequisiteOf({ name, type, class: recordClass, ttl, rdata }: ResourceRecord, zone: Uint8Array) {
  if (ttl !== 0) return fault(RCODE.FORMERR, "a prerequisite with a TTL");
  if (!isSubdomain(name, zone)) return fault(RCODE.NOTZONE, "a prerequisite outside the zone");
  if (recordClass === CLASS.IN) return { kind: "rr", name, type, rdata } as const;
  if (recordClass !== CLASS.ANY && recordClass !== CLASS.NONE) {
    return fault(RCODE.FORMERR, "a prerequisite of another class");
  }
  if (rdata.length > 0) return fault(RCODE.FORMERR, "a prerequisite of class ANY or NONE with rdata");
  const isWanted = recordClass === CLASS.ANY;
  if (type === RRTYPE.ANY) return { kind: isWanted ? "name-in-use" : "name-not-in-use", name } as const;
  return { kind: isWanted ? "rrset-exists" : "rrset-absent", name, type } as const;
}

/** Section 3.4.1, in the order of its pseudocode. */
function operationOf({ name, type, class: recordClass, ttl, rdata }: ResourceRecord, zone: Uint8Array) {
  if (!isSubdomain(name, zone)) return fault(RCODE.NOTZONE, "an update outside the zone");
  const isAnyOfAny = type === RRTYPE.ANY && recordClass === CLASS.ANY;
  if (isMetaType(type) && !isAnyOfAny) return fault(RCODE.FORMERR, "an update of a type that no RR has");
  if (recordClass === CLASS.IN) return { kind: "add", name, type, ttl, rdata } as const;
  if (recordClass !== CLASS.ANY && recordClass !== CLASS.NONE) {
    return fault(RCODE.FORMERR, "an update of another class");
  }
  if (ttl !== 0) return fault(RCODE.FORMERR, "a deletion with a TTL");
  if (recordClass === CLASS.NONE) return { kind: "delete-rr", name, type, rdata } as const;
  if (rdata.length > 0) return fault(RCODE.FORMERR, "a deletion of an RRset with rdata");
  return type === RRTYPE.ANY
    ? ({ kind: "delete-name", name } as const)
    : ({ kind: "delete-rrset", name, type } as const);
}

function fault(rcode: number, detail: string): UpdateFault {
  return { kind: "fault", rcode, detail };
}
