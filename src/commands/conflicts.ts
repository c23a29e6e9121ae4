/** The conflict journal as people see it: what lost a merge unseen, and to whom. reapply-conflict.ts puts it back. */
import type { Kind, NaturalKey } from "../model/objects.ts";
import { maskSecrets } from "../model/secrets.ts";
import type { JournalEntry, JournalOptions, JournalReason, Store } from "../store/store.ts";
import { isReapplicable, requireEntry } from "./reapply-conflict.ts";

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
  /** Absent: it was a deletion that lost, and what deletes the object puts it back. */
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
    reapplicable: isReapplicable(entry),
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
