/**
 * CSV with a header: one row a value, rows of one zone, name and type are one record. Whole or not at all: the first fault
 * ends it and names its row, counted as an editor counts them, the header being row 1.
 */
import { CsvError, parse } from "csv-parse/sync";
import { CSV_ROW_BYTES_MAX, IMPORT_RECORDS_MAX, IMPORT_ZONE_RECORDS_MAX, IMPORT_ZONES_MAX } from "../model/limits.ts";
import { RECORD_TYPES, type RecordType, type RecordValue, type ZoneBody } from "../model/objects.ts";
import { ownershipConflict } from "../model/ownership.ts";
import { RecordCreate, recordFromCreate } from "../model/record.ts";
import { Refusal } from "../model/refusal.ts";
import { checkShape } from "../model/shape.ts";
import { zoneFromCreate } from "../model/zone.ts";
import { type RecordDraft, sortByName, type ZoneDraft } from "./import-draft.ts";
import { overLimitText } from "./import-limit.ts";

export const CSV_COLUMNS = ["zone", "name", "type", "ttl", "value", "priority", "weight", "port", "region"] as const;
type Column = (typeof CSV_COLUMNS)[number];
const NEEDED: readonly Column[] = ["name", "type", "value"];

export type CsvOptions = {
  /** The one zone that the rows may name; the column may then be left out, and records over the limit are cut off. */
  readonly target?: string;
};

/** One record while its rows come in. */
type Group = {
  readonly name: string;
  readonly type: RecordType;
  readonly row: number;
  readonly rows: number[];
  ttl: number | undefined;
  readonly values: RecordValue[];
  /** The values as text, to know the rows that say the same again; from the second row on, which most records lack. */
  held: Set<string> | undefined;
};

type ZoneRows = { readonly zone: ZoneBody; readonly groups: Map<string, Group>; isCut: boolean };

type Reading = {
  readonly target: string | undefined;
  readonly columns: Map<Column, number>;
  readonly zones: Map<string, ZoneRows>;
  /** The same by the names as rows spell them. */
  readonly spelled: Map<string, ZoneRows>;
  row: number;
  records: number;
};

/** The zones of a table in UTF-8. Throws `invalid_request`; what it says names the row. */
export function readCsv(bytes: Uint8Array, { target }: CsvOptions = {}): readonly ZoneDraft[] {
  requireUtf8(bytes);
  const reading: Reading = { target, columns: new Map(), zones: new Map(), spelled: new Map(), row: 0, records: 0 };
  try {
    // Rows are taken one by one and not kept.
    parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), {
      bom: true,
      relax_column_count: true,
      skip_empty_lines: true,
      record_delimiter: ["\r\n", "\n", "\r"],
      max_record_size: CSV_ROW_BYTES_MAX,
      on_record: (cells: readonly string[]) => {
        reading.row++;
        if (reading.row === 1) readHeader(reading, cells);
        else takeRow(reading, cells);
        return null;
      },
    });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw refusedRow(reading.row + 1, undefined, faultText(error.code));
  }
  if (reading.row === 0) throw refusedRow(1, undefined, "there is no header");
  if (target !== undefined && reading.zones.size === 0) zoneRows(reading, target);
  return [...reading.zones.values()].map(draftZone);
}

function requireUtf8(bytes: Uint8Array): void {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Refusal("invalid_request", "the body is not valid UTF-8", [{ pointer: "", detail: "not valid UTF-8" }]);
  }
  if (bytes.includes(0)) {
    throw new Refusal("invalid_request", "the body holds a NUL byte", [{ pointer: "", detail: "holds a NUL byte" }]);
  }
}

function faultText(code: string): string {
  switch (code) {
    case "CSV_QUOTE_NOT_CLOSED":
      return "a quotation mark is not closed";
    case "INVALID_OPENING_QUOTE":
    case "CSV_NON_TRIMABLE_CHAR_AFTER_CLOSING_QUOTE":
    case "CSV_INVALID_CLOSING_QUOTE":
      return "a quotation mark in the middle of a field; quote the whole field and double the marks within";
    case "CSV_MAX_RECORD_SIZE":
      return `longer than ${CSV_ROW_BYTES_MAX} characters`;
    default:
      return "is not CSV";
  }
}

