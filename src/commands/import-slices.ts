/** Drafts cut into slices for one turn of the event loop each. */
import type { ParsedImport, RecordDraft, ZoneHead } from "./import-draft.ts";
import { parseImport } from "./import-parse.ts";
import type { ImportParser, ImportReading, ImportSlice } from "./import-parser.ts";

/** Records in a slice: about a millisecond to copy from thread to thread, a few to hold against the store. */
const SLICE_RECORDS = 256;

export function headsOf({ zones }: ParsedImport): readonly ZoneHead[] {
  return zones.map(({ records, ...head }) => ({ ...head, recordCount: records.length }));
}

/** Records of one name stay together, so a slice may be longer by as many as there are types. */
export function* cutSlices({ zones }: ParsedImport): Generator<ImportSlice> {
  for (const [zone, { records }] of zones.entries()) {
    let slice: RecordDraft[] = [];
    for (const [index, draft] of records.entries()) {
      const isNewName = records[index - 1]?.body.name !== draft.body.name;
      if (slice.length >= SLICE_RECORDS && isNewName) {
        yield { zone, records: slice };
        slice = [];
      }
      slice.push(draft);
    }
    if (slice.length > 0) yield { zone, records: slice };
  }
}

/** Parses in the caller's own thread: for a program that has nothing else to do, as at the start of a node. */
export const parseHere: ImportParser = async (source) => readingOf(parseImport(source));

export function readingOf(parsed: ParsedImport): ImportReading {
  return {
    format: parsed.format,
    zones: headsOf(parsed),
    parseErrors: parsed.parseErrors,
    slices: async function* () {
      yield* cutSlices(parsed);
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}
