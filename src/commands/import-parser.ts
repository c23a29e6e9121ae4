/** What parses the bodies of imports for the commands, and hands the records over a slice at a time. */
import type { ImportFormat, ImportSource, ParseError, RecordDraft, ZoneHead } from "./import-draft.ts";

export type ImportReading = AsyncDisposable & {
  readonly format: ImportFormat;
  readonly zones: readonly ZoneHead[];
  /** Of files that are not taken at all. */
  readonly parseErrors: readonly ParseError[];
  /**
   * The records of all zones in the order of `zones`. A slice holds records of one zone, and all that the import has for
   * a name; it is small enough for one turn of the event loop.
   */
  readonly slices: () => AsyncIterable<ImportSlice>;
};
export type ImportSlice = { readonly zone: number; readonly records: readonly RecordDraft[] };

/** Rejects with a Refusal where nothing of the body may be written. */
export type ImportParser = (source: ImportSource, signal?: AbortSignal) => Promise<ImportReading>;
