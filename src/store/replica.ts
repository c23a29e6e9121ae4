/** What replication needs of a store, beside merging: what changed, a digest of everything, and the audit log of others. */
import type { RawItem, RawPage } from "./raw-items.ts";
import type { AuditEntry } from "./store.ts";

/**
 * Names what stores exchange: an object, all registers of a zone together, an alias. Text of characters below 256 that sorts
 * zones before records, equal on nodes of all versions: see refs.ts.
 */
export type ItemRef = string;

/** The version that a store has of it: equal texts are equal versions. */
export type ItemVersion = { readonly ref: ItemRef; readonly version: string };

/** Levels of the digest tree below its root: 16, 256, 4,096 and 65,536 digests. */
export const DIGEST_LEVELS = 4;
export const DIGEST_CHILDREN = 16;

/**
 * A tree of digests over all items that count: a leaf is an exclusive or over (ref, version), a node over its children. A
 * digest is 16 hexadecimal digits.
 */
export type Digest = {
  /**
   * False while it is being made from what is stored; then nothing but `versions` may be asked. The first who asks this, or
   * for `ready`, has it made: before that a store has none, and writes cost nothing for it.
   */
  readonly isReady: () => boolean;
  readonly ready: () => Promise<void>;
  readonly root: () => string;
  /** The 16 children of each node; `level` 0 is the root. */
  readonly children: (level: number, nodes: readonly number[]) => readonly (readonly string[])[];
  /**
   * Everything in those leaves, in slices between which the thread does other things. It looks at all keys, whatever the
   * number of leaves, and whoever asks meanwhile shares the next look: ask for many leaves at once.
   */
  readonly versions: (leaves: readonly number[]) => Promise<readonly ItemVersion[]>;
};

/** For each instance of a store the last sequence of its audit log that is here. */
export type AuditVector = Readonly<Record<string, number>>;

/** By node id: up to when a store has all that this node had, milliseconds since 1970. */
export type Agreements = Readonly<Record<string, number>>;

export type ReplicaStore = {
  /**
   * Hears, after each transaction that is on the disk, what this node made in it: everything of its own writes, and of a merge
   * what it had to make itself (a raised serial, an alias). In the order of commits.
   */
  readonly onItems: (listener: (refs: readonly ItemRef[]) => void) => () => void;
  /** What is there of them now, zones before records; what is dead or collected is left out. */
  readonly items: (refs: readonly ItemRef[]) => readonly RawItem[];
  readonly refOf: (item: RawItem) => ItemRef;
  /**
   * Everything by pages; one ends behind the item with which it has so many characters. `asRows`: records with nothing special
   * come as rows.
   */
  readonly rawItems: (options: {
    readonly limit: number;
    readonly cursor?: string;
    readonly charactersMax?: number;
    readonly asRows?: boolean;
  }) => RawPage;
  readonly digest: Digest;
  /** Which this store's own entries carry: the instance that it was opened as, or a newer one. */
  readonly auditInstance: () => string;
  /** Another store has later entries of that instance than this one, which therefore was put back from a copy. */
  readonly renewAuditInstance: (instance: string) => Promise<void>;
  readonly auditVector: () => AuditVector;
  /** In the order of sequences; fewer where they are long, none at the end. */
  readonly auditAfter: (instance: string, sequence: number, limit: number) => readonly AuditEntry[];
  /**
   * Takes entries of other instances, in the order of their sequences; those that are here already, or lie before one that
   * is, change nothing. What is malformed or past its time is left out, and counts as seen.
   */
  readonly applyAudit: (entries: readonly AuditEntry[]) => Promise<void>;
  /** Hears of entries of this node's own, not of those that it was given. */
  readonly onAudit: (listener: () => void) => () => void;
  /** Milliseconds since 1970: tombstones due before it have left here. */
  readonly collectedUpToMs: () => number;
  /** When this store last agreed with another one on everything, milliseconds since 1970; 0: never. Survives a restart. */
  readonly lastAgreementMs: () => number;
  /** As it was set last; empty: never. Survives a restart. */
  readonly agreements: () => Agreements;
  readonly setAgreement: (atMs: number, agreements: Agreements) => Promise<void>;
  /**
   * Puts all that is stored into the conflict journal where others may not know it, and begins with nothing. `knownMs` is up to
   * when they have what a node wrote, milliseconds since 1970; without it, the last agreement of this store.
   */
  readonly startOver: (knownMs?: (nodeId: string) => number) => Promise<void>;
};
