/** What an import would do to the zones that are stored: the difference, record by record, and nothing written yet. */
import { isDeepStrictEqual } from "node:util";
import { IMPORT_NOTES_MAX, IMPORTED_SERIAL_MAX } from "../model/limits.ts";
import type { RecordBody, ZoneBody } from "../model/objects.ts";
import { ownershipConflict } from "../model/ownership.ts";
import { fqdnOf, recordFromImport } from "../model/record.ts";
import { canonicalValue, canonicalValues } from "../model/record-values.ts";
import { type FieldFault, Refusal } from "../model/refusal.ts";
import { zoneFromCreate } from "../model/zone.ts";
import type { Stored, StoreReader } from "../store/store.ts";
import type { ImportFormat, ParseError, RecordDraft, ZoneHead } from "./import-draft.ts";
import { permitUnconfined, permitZone } from "./permit.ts";
import { type Caller, newId } from "./run.ts";

export type SkippedRecord = {
  readonly zone: string;
  readonly record_id: string;
  readonly name: string;
  readonly type: string;
};
export type MissingSecret = {
  readonly zone: string;
  readonly name: string;
  readonly type: string;
  /** RFC 6901 pointer into the record. */
  readonly field: string;
};

/** A plan is good for the zone as it was read: `version` is that of its content. */
export type ZonePlan = {
  readonly head: ZoneHead;
  readonly format: ImportFormat;
  /** The zone that is stored, or the one that would be made. */
  readonly zone: ZoneBody;
  readonly isNew: boolean;
  /** There is nothing to compare with. */
  readonly isEmpty: boolean;
  /** Of a zone that is new; absent: the server's own. */
  readonly serial?: number;
  readonly version: string;
  readonly puts: RecordBody[];
  created: number;
  updated: number;
  unchanged: number;
  readonly skipped: SkippedRecord[];
  readonly secretsMissing: MissingSecret[];
  /** Of records that a zone file has and the stored zone cannot take. */
  readonly parseErrors: ParseError[];
  readonly warnings: string[];
  /** Of formats that are written whole or not at all. */
  readonly conflicts: FieldFault[];
};

type PlanReader = Pick<StoreReader, "get" | "list" | "count" | "serialOf" | "byId">;

/** What a change of the zone or of any of its records changes. */
export function contentVersion(reader: Pick<StoreReader, "serialOf">, stored: Stored<"zone"> | undefined): string {
  return stored === undefined ? "" : `${stored.body.id} ${stored.stamp} ${reader.serialOf(stored.body.name)}`;
}

/** Begins the plan for one zone. Throws `zone_not_permitted` where the caller may not write there. */
export function openPlan(reader: PlanReader, caller: Caller, format: ImportFormat, head: ZoneHead): ZonePlan {
  const proposed = zoneFromCreate(head.create, "");
  const stored = reader.get("zone", [proposed.name]);
  if (stored === undefined) permitUnconfined(caller, "create zones");
  else permitZone(reader, caller, stored.body);
  const isNew = stored === undefined;
  const serial = isNew ? head.serial : undefined;
  const isTooGreat = serial !== undefined && serial > IMPORTED_SERIAL_MAX;
  return {
    head,
    format,
    zone: stored?.body ?? proposed,
    isNew,
    isEmpty: isNew || reader.count("record", proposed.name) === 0,
    ...(serial === undefined || isTooGreat ? {} : { serial }),
    version: contentVersion(reader, stored),
    puts: [],
    created: 0,
    updated: 0,
    unchanged: 0,
    skipped: [],
    secretsMissing: [],
    parseErrors: [],
    warnings: isTooGreat ? [replacedSerialText(proposed.name, serial)] : [],
    conflicts: [],
  };
}

function replacedSerialText(zone: string, serial: number): string {
  return `${zone} SOA: its serial ${serial} is above ${IMPORTED_SERIAL_MAX}, and the zone begins with one of the server's own`;
}

/** Holds records against what is stored; all that the import has for a name come in one call. */
export function planRecords(reader: PlanReader, plan: ZonePlan, records: readonly RecordDraft[]): void {
  let name: string | undefined;
  let stored: readonly Stored<"record">[] = [];
  for (const draft of records) {
    if (!plan.isEmpty && draft.body.name !== name) {
      name = draft.body.name;
      // There are fewer types than this, so the list is whole.
      stored = reader.list("record", { prefix: [plan.zone.name, name], limit: 100 });
    }
    planRecord(plan, draft, stored);
  }
}

