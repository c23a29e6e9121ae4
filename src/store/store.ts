/**
 * What the rest of the product sees of the store. One process writes: the control thread. A command runs as one
 * transaction with a synchronous callback; whatever it throws leaves nothing written. Listeners hear of a transaction
 * once it is on the disk, in the order of commits, before the promise of `write` resolves: who got an acknowledgement
 * finds the change in every view of this node.
 */
import type { Bodies, Kind, NaturalKey, RecordBody } from "../model/objects.ts";

/** A hybrid logical clock's reading, as text that sorts by time: milliseconds, counter, node id. "" is stamp zero. */
export type Stamp = string;

export type Stored<K extends Kind = Kind> = {
  readonly kind: K;
  readonly key: NaturalKey;
  /** Of the version; the ETag is made of it. */
  readonly stamp: Stamp;
  /** Of the creation; edits keep it. */
  readonly born: Stamp;
  readonly body: Bodies[K];
  /** The rival that hides this object (a CNAME beside other types after a merge, a dead zone); absent: it is in effect. */
  readonly shadowedBy?: string;
};

export type ListOptions = {
  /** Leading parts of the key: `[zone]` for the records of a zone, `[zone, name]` for those of a name. */
  readonly prefix?: NaturalKey;
  /** Start behind this key, whether or not it is still there. */
  readonly after?: NaturalKey;
  /** At most so many; at most LIST_PAGE_MAX. */
  readonly limit: number;
  /**
   * Ends the list behind the object with which so many characters were read, for one object may be a thousand times
   * another. The list is then shorter than `limit`, and only an empty one tells that nothing follows.
   */
  readonly charactersMax?: number;
};
export const LIST_PAGE_MAX = 5000;

/** Reads see alive objects only: no tombstones, no records of an earlier life of their zone. */
export type StoreReader = {
  get<K extends Kind>(kind: K, key: NaturalKey): Stored<K> | undefined;
  /** Follows renames, and the ids that lost a merge of two creates. */
  byId<K extends Kind>(kind: K, id: string): Stored<K> | undefined;
  /** In the order of keys: names in DNSSEC's canonical order (RFC 4034 section 6.1), other keys bytewise. */
  list<K extends Kind>(kind: K, options: ListOptions): readonly Stored<K>[];
  /** How many are alive; kept as counters, so it costs nothing. `zone` counts the records of one zone. */
  count(kind: Kind, zone?: string): number;
  /** Serial of the zone's SOA; undefined where there is no such zone. */
  serialOf(zone: string): number | undefined;
  stateOf(zone: string): "pending" | "active" | undefined;
  /** The records of a zone that are in effect, by pages in the order of keys. */
  answering(zone: string, options: { readonly limit: number; readonly cursor?: Uint8Array }): AnsweringPage;
};

/** What the answer of a record is made of. Its health check has its secrets. */
export type AnsweringRecord = Pick<
  RecordBody,
  | "id"
  | "name"
  | "type"
  | "ttl"
  | "values"
  | "priority"
  | "weight"
  | "port"
  | "tag"
  | "lb_policy"
  | "health_check_template"
> & {
  /** What of it cannot be read. The rest of it answers. */
  readonly fault?: string;
};
/** May hold fewer records than asked for. Without a cursor it is the last. */
export type AnsweringPage = {
  readonly records: readonly AnsweringRecord[];
  readonly cursor: Uint8Array | undefined;
};

export type AuditEntry = {
  /** "<node instance>-<sequence>". */
  readonly id: string;
  /** RFC 3339 UTC with milliseconds. */
  readonly time: string;
  readonly node_id: string;
  readonly user_id: string;
  readonly user_name: string;
  readonly source_address: string;
  readonly request_id: string;
  readonly action: string;
  readonly resource: string;
  readonly resource_id: string;
  readonly resource_name: string;
  /** Bodies before and after with secrets masked; over 64 KB: `{ sha256, bytes }`. */
  readonly before?: unknown;
  readonly after?: unknown;
  readonly result: string;
  readonly detail?: string;
};
export type AuditInput = Omit<AuditEntry, "id" | "time" | "node_id">;

export type AuditFilter = {
  readonly user_id?: string;
  readonly user_name?: string;
  readonly resource?: string;
  readonly resource_id?: string;
  readonly action?: string;
  /** Milliseconds since 1970, `from` included, `to` excluded. */
  readonly fromMs?: number;
  readonly toMs?: number;
};

/** With `stampZero` the version carries stamp zero, which any edit of another node beats: what a node makes by itself at its first start. */
export type PutOptions = { readonly stampZero?: true };

