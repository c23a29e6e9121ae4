/**
 * A zone file as drafts of records. RRs of one name and type are one record; where their TTLs differ the smallest holds
 * for all (RFC 2181 section 5.2). What the file says wrongly costs its own record and no other; without a usable SOA the
 * file is refused.
 */

import { RRTYPE } from "../dns/codes.ts";
import { NAME_FAULT, nameFaultText, nameFromText, nameToText, ROOT_NAME } from "../dns/name.ts";
import { parseZoneFile } from "../dns/zone-file.ts";
import type { ZoneFileError, ZoneFileReport } from "../dns/zone-report.ts";
import { IMPORT_NOTES_MAX, IMPORT_ZONE_RECORDS_MAX } from "../model/limits.ts";
import { APEX, absoluteName, canonicalName, relativeTo } from "../model/names.ts";
import { RECORD_TYPES, type RecordType, type ZoneBody } from "../model/objects.ts";
import { ownershipConflict } from "../model/ownership.ts";
import { RecordCreate, recordFromCreate } from "../model/record.ts";
import { fieldsFromRdata } from "../model/record-values.ts";
import { Refusal, refuseFaults } from "../model/refusal.ts";
import { checkShape } from "../model/shape.ts";
import { type ZoneCreate, zoneFromCreate } from "../model/zone.ts";
import { type ParseError, type RecordDraft, sortByName, sortByPlace, type ZoneDraft } from "./import-draft.ts";
import { overLimitText } from "./import-limit.ts";
import { type AutoPopulateMark, autoPopulateMarks, hasSynthesisedNs } from "./zone-file-marks.ts";

export type ZoneFileOptions = {
  /** Completes relative names until the file's own $ORIGIN, and then the SOA's names need not be absolute. */
  readonly origin?: string;
  /** Records over the limit are cut off and not a fault of the file. */
  readonly cuts?: boolean;
  /** Default: the limit of imports. */
  readonly recordsMax?: number;
  /** What zone files may hold and zones here do not, such as other types and tags of CAA, is a warning and no fault. */
  readonly leavesOut?: boolean;
};

export type ZoneFileOutcome =
  | { readonly kind: "zone"; readonly draft: ZoneDraft }
  /** The file holds more records than a zone may: nothing of it is taken. */
  | { readonly kind: "too-large"; readonly error: ParseError };

/** RRs of one name and type, in the order of the file. */
type Group = {
  readonly name: string;
  readonly type: RecordType;
  readonly line: number;
  readonly column: number;
  readonly wires: Uint8Array[];
  readonly lines: number[];
  ttl: number;
  ttlsDiffer: boolean;
};

type Reading = {
  readonly file: string;
  readonly recordsMax: number;
  /** The NS of the apex may be the one that follows from the SOA, and then it is no record of the zone. */
  readonly hasSynthesisedNs: boolean;
  readonly groups: Map<string, Group>;
  readonly leavesOut: boolean;
  readonly errors: ParseError[];
  errorsOmitted: number;
  readonly warnings: string[];
  zone: string;
  soa: Uint8Array | undefined;
  soaTtl: number;
  /** Where the first record over the limit stands. */
  overLimit: { readonly line: number; readonly column: number } | undefined;
};

const APEX_NS = `${APEX} NS`;

const TYPE_BY_NUMBER: ReadonlyMap<number, RecordType> = new Map(RECORD_TYPES.map((type) => [RRTYPE[type], type]));

