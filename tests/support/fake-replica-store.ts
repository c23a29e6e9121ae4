/** A store as replication sees it, in plain maps: the greater stamp of each key stays. */
import { createHash } from "node:crypto";
import type { ReplicatedStore } from "../../src/replication/world.ts";
import type { RawItem } from "../../src/store/raw-items.ts";
import type { Agreements, ItemRef, ItemVersion } from "../../src/store/replica.ts";
import type { AuditEntry } from "../../src/store/store.ts";

export type FakeReplicaStore = ReplicatedStore & {
  /** Writes of this node, as one transaction; the value is the stamp. */
  readonly put: (keys: readonly string[], stamp: string) => void;
  readonly stampOf: (key: string) => string | undefined;
  readonly size: () => number;
  readonly audit: (action: string) => void;
  readonly auditEntries: () => readonly AuditEntry[];
  /** Items whose stamps begin with one of these are refused. */
  readonly refuse: (stamps: readonly string[]) => void;
  readonly set: (values: { lastAgreementMs?: number; collectedUpToMs?: number }) => void;
  readonly startedOver: () => number;
  /** How often leaves were read. */
  readonly scans: () => number;
};

type Fake = {
  items: Map<ItemRef, string>;
  audit: Map<string, AuditEntry[]>;
  vector: Record<string, number>;
  /** The digests of each level, the root first. */
  readonly levels: readonly Map<number, bigint>[];
  refused: readonly string[];
  lastAgreementMs: number;
  agreements: Agreements;
  collectedUpToMs: number;
  startedOver: number;
  scans: number;
  readonly itemListeners: Set<(refs: readonly ItemRef[]) => void>;
  readonly auditListeners: Set<() => void>;
};

function itemOf(key: string, stamp: string): RawItem {
  const envelope = {
    stamp,
    born: stamp,
    life: "",
    renames: 0,
    seen: {},
    id: "",
    content: { kind: "body", body: {} },
  } as const;
  return { item: "object", kind: "zone", key: [key], envelope };
}

function partsOf(item: RawItem): { readonly key: string; readonly stamp: string } {
  if (item.item !== "object") throw new Error("this store knows objects only");
  return { key: item.key[0] ?? "", stamp: item.envelope.stamp };
}

function hash64(text: string): bigint {
  return createHash("sha256").update(text).digest().readBigUInt64BE();
}

/** Puts a version in the place of another, and into the digests on the way from its leaf to the root. */
function setItem({ items, levels }: Fake, ref: ItemRef, stamp: string | undefined): void {
  const before = items.get(ref);
  const difference =
    (before === undefined ? 0n : hash64(`${ref} ${before}`)) ^ (stamp === undefined ? 0n : hash64(`${ref} ${stamp}`));
  const leaf = leafOf(ref);
  for (const [depth, digests] of levels.entries()) {
    const node = leaf >> (4 * (4 - depth));
    digests.set(node, (digests.get(node) ?? 0n) ^ difference);
  }
  if (stamp === undefined) items.delete(ref);
  else items.set(ref, stamp);
}

function leafOf(ref: ItemRef): number {
  return Number(hash64(ref) >> 48n);
}

function digestText(digest: bigint | undefined): string {
  return (digest ?? 0n).toString(16).padStart(16, "0");
}

function digestOf(fake: Fake): FakeReplicaStore["digest"] {
  return {
    isReady: () => true,
    ready: () => Promise.resolve(),
    root: () => digestText(fake.levels[0]?.get(0)),
    children: (level, nodes) =>
      nodes.map((node) =>
        Array.from({ length: 16 }, (_, child) => digestText(fake.levels[level + 1]?.get(node * 16 + child))),
      ),
    versions: (leaves) => {
      fake.scans++;
      const wanted = new Set(leaves);
      const found: ItemVersion[] = [];
      for (const [ref, version] of fake.items) if (wanted.has(leafOf(ref))) found.push({ ref, version });
      return Promise.resolve(found);
    },
  };
}

