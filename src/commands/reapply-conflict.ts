/**
 * Puts a lost edit back as a new one of the caller's, by the commands that any edit goes through: all kinds that people write
 * through the API, but for credentials. A lost deletion deletes.
 */
import { CONFIG_SCHEMAS, type ConfigName } from "../model/config-schemas.ts";
import { ForwarderCreate } from "../model/forwarder.ts";
import { HealthCheckCreate } from "../model/health-check.ts";
import type { Bodies, Kind, NaturalKey } from "../model/objects.ts";
import { OverrideCreate } from "../model/override.ts";
import { RecordCreate } from "../model/record.ts";
import { Refusal, refuseFaults } from "../model/refusal.ts";
import { checkShape } from "../model/shape.ts";
import { StubZoneCreate } from "../model/stub-zone.ts";
import { SubnetMappingCreate } from "../model/subnet-mapping.ts";
import { ZoneCreate } from "../model/zone.ts";
import type { JournalEntry, Store, Stored, StoreTransaction } from "../store/store.ts";
import { putBackBlocklist } from "./blocklist.ts";
import { putConfig } from "./config-documents.ts";
import {
  createForwarder,
  createStubZone,
  deleteForwardRoute,
  type ForwardContext,
  updateForwarder,
  updateStubZone,
} from "./forward-routes.ts";
import { createHealthCheck, deleteHealthCheck, type HealthCheckContext, updateHealthCheck } from "./health-checks.ts";
import { createOverride, deleteOverride } from "./overrides.ts";
import { createRecordIn, deleteRecord } from "./records.ts";
import { type Caller, runCommand } from "./run.ts";
import { createSubnetMapping, deleteSubnetMapping } from "./subnet-mappings.ts";
import { createZone, deleteZone, updateZone, type ZonePeers } from "./zones.ts";

export type ReapplyContext = ForwardContext & HealthCheckContext & { readonly peers: ZonePeers };

export type Reapplied = { readonly kind: Kind; readonly key: NaturalKey; readonly stored: Stored | undefined };

/** Throws `not_found`. */
export function requireEntry(reader: Pick<Store, "journalEntry">, id: string): JournalEntry {
  const entry = reader.journalEntry(id);
  if (entry === undefined)
    throw new Refusal("not_found", "there is no such entry in the conflict journal of this node");
  return entry;
}

/** Throws what the commands throw, `not_found`, and `conflict` for what cannot be put back so. */
export async function reapplyConflict(given: ReapplyContext, caller: Caller, id: string): Promise<Reapplied> {
  const { kind, key, body } = requireEntry(given.store, id);
  const context = { ...given, store: withDetail(given.store, `from the conflict ${id}`) };
  if (body === undefined) await deleteAgain(kind, { context, caller, key });
  else await putBack(kind, { context, caller, body: body as Bodies[Kind] });
  return { kind, key, stored: given.store.get(kind, key) };
}

/** Whether there is a way: its checks may refuse it all the same. */
export function isReapplicable({ kind, body }: Pick<JournalEntry, "kind" | "body">): boolean {
  return body === undefined ? kind in DELETIONS : kind in WAYS_BACK;
}

type Again<K extends Kind> = {
  readonly context: ReapplyContext;
  readonly caller: Caller;
  readonly body: Bodies[K];
};

function putBack(kind: Kind, again: Again<Kind>): Promise<unknown> {
  // An entry's body is of its kind.
  const wayBack = WAYS_BACK[kind as keyof typeof WAYS_BACK] as ((again: Again<Kind>) => Promise<unknown>) | undefined;
  if (wayBack !== undefined) return wayBack(again);
  throw new Refusal("conflict", `a ${kind} is not put back from the journal: the entry has its body`);
}

/** Of credentials and what goes with them nothing comes back by one call: a password that was changed stays changed. */
const WAYS_BACK = {
  record: reapplyRecord,
  zone: reapplyZone,
  override: ({ context, caller, body: { id: _, ...given } }) =>
    createOverride(context, caller, checked<OverrideCreate>(OverrideCreate, given)),
  "subnet-mapping": ({ context, caller, body: { id: _, ...given } }) =>
    createSubnetMapping(context, caller, checked<SubnetMappingCreate>(SubnetMappingCreate, given)),
  healthcheck: reapplyHealthCheck,
  forwarder: reapplyForwarder,
  "stub-zone": reapplyStubZone,
  blocklist: ({ context, caller, body }) => putBackBlocklist(context, caller, body),
  config: reapplyConfig,
} satisfies { readonly [K in Kind]?: (again: Again<K>) => Promise<unknown> };

/** What a newer version has put into the body is not dropped silently: it is refused, and named. */
function checked<Given>(schema: Parameters<typeof checkShape>[0], given: unknown): Given {
  refuseFaults(checkShape(schema, given));
  // The shape has been checked.
  return given as Given;
}

/** Null for each field that the lost edit did not have: it goes. */
function cleared(present: object, given: object): Record<string, null> {
  const gone = Object.keys(present).filter((field) => field !== "id" && !Object.hasOwn(given, field));
  return Object.fromEntries(gone.map((field) => [field, null]));
}