function readHeader({ columns, target }: Reading, cells: readonly string[]): void {
  for (const [index, cell] of cells.entries()) {
    const name = cell.trim().toLowerCase();
    const column = CSV_COLUMNS.find((known) => known === name);
    if (column === undefined) {
      throw refusedRow(
        1,
        undefined,
        `unknown column ${JSON.stringify(cell.slice(0, 100).toWellFormed())}; the columns are ${CSV_COLUMNS.join(", ")}`,
      );
    }
    if (columns.has(column)) throw refusedRow(1, column, "the column is there twice");
    columns.set(column, index);
  }
  const missing = [...NEEDED, ...(target === undefined ? ["zone" as const] : [])].find(
    (column) => !columns.has(column),
  );
  if (missing !== undefined) throw refusedRow(1, missing, "the column is missing");
}

function takeRow(reading: Reading, cells: readonly string[]): void {
  const { columns, row } = reading;
  if (cells.length !== columns.size) {
    throw refusedRow(row, undefined, `${cells.length} fields where the header has ${columns.size}`);
  }
  const cell = (column: Column) => cells[columns.get(column) ?? -1] ?? "";
  const zone = zoneRows(reading, cell("zone").trim() === "" ? (reading.target ?? "") : cell("zone").trim());
  const name = cell("name").trim();
  const type = RECORD_TYPES.find((known) => known === cell("type").trim().toUpperCase());
  if (type === undefined) throw refusedRow(row, "type", `must be one of ${RECORD_TYPES.join(", ")}`);
  const group = groupOf(reading, zone, name, type);
  if (group === undefined) return;
  const ttl = numberOf(cell("ttl"), "ttl", row);
  if (group.ttl === undefined) group.ttl = ttl;
  else if (ttl !== undefined && ttl !== group.ttl) {
    throw refusedRow(row, "ttl", `differs from that of row ${group.row}, which has the same name and type`);
  }
  const value = rowValue(type, cell, row);
  if (group.values.length > 0) {
    const text = JSON.stringify(value);
    group.held ??= new Set([JSON.stringify(group.values[0])]);
    if (group.held.has(text)) return;
    group.held.add(text);
  }
  group.rows.push(row);
  group.values.push(value);
}

function zoneRows(reading: Reading, name: string): ZoneRows {
  const { zones, spelled, target, row } = reading;
  const known = spelled.get(name);
  if (known !== undefined) return known;
  const zone = attempt(row, "zone", () => zoneFromCreate({ name }, ""));
  if (target !== undefined && target !== zone.name) {
    throw refusedRow(row, "zone", `the import is into the zone ${target}`);
  }
  const rows = zones.get(zone.name) ?? { zone, groups: new Map(), isCut: false };
  if (!zones.has(zone.name) && zones.size === IMPORT_ZONES_MAX) {
    throw refusedRow(row, "zone", `more than ${IMPORT_ZONES_MAX} zones`);
  }
  zones.set(zone.name, rows);
  spelled.set(name, rows);
  return rows;
}

/** Undefined for what the import into one zone cuts off. */
function groupOf(reading: Reading, rows: ZoneRows, name: string, type: RecordType): Group | undefined {
  const key = `${type} ${name.toLowerCase()}`;
  const known = rows.groups.get(key);
  if (known !== undefined) return known;
  const { row, target } = reading;
  if (rows.groups.size === IMPORT_ZONE_RECORDS_MAX) {
    if (target === undefined) throw refusedRow(row, undefined, overLimitText(rows.zone.name));
    rows.isCut = true;
    return undefined;
  }
  reading.records++;
  if (reading.records > IMPORT_RECORDS_MAX)
    throw refusedRow(row, undefined, `more than ${IMPORT_RECORDS_MAX} records in all`);
  const group: Group = { name, type, row, rows: [], ttl: undefined, values: [], held: undefined };
  rows.groups.set(key, group);
  return group;
}

function numberOf(text: string, column: Column, row: number): number | undefined {
  const digits = text.trim();
  if (digits === "") return undefined;
  if (!/^\d{1,10}$/.test(digits)) throw refusedRow(row, column, "must be a whole number");
  return Number(digits);
}

