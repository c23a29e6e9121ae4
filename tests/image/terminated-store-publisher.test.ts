/** The control thread dies while it publishes its store: the next one brings the image to what the store holds. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { Worker } from "node:worker_threads";
import { CONTROL } from "../../src/image/shared.ts";
import { collect, openImageWriter } from "../../src/image/writer.ts";
import { openStorePublisher } from "../../src/publish/store-publisher.ts";
import { openStore } from "../../src/store/open-store.ts";
import { seededChance } from "../support/chance.ts";
import { waitFor } from "../support/wait.ts";
import { openLab, type ZoneLab, zone } from "../support/zone-lab.ts";
import { auditArena } from "./audit.ts";

const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31);
const DEATHS = 8;
const ZONES = ["one.", "two.", "sub.one."];
const NAMES = 900;
const OVERRIDES = 700;
const KEY = new Uint8Array(32).fill(7);

function everyAnswer(lab: ZoneLab): readonly string[] {
  const lines: string[] = [];
  for (const apex of ZONES) {
    lines.push(...lab.ask(`${apex} SOA`));
    for (let index = 0; index < NAMES; index++) lines.push(lab.ask(`n${index}.${apex} A`).join("; "));
  }
  for (let index = 0; index < OVERRIDES; index++) lines.push(lab.ask(`o${index}.far. A`).join("; "));
  return lines;
}

test("a store whose control thread is terminated is published whole by the next", async (t) => {
  t.diagnostic(`SEED=${SEED}`);
  const chance = seededChance(SEED);
  const directory = await mkdtemp(join(tmpdir(), "signpost-death-"));
  const lab = openLab([zone("stable.", "a A 192.0.2.1")]);
  const control = new Int32Array(lab.shared.control);
  try {
    for (let death = 0; death < DEATHS; death++) {
      const worker = new Worker(new URL("./store-publisher-entry.ts", import.meta.url), {
        workerData: { shared: lab.shared, directory, key: KEY, seed: SEED + death, zones: ZONES, names: NAMES },
      });
      await once(worker, "message");
      worker.postMessage("write");
      await once(worker, "message");
      await someChanges(worker, control, chance.below(30));
      await worker.terminate();
      await checkSuccessor(lab, directory);
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

/** Waits until the image has been seen to change so many times, or changes no more. */
async function someChanges(worker: Worker, control: Int32Array, count: number): Promise<void> {
  let isSettled = false;
  worker.once("message", () => {
    isSettled = true;
  });
  let seen = "";
  let left = count;
  await waitFor(
    "changes of the image",
    20_000,
    () => {
      const now = [CONTROL.EPOCH, CONTROL.NAMES, CONTROL.RRSETS].map((at) => Atomics.load(control, at)).join();
      if (now !== seen) left--;
      seen = now;
      return isSettled || left < 0;
    },
    0,
  );
}

async function checkSuccessor(lab: ZoneLab, directory: string): Promise<void> {
  await using store = await openStore({ directory, nodeId: "next", secretKey: { kind: "file", key: KEY } });
  const writer = openImageWriter(lab.shared);
  using publisher = openStorePublisher({ store, writer, log: () => undefined });
  await publisher.start();
  const fresh = openLab([]);
  using other = openStorePublisher({ store, writer: fresh.writer, log: () => undefined });
  await other.start();
  assert.deepEqual(everyAnswer(lab), everyAnswer(fresh), `SEED=${SEED}`);
  assert.equal(lab.ask("a.stable. A")[0], "REFUSED ede=20", "what no store holds is gone");
  while (collect(writer));
  auditArena(writer);
}
