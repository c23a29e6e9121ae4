/** What every command shares: who asks, the transaction, the dry run, the precondition and the entry in the audit log. */
import { randomBytes } from "node:crypto";
import type { Log } from "../base/log.ts";
import { type Bodies, ID_PREFIXES, type Kind, type Role } from "../model/objects.ts";
import { Refusal } from "../model/refusal.ts";
import { kindOfResource, maskByName, maskForAudit } from "../model/secrets.ts";
import type { AuditInput, Store, Stored, StoreTransaction } from "../store/store.ts";

export type Actor = {
  readonly kind: "user" | "service-account" | "key" | "system";
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  /** Zones that a confined token may write; undefined: all. */
  readonly zoneIds?: readonly string[];
  readonly sessionId?: string;
};

/** One request, whichever door it came through. */
export type Caller = {
  readonly actor: Actor;
  /** Where it came from, without port. */
  readonly address: string;
  readonly requestId: string;
  readonly dryRun: boolean;
  /** The value of If-Match, where one was sent. */
  readonly ifMatch?: string;
};

export type CommandContext = {
  readonly store: Store;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
};

/** A transaction of one caller: the store's, with an audit entry that needs to say only what happened. */
export type CommandTransaction = StoreTransaction & {
  readonly caller: Caller;
  readonly nowMs: number;
  /** Bodies go in unmasked: `note` masks the secrets of their kind. */
  readonly note: (entry: Note) => void;
};

export type Note = Pick<AuditInput, "action" | "resource" | "resource_id" | "resource_name"> &
  Partial<Pick<AuditInput, "before" | "after" | "result" | "detail">>;

/** Runs a command as one durable transaction, or as a rehearsal that leaves nothing where the caller asked for a dry run. */
export function runCommand<T>(
  context: CommandContext,
  caller: Caller,
  work: (tx: CommandTransaction) => T,
): Promise<T> {
  const { store } = context;
  const nowMs = context.now();
  const run = (tx: StoreTransaction): T => work(transactionOf(tx, caller, nowMs));
  return caller.dryRun ? store.rehearse(run) : store.write(run);
}

/**
 * As `runCommand`, for a command of many steps: it yields between them, and the thread does other things every few
 * milliseconds. A dry run of such a command compares and does not come here.
 */
export function runCommandInSlices<T>(
  context: CommandContext,
  caller: Caller,
  work: (tx: CommandTransaction) => Generator<void, T>,
): Promise<T> {
  const nowMs = context.now();
  return context.store.writeInSlices((tx) => work(transactionOf(tx, caller, nowMs)));
}

function transactionOf(tx: StoreTransaction, caller: Caller, nowMs: number): CommandTransaction {
  return {
    ...tx,
    caller,
    nowMs,
    note: (entry) =>
      tx.audit({
        result: "success",
        ...entry,
        ...masked(entry),
        user_id: caller.actor.id,
        user_name: caller.actor.name,
        source_address: caller.address,
        request_id: caller.requestId,
      }),
  };
}

/** The bodies of an entry as they may be written down: without the secrets of their kind, or of anything so named. */
function masked({ resource, before, after }: Note): Pick<Note, "before" | "after"> {
  const kind = kindOfResource(resource);
  const mask = (body: unknown) => maskByName(kind === undefined ? body : maskForAudit(kind, body));
  return {
    ...(before === undefined ? {} : { before: mask(before) }),
    ...(after === undefined ? {} : { after: mask(after) }),
  };
}

/** The ETag of a version (RFC 9110 section 8.8.3). */
export function etagOf(stored: Stored): string {
  return `"${stored.stamp}"`;
}

/** Throws `precondition_failed` when the caller's If-Match names another version (RFC 9110 section 13.1.1). */
export function requireMatch(caller: Caller, stored: Stored): void {
  if (caller.ifMatch === undefined || caller.ifMatch.trim() === "*") return;
  const tags = caller.ifMatch.split(",").map((tag) => tag.trim());
  if (tags.includes(etagOf(stored))) return;
  throw new Refusal("precondition_failed", "If-Match names another version than the current one");
}

/** As `requireMatch`, of what may not be stored yet: then no If-Match fits, "*" neither. */
export function requireCurrent(caller: Caller, stored: Stored | undefined): void {
  if (stored !== undefined) requireMatch(caller, stored);
  else if (caller.ifMatch !== undefined) {
    throw new Refusal("precondition_failed", "If-Match names a version, and nothing is stored yet");
  }
}

const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";
const ID_CHARACTERS = 20;

/** Random bytes for that many ids are drawn at once: an import makes tens of thousands. */
const IDS_DRAWN = 256;
let drawn = randomBytes(0);
let used = 0;

/** A new id of that kind, 100 random bits. */
export function newId(kind: keyof typeof ID_PREFIXES): string {
  if (used === drawn.length) {
    drawn = randomBytes(IDS_DRAWN * ID_CHARACTERS);
    used = 0;
  }
  let text = "";
  for (const end = used + ID_CHARACTERS; used < end; used++) text += BASE32[(drawn[used] ?? 0) & 31];
  return `${ID_PREFIXES[kind]}_${text}`;
}

/** The object with that id, or `not_found`. */
export function requireById<K extends Kind & keyof Bodies>(
  tx: Pick<StoreTransaction, "byId">,
  kind: K,
  id: string,
): Stored<K> {
  const stored = tx.byId(kind, id);
  if (stored === undefined) throw new Refusal("not_found", `there is no ${kind} with the id ${JSON.stringify(id)}`);
  return stored;
}
