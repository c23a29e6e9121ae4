/** What the text of an import says, before it is compared with what is stored: the same for all formats. */
import type { RecordBody } from "../model/objects.ts";
import type { RecordCreate } from "../model/record.ts";
import type { ZoneCreate } from "../model/zone.ts";

/** What an import can say of a record besides its values: JSON everything, CSV regions, a zone file nothing. */
export type ImportFormat = "json" | "csv" | "zone-file";

/** Something of a zone file that was not taken. `line` and `column` count from 1, in characters. */
export type ParseError = {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly detail: string;
};

/** A valid record. Its id is "" until it is known whether it replaces one. */
export type RecordDraft = {
  readonly body: RecordBody;
  /** What was given, where a secret in it reads "***" and so may stand for that of the incumbent. */
  readonly masked?: RecordCreate;
  /** Where a zone file has it. */
  readonly line?: number;
  readonly column?: number;
};

export type ZoneDraft = {
  /** What creates the zone where it is missing. */
  readonly create: ZoneCreate;
  /** Taken when the zone is created, and only where it leaves room for later changes. */
  readonly serial?: number;
  /** For messages; "" where the request has no files. */
  readonly file: string;
  /** In the order of names, all records of one name together. */
  readonly records: readonly RecordDraft[];
  readonly parseErrors: readonly ParseError[];
  /** What the per-zone import cut off. */
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
};

/** A zone as the other thread announces it: its records follow in slices. */
export type ZoneHead = Omit<ZoneDraft, "records"> & { readonly recordCount: number };

export type ParsedImport = {
  readonly format: ImportFormat;
  readonly zones: readonly ZoneDraft[];
  /** Of files that are not taken at all. */
  readonly parseErrors: readonly ParseError[];
};

/** One request. `target` is the zone's name where the import is into one zone only. */
export type ImportSource = {
  readonly contentType: string;
  readonly body: Uint8Array;
  readonly target?: string;
};

/** By file, line and column; what stands at one place stays as it came. */
export function sortByPlace(errors: readonly ParseError[]): readonly ParseError[] {
  const byFile = ({ file: left }: ParseError, { file: right }: ParseError) =>
    left < right ? -1 : left > right ? 1 : 0;
  return errors.toSorted((left, right) => byFile(left, right) || left.line - right.line || left.column - right.column);
}

/** Records of one name are neighbours in this order; it is no order that anybody sees. */
export function sortByName(records: readonly RecordDraft[]): readonly RecordDraft[] {
  const keyed = records.map((record) => ({ record, key: reversedLabels(record.body.name) }));
  keyed.sort((left, right) => (left.key < right.key ? -1 : left.key > right.key ? 1 : 0));
  return keyed.map(({ record }) => record);
}

/** Near to the order of the store's keys, so that its pages are written one after the other. */
function reversedLabels(name: string): string {
  return name === "@" ? "" : name.split(".").reverse().join("\u0000");
}