/** Reads one file. Throws `invalid_request` where its SOA is missing, short or not absolute. */
export function readZoneFile(file: string, text: Uint8Array, options: ZoneFileOptions = {}): ZoneFileOutcome {
  const reading: Reading = {
    file,
    recordsMax: options.recordsMax ?? IMPORT_ZONE_RECORDS_MAX,
    hasSynthesisedNs: hasSynthesisedNs(text),
    groups: new Map(),
    leavesOut: options.leavesOut === true,
    errors: [],
    errorsOmitted: 0,
    warnings: [],
    zone: "",
    soa: undefined,
    soaTtl: 0,
    overLimit: undefined,
  };
  const origin = options.origin === undefined ? undefined : nameFromText(options.origin);
  const report = parseZoneFile(text, {
    ...(origin?.kind === "name" ? { origin: origin.name } : {}),
    onZone: (apex) => {
      reading.zone = canonicalName(apex);
    },
    onRecord: (owner, ownerLength, type, ttl, rdata, rdataLength, line, column) =>
      takeRecord(reading, owner.subarray(0, ownerLength), type, ttl, rdata.slice(0, rdataLength), line, column),
  });
  const soa = requireSoa(reading, report);
  takeReport(reading, report);
  if (reading.hasSynthesisedNs) dropSynthesisedNs(reading, soa.mname);
  const marks = takeMarks(reading, text);
  if (reading.overLimit !== undefined && options.cuts !== true) {
    return { kind: "too-large", error: { file, ...reading.overLimit, detail: overLimitText(reading.zone) } };
  }
  const { create, serial } = soa;
  const zone = zoneFromCreate(create, "", { deletionLock: false });
  const records = draftRecords(reading, zone, marks);
  const draft: ZoneDraft = {
    create,
    serial,
    file,
    records: sortByName(records),
    parseErrors: listedErrors(reading),
    errors: reading.overLimit === undefined ? [] : [overLimitText(reading.zone)],
    warnings: reading.warnings,
  };
  return { kind: "zone", draft };
}

/** In the order of the file, and how many there is no room for behind the last. */
function listedErrors({ file, errors, errorsOmitted }: Reading): readonly ParseError[] {
  const listed = sortByPlace(errors);
  if (errorsOmitted === 0) return listed;
  const { line, column } = listed.at(-1) ?? { line: 1, column: 1 };
  return [...listed, { file, line, column, detail: `${errorsOmitted} more lines or records were not taken` }];
}

function addError(reading: Reading, line: number, column: number, detail: string): void {
  if (reading.errors.length >= IMPORT_NOTES_MAX) reading.errorsOmitted++;
  else reading.errors.push({ file: reading.file, line, column, detail });
}

function takeRecord(
  reading: Reading,
  owner: Uint8Array,
  type: number,
  ttl: number,
  rdata: Uint8Array,
  line: number,
  column: number,
): void {
  if (type === RRTYPE.SOA) {
    reading.soa = rdata;
    reading.soaTtl = ttl;
    return;
  }
  const recordType = TYPE_BY_NUMBER.get(type);
  const name = relativeTo(canonicalName(owner), reading.zone);
  // The parser gives types of the table and owners within the zone only, once it knows the zone; without a SOA it knows none.
  if (recordType === undefined || name === undefined) return;
  const key = `${name} ${recordType}`;
  const group = reading.groups.get(key);
  if (group === undefined) {
    if (isFull(reading, key)) reading.overLimit ??= { line, column };
    else {
      const first = { name, type: recordType, line, column, wires: [rdata], lines: [line], ttl, ttlsDiffer: false };
      reading.groups.set(key, first);
    }
    return;
  }
  if (group.ttl !== ttl) group.ttlsDiffer = true;
  group.ttl = Math.min(group.ttl, ttl);
  if (isHeld(group.wires, rdata)) return;
  group.wires.push(rdata);
  group.lines.push(line);
}

/** Until the SOA has been read it is not known whether the NS of the apex counts, and so there is room for it. */
function isFull({ groups, recordsMax, hasSynthesisedNs }: Reading, key: string): boolean {
  const isSpare = hasSynthesisedNs && (key === APEX_NS || groups.has(APEX_NS));
  return groups.size >= recordsMax + (isSpare ? 1 : 0);
}

