/** A node that is killed while it writes and replicates has, when it is back, what it acknowledged and what its peer has of it. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { type NodeStore, openStore } from "../../src/store/open-store.ts";
import type { RawItem } from "../../src/store/raw-items.ts";
import { applyToModel, applyToStore, type ZoneModel, zoneOf } from "../store/crash-work.ts";
import { type Chance, seededChance } from "../support/chance.ts";
import { type Replica, startReplica } from "../support/replicating-store.ts";
import { waitFor } from "../support/wait.ts";
import { MORTAL, SECRET_KEY, SURVIVOR } from "./crash-nodes.ts";

const ROUNDS = Number(process.env.SIGNPOST_CRASH_ROUNDS ?? 2);
const SEED = Number(process.env.SIGNPOST_SEED ?? Date.now() % 1_000_000);
/** Of the node that dies; the survivor has one more. */
const WRITERS = 4;
const ACKNOWLEDGED_MAX = 150;
const KILL_WITHIN_MS = 20;
const child = fileURLToPath(new URL("./crash-child.ts", import.meta.url));

type Campaign = {
  readonly chance: Chance;
  readonly directory: string;
  readonly survivor: NodeStore;
  readonly replica: Replica;
  /** What each writer has written, the survivor's last. */
  readonly models: readonly ZoneModel[];
  readonly done: number[];
};

