/**
 * Values of records: what each type takes, their one canonical spelling, and the way to rdata and back. Publishing, export
 * and zone transfer all go through `valueRdata`.
 */
import { ipFromText, ipToText } from "../base/ip.ts";
import { RRTYPE } from "../dns/codes.ts";
import { nameFromText, nameToText } from "../dns/name.ts";
import { rdataFromText, rdataToText } from "../dns/rdata.ts";
import { CAA_FLAGS_MAX, CAA_VALUE_MAX, VALUE_TEXT_MAX } from "./limits.ts";
import { hostName, isHostSpelling } from "./names.ts";
import type { RecordType, RecordValue } from "./objects.ts";
import type { FieldFault } from "./refusal.ts";

export const CAA_TAGS = ["issue", "issuewild", "iodef"] as const;

/** What a record says of its values beside their text; each value may say otherwise. */
export type ValueFields = {
  readonly values: readonly RecordValue[];
  readonly priority?: number;
  readonly weight?: number;
  readonly port?: number;
  readonly tag?: string;
};

type Extra = "priority" | "weight" | "port" | "tag";
const EXTRAS: readonly Extra[] = ["priority", "weight", "port", "tag"];
const EXTRAS_OF: { readonly [T in RecordType]: readonly Extra[] } = {
  A: [],
  AAAA: [],
  CNAME: [],
  MX: ["priority"],
  NS: [],
  PTR: [],
  SRV: ["priority", "weight", "port"],
  TXT: [],
  CAA: ["priority", "tag"],
  ALIAS: [],
};

export type CheckedValues = { readonly values: readonly RecordValue[]; readonly faults: readonly FieldFault[] };

/** The values in canonical spelling, and what is wrong with them. Shapes and bounds of the schema have been checked. */
export function checkValues(type: RecordType, fields: ValueFields): CheckedValues {
  const faults = extraFaults(type, fields, "");
  const seen = new Set<string>();
  const values = fields.values.map((given, index) => {
    const pointer = `/values/${index}`;
    faults.push(...extraFaults(type, given, pointer), ...missingFaults(type, fields, given, pointer));
    const spelled = spellValue(type, given.value);
    if (spelled.kind === "fault") {
      faults.push({ pointer: `${pointer}/value`, detail: spelled.detail });
      return given;
    }
    const { region, value: _, ...extras } = given;
    // A blank region is no region: it is looked up by address.
    const value: RecordValue = {
      value: spelled.text,
      ...(region === undefined || region === "" ? {} : { region }),
      ...extras,
    };
    const key = canonicalValue(type, fields, value);
    if (seen.has(key)) faults.push({ pointer, detail: "is there twice" });
    seen.add(key);
    return value;
  });
  return { values, faults };
}

function extraFaults(type: RecordType, given: Partial<Record<Extra, unknown>>, pointer: string): FieldFault[] {
  const faults: FieldFault[] = [];
  for (const extra of EXTRAS) {
    if (given[extra] === undefined) continue;
    if (!EXTRAS_OF[type].includes(extra)) {
      faults.push({ pointer: `${pointer}/${extra}`, detail: `${type} records have no ${extra}` });
    }
  }
  const { priority } = given;
  if (type === "CAA" && typeof priority === "number" && priority > CAA_FLAGS_MAX) {
    faults.push({ pointer: `${pointer}/priority`, detail: `must be from 0 to ${CAA_FLAGS_MAX}: it is the CAA flag` });
  }
  return faults;
}

/** Priorities, weights and flags are 0 where nothing is said; a port or a tag cannot be guessed. */
function missingFaults(type: RecordType, fields: ValueFields, given: RecordValue, pointer: string): FieldFault[] {
  const needed: Extra | undefined = type === "SRV" ? "port" : type === "CAA" ? "tag" : undefined;
  if (needed === undefined || given[needed] !== undefined || fields[needed] !== undefined) return [];
  return [
    { pointer: `${pointer}/${needed}`, detail: `is missing, and the record has no ${needed} for all its values` },
  ];
}

export type SpelledValue =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "fault"; readonly detail: string };

/** The canonical spelling of a value's text; host names keep their case. */
export function spellValue(type: RecordType, text: string): SpelledValue {
  switch (type) {
    case "A":
      return spellAddress(text, false);
    case "AAAA":
      return spellAddress(text, true);
    case "TXT":
      return spellText(text);
    case "CAA":
      return spellCaa(text);
    default:
      return spellHost(type, text);
  }
}

function spellAddress(text: string, isIpv6: boolean): SpelledValue {
  const address = text.includes(":") === isIpv6 ? ipFromText(text) : undefined;
  if (address === undefined) return valueFault(isIpv6 ? "must be an IPv6 address" : "must be an IPv4 address");
  return { kind: "text", text: ipToText(address) };
}

function spellHost(type: RecordType, text: string): SpelledValue {
  // The root is a name as any other, and in MX (RFC 7505) and SRV (RFC 2782) it says "no such service". It has no address.
  const outcome = hostName(text, { root: type !== "ALIAS" });
  if (outcome.kind === "fault") return valueFault(outcome.detail);
  if (type === "ALIAS" && !isHostSpelling(outcome.text)) return valueFault("must be a host name");
  return { kind: "text", text: outcome.text };
}

