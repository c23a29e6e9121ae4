/**
 * Work of all sorts on a store, chosen by chance and played again: what an operation does depends on what it finds and on its own
 * seed alone. Each leaves a mark that listeners hear of, so that the order in which they stood can be told.
 */
import type { NaturalKey, RecordBody, RecordType } from "../../src/model/objects.ts";
import { ownershipConflict } from "../../src/model/ownership.ts";
import type { RemoteOptions } from "../../src/store/merge.ts";
import type { NodeStore } from "../../src/store/open-store.ts";
import type { RawItem } from "../../src/store/raw-items.ts";
import type { ChangeBatch, StoreTransaction } from "../../src/store/store.ts";
import { type Chance, seededChance } from "../support/chance.ts";
import { auditInput, recordBody, zoneBody } from "../support/store-objects.ts";

export const ZONES = ["a.test.", "b.test.", "c.test.", "sub.a.test.", "d.test.", "e.test.", "f.test."];
const NAMES = ["@", "www", "x.www"];
const TYPES: readonly RecordType[] = ["A", "TXT", "CNAME", "MX"];
const VALUES: Partial<Record<RecordType, RecordBody["values"]>> = {
  A: [{ value: "192.0.2.1" }],
  TXT: [{ value: "text" }],
  CNAME: [{ value: "www.a.test." }],
  MX: [{ value: "www.a.test.", priority: 10 }],
};
/** With a zone behind them ids that several operations give to what they create in it. */
const SHARED_IDS = ["rec_shared1", "rec_shared2"];

export type Operation = {
  readonly mark: string;
  readonly seed: number;
  readonly kind: "short" | "long" | "merge" | "removed" | "thrown" | "rehearsed";
  readonly items: readonly RawItem[];
  readonly options: RemoteOptions;
};

const markBody = (mark: string) => ({ id: `map_${mark}`, subnet: mark, region_id: "eu", source: "test" });

/** What is of this mark and comes from elsewhere. */
export function markItem(mark: string, stamp: string): RawItem {
  const body = markBody(mark);
  const content = { kind: "body", body } as const;
  const envelope = { stamp, born: stamp, life: "", renames: 0, seen: {}, id: body.id, content };
  return { item: "object", kind: "subnet-mapping", key: [mark], envelope };
}

/** The marks of a batch: of one operation. */
export function marksOf({ changes }: ChangeBatch): readonly string[] {
  return changes.flatMap(({ kind, key, after }) => (kind === "subnet-mapping" && after !== undefined ? key : []));
}

type Pause = (chance: Chance) => void;

/** Makes the operation and gives what it saw; without `pause`, at one stretch. */
export async function perform(store: NodeStore, operation: Operation, pause?: Pause): Promise<unknown> {
  const { kind, items, options } = operation;
  if (kind === "merge") return store.applyRemote(items, options);
  let seen: unknown[] = [];
  const steps = function* (tx: StoreTransaction): Generator<void, void> {
    // It may run twice.
    seen = [];
    yield* stepsOf(tx, operation, seen, pause);
  };
  const atOnce = (tx: StoreTransaction) => {
    const left = steps(tx);
    for (let step = left.next(); step.done !== true; step = left.next());
  };
  const isSliced = pause !== undefined && (kind === "long" || kind === "removed");
  if (kind === "rehearsed") await store.rehearse(atOnce);
  else await (isSliced ? store.writeInSlices(steps) : store.write(atOnce)).catch(isThrown);
  return seen;
}

function* stepsOf(tx: StoreTransaction, { mark, seed, kind }: Operation, seen: unknown[], pause?: Pause) {
  const chance = seededChance(seed);
  const pauses = seededChance(seed + 1);
  const count = kind === "long" || kind === "removed" ? 4 + chance.below(12) : 1 + chance.below(3);
  for (let step = 0; step < count; step++) {
    seen.push(act(tx, chance, `${mark}_${step}`));
    pause?.(pauses);
    yield;
  }
  if (kind === "thrown" || kind === "removed") throw new Error("thrown");
  tx.put("subnet-mapping", markBody(mark));
}

function isThrown(thrown: unknown): void {
  if (!(thrown instanceof Error) || thrown.message !== "thrown") throw thrown;
}

