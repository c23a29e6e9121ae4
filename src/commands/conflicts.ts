/** The conflict journal as people see it: what lost a merge unseen, to whom, and the one call that puts it back. */
import { CONFIG_SCHEMAS, type ConfigName } from "../model/config-schemas.ts";
import type { Bodies, Kind, NaturalKey } from "../model/objects.ts";
import { OverrideCreate } from "../model/override.ts";
import { RecordCreate } from "../model/record.ts";
import { Refusal, refuseFaults } from "../model/refusal.ts";
import { maskSecrets } from "../model/secrets.ts";
import { checkShape } from "../model/shape.ts";
import { SubnetMappingCreate } from "../model/subnet-mapping.ts";
import { ZoneCreate } from "../model/zone.ts";
import type { JournalEntry, JournalOptions, JournalReason, Store, Stored } from "../store/store.ts";
import { putConfig } from "./config-documents.ts";
import { createOverride } from "./overrides.ts";
import { createRecordIn } from "./records.ts";
import { type Caller, type CommandContext, type CommandTransaction, runCommand } from "./run.ts";
import { createSubnetMapping } from "./subnet-mappings.ts";
import { createZoneIn, updateZone, type ZonePeers } from "./zones.ts";

/** One lost edit, as the API shows it. Bodies have their secrets masked. */
export type Conflict = {
  readonly id: string;
  readonly kind: Kind;
  readonly key: NaturalKey;
  readonly reason: JournalReason;
  /** When the edit was made, RFC 3339. */
  readonly edited_at: string;
  /** The node that took it; "" of what a node makes by itself at its first start. */
  readonly node_id: string;
  /** Who made it, where the audit log has it under the moment of the edit. */
  readonly user_name?: string;
  readonly source_address?: string;
  /** Absent: it was a deletion that lost. */
  readonly body?: unknown;
  /** What is at its key now; absent: nothing. */
  readonly present?: unknown;
  readonly present_stamp?: string;
  /** Whether `reapplyConflict` can put it back. */
  readonly reapplicable: boolean;
};
export type ConflictPage = { readonly items: readonly Conflict[]; readonly next: string | undefined };

type Reader = Pick<Store, "journalPage" | "journalEntry" | "auditPage" | "get">;

/** In the order of keys. `zone` is a zone's name: itself and its records. */
export function listConflicts(reader: Reader, options: JournalOptions): ConflictPage {
  const { entries, cursor } = reader.journalPage(options);
  return { items: entries.map((entry) => conflictOf(reader, entry)), next: cursor };
}

/** Throws `not_found`. */
export function getConflict(reader: Reader, id: string): Conflict {
  return conflictOf(reader, requireEntry(reader, id));
}

function requireEntry(reader: Pick<Store, "journalEntry">, id: string): JournalEntry {
  const entry = reader.journalEntry(id);
  if (entry === undefined)
    throw new Refusal("not_found", "there is no such entry in the conflict journal of this node");
  return entry;
}

function conflictOf(reader: Reader, entry: JournalEntry): Conflict {
  const { id, kind, key, reason, timeMs, node, body } = entry;
  const present = reader.get(kind, key);
  const who = whoMade(reader, entry);
  return {
    id,
    kind,
    key,
    reason,
    edited_at: new Date(timeMs).toISOString(),
    node_id: node,
    ...who,
    ...(body === undefined ? {} : { body: maskSecrets(kind, body) }),
    ...(present === undefined
      ? {}
      : { present: maskSecrets<unknown>(kind, present.body), present_stamp: present.stamp }),
    reapplicable: body !== undefined && kind in WAYS_BACK,
  };
}

/** A stamp may lie so far ahead of the clock that the audit log goes by. */
const STAMP_AHEAD_MS = 10_000;
/** One short look: who is not found so is not named. */
const ENTRIES_READ = 20;

function whoMade(
  reader: Pick<Store, "auditPage">,
  { timeMs, node, objectId }: JournalEntry,
): Pick<Conflict, "user_name" | "source_address"> {
  if (objectId === "" || node === "") return {};
  const filter = { resource_id: objectId, fromMs: timeMs - STAMP_AHEAD_MS, toMs: timeMs + 1 };
  const { entries } = reader.auditPage(filter, { limit: ENTRIES_READ });
  const found = entries.find(({ node_id }) => node_id === node);
  return found === undefined ? {} : { user_name: found.user_name, source_address: found.source_address };
}

