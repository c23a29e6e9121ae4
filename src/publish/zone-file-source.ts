/** Puts the zone of a zone file into the image. */

import { nameFromText, nameToText } from "../dns/name.ts";
import { parseZoneFile } from "../dns/zone-file.ts";
import { createNameKey, readNameKey } from "../image/name-key.ts";
import { CONTROL } from "../image/shared.ts";
import { activateZone, deleteZone, discardZone } from "../image/writer.ts";
import type { ImageWriter } from "../image/writer-state.ts";
import { addRecord, finishZone, type Problem, startZone, type ZonePublisher } from "./zone-publisher.ts";

export type ZoneFileResult = {
  /** The zone's name in lower case with its trailing dot; undefined where the file has no usable SOA. */
  readonly name: string | undefined;
  readonly records: number;
  /** Sorted by line. Where there is one, nothing was changed. */
  readonly errors: readonly Problem[];
  /** Errors beyond those that are kept. */
  readonly errorsOmitted: number;
  readonly warnings: readonly string[];
  readonly serial: number;
  /** Why the caller did not want the zone; nothing was changed then either. */
  readonly refused?: string;
};

/**
 * Reads a zone file and lets its zone answer, in place of its former content if it was there: one store, at the end.
 * `origin` completes relative names before the file's own `$ORIGIN`; `refuse` is asked for a reason against a zone without
 * errors before it answers. The memory of the former content is freed by `collect`.
 */
export function publishZoneFile(
  writer: ImageWriter,
  text: Uint8Array,
  origin?: string,
  refuse?: (name: string) => string | undefined,
): ZoneFileResult {
  const base = origin === undefined ? undefined : nameFromText(origin);
  if (base?.kind === "error") return failed([{ line: 1, column: 1, detail: `origin ${origin}: ${base.reason}` }]);
  let publisher: ZonePublisher | undefined;
  const report = parseZoneFile(text, {
    ...(base === undefined ? {} : { origin: base.name }),
    onZone(apex) {
      publisher = startZone(writer, apex);
    },
    onRecord(owner, ownerLength, type, ttl, rdata, rdataLength, line, column) {
      // Without a SOA there is no zone that the record could belong to, and the report says so.
      if (publisher === undefined) return;
      addRecord(publisher, owner, ownerLength, type, ttl, rdata, rdataLength, line, column);
    },
  });
  if (publisher === undefined)
    return { ...failed(report.errors), records: report.records, errorsOmitted: report.errorsOmitted };
  publisher.problems.push(...report.errors);
  const { ok, serial } = finishZone(publisher);
  const name = nameToText(report.origin!).toLowerCase();
  const refused = ok ? refuse?.(name) : undefined;
  if (refused !== undefined) discardZone(writer, publisher.zone);
  else if (ok) activateZone(writer, publisher.zone, publisher.apex);
  return {
    ...(refused === undefined ? {} : { refused }),
    name,
    records: publisher.records,
    errors: publisher.problems.sort((a, b) => a.line - b.line || a.column - b.column),
    errorsOmitted: report.errorsOmitted + publisher.problemsOmitted,
    warnings: warningsOf(publisher, report),
    serial,
  };
}

function failed(errors: readonly Problem[]): ZoneFileResult {
  return { name: undefined, records: 0, errors, errorsOmitted: 0, warnings: [], serial: 0 };
}

function warningsOf(publisher: ZonePublisher, report: ReturnType<typeof parseZoneFile>): string[] {
  const warnings = publisher.warnings.map(({ line, column, detail }) => `${line}:${column}: ${detail}`);
  for (const { line, column, owner, type } of report.leftOut) {
    warnings.push(`${line}:${column}: left out ${owner} ${type}: zones here do not hold this type`);
  }
  if (report.leftOutOmitted > 0) warnings.push(`left out ${report.leftOutOmitted} more records of such types`);
  return warnings;
}

/** Ends a zone by its name; `collect` frees its memory. Returns false where there is no such zone. */
export function removeZone(writer: ImageWriter, name: string): boolean {
  const result = nameFromText(name);
  if (result.kind === "error") return false;
  const key = createNameKey();
  readNameKey(key, result.name, 0, result.name.length, writer.view.control[CONTROL.HASH_SEED]!);
  return deleteZone(writer, key);
}
