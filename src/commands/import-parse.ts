/** A request's body as drafts of zones, by its media type. Pure, and slow for large bodies: it runs in a thread of its own. */
import { IMPORT_NOTES_MAX, IMPORT_RECORDS_MAX } from "../model/limits.ts";
import { Refusal } from "../model/refusal.ts";
import { readBundle } from "./import-bundle.ts";
import { readCsv } from "./import-csv.ts";
import type { ImportSource, ParsedImport, ParseError, ZoneDraft } from "./import-draft.ts";
import { type FormFile, readFormFiles } from "./import-multipart.ts";
import { readZoneFile } from "./import-zone-file.ts";

/** The media types that imports take. */
export const IMPORT_MEDIA_TYPES = ["application/json", "text/csv", "multipart/form-data", "text/dns"] as const;

/** How messages call the one zone file that is the whole body. */
const BODY_NAME = "body";

/** Throws a Refusal where nothing of the body may be written. */
export function parseImport({ contentType, body, target }: ImportSource): ParsedImport {
  const type = contentType.split(";")[0]?.trim().toLowerCase() ?? "";
  const options = target === undefined ? {} : { target };
  switch (type) {
    case "application/json":
      return { format: "json", zones: readBundle(body, options), parseErrors: [] };
    case "text/csv":
      return { format: "csv", zones: readCsv(body, options), parseErrors: [] };
    case "multipart/form-data":
      return readFiles(readFormFiles(contentType, body), target);
    case "text/dns":
      return readFiles([{ name: BODY_NAME, content: body }], target);
    default:
      throw new Refusal("media_type_unsupported", `imports take ${IMPORT_MEDIA_TYPES.join(", ")}`);
  }
}

function readFiles(files: readonly FormFile[], target: string | undefined): ParsedImport {
  if (target !== undefined && files.length > 1) {
    throw refused(`${files.length} files; an import into one zone takes one`);
  }
  const zones: ZoneDraft[] = [];
  const parseErrors: ParseError[] = [];
  const fileOf = new Map<string, string>();
  let records = 0;
  for (const { name, content } of files) {
    const outcome = readZoneFile(name, content, { cuts: target !== undefined });
    if (outcome.kind === "too-large") {
      parseErrors.push(outcome.error);
      continue;
    }
    const { draft } = outcome;
    const zone = draft.create.name;
    const other = fileOf.get(zone);
    if (other !== undefined)
      throw refused(`the files ${JSON.stringify(other)} and ${JSON.stringify(name)} both hold the zone ${zone}`);
    if (target !== undefined && zone !== target) {
      throw refused(`the file holds the zone ${zone}, and the import is into the zone ${target}`);
    }
    fileOf.set(zone, name);
    records += draft.records.length;
    if (records > IMPORT_RECORDS_MAX) throw refused(`more than ${IMPORT_RECORDS_MAX} records in all`);
    zones.push(draft);
  }
  return { format: "zone-file", zones, parseErrors: parseErrors.slice(0, IMPORT_NOTES_MAX) };
}

function refused(detail: string): Refusal {
  return new Refusal("invalid_request", detail, [{ pointer: "", detail }]);
}
