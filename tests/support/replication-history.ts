/** Nodes with real stores, what befalls them, and what must be true of it in the end. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RecordType } from "../../src/model/objects.ts";
import { type NodeStore, openStore } from "../../src/store/open-store.ts";
import type { RawItem } from "../../src/store/raw-items.ts";
import type { StoreTransaction } from "../../src/store/store.ts";
import { type Chance, seededChance } from "./chance.ts";
import { createReplicationNetwork, type ReplicationNetwork, wallMs } from "./replication-network.ts";
import { auditInput, recordBody, zoneBody } from "./store-objects.ts";

const ZONES = ["corp.", "sub.corp.", "lab."];
const NAMES = ["a", "b", "c"];
const TYPES: readonly RecordType[] = ["A", "CNAME", "TXT"];
const SECRET = new Uint8Array(32).fill(7);
const CLOCK_OFFSET_MAX_MS = 5_000;
const NODES_MIN = 3;
const NODES_MAX = 15;
const STEPS_MIN = 40;
const STEPS_MAX = 90;

type Place = {
  readonly nodeId: string;
  readonly directory: string;
  readonly clockOffsetMs: number;
  store: NodeStore | undefined;
};

/** A version that a store acknowledged. */
type Write = { readonly kind: "zone" | "record"; readonly key: readonly string[]; readonly stamp: string };

export type History = {
  readonly chance: Chance;
  readonly net: ReplicationNetwork;
  readonly places: readonly Place[];
  readonly writes: Write[];
  readonly deletions: { readonly zone: string; readonly stamp: string }[];
  /** Versions that were replaced or deleted by someone who had held them. */
  readonly outdated: Set<string>;
  number: number;
};

/** Everything that a seed fixes, from the number of nodes to the last write; then all reach all, and must end alike. */
export async function runHistory(seed: number): Promise<void> {
  const chance = seededChance(seed);
  const net = createReplicationNetwork({ chance, pushPullIntervalMs: 5_000 });
  const root = await mkdtemp(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "signpost-replication-"));
  // Mostly few, for few meet more often.
  const count =
    chance.below(4) === 0 ? NODES_MIN + chance.below(NODES_MAX - NODES_MIN + 1) : NODES_MIN + chance.below(3);
  const places = Array.from({ length: count }, (_, index): Place => {
    const clockOffsetMs = chance.below(CLOCK_OFFSET_MAX_MS);
    return { nodeId: `n${index}`, directory: join(root, `n${index}`), clockOffsetMs, store: undefined };
  });
  const history: History = { chance, net, places, writes: [], deletions: [], outdated: new Set(), number: 0 };
  try {
    for (const place of places) await startPlace(history, place);
    const steps = STEPS_MIN + chance.below(STEPS_MAX - STEPS_MIN);
    for (let step = 0; step < steps; step++) await runStep(history);
    await endAlike(history);
  } finally {
    await net.stopAll();
    for (const { store } of places) await store?.[Symbol.asyncDispose]();
    await rm(root, { recursive: true, force: true });
  }
}

/** All but the first one join it: they have their first sync before them until they agreed with somebody. */
async function startPlace({ net, places }: History, place: Place): Promise<void> {
  const { nodeId, directory, clockOffsetMs } = place;
  await mkdir(directory, { recursive: true });
  place.store = await openStore({
    directory,
    nodeId,
    now: () => wallMs(net.time, clockOffsetMs),
    secretKey: { kind: "cluster", key: SECRET },
  });
  net.start(place.store, { clockOffsetMs, isJoining: place !== places[0] });
}

async function stopPlace({ net }: History, place: Place): Promise<void> {
  const { store } = place;
  place.store = undefined;
  await net.stop(place.nodeId);
  await store?.[Symbol.asyncDispose]();
}

async function runStep(history: History): Promise<void> {
  const { chance, net, places } = history;
  const dice = chance.below(100);
  const place = chance.pick(places);
  if (dice < 74) await writeSomething(history, place);
  else if (dice < 80) partition(history);
  else if (dice < 84) net.partition();
  else if (dice < 89) await restart(history, place);
  else if (dice < 94) net.breakConnections(place.nodeId, chance.pick(places).nodeId);
  else net.stall(place.nodeId, chance.below(2) === 0);
  // Often nothing at all, so that writes meet on their way.
  await net.time.pass(chance.pick([0, 0, 1, 3, 10, 200, 2_000]));
}

function partition({ chance, net, places }: History): void {
  const sides = places.map(({ nodeId }) => ({ nodeId, side: chance.below(2) }));
  net.partition(...[0, 1].map((wanted) => sides.filter(({ side }) => side === wanted).map(({ nodeId }) => nodeId)));
}

/** It stops, or starts again where it has stopped. */
async function restart(history: History, place: Place): Promise<void> {
  if (place.store === undefined) await startPlace(history, place);
  else await stopPlace(history, place);
}

async function writeSomething(history: History, { store }: Place): Promise<void> {
  if (store === undefined) return;
  const { chance } = history;
  const zone = chance.pick(ZONES);
  history.number++;
  if (store.get("zone", [zone]) === undefined || chance.below(5) === 0) await writeZone(history, store, zone);
  else await writeRecord(history, store, zone);
}

/** With its entry in the audit log, as commands write. */
function commit<Value>({ net }: History, store: NodeStore, work: (tx: StoreTransaction) => Value): Promise<Value> {
  const written = store.write((tx) => {
    tx.audit(auditInput());
    return work(tx);
  });
  return net.time.track(written);
}