/** One or more quoted strings and nothing else. */
const QUOTED = /^"(?:[^"\\]|\\.)*"(?:[ \t]+"(?:[^"\\]|\\.)*")*$/s;

/**
 * TXT takes its text as it is, in UTF-8. A text that begins with a quotation mark is read as zone files have it: quoted
 * strings with escapes, each of them one character-string.
 */
function spellText(text: string): SpelledValue {
  if (text === "") return valueFault('must not be empty; the empty text is written ""');
  if (!text.isWellFormed()) return valueFault("holds half of a surrogate pair");
  if (!text.startsWith('"')) {
    const isLong = Buffer.byteLength(text) > VALUE_TEXT_MAX;
    return isLong ? valueFault(`must not be longer than ${VALUE_TEXT_MAX} bytes`) : { kind: "text", text };
  }
  const rdata = QUOTED.test(text) ? rdataFromText(RRTYPE.TXT, text) : undefined;
  if (rdata?.kind !== "rdata") {
    return valueFault('begins with a quotation mark and so must be quoted strings as in a zone file, such as "a" "b"');
  }
  const spelled = rdataToText(RRTYPE.TXT, rdata.rdata);
  // Escapes make a text longer, and what is stored must be accepted again.
  if (spelled.length > VALUE_TEXT_MAX) return valueFault(`must not be longer than ${VALUE_TEXT_MAX} characters`);
  return { kind: "text", text: spelled };
}

function spellCaa(text: string): SpelledValue {
  if (!/^[\x20-\x7e]*$/.test(text)) return valueFault("must be printable ASCII");
  if (text.length > CAA_VALUE_MAX) return valueFault(`must not be longer than ${CAA_VALUE_MAX} characters`);
  if (text.startsWith('"')) return valueFault("must be written without quotation marks");
  return { kind: "text", text };
}

function valueFault(detail: string): SpelledValue {
  return { kind: "fault", detail };
}

/** The number of a type in RRs. */
export function typeNumber(type: RecordType): number {
  return RRTYPE[type];
}

export type Rdata = { readonly type: number; readonly wire: Uint8Array };

/** The rdata of one value, uncompressed. The value is one that `checkValues` has passed. */
export function valueRdata(
  record: Omit<ValueFields, "values"> & { readonly type: RecordType },
  value: RecordValue,
): Rdata {
  return { type: RRTYPE[record.type], wire: wireOf(record.type, record, value) };
}

function wireOf(type: RecordType, fields: Omit<ValueFields, "values">, value: RecordValue): Uint8Array {
  const priority = value.priority ?? fields.priority ?? 0;
  switch (type) {
    case "A":
    case "AAAA":
      return checked(ipFromText(value.value), type);
    case "TXT":
      return textWire(value.value);
    case "MX":
      return withNumbers([priority], hostWire(value.value));
    case "SRV":
      return withNumbers(
        [priority, value.weight ?? fields.weight ?? 0, value.port ?? fields.port ?? 0],
        hostWire(value.value),
      );
    case "CAA":
      return caaWire(priority, value.tag ?? fields.tag ?? "", value.value);
    default:
      return hostWire(value.value);
  }
}

function checked(wire: Uint8Array | undefined, type: RecordType): Uint8Array {
  if (wire === undefined) throw new Error(`a stored ${type} value is not valid`);
  return wire;
}

function hostWire(text: string): Uint8Array {
  const result = nameFromText(text);
  return result.kind === "name" ? result.name : checked(undefined, "CNAME");
}

function withNumbers(numbers: readonly number[], name: Uint8Array): Uint8Array {
  const wire = new Uint8Array(numbers.length * 2 + name.length);
  numbers.forEach((number, index) => {
    wire[index * 2] = number >>> 8;
    wire[index * 2 + 1] = number & 0xff;
  });
  wire.set(name, numbers.length * 2);
  return wire;
}

const encoder = new TextEncoder();
const STRING_BYTES = 255;

function textWire(text: string): Uint8Array {
  if (text.startsWith('"')) {
    const rdata = rdataFromText(RRTYPE.TXT, text);
    return checked(rdata.kind === "rdata" ? rdata.rdata : undefined, "TXT");
  }
  return splitStrings(encoder.encode(text));
}

/** Character-strings of 255 bytes and a rest (RFC 1035 section 3.3.14). */
function splitStrings(bytes: Uint8Array): Uint8Array {
  const strings = Math.max(1, Math.ceil(bytes.length / STRING_BYTES));
  const wire = new Uint8Array(bytes.length + strings);
  for (let index = 0; index < strings; index++) {
    const part = bytes.subarray(index * STRING_BYTES, (index + 1) * STRING_BYTES);
    wire[index * (STRING_BYTES + 1)] = part.length;
    wire.set(part, index * (STRING_BYTES + 1) + 1);
  }
  return wire;
}

/** RFC 8659 section 4.1. */
function caaWire(flags: number, tag: string, value: string): Uint8Array {
  // Each of the two is one byte: a longer tag would be read as part of the value.
  if (flags > CAA_FLAGS_MAX || !/^[a-zA-Z0-9]{1,255}$/.test(tag)) checked(undefined, "CAA");
  return Uint8Array.from([flags, tag.length, ...encoder.encode(tag), ...encoder.encode(value)]);
}

/**
 * What tells two values of a type apart, their numbers included: equal texts, the same RR. Regions do not count. Host names
 * are compared without regard to case.
 */
export function canonicalValue(type: RecordType, fields: Omit<ValueFields, "values">, value: RecordValue): string {
  const numbers = EXTRAS_OF[type].map((extra) => value[extra] ?? fields[extra] ?? 0).join(" ");
  const text = canonicalText(type, value.value);
  return numbers === "" ? text : `${numbers} ${text}`;
}

/** The canonical RRs of a record in an order of their own: two records with equal lists hold the same RRset. */
export function canonicalValues(record: ValueFields & { readonly type: RecordType }): readonly string[] {
  return record.values.map((value) => canonicalValue(record.type, record, value)).sort();
}

/**
 * The text of a value as keys of `value_weights` and entries of `failover_order` are compared. A text that is no value of
 * the type comes back as it is, and so matches none.
 */
export function canonicalText(type: RecordType, text: string): string {
  const spelled = spellValue(type, text);
  if (spelled.kind === "fault") return text;
  if (type === "TXT") return Buffer.from(textWire(spelled.text)).toString("latin1");
  return type === "A" || type === "AAAA" || type === "CAA" ? spelled.text : spelled.text.toLowerCase();
}

export type FieldsFromRdata =
  | { readonly kind: "fields"; readonly fields: ValueFields }
  | { readonly kind: "fault"; readonly index: number; readonly detail: string };

/**
 * The fields of a record that holds these RRs, in wire form. Numbers that all of them share stand at the record. A fault
 * names the RR that no record can hold: a CAA tag that is none of the three, a host that is no host.
 */
export function fieldsFromRdata(type: RecordType, wires: readonly Uint8Array[]): FieldsFromRdata {
  const values: RecordValue[] = [];
  for (const [index, wire] of wires.entries()) {
    const value = valueFromWire(type, wire);
    const { faults } = checkValues(type, { values: [value] });
    const fault = faults[0] ?? tagFault(type, value);
    if (fault !== undefined) return { kind: "fault", index, detail: fault.detail };
    values.push(value);
  }
  return { kind: "fields", fields: withShared(type, values) };
}

function tagFault(type: RecordType, { tag }: RecordValue): FieldFault | undefined {
  if (type !== "CAA" || CAA_TAGS.some((known) => known === tag)) return undefined;
  return { pointer: "/tag", detail: `the tag must be one of ${CAA_TAGS.join(", ")}` };
}

function valueFromWire(type: RecordType, wire: Uint8Array): RecordValue {
  const view = new DataView(wire.buffer, wire.byteOffset, wire.byteLength);
  switch (type) {
    case "A":
    case "AAAA":
      return { value: ipToText(wire) };
    case "TXT":
      return { value: textFromWire(wire) };
    case "MX":
      return { value: nameToText(wire, 2), priority: view.getUint16(0) };
    case "SRV":
      return {
        value: nameToText(wire, 6),
        priority: view.getUint16(0),
        weight: view.getUint16(2),
        port: view.getUint16(4),
      };
    case "CAA": {
      const end = 2 + view.getUint8(1);
      return {
        value: Buffer.from(wire.subarray(end)).toString("latin1"),
        priority: view.getUint8(0),
        tag: Buffer.from(wire.subarray(2, end)).toString("latin1").toLowerCase(),
      };
    }
    default:
      return { value: nameToText(wire) };
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The plain text where it says everything; else quoted strings: other bounds between strings, or bytes that are no text. */
function textFromWire(wire: Uint8Array): string {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < wire.length; at += wire[at]! + 1) parts.push(wire.subarray(at + 1, at + 1 + wire[at]!));
  const bytes = Buffer.concat(parts);
  const isPlain = bytes.length > 0 && bytes[0] !== 0x22 && Buffer.compare(splitStrings(bytes), wire) === 0;
  if (!isPlain) return rdataToText(RRTYPE.TXT, wire);
  try {
    return decoder.decode(bytes);
  } catch {
    return rdataToText(RRTYPE.TXT, wire);
  }
}

function withShared(type: RecordType, values: readonly RecordValue[]): ValueFields {
  const first = values[0];
  const shared = EXTRAS_OF[type].filter((extra) => values.every((value) => value[extra] === first?.[extra]));
  const isShared = (name: string) => shared.some((extra) => extra === name);
  return {
    values: values.map((value) => ({
      value: value.value,
      ...Object.fromEntries(Object.entries(value).filter(([name]) => name !== "value" && !isShared(name))),
    })),
    ...Object.fromEntries(shared.flatMap((extra) => (first?.[extra] === undefined ? [] : [[extra, first[extra]]]))),
  };
}