function rowValue(type: RecordType, cell: (column: Column) => string, row: number): RecordValue {
  const region = cell("region").trim();
  const numbers: Partial<Record<"priority" | "weight" | "port", number>> = {};
  for (const column of ["priority", "weight", "port"] as const) {
    const number = numberOf(cell(column), column, row);
    if (number !== undefined) numbers[column] = number;
  }
  const text = type === "CAA" ? caaOf(cell("value"), row) : { value: cell("value") };
  return { ...text, ...(region === "" ? {} : { region }), ...numbers };
}

const CAA = /^\s*([A-Za-z0-9]+)(?:\s+(?:"((?:[^"\\]|\\.)*)"|([^\s"]*)))?\s*$/;

/** `issue "ca.example"`: the flag is in the column of priorities. */
function caaOf(text: string, row: number): RecordValue {
  const match = CAA.exec(text);
  if (match === null) throw refusedRow(row, "value", 'must be a tag and a quoted value: issue "ca.example"');
  const value = match[2]?.replaceAll(/\\(.)/g, "$1") ?? match[3] ?? "";
  return { value, tag: (match[1] ?? "").toLowerCase() };
}

function draftZone({ zone, groups, isCut }: ZoneRows): ZoneDraft {
  const drafts: RecordDraft[] = [];
  const typesAt = new Map<string, RecordType[]>();
  for (const group of groups.values()) {
    const body = draftRecord(zone, group);
    const others = typesAt.get(body.name) ?? [];
    if (others.includes(body.type))
      throw refusedRow(group.row, "name", "this name and type is there already in another spelling");
    const rival = ownershipConflict(body.type, others, body.name);
    if (rival !== undefined)
      throw refusedRow(group.row, "name", `${body.type} stands beside a record of type ${rival} of the same name`);
    typesAt.set(body.name, [...others, body.type]);
    drafts.push({ body });
  }
  return {
    create: { name: zone.name },
    file: "",
    records: sortByName(drafts),
    parseErrors: [],
    errors: isCut ? [overLimitText(zone.name)] : [],
    warnings: [],
  };
}

function draftRecord(zone: ZoneBody, { name, type, row, rows, ttl, values }: Group) {
  const given = { name, type, ttl: ttl ?? 0, ...shared(values) };
  const fault = checkShape(RecordCreate, given)[0];
  if (fault !== undefined)
    throw refusedRow(rows[valueIndex(fault.pointer)] ?? row, undefined, `${fault.pointer} ${fault.detail}`);
  try {
    // The shape has been checked.
    return recordFromCreate(given as RecordCreate, zone, "");
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const [first] = error.faults;
    throw refusedRow(
      rows[valueIndex(first?.pointer ?? "")] ?? row,
      undefined,
      first === undefined ? error.message : `${first.pointer} ${first.detail}`,
    );
  }
}

/** Numbers that all values share stand at the record, as a person would write them. */
function shared(values: readonly RecordValue[]): Record<string, unknown> {
  const first = values[0];
  const record: Record<string, unknown> = {};
  for (const field of ["priority", "weight", "port", "tag"] as const) {
    if (first?.[field] !== undefined && values.every((value) => value[field] === first[field]))
      record[field] = first[field];
  }
  const kept = values.map((value) =>
    Object.fromEntries(Object.entries(value).filter(([field]) => !Object.hasOwn(record, field))),
  );
  return { ...record, values: kept };
}

/** The row of a value that a pointer leads to; -1: it leads to the record. */
function valueIndex(pointer: string): number {
  const match = /^\/values\/(\d+)/.exec(pointer);
  return match === null ? -1 : Number(match[1]);
}

function attempt<Result>(row: number, column: Column, make: () => Result): Result {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw refusedRow(row, column, error.faults[0]?.detail ?? error.message);
  }
}

function refusedRow(row: number, column: Column | undefined, detail: string): Refusal {
  const pointer = `/rows/${row}${column === undefined ? "" : `/${column}`}`;
  const title = `row ${row}${column === undefined ? "" : `, ${column}`}`;
  return new Refusal("invalid_request", `${title}: ${detail}`, [{ pointer, detail }]);
}