function reapplyRecord({ context, caller, body }: Again<"record">): Promise<unknown> {
  const { id: _, zone: zoneName, ...rest } = body;
  const given = checked<RecordCreate>(RecordCreate, rest);
  return runCommand(context, caller, (tx) => {
    const zone = tx.get("zone", [zoneName]);
    if (zone === undefined) throw new Refusal("not_found", `the zone ${zoneName} is gone; create it first`);
    return createRecordIn(tx, zone.body, given);
  });
}

function reapplyZone({ context, caller, body }: Again<"zone">): Promise<unknown> {
  const { id: _, ...rest } = body;
  const given = checked<ZoneCreate>(ZoneCreate, rest);
  const present = context.store.get("zone", [body.name])?.body;
  if (present === undefined) return createZone(context, caller, context.peers, given);
  return updateZone(context, caller, present.id, { ...cleared(present, given), ...given }, context.peers);
}

function reapplyHealthCheck({ context, caller, body: { id: _, ...rest } }: Again<"healthcheck">): Promise<unknown> {
  const given = checked<HealthCheckCreate>(HealthCheckCreate, rest);
  const present = context.store.get("healthcheck", [rest.name])?.body;
  if (present === undefined) return createHealthCheck(context, caller, given);
  return updateHealthCheck(context, caller, present.id, { ...cleared(present, given), ...given });
}

function reapplyForwarder({ context, caller, body: { id: _, ...rest } }: Again<"forwarder">): Promise<unknown> {
  const given = checked<ForwarderCreate>(ForwarderCreate, rest);
  const present = context.store.get("forwarder", [rest.domain])?.body;
  if (present === undefined) return createForwarder(context, caller, given);
  return updateForwarder(context, caller, present.id, { ...cleared(present, given), ...given });
}

function reapplyStubZone({ context, caller, body: { id: _, ...rest } }: Again<"stub-zone">): Promise<unknown> {
  const given = checked<StubZoneCreate>(StubZoneCreate, rest);
  const present = context.store.get("stub-zone", [rest.domain])?.body;
  if (present === undefined) return createStubZone(context, caller, given);
  return updateStubZone(context, caller, present.id, { ...cleared(present, given), ...given });
}

/** What the lost edit did not set goes back to its default. */
function reapplyConfig({ context, caller, body: { name, settings } }: Again<"config">): Promise<unknown> {
  if (caller.actor.role !== "admin") throw new Refusal("role_insufficient", "only an admin writes settings");
  if (!isConfigName(name))
    throw new Refusal("conflict", `this version knows no settings called ${JSON.stringify(name)}`);
  const present = context.store.get("config", [name])?.body.settings ?? {};
  return putConfig(context, caller, name, { ...cleared(present, {}), ...settings });
}

function isConfigName(name: string): name is ConfigName {
  return Object.hasOwn(CONFIG_SCHEMAS, name);
}

type Deletion = { readonly context: ReapplyContext; readonly caller: Caller };

/** By the id of what is there now. Settings and the blocklist are put, and never deleted. */
const DELETIONS = {
  record: ({ context, caller }, id) => deleteRecord(context, caller, id, false),
  zone: ({ context, caller }, id) => deleteZone(context, caller, id),
  override: ({ context, caller }, id) => deleteOverride(context, caller, id),
  "subnet-mapping": ({ context, caller }, id) => deleteSubnetMapping(context, caller, id),
  healthcheck: ({ context, caller }, id) => deleteHealthCheck(context, caller, id),
  forwarder: ({ context, caller }, id) => deleteForwardRoute(context, caller, "forwarder", id),
  "stub-zone": ({ context, caller }, id) => deleteForwardRoute(context, caller, "stub-zone", id),
} satisfies { readonly [K in Kind]?: (deletion: Deletion, id: string) => Promise<unknown> };

async function deleteAgain(
  kind: Kind,
  { context, caller, key }: Deletion & { readonly key: NaturalKey },
): Promise<void> {
  if (!isDeleted(kind)) throw new Refusal("conflict", `what lost was a deletion: delete the ${kind} to have it so`);
  const present = context.store.get(kind, key)?.body;
  if (present === undefined) throw new Refusal("not_found", "there is nothing to delete any more");
  await DELETIONS[kind]({ context, caller }, present.id);
}

function isDeleted(kind: Kind): kind is keyof typeof DELETIONS {
  return kind in DELETIONS;
}

/** The store with every audit entry of a command saying where it came from. */
function withDetail(store: Store, detail: string): Store {
  const saying = (tx: StoreTransaction): StoreTransaction => ({
    ...tx,
    audit: (entry) =>
      tx.audit({ ...entry, detail: entry.detail === undefined ? detail : `${detail}; ${entry.detail}` }),
  });
  return {
    ...store,
    write: (work) => store.write((tx) => work(saying(tx))),
    rehearse: (work) => store.rehearse((tx) => work(saying(tx))),
    writeInSlices: (work) => store.writeInSlices((tx) => work(saying(tx))),
  };
}