function planRecord(plan: ZonePlan, draft: RecordDraft, stored: readonly Stored<"record">[]): void {
  const { type, name } = draft.body;
  const incumbent = stored.find(({ body }) => body.type === type)?.body;
  const body = withSecrets(plan, draft, incumbent);
  if (incumbent !== undefined) {
    if (saysTheSame(plan, body, incumbent)) plan.unchanged++;
    else if (incumbent.protected) {
      plan.skipped.push({ zone: plan.zone.name, record_id: incumbent.id, name: incumbent.name, type });
    } else {
      plan.updated++;
      plan.puts.push({ ...body, id: incumbent.id });
      noteLoss(plan, incumbent);
    }
    return;
  }
  const rival = stored.find(({ body: other }) => ownershipConflict(type, [other.type], name) !== undefined)?.body;
  if (rival !== undefined) {
    noteConflict(plan, draft, rival);
    return;
  }
  plan.created++;
  plan.puts.push({ ...body, id: newId("record") });
}

/** "***" is the incumbent's secret; where there is none it is left out and listed. */
function withSecrets(plan: ZonePlan, { body, masked }: RecordDraft, incumbent: RecordBody | undefined): RecordBody {
  if (masked === undefined) return body;
  const imported = recordFromImport(masked, plan.zone, "", incumbent);
  for (const field of imported.secretsMissing) {
    plan.secretsMissing.push({ zone: plan.zone.name, name: body.name, type: body.type, field });
  }
  return imported.body;
}

/**
 * Whether the import says nothing else than what is stored, as far as its format can say it: a zone file knows no regions
 * and no policies, and neither it nor CSV knows an order of values; a TTL counts as it is answered.
 */
function saysTheSame({ format, zone }: ZonePlan, given: RecordBody, stored: RecordBody): boolean {
  if (format === "json") return isDeepStrictEqual({ ...given, id: stored.id }, stored);
  if (given.values.length === 0) return stored.values.length === 0;
  if ((given.ttl || zone.default_ttl) !== (stored.ttl || zone.default_ttl)) return false;
  if (given.values.length !== stored.values.length) return false;
  const spell = format === "csv" ? valuesWithRegions : canonicalValues;
  return isDeepStrictEqual(spell(given), spell(stored));
}

function valuesWithRegions(record: RecordBody): readonly string[] {
  return record.values.map((value) => `${canonicalValue(record.type, record, value)}\0${value.region ?? ""}`).sort();
}

/** A record is replaced as by a create; whoever imports a format that knows less is told what went. */
function noteLoss(plan: ZonePlan, incumbent: RecordBody): void {
  if (plan.format === "json") return;
  const lost = (["lb_policy", "health_check_template", "comment"] as const).filter(
    (field) => incumbent[field] !== undefined,
  );
  if (lost.length === 0) return;
  note(plan.warnings, `${fqdnOf(incumbent)} ${incumbent.type}: replaced, and its ${lost.join(", ")} went with it`);
}

function noteConflict(plan: ZonePlan, draft: RecordDraft, rival: RecordBody): void {
  const { zone, format, head } = plan;
  const { name, type } = draft.body;
  const detail = `${fqdnOf({ zone: zone.name, name })} has a record of type ${rival.type} (${rival.id}); ${type} cannot stand beside it`;
  if (format === "zone-file") {
    if (plan.parseErrors.length >= IMPORT_NOTES_MAX) return;
    plan.parseErrors.push({ file: head.file, line: draft.line ?? 1, column: draft.column ?? 1, detail });
  } else if (plan.conflicts.length < IMPORT_NOTES_MAX) {
    plan.conflicts.push({ pointer: "", detail: `zone ${zone.name}, record ${name} ${type}: ${detail}` });
  }
}

function note(notes: string[], text: string): void {
  if (notes.length < IMPORT_NOTES_MAX) notes.push(text);
}

/** Throws `name_owned` where a format that is whole or nothing holds what the stored zones cannot take. */
export function refuseConflicts(plans: readonly ZonePlan[]): void {
  const faults = plans.flatMap(({ conflicts }) => conflicts);
  const first = faults[0];
  if (first !== undefined) throw new Refusal("name_owned", first.detail, faults.slice(0, IMPORT_NOTES_MAX));
}