/** Names in rdata may differ in case only; the values' own check finds those. */
function isHeld(wires: readonly Uint8Array[], rdata: Uint8Array): boolean {
  // An RRset of thousands is refused by its size later; looking at all of them here would take the square of its length.
  return wires.length < 1_000 && wires.some((wire) => Buffer.compare(wire, rdata) === 0);
}

type SoaDraft = { readonly create: ZoneCreate; readonly serial: number; readonly mname: string };

function requireSoa(reading: Reading, { soaError }: ZoneFileReport): SoaDraft {
  const { file, zone, soa } = reading;
  const where = file === "" ? "the zone file" : `file ${JSON.stringify(file)}`;
  if (soa === undefined) {
    throw soaRefusal(file, `${where} has no complete SOA record${soaError === undefined ? "" : causeText(soaError)}`);
  }
  const view = new DataView(soa.buffer, soa.byteOffset, soa.byteLength);
  const mname = nameToText(soa);
  const rnameAt = wireLength(soa, 0);
  const numbersAt = rnameAt + wireLength(soa, rnameAt);
  const [refresh, retry, expire, minimum] = [4, 8, 12, 16].map((offset) => view.getUint32(numbersAt + offset));
  return {
    mname: mname.toLowerCase(),
    serial: view.getUint32(numbersAt),
    create: {
      name: zone,
      default_ttl: reading.soaTtl,
      soa: {
        mname,
        rname: nameToText(soa, rnameAt),
        refresh: refresh ?? 0,
        retry: retry ?? 0,
        expire: expire ?? 0,
        minimum: minimum ?? 0,
      },
    },
  };
}

function causeText({ line, column, detail }: ZoneFileError): string {
  const text = `: line ${line}, column ${column}: ${detail}`;
  const lacksOrigin = detail.endsWith(nameFaultText(NAME_FAULT.NO_ORIGIN));
  return lacksOrigin ? `${text}; a line "$ORIGIN" with the zone's full name is missing before it` : text;
}

function soaRefusal(file: string, detail: string): Refusal {
  return new Refusal("invalid_request", detail, [{ pointer: "", detail }], file === "" ? {} : { file });
}

function wireLength(bytes: Uint8Array, from: number): number {
  let at = from;
  while (bytes[at]! !== 0) at += bytes[at]! + 1;
  return at + 1 - from;
}

function leaveOut(reading: Reading, line: number, column: number, detail: string): void {
  if (reading.leavesOut) note(reading.warnings, `line ${line}: ${detail}`);
  else addError(reading, line, column, detail);
}

function takeReport(reading: Reading, report: ZoneFileReport): void {
  for (const { line, column, detail } of report.errors) addError(reading, line, column, detail);
  for (const { line, column, owner, type } of report.leftOut) {
    const detail = `${owner} ${type}: zones here hold no records of this type`;
    leaveOut(reading, line, column, detail);
  }
  reading.errorsOmitted += report.errorsOmitted + (reading.leavesOut ? 0 : report.leftOutOmitted);
}

/**
 * The marks that stand for records of their own, by name and type: one beside RRs of its name and type says nothing more,
 * and a repeated one is one. They count as records do.
 */
function takeMarks(reading: Reading, text: Uint8Array): readonly AutoPopulateMark[] {
  const { groups, zone, recordsMax } = reading;
  const marks = new Map<string, AutoPopulateMark>();
  for (const { name: spelled, type, line } of autoPopulateMarks(text)) {
    const name = markName(spelled, zone);
    const key = `${name} ${type}`;
    if (groups.has(key) || marks.has(key)) continue;
    if (groups.size + marks.size < recordsMax) marks.set(key, { name, type, line });
    else reading.overLimit ??= { line, column: 1 };
  }
  return [...marks.values()];
}

/** As records are named. What is no name, or lies outside the zone, stays as it is for the record's own check to refuse. */
function markName(spelled: string, zone: string): string {
  if (spelled === APEX) return APEX;
  const parsed = nameFromText(spelled.endsWith(".") ? spelled : absoluteName(spelled, zone));
  return (parsed.kind === "name" ? relativeTo(canonicalName(parsed.name), zone) : undefined) ?? spelled;
}