export function fakeReplicaStore(nodeId: string): FakeReplicaStore {
  const fake: Fake = {
    items: new Map(),
    audit: new Map(),
    vector: {},
    levels: Array.from({ length: 5 }, () => new Map<number, bigint>()),
    refused: [],
    lastAgreementMs: 0,
    agreements: {},
    collectedUpToMs: 0,
    startedOver: 0,
    scans: 0,
    itemListeners: new Set(),
    auditListeners: new Set(),
  };
  const instanceId = `${nodeId}-instance`;
  return {
    nodeId,
    instanceId,
    auditInstance: () => instanceId,
    ...replicaPart(fake),
    put: (keys, stamp) => {
      for (const key of keys) setItem(fake, key, stamp);
      for (const listener of fake.itemListeners) listener(keys);
    },
    stampOf: (key) => fake.items.get(key),
    size: () => fake.items.size,
    audit: (action) => {
      const sequence = (fake.vector[instanceId] ?? 0) + 1;
      takeEntry(fake, entryOf(instanceId, sequence, nodeId, action));
      for (const listener of fake.auditListeners) listener();
    },
    auditEntries: () => [...fake.audit.values()].flat(),
    refuse: (stamps) => {
      fake.refused = stamps;
    },
    set: (values) => {
      Object.assign(fake, values);
    },
    startedOver: () => fake.startedOver,
    scans: () => fake.scans,
  };
}

function replicaPart(fake: Fake): Omit<ReplicatedStore, "nodeId" | "instanceId" | "auditInstance"> {
  return {
    onItems: (listener) => {
      fake.itemListeners.add(listener);
      return () => fake.itemListeners.delete(listener);
    },
    items: (refs) => refs.filter((ref) => fake.items.has(ref)).map((ref) => itemOf(ref, fake.items.get(ref) ?? "")),
    refOf: (item) => partsOf(item).key,
    rawItems: ({ limit, cursor }) => {
      const keys = [...fake.items.keys()].sort().filter((key) => cursor === undefined || key > cursor);
      const page = keys.slice(0, limit);
      const items = page.map((key) => itemOf(key, fake.items.get(key) ?? ""));
      return { items, rows: [], cursor: page.length < keys.length ? page.at(-1) : undefined };
    },
    digest: digestOf(fake),
    renewAuditInstance: () => Promise.reject(new Error("nobody copies this store")),
    auditVector: () => ({ ...fake.vector }),
    auditAfter: (instance, sequence, limit) => (fake.audit.get(instance) ?? []).slice(sequence, sequence + limit),
    applyAudit: (entries) => {
      for (const entry of entries) takeEntry(fake, entry);
      for (const listener of fake.auditListeners) listener();
      return Promise.resolve();
    },
    onAudit: (listener) => {
      fake.auditListeners.add(listener);
      return () => fake.auditListeners.delete(listener);
    },
    collectedUpToMs: () => fake.collectedUpToMs,
    lastAgreementMs: () => fake.lastAgreementMs,
    agreements: () => fake.agreements,
    setAgreement: (atMs, agreements) => {
      fake.lastAgreementMs = atMs;
      fake.agreements = agreements;
      return Promise.resolve();
    },
    startOver: () => {
      for (const ref of [...fake.items.keys()]) setItem(fake, ref, undefined);
      fake.startedOver++;
      fake.lastAgreementMs = 0;
      fake.agreements = {};
      return Promise.resolve();
    },
    applyRemote: (items) => {
      const refused = [];
      for (const [index, item] of items.entries()) {
        const { key, stamp } = partsOf(item);
        if (fake.refused.some((each) => stamp.startsWith(each))) refused.push({ index, reason: "future" as const });
        else if (stamp > (fake.items.get(key) ?? "")) setItem(fake, key, stamp);
      }
      return Promise.resolve(refused);
    },
  };
}

function takeEntry({ audit, vector }: Fake, entry: AuditEntry): void {
  const at = entry.id.lastIndexOf("-");
  const instance = entry.id.slice(0, at);
  const sequence = Number(entry.id.slice(at + 1));
  if (sequence !== (vector[instance] ?? 0) + 1) return;
  vector[instance] = sequence;
  audit.set(instance, [...(audit.get(instance) ?? []), entry]);
}

function entryOf(instance: string, sequence: number, nodeId: string, action: string): AuditEntry {
  return {
    id: `${instance}-${sequence}`,
    time: "2030-01-01T00:00:00.000Z",
    node_id: nodeId,
    user_id: "",
    user_name: "",
    source_address: "",
    request_id: "",
    action,
    resource: "zone",
    resource_id: "",
    resource_name: "",
    result: "success",
  };
}
