/** The zone files of the command line: each is imported where its zone is not stored yet, and left alone where it is. */
import { errorCode, errorText } from "../base/errors.ts";
import type { ZoneDraft } from "../commands/import-draft.ts";
import { readingOf } from "../commands/import-slices.ts";
import { readZoneFile } from "../commands/import-zone-file.ts";
import { importZones } from "../commands/import-zones.ts";
import type { Caller, CommandContext } from "../commands/run.ts";
import type { ZonePeers } from "../commands/zones.ts";
import { nameFromText, nameToText } from "../dns/name.ts";
import { parseZoneFile } from "../dns/zone-file.ts";
import { IMPORT_RECORDS_MAX } from "../model/limits.ts";
import { Refusal } from "../model/refusal.ts";
import type { ZoneArgument } from "./arguments.ts";
import { ZONE_FILE_BYTES_MAX } from "./limits.ts";
import { readRegularFile } from "./regular-file.ts";

export type ImportedZone = { readonly name: string; readonly file: string; readonly records: number };

export type ZoneFilesReport = {
  readonly imported: readonly ImportedZone[];
  /** Those whose zone is stored already. */
  readonly left: readonly { readonly name: string; readonly file: string }[];
  /** A line for each fault, `FILE:LINE:COLUMN: detail`. Where there is one, nothing was imported. */
  readonly faults: readonly string[];
  readonly warnings: readonly string[];
  /** One line for each file that could not be used. */
  readonly refused: readonly string[];
};

type FileOutcome = {
  readonly draft?: ZoneDraft;
  readonly stored?: string;
  readonly faults: readonly string[];
  readonly refused?: string;
};

const AT_START: Caller = {
  actor: { kind: "system", id: "", name: "system", role: "admin" },
  address: "",
  requestId: "",
  dryRun: false,
};

/** All files or none: the operator who started the node is there to mend them. */
export async function importZoneFiles(
  context: CommandContext,
  peers: ZonePeers,
  zones: readonly ZoneArgument[],
): Promise<ZoneFilesReport> {
  const outcomes = zones.map((zone) => readFile(context, zone));
  const refused = outcomes.flatMap((outcome) => outcome.refused ?? []);
  refused.push(
    ...twice(
      outcomes.map(({ draft, stored }) => draft?.create.name ?? stored),
      zones,
    ),
  );
  const report = {
    left: outcomes.flatMap(({ stored }, index) =>
      stored === undefined ? [] : [{ name: stored, file: fileOf(zones, index) }],
    ),
    faults: outcomes.flatMap(({ faults }) => faults),
    refused,
  };
  if (refused.length > 0) return { ...report, imported: [], warnings: [] };
  const imported: ImportedZone[] = [];
  const warnings: string[] = [];
  for (const [index, { draft }] of outcomes.entries()) {
    if (draft === undefined) continue;
    const file = fileOf(zones, index);
    const parse = async () => readingOf({ format: "zone-file", zones: [draft], parseErrors: [] });
    const source = { contentType: "text/dns", body: new Uint8Array(0) };
    const outcome = await importZones(context, AT_START, { parse, peers }, source);
    imported.push({ name: draft.create.name, file, records: outcome.created });
    warnings.push(...outcome.warnings.map((warning) => `${file}: ${warning}`));
    for (const { line, column, detail } of outcome.parse_errors) warnings.push(`${file}:${line}:${column}: ${detail}`);
  }
  return { ...report, imported, warnings };
}

function fileOf(zones: readonly ZoneArgument[], index: number): string {
  return zones[index]?.file ?? "";
}

/** Two files cannot both be the whole of a zone. */
function twice(names: readonly (string | undefined)[], zones: readonly ZoneArgument[]): string[] {
  return names.flatMap((name, index) => {
    const first = names.indexOf(name);
    if (name === undefined || first === index) return [];
    return [`zone files ${fileOf(zones, first)} and ${fileOf(zones, index)} both hold zone ${name}`];
  });
}

function readFile({ store }: CommandContext, { name, file }: ZoneArgument): FileOutcome {
  let text: Uint8Array;
  try {
    text = readRegularFile(file, ZONE_FILE_BYTES_MAX);
  } catch (error) {
    return { faults: [], refused: `cannot read zone file ${file}: ${readFault(error)}` };
  }
  const origin = name === undefined ? {} : { origin: name };
  const zone = zoneNameIn(text, name);
  if (zone !== undefined && store.get("zone", [zone]) !== undefined) return { stored: zone, faults: [] };
  try {
    const outcome = readZoneFile(file, text, { ...origin, recordsMax: IMPORT_RECORDS_MAX, leavesOut: true });
    if (outcome.kind === "too-large") {
      const { line, column } = outcome.error;
      return { faults: [], refused: `${file}:${line}:${column}: more than ${IMPORT_RECORDS_MAX} records` };
    }
    const { draft } = outcome;
    const faults = draft.parseErrors.map(({ line, column, detail }) => `${file}:${line}:${column}: ${detail}`);
    if (faults.length === 0) return { draft, faults };
    return { faults, refused: `zone file ${file} has ${faults.length} ${faults.length === 1 ? "error" : "errors"}` };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { faults: [], refused: `${file} is no zone file: ${error.message}` };
  }
}

/** Thrown to end the parsing where all is known that was asked for. */
class Found extends Error {
  override readonly name = "Found";
}

/** The zone that the file's SOA names; undefined where it has none. */
function zoneNameIn(text: Uint8Array, origin: string | undefined): string | undefined {
  const base = origin === undefined ? undefined : nameFromText(origin);
  let zone: string | undefined;
  try {
    parseZoneFile(text, {
      ...(base?.kind === "name" ? { origin: base.name } : {}),
      onZone: (apex) => {
        zone = nameToText(apex).toLowerCase();
        throw new Found("the zone's name");
      },
      onRecord: () => undefined,
    });
  } catch (error) {
    if (!(error instanceof Found)) throw error;
  }
  return zone;
}

function readFault(error: unknown): string {
  switch (errorCode(error)) {
    case "ENOENT":
      return "there is no such file";
    case "EACCES":
      return "no permission to read it";
    case "EISDIR":
      return "it is a directory";
    default:
      return errorText(error);
  }
}
