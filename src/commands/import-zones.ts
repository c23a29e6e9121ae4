/**
 * The import: parse, compare, write. Comparing is done in slices beside everything else, and the write finds out whether
 * what it compared with still stands; if not, it is compared again. One request is one transaction.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { IMPORT_NOTES_MAX } from "../model/limits.ts";
import type { ZoneBody } from "../model/objects.ts";
import { Refusal } from "../model/refusal.ts";
import { type ImportFormat, type ImportSource, type ParseError, sortByPlace } from "./import-draft.ts";
import type { ImportParser, ImportReading } from "./import-parser.ts";
import {
  contentVersion,
  type MissingSecret,
  openPlan,
  planRecords,
  refuseConflicts,
  type SkippedRecord,
  type ZonePlan,
} from "./import-plan.ts";
import { permitZone } from "./permit.ts";
import { type Caller, type CommandContext, type CommandTransaction, requireById, runCommandInSlices } from "./run.ts";
import { createZoneIn, type ZonePeers } from "./zones.ts";

export type ImportTools = {
  readonly parse: ImportParser;
  readonly peers: ZonePeers;
};

export type ZoneImport = {
  readonly zone: string;
  /** Absent in a dry run that would create the zone. */
  readonly zone_id?: string;
  readonly zone_created: boolean;
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly protected_skipped: readonly SkippedRecord[];
  readonly secrets_missing: readonly MissingSecret[];
  readonly parse_errors: readonly ParseError[];
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
};

/** The sums over all zones, their lists joined, and the zones one by one. */
export type ImportOutcome = {
  readonly dry_run: boolean;
  readonly format: ImportFormat;
  readonly zones_created: number;
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly protected_skipped: readonly SkippedRecord[];
  readonly secrets_missing: readonly MissingSecret[];
  readonly parse_errors: readonly ParseError[];
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
  readonly zones: readonly ZoneImport[];
};

/** How often an import is compared again because its zones changed meanwhile, before it gives up. */
const ATTEMPTS = 5;

/** A zone changed between comparing and writing. */
class StalePlan extends Error {
  override readonly name = "StalePlan";
}

/** Imports into the one zone with that id. Records over the limit are cut off, and `errors` says so. */
export function importIntoZone(
  context: CommandContext,
  caller: Caller,
  tools: ImportTools,
  zoneId: string,
  source: Omit<ImportSource, "target">,
  signal?: AbortSignal,
): Promise<ImportOutcome> {
  const { body } = requireById(context.store, "zone", zoneId);
  permitZone(context.store, caller, body);
  return importZones(context, caller, tools, { ...source, target: body.name }, signal);
}

/** Imports into any zones and creates those that are missing; or into `source.target` only, which has to be there. */
export async function importZones(
  context: CommandContext,
  caller: Caller,
  tools: ImportTools,
  source: ImportSource,
  signal?: AbortSignal,
): Promise<ImportOutcome> {
  await using reading = await tools.parse(source, signal);
  for (let attempt = 1; ; attempt++) {
    const plans = await planAll(context, caller, reading);
    if (source.target !== undefined && plans.some(({ isNew }) => isNew)) {
      throw new Refusal("not_found", `the zone ${source.target} is gone`);
    }
    refuseConflicts(plans);
    if (caller.dryRun)
      return outcomeOf(
        reading,
        plans,
        true,
        plans.map(({ zone }) => zone),
      );
    try {
      const zones = await runCommandInSlices(context, caller, (tx) => writePlans(tx, tools.peers, plans));
      return outcomeOf(reading, plans, false, zones);
    } catch (error) {
      if (!(error instanceof StalePlan)) throw error;
      if (attempt === ATTEMPTS) throw new Refusal("conflict", "the zones kept changing during the import; try again");
    }
  }
}

async function planAll(
  { store }: CommandContext,
  caller: Caller,
  reading: ImportReading,
): Promise<readonly ZonePlan[]> {
  const plans = reading.zones.map((head) => openPlan(store, caller, reading.format, head));
  for await (const { zone, records } of reading.slices()) {
    const plan = plans[zone];
    if (plan === undefined) throw new Error(`the import has no zone ${zone}`);
    planRecords(store, plan, records);
    await nextTurn();
  }
  return plans;
}

function* writePlans(
  tx: CommandTransaction,
  peers: ZonePeers,
  plans: readonly ZonePlan[],
): Generator<void, readonly ZoneBody[]> {
  const zones: ZoneBody[] = [];
  for (const plan of plans) zones.push(yield* writePlan(tx, peers, plan));
  return zones;
}

/** Writes what the plan says, where the zone is still as it was. */
function* writePlan(tx: CommandTransaction, peers: ZonePeers, plan: ZonePlan): Generator<void, ZoneBody> {
  const stored = tx.get("zone", [plan.zone.name]);
  if (contentVersion(tx, stored) !== plan.version) throw new StalePlan();
  const zone = stored?.body ?? createZoneIn(tx, peers, plan.head.create).stored.body;
  permitZone(tx, tx.caller, zone);
  if (plan.serial !== undefined) tx.setSerial(zone.name, plan.serial);
  for (const body of plan.puts) {
    tx.put("record", body);
    yield;
  }
  noteImport(tx, plan, zone);
  return zone;
}

/** One entry a zone: its records may be tens of thousands, and so only the first of them are named. */
function noteImport(tx: CommandTransaction, plan: ZonePlan, zone: ZoneBody): void {
  const { format, created, updated, unchanged, skipped, puts } = plan;
  tx.note({
    action: "import",
    resource: "zone",
    resource_id: zone.id,
    resource_name: zone.name,
    ...(puts.length === 0 && !plan.isNew ? { result: "unchanged" } : {}),
    after: {
      format,
      created,
      updated,
      unchanged,
      protected_skipped: skipped.length,
      records: puts.slice(0, IMPORT_NOTES_MAX).map(({ id, name, type }) => `${name} ${type} ${id}`),
    },
  });
}

function outcomeOf(
  reading: ImportReading,
  plans: readonly ZonePlan[],
  isDryRun: boolean,
  written: readonly ZoneBody[],
): ImportOutcome {
  const zones = plans.map((plan, index) => zoneOutcome(plan, written[index] ?? plan.zone));
  const sum = (field: "created" | "updated" | "unchanged") => zones.reduce((total, zone) => total + zone[field], 0);
  return {
    dry_run: isDryRun,
    format: reading.format,
    zones_created: zones.filter((zone) => zone.zone_created).length,
    created: sum("created"),
    updated: sum("updated"),
    unchanged: sum("unchanged"),
    protected_skipped: zones.flatMap((zone) => zone.protected_skipped),
    secrets_missing: zones.flatMap((zone) => zone.secrets_missing),
    parse_errors: sortByPlace([...reading.parseErrors, ...zones.flatMap((zone) => zone.parse_errors)]),
    errors: zones.flatMap((zone) => zone.errors.map((error) => `zone ${zone.zone}: ${error}`)),
    warnings: zones.flatMap((zone) => zone.warnings),
    zones,
  };
}

function zoneOutcome(plan: ZonePlan, zone: ZoneBody): ZoneImport {
  const { head, isNew, created, updated, unchanged, skipped, secretsMissing } = plan;
  return {
    zone: zone.name,
    ...(zone.id === "" ? {} : { zone_id: zone.id }),
    zone_created: isNew,
    created,
    updated,
    unchanged,
    protected_skipped: skipped,
    secrets_missing: secretsMissing,
    parse_errors: sortByPlace([...head.parseErrors, ...plan.parseErrors]),
    errors: head.errors,
    warnings: [...head.warnings, ...plan.warnings],
  };
}