function draftRecords(reading: Reading, zone: ZoneBody, marks: readonly AutoPopulateMark[]): RecordDraft[] {
  const records: RecordDraft[] = [];
  const typesAt = new Map<string, RecordType[]>();
  const take = (draft: RecordDraft | undefined, title: string, line: number, column: number): void => {
    if (draft === undefined) return;
    const { name, type } = draft.body;
    const types = typesAt.get(name) ?? [];
    const rival = ownershipConflict(type, types, name);
    if (rival !== undefined) {
      addError(reading, line, column, `${title}: ${name} has a record of type ${rival} already`);
      return;
    }
    typesAt.set(name, [...types, type]);
    records.push(draft);
  };
  for (const group of reading.groups.values()) {
    take(draftRecord(reading, zone, group), titleOf(group, zone), group.line, group.column);
  }
  for (const { name, type, line } of marks) {
    const title = `auto_populate ${name} ${type}`;
    const draft = attempt(reading, line, 1, title, () => ({
      body: recordFromCreate({ name, type, values: [], auto_populate: true }, zone, ""),
      line,
      column: 1,
    }));
    take(draft, title, line, 1);
  }
  return records;
}

/**
 * The NS that every zone without one of its own answers with: the export shows it and the import does not store it. One
 * that says something else is a record, and there may be one too many now.
 */
function dropSynthesisedNs(reading: Reading, mname: string): void {
  const { groups, recordsMax } = reading;
  const wires = groups.get(APEX_NS)?.wires;
  if (wires?.length === 1 && nameToText(wires[0] ?? ROOT_NAME).toLowerCase() === mname) {
    groups.delete(APEX_NS);
    return;
  }
  const last = [...groups.entries()].at(-1);
  if (groups.size <= recordsMax || last === undefined) return;
  const [key, { line, column }] = last;
  groups.delete(key);
  reading.overLimit = { line, column };
}

function draftRecord(reading: Reading, zone: ZoneBody, group: Group): RecordDraft | undefined {
  const { name, type, wires, lines, line, column } = group;
  let fields = fieldsFromRdata(type, wires);
  while (fields.kind === "fault") {
    const { index, detail } = fields;
    leaveOut(reading, lines[index] ?? line, column, `${titleOf(group, zone)}: ${detail}`);
    wires.splice(index, 1);
    lines.splice(index, 1);
    if (wires.length === 0) return undefined;
    fields = fieldsFromRdata(type, wires);
  }
  const ttl = Math.min(group.ttl, 2 ** 31 - 1);
  if (group.ttlsDiffer)
    note(reading.warnings, `${titleOf(group, zone)}: its TTLs differ; the smallest is taken: ${ttl}`);
  if (ttl === 0) note(reading.warnings, `${titleOf(group, zone)}: TTL 0 means the zone's default here`);
  const given = { ...fields.fields, name, type, ttl };
  return attempt(reading, line, column, titleOf(group, zone), () => ({
    body: recordFromCreate(shaped(given), zone, ""),
    line,
    column,
  }));
}

/** What the file has, held against the bounds that a POST has. */
function shaped(given: unknown): RecordCreate {
  refuseFaults(checkShape(RecordCreate, given));
  // The shape has been checked.
  return given as RecordCreate;
}

function attempt(
  reading: Reading,
  line: number,
  column: number,
  title: string,
  make: () => RecordDraft,
): RecordDraft | undefined {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    leaveOut(reading, line, column, `${title}: ${error.faults[0]?.detail ?? error.message}`);
    return undefined;
  }
}

function note(notes: string[], text: string): void {
  if (notes.length < IMPORT_NOTES_MAX) notes.push(text);
}

function titleOf(group: Group, zone: ZoneBody): string {
  return `${absoluteName(group.name, zone.name)} ${group.type}`;
}