/** One thing that a command might do, as far as it may, and what it saw. */
function act(tx: StoreTransaction, chance: Chance, name: string): unknown {
  if (chance.below(3) === 0) return settle(tx, chance);
  const zone = chance.pick(ZONES);
  const choice = chance.below(20);
  const born = tx.get("zone", [zone])?.born;
  const isThere = born !== undefined;
  if (choice === 0) return tx.count("record");
  if (choice === 1) return tx.list("record", { prefix: [zone], limit: 100 }).map(({ key }) => key);
  if (choice === 2) return tx.audit(auditInput({ request_id: name }));
  if (choice === 3) return tx.byId("record", `${chance.pick(SHARED_IDS)}.${zone}`)?.key;
  if (choice === 4 && isThere) return tx.count("record", zone);
  // No zone is deleted twice in one transaction.
  if (choice === 5 && isThere && born !== tx.stamp && chance.below(3) === 0) return tx.deleteZone(zone);
  if (!isThere) return createZone(tx, zone, chance);
  if (choice === 6) return tx.setState(zone, "active");
  if (choice === 7) return tx.put("zone", zoneBody(zone, { default_ttl: 60 + chance.below(3) })).body;
  if (choice < 11) return remove(tx, chance, zone);
  if (choice < 14) return rename(tx, chance, zone);
  return put(tx, chance, zone, name);
}

/** Of what belongs to no zone, so that one that writes another of them has read nothing in common. */
function settle(tx: StoreTransaction, chance: Chance): unknown {
  const name = `document${chance.below(6)}`;
  if (chance.below(8) === 0) return tx.list("config", { limit: 100 }).map(({ body }) => body);
  if (chance.below(4) === 0) return tx.delete("config", [name]);
  return tx.put("config", { name, settings: { value: chance.below(100) } }).body;
}

function createZone(tx: StoreTransaction, zone: string, chance: Chance): unknown {
  const { body } = tx.put("zone", zoneBody(zone));
  if (chance.below(2) === 0) tx.setState(zone, "active");
  return body;
}

function put(tx: StoreTransaction, chance: Chance, zone: string, name: string): unknown {
  const [at, type, ttl] = [chance.pick(NAMES), chance.pick(TYPES), chance.below(3)];
  const shared = chance.below(4) === 0 ? `${chance.pick(SHARED_IDS)}.${zone}` : undefined;
  const present = tx.get("record", [zone, at, type]);
  if (present === undefined && isTaken(tx, [zone, at, type])) return "taken";
  // An id that is deleted and used again in one transaction is deleted.
  const isFree = shared !== undefined && name.endsWith("_0") && tx.byId("record", shared) === undefined;
  const id = present?.body.id ?? (isFree ? shared : `rec_${name}`);
  return tx.put("record", recordBody(zone, at, { id, type, ttl, values: VALUES[type] ?? [] })).body;
}

/** Whether what is at that name speaks against it. */
function isTaken(tx: StoreTransaction, [zone = "", name = "", type]: NaturalKey): boolean {
  const others = tx.list("record", { prefix: [zone, name], limit: 100 }).map(({ body }) => body.type);
  return (
    ownershipConflict(
      type as RecordType,
      others.filter((each) => each !== type),
      name,
    ) !== undefined
  );
}

/** One of the records of the zone that are in effect. */
function some(tx: StoreTransaction, chance: Chance, zone: string) {
  const records = tx.list("record", { prefix: [zone], limit: 100 });
  const at = chance.below(1000);
  return records[at % Math.max(1, records.length)];
}

function remove(tx: StoreTransaction, chance: Chance, zone: string): unknown {
  const found = some(tx, chance, zone);
  return found === undefined ? "none" : [found.key, tx.delete("record", found.key)];
}

function rename(tx: StoreTransaction, chance: Chance, zone: string): unknown {
  const found = some(tx, chance, zone);
  const name = chance.pick(NAMES);
  if (found === undefined || found.body.name === name) return "none";
  const to = [zone, name, found.body.type];
  if (tx.get("record", to) !== undefined) tx.delete("record", to);
  if (isTaken(tx, to)) return "taken";
  return tx.move("record", found.key, { ...found.body, name }).key;
}
