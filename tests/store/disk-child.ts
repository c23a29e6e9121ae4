/** `disk-child.ts shared|full|again DIRECTORY`: writes on a slow or full disk (tests/support/slow-disk.ts) and prints what it saw as JSON. */
import { statSync, writeFileSync, writeSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { errorText } from "../../src/base/errors.ts";
import { openStore } from "../../src/store/open-store.ts";
import { auditInput, recordBody, zoneBody } from "../support/store-objects.ts";

const WRITERS = 16;
const CREATES_EACH = 50;

const [mode, directory = ""] = process.argv.slice(2);
const store = await openStore({ directory, nodeId: "disk", secretKey: { kind: "file", key: new Uint8Array(32) } });
await store.write((tx) => tx.put("zone", zoneBody("corp.")));

function create(name: string): Promise<unknown> {
  return store.write((tx) => {
    tx.put("record", recordBody("corp.", name));
    tx.audit(auditInput({ resource_id: name }));
  });
}

function flushesSoFar(): number {
  return statSync(process.env.FLUSH_LOG ?? "").size;
}

/** Each of the writers makes its next record when the one before is acknowledged. */
async function shared() {
  const durations: number[] = [];
  const writer = async (_: unknown, number: number) => {
    for (let index = 0; index < CREATES_EACH; index++) {
      const start = performance.now();
      await create(`host${number}-${index}`);
      durations.push(performance.now() - start);
    }
  };
  const [flushes, start] = [flushesSoFar(), performance.now()];
  await Promise.all(Array.from({ length: WRITERS }, writer));
  const seconds = (performance.now() - start) / 1000;
  return { creates: durations.length, flushes: flushesSoFar() - flushes, seconds, shortestMs: Math.min(...durations) };
}

/** The disk fills up. */
async function full() {
  const failFile = process.env.FAIL_FILE ?? "";
  const heard: string[] = [];
  store.onChange(({ changes }) => heard.push(...changes.map(({ key }) => String(key[1]))));
  await create("before");
  writeFileSync(failFile, "");
  // The second and third run while the first is on its way, on top of it.
  const writes: Promise<unknown>[] = [];
  for (const name of ["full1", "full2", "full3"]) {
    const write = create(name);
    write.catch(() => undefined);
    writes.push(write);
    await nextTurn();
  }
  const faults: string[] = [];
  for (const ended of await Promise.allSettled([...writes, create("full4")])) {
    if (ended.status === "rejected") faults.push(errorText(ended.reason));
  }
  return { faults, heard, readable: store.get("record", ["corp.", "before", "A"])?.body.name };
}

/** There is room again. */
async function again() {
  await create("after");
  return { names: store.list("record", { limit: 10 }).map(({ body }) => body.name), count: store.count("record") };
}

const MODES = { shared, full, again };
const isMode = (name: string | undefined): name is keyof typeof MODES => name !== undefined && name in MODES;
if (!isMode(mode)) throw new Error(`no mode ${mode}`);
writeSync(1, `${JSON.stringify(await MODES[mode]())}\n`);
// As a node ends that cannot write: at once.
if (mode === "full") process.kill(process.pid, "SIGKILL");
await store[Symbol.asyncDispose]();
