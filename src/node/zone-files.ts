/** The zone files of the command line: read, checked and put into the image, at start and again at SIGHUP. */
import { errorCode, errorText } from "../base/errors.ts";
import type { ImageWriter } from "../image/writer-state.ts";
import { publishZoneFile, removeZone } from "../publish/zone-file-source.ts";
import type { ZoneArgument } from "./arguments.ts";
import { ZONE_FILE_BYTES_MAX } from "./limits.ts";
import { readRegularFile } from "./regular-file.ts";

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
 * Reads every file again and publishes what is free of faults. A file with faults, or with a zone that another one serves,
 * changes nothing: what it held when it was last good stays served.
 */
export function createZoneFiles(writer: ImageWriter, zones: readonly ZoneArgument[]): () => ZoneFilesReport {
  /** What each argument serves; a file may be given several times, for zones of several names. */
  const served: (ServedZone | undefined)[] = zones.map(() => undefined);
  return () => {
    const before = served.flatMap((zone) => zone?.name ?? []);
    const outcomes = zones.map((zone, index) => {
      const outcome = publishFile(writer, zone, (name) =>
        served.find((other, at) => at !== index && other?.name === name),
      );
      served[index] = outcome.zone ?? served[index];
      return outcome;
    });
    const names = new Set(served.map((zone) => zone?.name));
    for (const name of before) if (!names.has(name)) removeZone(writer, name);
    return {
      served: served.filter((zone) => zone !== undefined),
      faults: outcomes.flatMap(({ faults }) => faults),
      warnings: outcomes.flatMap(({ warnings }) => warnings),
      refused: outcomes.flatMap(({ refused }) => refused ?? []),
    };
  };
}

/** `ownerOf` tells which other file holds a zone: two files cannot both be the whole of it. */
function publishFile(
  writer: ImageWriter,
  zone: ZoneArgument,
  ownerOf: (name: string) => ServedZone | undefined,
): FileOutcome {
  const { file } = zone;
  let text: Uint8Array;
  try {
    text = readRegularFile(file, ZONE_FILE_BYTES_MAX);
  } catch (error) {
    return { faults: [], warnings: [], refused: `cannot read zone file ${file}: ${readFault(error)}` };
  }
  const result = publishZoneFile(writer, text, zone.name, (name) => {
    const other = ownerOf(name);
    return other === undefined ? undefined : `zone files ${other.file} and ${file} both hold zone ${name}`;
  });
  const { name, records, serial } = result;
  const warnings = result.warnings.map((warning) => `${file}: ${warning}`);
  const [first] = result.errors;
  if (result.refused !== undefined) return { faults: [], warnings, refused: result.refused };
  if (first === undefined && name !== undefined) {
    return { zone: { name, file, records, serial }, faults: [], warnings };
  }
  if (records === 0 || first === undefined) {
    const detail = first === undefined ? "it holds no SOA record" : `${first.line}:${first.column}: ${first.detail}`;
    return { faults: [], warnings, refused: `${file} is no zone file: ${detail}` };
  }
  const faults = result.errors.map(({ line, column, detail }) => `${file}:${line}:${column}: ${detail}`);
  if (result.errorsOmitted > 0) faults.push(`${file}: ${result.errorsOmitted} more`);
  const count = result.errors.length + result.errorsOmitted;
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
