/** Writes of zones, and what a zone's view shows beside its body. */
import type { ZoneBody } from "../model/objects.ts";
import { Refusal } from "../model/refusal.ts";
import {
  type ZoneCreate,
  type ZoneUpdate,
  type ZoneViewDetails,
  zoneFromCreate,
  zoneWithUpdate,
} from "../model/zone.ts";
import type { Stored, StoreReader } from "../store/store.ts";
import { noteWrite, type WriteOutcome } from "./audit-outcome.ts";
import { readConfig } from "./config-documents.ts";
import { permitUnconfined, permitZone } from "./permit.ts";
import {
  type Caller,
  type CommandContext,
  type CommandTransaction,
  newId,
  requireById,
  requireMatch,
  runCommand,
} from "./run.ts";
import { viewTimes } from "./view-times.ts";
import { zoneWarnings } from "./zone-warnings.ts";

/** What the writes of zones ask of the cluster. */
export type ZonePeers = {
  /** Other members that are alive now; none: a new zone is active at once. */
  readonly peersAlive: () => number;
  /** Sends a zone to all of them again. */
  readonly announceZone?: (zone: string) => void;
};

/** A zone with what is kept beside it. */
export type ZoneDetails = {
  readonly stored: Stored<"zone">;
  readonly serial: number;
  readonly status: "pending" | "active";
  readonly recordCount: number;
};

export type ZoneOutcome = WriteOutcome<"zone"> & ZoneDetails & { readonly warnings: readonly string[] };

type DetailReader = Pick<StoreReader, "serialOf" | "stateOf" | "count">;

/** Everything that a view of the zone shows. */
export function zoneDetails(reader: DetailReader, stored: Stored<"zone">): ZoneDetails {
  const { name } = stored.body;
  return {
    stored,
    // A zone that another node made may be here before its serial and state are.
    serial: reader.serialOf(name) ?? 0,
    status: reader.stateOf(name) ?? "pending",
    recordCount: reader.count("record", name),
  };
}

/** The same as a view takes it. */
export function zoneViewDetails(details: ZoneDetails): ZoneViewDetails {
  const { createdAt, updatedAt } = viewTimes(details.stored);
  const { serial, status, recordCount } = details;
  return { serial, status, recordCount, createdAt, updatedAt };
}

/** Writes a new zone inside a transaction; every door that makes zones comes here. Throws `conflict` where it exists. */
export function createZoneIn(tx: CommandTransaction, peers: ZonePeers, given: ZoneCreate): ZoneOutcome {
  permitUnconfined(tx.caller, "create zones");
  const { effective } = readConfig(tx, "delete-guardrails");
  const body = zoneFromCreate(given, newId("zone"), { deletionLock: effective.default_zone_deletion_lock });
  const incumbent = tx.get("zone", [body.name]);
  if (incumbent !== undefined) {
    throw new Refusal(
      "conflict",
      `the zone ${body.name} exists`,
      [{ pointer: "/name", detail: "a zone has this name" }],
      { zone_id: incumbent.body.id },
    );
  }
  const stored = tx.put("zone", body);
  tx.setState(body.name, peers.peersAlive() > 0 ? "pending" : "active");
  const outcome = { stored, before: undefined };
  noteWrite(tx, "create", outcome, body.name);
  return { ...outcome, ...zoneDetails(tx, stored), warnings: zoneWarnings(tx, stored.body) };
}

/** Creates a zone as one command. */
export function createZone(
  context: CommandContext,
  caller: Caller,
  peers: ZonePeers,
  given: ZoneCreate,
): Promise<ZoneOutcome> {
  return runCommand(context, caller, (tx) => createZoneIn(tx, peers, given));
}

/** Changes the fields given, as one command. Of a zone that is pending and stays as it is the peers hear again. */
export async function updateZone(
  context: CommandContext,
  caller: Caller,
  id: string,
  given: ZoneUpdate,
  { announceZone }: Pick<ZonePeers, "announceZone"> = {},
): Promise<ZoneOutcome> {
  const outcome = await runCommand(context, caller, (tx) => {
    const before = requireById(tx, "zone", id);
    permitZone(tx, caller, before.body);
    const body = zoneWithUpdate(before.body, given, zoneViewDetails(zoneDetails(tx, before)));
    requireMatch(caller, before);
    const stored = tx.put("zone", body);
    const outcome = { stored, before };
    noteWrite(tx, "update", outcome, body.name);
    return { ...outcome, ...zoneDetails(tx, stored), warnings: zoneWarnings(tx, stored.body) };
  });
  const { stored, before, status } = outcome;
  if (status === "pending" && stored.stamp === before?.stamp && !caller.dryRun) announceZone?.(stored.body.name);
  return outcome;
}

function refuseLocked(zone: ZoneBody): void {
  if (!zone.deletion_lock) return;
  throw new Refusal(
    "deletion_locked",
    `the zone ${zone.name} is locked against deletion; PUT deletion_lock false first`,
    [],
    { zone_id: zone.id },
  );
}

/** Deletes a zone and all its records, protected ones too, as one command. Returns the zone's own id. */
export function deleteZone(context: CommandContext, caller: Caller, id: string): Promise<string> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "delete zones");
    const stored = requireById(tx, "zone", id);
    const { body } = stored;
    refuseLocked(body);
    requireMatch(caller, stored);
    const records = tx.count("record", body.name);
    tx.deleteZone(body.name);
    tx.note({
      action: "delete",
      resource: "zone",
      resource_id: body.id,
      resource_name: body.name,
      before: body,
      detail: `${records} records went with it`,
    });
    return body.id;
  });
}