export type StoreTransaction = StoreReader & {
  /** The stamp that every write of this transaction carries. */
  readonly stamp: Stamp;
  /** Creates or edits the object at the body's natural key. An equal body changes nothing: no stamp, no serial. */
  put<K extends Kind>(kind: K, body: Bodies[K], options?: PutOptions): Stored<K>;
  /** Leaves a tombstone. False where there was nothing alive. */
  delete(kind: Kind, key: NaturalKey): boolean;
  /** Puts `body` at its own key and leaves a tombstone with `moved_to` at `from`, under one stamp. */
  move<K extends Kind>(kind: K, from: NaturalKey, body: Bodies[K]): Stored<K>;
  /** Deletes the zone and, by raising its floor, all its records at once. */
  deleteZone(name: string): boolean;
  /** For a zone created in this transaction only: an imported serial. Any other change raises it by itself. */
  setSerial(zone: string, serial: number): void;
  setState(zone: string, state: "pending" | "active"): void;
  audit(entry: AuditInput): void;
};

/**
 * `before` absent: created; `after` absent: deleted. The deletion of a zone does not name its records, and neither does
 * the arrival of a zone whose records were merged before it: who hears of a new zone reads what it has. A zone that was
 * deleted and created anew in one batch has a `before` and an `after` of different `born`.
 */
export type Change<K extends Kind = Kind> = {
  readonly kind: K;
  readonly key: NaturalKey;
  readonly before?: Stored<K>;
  readonly after?: Stored<K>;
};

export type ChangeBatch = {
  readonly origin: "local" | "remote";
  readonly changes: readonly Change[];
  /** Zones whose serial or state changed, each once. */
  readonly zones: readonly string[];
  /** Of these zones, right behind this batch: what the store says may be further on. */
  readonly serials: ReadonlyMap<string, number>;
};

/**
 * `replaced`: a greater stamp won. `renamed`: its id lives at another key. `zone-deleted`: its zone was. `stale`: this store
 * had to begin anew.
 */
export type JournalReason = "replaced" | "renamed" | "zone-deleted" | "stale";
export type JournalEntry = {
  /** Names the entry on this node; equal on all nodes that have it. */
  readonly id: string;
  readonly kind: Kind;
  readonly key: NaturalKey;
  readonly stamp: Stamp;
  /** When the version was made, milliseconds since 1970. */
  readonly timeMs: number;
  /** The node that made it; "" of what each node makes by itself. */
  readonly node: string;
  /** The object's id; "" of a kind without ids. */
  readonly objectId: string;
  readonly reason: JournalReason;
  readonly winner: string;
  /** Undefined where it was a deletion that lost. */
  readonly body: unknown;
};
export type JournalPage = { readonly entries: readonly JournalEntry[]; readonly cursor: string | undefined };

export type JournalOptions = {
  readonly limit: number;
  readonly cursor?: string;
  readonly kind?: Kind;
  /** Of that zone: itself and its records. */
  readonly zone?: string;
};

export type Store = StoreReader &
  AsyncDisposable & {
    readonly nodeId: string;
    /** Random, made anew with a fresh store, for a copy of one, and when one was put back; then peers hear of it after a restart. */
    readonly instanceId: string;
    /**
     * Runs `work` as one transaction and resolves with its result once it is on the disk and the listeners have heard.
     * Rejects with what `work` threw, and then nothing is written. `work` must not be async and may not keep `tx`.
     */
    write<T>(work: (tx: StoreTransaction) => T): Promise<T>;
    /**
     * As `write`, for work of many steps: it yields between them, and the thread does other things every few
     * milliseconds. It is one transaction all the same: until it is done, reads see nothing of it. Other writes stand before it where
     * it has neither read nor written what they write, and wait for it elsewhere. Where it comes to write over one of those, `work` is
     * called anew, for a later stamp; rejects with `conflict` where that happens five times.
     */
    writeInSlices<T>(work: (tx: StoreTransaction) => Generator<void, T>): Promise<T>;
    /** Runs `work` and then takes everything back: what a dry run needs. */
    rehearse<T>(work: (tx: StoreTransaction) => T): Promise<T>;
    /** Versions that lost unseen, in the order of keys; secrets are masked. */
    journalPage(options: JournalOptions): JournalPage;
    /** One of them, its secrets in the clear. */
    journalEntry(id: string): JournalEntry | undefined;
    /** The listener is called synchronously and must not throw. The result ends it. */
    onChange(listener: (batch: ChangeBatch) => void): () => void;
    /**
     * Newest first, by cursor: the page and the cursor of the next one, undefined at the end. A filter that matches few
     * entries gives pages that are short or empty and still have a cursor, and so do large entries, for one call never
     * looks at more than a few thousand of them or at much text: who wants a full page asks again, and lets others run in between.
     */
    auditPage(
      filter: AuditFilter,
      options: { readonly limit: number; readonly cursor?: string; readonly oldestFirst?: true },
    ): { readonly entries: readonly AuditEntry[]; readonly cursor: string | undefined };
  };
