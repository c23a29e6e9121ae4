/**
 * `node tests/bench/store.ts [--records N] [--seconds S]`: durable creates a second by 16 writers, an import, opening and
 * reading a large store. LD_PRELOAD with a slow disk (tests/support/slow-disk.ts) shows the same on one.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type NodeStore, openStore } from "../../src/store/open-store.ts";
import { auditInput, recordBody, zoneBody } from "../support/store-objects.ts";

const WRITERS = 16;
const SLICE = 5_000;
const PAGE = 500;
const READS = 2_000;
const IMPORT = 50_000;

const { values } = parseArgs({
  options: { records: { type: "string", default: "1000000" }, seconds: { type: "string", default: "5" } },
});
const recordCount = Number(values.records);
const secondsLong = Number(values.seconds);
const directory = mkdtempSync(join(tmpdir(), "signpost-store-bench-"));

function open(): Promise<NodeStore> {
  return openStore({ directory, nodeId: "bench", secretKey: { kind: "file", key: new Uint8Array(32) } });
}

function quantiles(durations: number[]): string {
  durations.sort((left, right) => left - right);
  const at = (share: number) => durations[Math.min(durations.length - 1, Math.floor(durations.length * share))];
  return `p50 ${at(0.5)?.toFixed(3)} ms, p99 ${at(0.99)?.toFixed(3)} ms, most ${at(1)?.toFixed(3)} ms`;
}

async function timed<Value>(what: string, work: () => Promise<Value>): Promise<Value> {
  const start = performance.now();
  const value = await work();
  console.log(`${what}: ${(performance.now() - start).toFixed(0)} ms`);
  return value;
}

async function createsASecond(store: NodeStore): Promise<void> {
  await store.write((tx) => tx.put("zone", zoneBody("creates.")));
  const durations: number[] = [];
  const start = performance.now();
  const end = start + secondsLong * 1000;
  let next = 0;
  const writer = async () => {
    while (performance.now() < end) {
      const body = recordBody("creates.", `host${next++}`);
      const before = performance.now();
      await store.write((tx) => {
        tx.put("record", body);
        tx.audit(auditInput({ resource_id: body.id, after: body }));
      });
      durations.push(performance.now() - before);
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
  const rate = durations.length / ((performance.now() - start) / 1000);
  console.log(`durable creates, ${WRITERS} writers: ${rate.toFixed(0)} a second, ${quantiles(durations)}`);
}

async function fill(store: NodeStore): Promise<void> {
  for (let first = 0; first < recordCount; first += SLICE) {
    const zone = `z${Math.floor(first / IMPORT)}.`;
    await store.write((tx) => {
      tx.put("zone", zoneBody(zone));
      for (let index = first; index < Math.min(first + SLICE, recordCount); index++) {
        tx.put("record", recordBody(zone, `host${index}`));
      }
    });
  }
}

function read(store: NodeStore): void {
  const single: number[] = [];
  const pages: number[] = [];
  for (let count = 0; count < READS; count++) {
    const index = Math.floor((count * recordCount) / READS);
    const zone = `z${Math.floor(index / IMPORT)}.`;
    let start = performance.now();
    const id = recordBody(zone, `host${index}`).id;
    if (store.byId("record", id)?.body.name !== `host${index}`) throw new Error(`${id} is not there`);
    single.push(performance.now() - start);
    if (count % 10 !== 0) continue;
    start = performance.now();
    const page = store.list("record", { prefix: [zone], after: [zone, `host${index}`, "A"], limit: PAGE });
    if (page.length === 0 && index % IMPORT < IMPORT - 1000) throw new Error(`nothing behind ${id}`);
    pages.push(performance.now() - start);
  }
  console.log(`read by id: ${quantiles(single)}`);
  console.log(`page of ${PAGE}: ${quantiles(pages)}`);
}

try {
  const store = await open();
  await createsASecond(store);
  await timed(`import of ${IMPORT} records in one transaction`, () =>
    store.write((tx) => {
      tx.put("zone", zoneBody("import."));
      for (let index = 0; index < IMPORT; index++) tx.put("record", recordBody("import.", `host${index}`));
    }),
  );
  await timed("deletion of that zone", () => store.write((tx) => tx.deleteZone("import.")));
  await timed("removal of its records in the background", () => store.idle());
  await timed(`filling with ${recordCount} records`, () => fill(store));
  await store[Symbol.asyncDispose]();
  const again = await timed("opening it", open);
  read(again);
  console.log(
    `resident: ${(process.memoryUsage().rss / 2 ** 20).toFixed(0)} MB, heap ${(process.memoryUsage().heapUsed / 2 ** 20).toFixed(0)} MB`,
  );
  await again[Symbol.asyncDispose]();
} finally {
  rmSync(directory, { recursive: true, force: true });
}