/** Both write until the child is killed; gives what it said. */
async function writeUntilKilled(campaign: Campaign): Promise<string> {
  const { chance, replica, done, directory } = campaign;
  const nexts = done.slice(0, WRITERS).map((number) => String(number + 1));
  const running = spawn(process.execPath, [child, directory, String(replica.port), ...nexts], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const wanted = chance.below(ACKNOWLEDGED_MAX);
  let said = "";
  let isAlive = true;
  let reached: () => void = () => undefined;
  const isReached = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const ended = new Promise<NodeJS.Signals | null>((resolve) => {
    running.once("close", (_, signal) => {
      isAlive = false;
      reached();
      resolve(signal);
    });
  });
  running.stdout.on("data", (chunk: Buffer) => {
    said += chunk.toString();
    // The first line says that the store is open.
    if (said.split("\n").length - 2 >= wanted) reached();
  });
  replica.meet(MORTAL);
  const writing = writeBeside(campaign, () => isAlive);
  await isReached;
  // The moment of death is what varies.
  setTimeout(() => running.kill("SIGKILL"), chance.below(KILL_WITHIN_MS * 10) / 10);
  assert.equal(await ended, "SIGKILL", said);
  await writing;
  replica.part();
  return said;
}

async function writeBeside({ survivor, models, done }: Campaign, isOn: () => boolean): Promise<void> {
  while (isOn()) {
    const number = (done[WRITERS] ?? 0) + 1;
    await survivor.write((tx) => applyToStore(tx, WRITERS, number));
    applyToModel(models[WRITERS] ?? new Map(), number);
    done[WRITERS] = number;
  }
}

/** Brings the models up to what the node has: all that it acknowledged, and at most one more of each writer. */
function checkAcknowledged({ models, done }: Campaign, mortal: NodeStore, said: string): void {
  const last = done.slice(0, WRITERS);
  for (const line of said.split("\n").slice(1)) {
    const [writer, number] = line.split(" ");
    if (number !== undefined) last[Number(writer)] = Number(number);
  }
  for (const [writer, acknowledged] of last.entries()) {
    const logged = mortal.auditPage({ resource: zoneOf(writer) }, { limit: 1 }).entries[0]?.resource_id ?? "0-0";
    const reached = Number(logged.split("-")[1]);
    assert.ok(
      reached === acknowledged || reached === acknowledged + 1,
      `writer ${writer}: ${acknowledged} acknowledged, ${reached} logged`,
    );
    for (let number = (done[writer] ?? 0) + 1; number <= reached; number++) {
      applyToModel(models[writer] ?? new Map(), number);
    }
    done[writer] = reached;
  }
}

function itemsOf(store: NodeStore): Map<string, string> {
  const found = new Map<string, string>();
  let cursor: string | undefined;
  do {
    const page = store.rawItems({ limit: 500, ...(cursor !== undefined && { cursor }) });
    for (const item of page.items) found.set(`${item.item} ${store.refOf(item)}`, orderOf(item));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

/** Grows with each version: only one node writes each zone. */
function orderOf(item: RawItem): string {
  switch (item.item) {
    case "object":
      return item.envelope.stamp;
    case "floor":
      return item.floor;
    // Of one life a receiver may have raised the serial itself.
    case "serial":
    case "activation":
      return item.life;
    case "alias":
      return "";
  }
}

/** Before they meet: whatever the node had told was on its disk. */
function checkNothingToldIsMissing({ survivor }: Campaign, mortal: NodeStore): void {
  const [told, kept] = [itemsOf(survivor), itemsOf(mortal)];
  const own = zoneOf(WRITERS).slice(0, -1);
  for (const [name, order] of told) {
    if (name.includes(own)) continue;
    const found = kept.get(name);
    // A record of an ended zone may have been swept here already.
    if (found === undefined && name.startsWith("object")) continue;
    assert.ok(found !== undefined && found >= order, `${JSON.stringify(name)}: ${found} here, ${order} there`);
  }
  const instance = mortal.auditInstance();
  const [here = 0, there = 0] = [mortal, survivor].map((store) => store.auditVector()[instance]);
  assert.ok(here >= there, `${there} entries of the audit log were told, and ${here} are there`);
}

function checkModels({ models }: Campaign, store: NodeStore): void {
  for (const [writer, model] of models.entries()) {
    const records = store.list("record", { prefix: [zoneOf(writer)], limit: 1_000 });
    const found = new Map(records.map(({ body }) => [body.name, body.ttl]));
    assert.deepEqual(found, new Map([...model].sort(([left], [right]) => (left < right ? -1 : 1))));
  }
}

async function meetAgain({ survivor, replica }: Campaign, mortal: NodeStore): Promise<void> {
  await using back = await startReplica(mortal);
  replica.meet(MORTAL);
  back.meet(SURVIVOR, replica.port);
  const stores = [survivor, mortal];
  await waitFor("both have the same", 60_000, () => {
    const isReady = stores.every(({ digest }) => digest.isReady());
    return isReady && new Set(stores.map(({ digest }) => digest.root())).size === 1;
  });
  await waitFor("both have the same audit log", 60_000, () => {
    return new Set(stores.map((store) => JSON.stringify(Object.entries(store.auditVector()).sort()))).size === 1;
  });
  replica.part();
}

test(`a node that is killed has what it acknowledged and what it told, and agrees with its peer (seed ${SEED})`, async (t) => {
  const root = await mkdtemp(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "signpost-crash-"));
  const directory = join(root, MORTAL);
  try {
    await mkdir(directory);
    await mkdir(join(root, SURVIVOR));
    await using survivor = await openStore({
      directory: join(root, SURVIVOR),
      nodeId: SURVIVOR,
      secretKey: SECRET_KEY,
    });
    await using replica = await startReplica(survivor);
    const models: ZoneModel[] = Array.from({ length: WRITERS + 1 }, () => new Map());
    const campaign = { chance: seededChance(SEED), directory, survivor, replica, models, done: models.map(() => 0) };
    const instances = new Set<string>();
    for (let round = 0; round < ROUNDS; round++) {
      const said = await writeUntilKilled(campaign);
      await using mortal = await openStore({ directory, nodeId: MORTAL, secretKey: SECRET_KEY });
      instances.add(mortal.instanceId);
      checkAcknowledged(campaign, mortal, said);
      checkNothingToldIsMissing(campaign, mortal);
      await meetAgain(campaign, mortal);
      for (const store of [survivor, mortal]) checkModels(campaign, store);
      assert.deepEqual(itemsOf(mortal), itemsOf(survivor));
      for (const store of [mortal, survivor]) {
        // Two deletions of a zone that arrive as one: what the first of them had seen is not told, and is kept.
        const lost = store.journalPage({ limit: 10_000 }).entries.filter(({ reason }) => reason !== "zone-deleted");
        assert.deepEqual(lost, [], `edits lost at ${store.nodeId}, though each zone has one writer`);
      }
    }
    assert.equal(instances.size, 1, "the node takes itself for a copy");
    t.diagnostic(`${ROUNDS} kills, ${campaign.done.reduce((sum, number) => sum + number, 0)} writes`);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