export type Reapplied = { readonly kind: Kind; readonly key: NaturalKey; readonly stored: Stored | undefined };

type Again<K extends Kind> = {
  readonly context: CommandContext;
  readonly caller: Caller;
  readonly peers: ZonePeers;
  readonly body: Bodies[K];
  /** What the audit log says of it. */
  readonly detail: string;
};

/**
 * Puts the body of a lost edit back as a new edit of the caller's, by the commands that any edit goes through: their
 * permissions, checks and audit entries. Throws what they throw, `not_found`, and `conflict` for what cannot be put back so.
 */
export async function reapplyConflict(
  context: CommandContext,
  caller: Caller,
  id: string,
  peers: ZonePeers = { peersAlive: () => 0 },
): Promise<Reapplied> {
  const { store } = context;
  const { kind, key, body } = requireEntry(store, id);
  if (body === undefined) throw new Refusal("conflict", "what lost was a deletion: delete the object to have it so");
  await putBack(kind, { context, caller, peers, body: body as Bodies[Kind], detail: `from the conflict ${id}` });
  return { kind, key, stored: store.get(kind, key) };
}

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
  override: reapplyOverride,
  "subnet-mapping": reapplyMapping,
  config: reapplyConfig,
} satisfies { readonly [K in Kind]?: (again: Again<K>) => Promise<unknown> };

/** What a newer version has put into the body is not dropped silently: it is refused, and named. */
function checked<Given>(schema: Parameters<typeof checkShape>[0], given: unknown): Given {
  refuseFaults(checkShape(schema, given));
  // The shape has been checked.
  return given as Given;
}

function reapplyRecord({ context, caller, body, detail }: Again<"record">): Promise<unknown> {
  const { id: _, zone: zoneName, ...rest } = body;
  const given = checked<RecordCreate>(RecordCreate, rest);
  return runCommand(context, caller, (tx) => {
    const zone = tx.get("zone", [zoneName]);
    if (zone === undefined) throw new Refusal("not_found", `the zone ${zoneName} is gone; create it first`);
    return createRecordIn(withDetail(tx, detail), zone.body, given);
  });
}

/** The transaction with every audit entry saying where it came from. */
function withDetail(tx: CommandTransaction, detail: string): CommandTransaction {
  return { ...tx, note: (entry) => tx.note({ ...entry, detail }) };
}

function reapplyZone({ context, caller, peers, body, detail }: Again<"zone">): Promise<unknown> {
  const { id: _, ...rest } = body;
  const given = checked<ZoneCreate>(ZoneCreate, rest);
  const present = context.store.get("zone", [body.name]);
  if (present === undefined) {
    return runCommand(context, caller, (tx) => createZoneIn(withDetail(tx, detail), peers, given));
  }
  const clearing = given.lb_policy === undefined ? { lb_policy: null } : {};
  return updateZone(context, caller, present.body.id, { ...given, ...clearing }, peers);
}

function reapplyOverride({ context, caller, body: { id: _, ...given } }: Again<"override">): Promise<unknown> {
  return createOverride(context, caller, checked<OverrideCreate>(OverrideCreate, given));
}

function reapplyMapping({ context, caller, body: { id: _, ...given } }: Again<"subnet-mapping">): Promise<unknown> {
  return createSubnetMapping(context, caller, checked<SubnetMappingCreate>(SubnetMappingCreate, given));
}

/** What the lost edit did not set goes back to its default. */
function reapplyConfig({ context, caller, body: { name, settings } }: Again<"config">): Promise<unknown> {
  if (caller.actor.role !== "admin") throw new Refusal("role_insufficient", "only an admin writes settings");
  if (!isConfigName(name))
    throw new Refusal("conflict", `this version knows no settings called ${JSON.stringify(name)}`);
  const present = context.store.get("config", [name])?.body.settings ?? {};
  const cleared = Object.fromEntries(Object.keys(present).map((field) => [field, null]));
  return putConfig(context, caller, name, { ...cleared, ...settings });
}

function isConfigName(name: string): name is ConfigName {
  return Object.hasOwn(CONFIG_SCHEMAS, name);
}
