/** Stores that are worked on by chance, and what is compared of them. */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import type { RemoteOptions } from "../../src/store/merge.ts";
import type { NodeStore } from "../../src/store/open-store.ts";
import type { RawItem } from "../../src/store/raw-items.ts";
import type { Chance } from "../support/chance.ts";
import { temporaryStore } from "../support/store.ts";
import { type Operation, perform, ZONES } from "./random-work.ts";
import { START } from "./two-stores.ts";

const KINDS = ["zone", "record", "config", "subnet-mapping"] as const;
export const HOUR_MS = 3_600_000;
const SECRET = { kind: "file", key: Buffer.alloc(32, 7) } as const;

export const clockAt = (nodeId: string, ms: number) => ({ nodeId, now: () => ms, secretKey: SECRET });

/** A random one, unless the environment names one to see it again. */
export function seedOf(): number {
  const given = process.env.SIGNPOST_SEED;
  return given === undefined ? randomInt(2 ** 31) : Number(given);
}

/** Keeps the thread for so long that the next step is often made in another turn of the event loop. */
export function pause(chance: Chance): void {
  const end = performance.now() + chance.pick([0, 0, 5]);
  while (performance.now() < end);
}

const KINDS_MADE: readonly Operation["kind"][] = [
  "short",
  "short",
  "short",
  "long",
  "long",
  "removed",
  "thrown",
  "rehearsed",
];

export function localOperation(chance: Chance, mark: string): Operation {
  return { mark, seed: chance.below(2 ** 30), kind: chance.pick(KINDS_MADE), items: [], options: {} };
}

/** What another node has made an hour before, as it was at several moments. */
export async function history(chance: Chance, nodeId = "n0"): Promise<readonly (readonly RawItem[])[]> {
  await using world = await temporaryStore(clockAt(nodeId, START - HOUR_MS));
  const moments: (readonly RawItem[])[] = [];
  for (let index = 0; index < 30; index++) {
    await perform(world.store, { ...localOperation(chance, `${nodeId}h${index}`), kind: "short" });
    if (index % 3 !== 0) continue;
    const { items } = world.store.rawItems({ limit: 10_000 });
    moments.push(items.filter((item) => !(item.item === "object" && item.kind === "subnet-mapping")));
  }
  return moments;
}

/** All that others see of a store, without the stamps, which the order of beginning gives. */
export function shown(store: NodeStore) {
  const objects = KINDS.flatMap((kind) =>
    store.list(kind, { limit: 5_000 }).map(({ key, body, shadowedBy }) => ({ kind, key, body, shadowedBy })),
  );
  const zones = ZONES.map((zone) => [zone, store.serialOf(zone), store.stateOf(zone), store.count("record", zone)]);
  const raw = store.rawItems({ limit: 10_000 }).items.map((each) => {
    if (each.item !== "object") return each.item === "alias" ? each : { item: each.item, zone: each.zone };
    const { id, renames, content } = each.envelope;
    return { kind: each.kind, key: each.key, id, renames, content };
  });
  const audit = store.auditPage({}, { limit: 5_000, oldestFirst: true }).entries.map(({ request_id }) => request_id);
  return { objects, zones, raw, audit, kinds: KINDS.map((kind) => store.count(kind)), ids: idsOf(store) };
}

/** Where each id lives that anything ever had. */
function idsOf(store: NodeStore): unknown {
  const ids = store.rawItems({ limit: 10_000 }).items.flatMap((item) => {
    if (item.item === "alias") return [item.id];
    return item.item === "object" && item.kind === "record" ? [item.envelope.id] : [];
  });
  return [...new Set(ids)].sort().map((id) => [id, store.byId("record", id)?.key]);
}

/** Counters and digests are what one who takes all that is there works out anew. */
export async function assertTakenAnew(store: NodeStore, asRows: boolean): Promise<void> {
  await using anew = await temporaryStore(clockAt("n2", START));
  const page = store.rawItems({ limit: 10_000, asRows });
  await anew.store.applyRemote(page.items, { firstSync: true, partial: true, rows: page.rows });
  await anew.store.applyRemote(
    page.items.filter(({ item }) => item === "activation"),
    { firstSync: true },
  );
  for (const each of [store, anew.store]) await each.digest.ready();
  const { audit: _, ...mine } = shown(store);
  const { audit: __, ...theirs } = shown(anew.store);
  assert.deepEqual(theirs, mine);
  assert.deepEqual(
    ZONES.map((zone) => anew.store.zoneDigest(zone)),
    ZONES.map((zone) => store.zoneDigest(zone)),
  );
  assert.equal(anew.store.digest.root(), store.digest.root());
}

/** Sends what it hears of, one after the other, as the replication does. */
export function following(from: NodeStore, to: NodeStore, options: RemoteOptions = {}) {
  let last: Promise<unknown> = Promise.resolve();
  const end = from.onItems((refs) => {
    last = last.then(() => to.applyRemote(from.items(refs), options));
    last.catch(() => undefined);
  });
  return async () => {
    end();
    await last;
  };
}
