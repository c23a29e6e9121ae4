/** The zone files of the command line: read, checked and put into the image, at start and again at SIGHUP. */
import { readFileSync } from "node:fs";
import { errorCode, errorText } from "../base/errors.ts";
import type { ImageWriter } from "../image/writer-state.ts";
import { publishZoneFile, removeZone } from "../publish/zone-file-source.ts";
import type { ZoneArgument } from "./arguments.ts";
import { ZONE_FAULTS_SHOWN } from "./limits.ts";

export type ServedZone = {
  readonly name: string;
  readonly file: string;
  readonly records: number;
  readonly serial: number;
};

export type ZoneFilesReport = {
  readonly served: readonly ServedZone[];
  /** A line for each fault, `FILE:LINE:COLUMN: detail` where the fault has a place. */
  readonly faults: readonly string[];
  readonly warnings: readonly string[];
  /** One line for each file that could not be used. */
  readonly refused: readonly string[];
};

type FileOutcome = {
  readonly zone?: ServedZone;
  readonly faults: readonly string[];
  readonly warnings: readonly string[];
  readonly refused?: string;
};

/**
 * Reads every file again and publishes what is free of faults. A file with faults changes nothing: what it held when
 * it was last good stays served.
 */
export function createZoneFiles(writer: ImageWriter, zones: readonly ZoneArgument[]): () => ZoneFilesReport {
  let lastGood = new Map<string, ServedZone>();
  return () => {
    const served = new Map<string, ServedZone>();
    const owners = new Map<string, string>();
    const outcomes = zones.map((zone) => {
      const outcome = publishFile(writer, zone, owners);
      const entry = outcome.zone ?? lastGood.get(zone.file);
      if (entry !== undefined) served.set(zone.file, entry);
      return outcome;
    });
    const names = new Set([...served.values()].map(({ name }) => name));
    for (const { name } of lastGood.values()) if (!names.has(name)) removeZone(writer, name);
    lastGood = served;
    return {
      served: [...served.values()],
      faults: outcomes.flatMap(({ faults }) => faults),
      warnings: outcomes.flatMap(({ warnings }) => warnings),
      refused: outcomes.flatMap(({ refused }) => refused ?? []),
    };
  };
}

/** `owners` tells which file holds a zone already: two files cannot both be the whole of it. */
function publishFile(writer: ImageWriter, zone: ZoneArgument, owners: Map<string, string>): FileOutcome {
  const { file } = zone;
  let text: Uint8Array;
  try {
    text = readFileSync(file);
  } catch (error) {
    return { faults: [], warnings: [], refused: `cannot read zone file ${file}: ${readFault(error)}` };
  }
  const result = publishZoneFile(writer, text, zone.name, (name) => {
    const other = owners.get(name);
    return other === undefined ? undefined : `zone files ${other} and ${file} both hold zone ${name}`;
  });
  const { name, records, serial } = result;
  const warnings = result.warnings.map((warning) => `${file}: ${warning}`);
  const [first] = result.errors;
  if (result.refused !== undefined) return { faults: [], warnings, refused: result.refused };
  if (first === undefined && name !== undefined) {
    owners.set(name, file);
    return { zone: { name, file, records, serial }, faults: [], warnings };
  }
  if (records === 0 || first === undefined) {
    const detail = first === undefined ? "it holds no SOA record" : `${first.line}:${first.column}: ${first.detail}`;
    return { faults: [], warnings, refused: `${file} is no zone file: ${detail}` };
  }
  const faults = result.errors
    .slice(0, ZONE_FAULTS_SHOWN)
    .map(({ line, column, detail }) => `${file}:${line}:${column}: ${detail}`);
  const count = result.errors.length;
  return { faults, warnings, refused: `zone file ${file} has ${count} ${count === 1 ? "error" : "errors"}` };
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