async function writeZone(history: History, store: NodeStore, zone: string): Promise<void> {
  const current = store.get("zone", [zone]);
  const { number, chance } = history;
  if (current !== undefined && chance.below(3) === 0) {
    outdate(history, store, (_, key) => key[0] === zone);
    const stamp = await commit(history, store, (tx) => {
      tx.deleteZone(zone);
      return tx.stamp;
    });
    history.deletions.push({ zone, stamp });
    return;
  }
  outdate(history, store, (kind, key) => kind === "zone" && key[0] === zone);
  const body = current?.body ?? zoneBody(zone, { id: `zon_${number}` });
  const { stamp } = await commit(history, store, (tx) => {
    const stored = tx.put("zone", { ...body, default_ttl: number });
    tx.setState(zone, chance.below(2) === 0 ? "active" : "pending");
    return stored;
  });
  history.writes.push({ kind: "zone", key: [zone], stamp });
}

async function writeRecord(history: History, store: NodeStore, zone: string): Promise<void> {
  const { chance, number } = history;
  const [name, type, to] = [chance.pick(NAMES), chance.pick(TYPES), chance.pick(NAMES)];
  const key = [zone, name, type] as const;
  const current = store.get("record", key);
  const isAt =
    (...names: readonly string[]) =>
    (kind: string, each: readonly string[]) =>
      kind === "record" && each[0] === zone && each[2] === type && names.includes(each[1] ?? "");
  const dice = chance.below(10);
  if (current === undefined || dice < 5) {
    outdate(history, store, isAt(name));
    // As the commands have it: a create that replaces keeps the incumbent's id.
    const body = current?.body ?? recordBody(zone, name, { id: `rec_${number}`, type });
    const { stamp } = await commit(history, store, (tx) => tx.put("record", { ...body, ttl: number }));
    history.writes.push({ kind: "record", key, stamp });
  } else if (dice < 8 && to !== name) {
    outdate(history, store, isAt(name, to));
    const moved = { ...current.body, name: to, ttl: number };
    const { stamp } = await commit(history, store, (tx) => tx.move("record", key, moved));
    history.writes.push({ kind: "record", key: [zone, to, type], stamp });
  } else {
    outdate(history, store, isAt(name));
    await commit(history, store, (tx) => tx.delete("record", key));
  }
}

function versionName(kind: string, key: readonly string[], stamp: string): string {
  return `${kind} ${key.join(" ")} ${stamp}`;
}

/** What is at a key of a store now is outdated by a write of that store: the writer has it. */
function outdate(history: History, store: NodeStore, isMeant: (kind: string, key: readonly string[]) => boolean): void {
  for (const item of allItems(store)) {
    if (item.item !== "object" || !isMeant(item.kind, item.key)) continue;
    history.outdated.add(versionName(item.kind, item.key, item.envelope.stamp));
  }
}

function allItems(store: NodeStore): readonly RawItem[] {
  const items: RawItem[] = [];
  let cursor: string | undefined;
  do {
    const page = store.rawItems({ limit: 500, ...(cursor !== undefined && { cursor }) });
    items.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return items;
}

/** Everybody runs and reaches everybody; from then on nobody writes. */
async function endAlike(history: History): Promise<void> {
  const { net, places } = history;
  net.partition();
  for (const place of places) {
    net.stall(place.nodeId, false);
    if (place.store === undefined) await startPlace(history, place);
  }
  const stores = places.map(({ store }) => store).filter((store) => store !== undefined);
  for (const { digest } of stores) await net.time.track(digest.ready());
  await net.time.until("all root digests are equal", 300_000, () => areSame(stores.map(({ digest }) => digest.root())));
  await net.time.until("all audit logs are equal", 300_000, () =>
    areSame(stores.map((store) => JSON.stringify(Object.entries(store.auditVector()).sort()))),
  );
  await net.time.until("all are complete", 60_000, () =>
    [...net.nodes.values()].every(({ replicator }) => replicator.isComplete()),
  );
  for (const store of stores) await store.idle();
  const [sent, ...others] = stores.map(allItems);
  for (const other of others) assert.deepEqual(other, sent, "equal digests of what differs");
  checkNothingVanished(history, stores);
}

function areSame(texts: readonly string[]): boolean {
  return new Set(texts).size === 1;
}

function checkNothingVanished({ writes, deletions, outdated }: History, stores: readonly NodeStore[]): void {
  const journalled = new Set<string>();
  const inState = new Set<string>();
  for (const store of stores) {
    for (const { kind, key, stamp } of store.journalPage({ limit: 10_000 }).entries) {
      journalled.add(versionName(kind, key, stamp));
    }
  }
  const [items = []] = stores.map(allItems);
  for (const item of items) {
    if (item.item !== "object") continue;
    const name = versionName(item.kind, item.key, item.envelope.stamp);
    inState.add(name);
    assert.ok(!outdated.has(name), `${name} won over a write that knew it`);
  }
  for (const { zone, stamp } of deletions) {
    const isRaised = items.some((item) => item.item === "floor" && item.zone === zone && item.floor >= stamp);
    assert.ok(isRaised, `the deletion of ${zone} is not known`);
  }
  for (const { kind, key, stamp } of writes) {
    const name = versionName(kind, key, stamp);
    const isKnown = inState.has(name) || journalled.has(name) || outdated.has(name);
    assert.ok(isKnown, `${name} is neither in the state nor in a journal`);
  }
}
