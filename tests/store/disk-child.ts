/** `disk-child.ts rate|full|again DIRECTORY`: writes on a slow or full disk (tests/support/slow-disk.ts) and prints what it saw as JSON. */
import { writeFileSync, writeSync } from "node:fs";
import { errorText } from "../../src/base/errors.ts";
import { openStore } from "../../src/store/open-store.ts";
import { auditInput, recordBody, zoneBody } from "../support/store-objects.ts";

const WRITERS = 16;
const RATE_MS = 2_000;

const [mode, directory = ""] = process.argv.slice(2);
const store = await openStore({ directory, nodeId: "disk", secretKey: { kind: "file", key: new Uint8Array(32) } });
await store.write((tx) => tx.put("zone", zoneBody("corp.")));

function create(name: string): Promise<unknown> {
  return store.write((tx) => {
    tx.put("record", recordBody("corp.", name));
    tx.audit(auditInput({ resource_id: name }));
  });
}

async function rate() {
  const durations: number[] = [];
  const end = performance.now() + RATE_MS;
  let next = 0;
  const writer = async () => {
    while (performance.now() < end) {
      const start = performance.now();
      await create(`host${next++}`);
      durations.push(performance.now() - start);
    }
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: WRITERS }, writer));
  const seconds = (performance.now() - start) / 1000;
  return { aSecond: durations.length / seconds, shortestMs: Math.min(...durations) };
}

/** The disk fills up. */
async function full() {
  const failFile = process.env.FAIL_FILE ?? "";
  const heard: string[] = [];
  store.onChange(({ changes }) => heard.push(...changes.map(({ key }) => String(key[1]))));
  await create("before");
  writeFileSync(failFile, "");
  const faults: string[] = [];
  for (const name of ["full1", "full2", "full3"]) {
    try {
      await create(name);
    } catch (thrown) {
      faults.push(errorText(thrown));
    }
  }
  return { faults, heard, readable: store.get("record", ["corp.", "before", "A"])?.body.name };
}

/** There is room again. */
async function again() {
  await create("after");
  return { names: store.list("record", { limit: 10 }).map(({ body }) => body.name), count: store.count("record") };
}

const MODES = { rate, full, again };
const isMode = (name: string | undefined): name is keyof typeof MODES => name !== undefined && name in MODES;
if (!isMode(mode)) throw new Error(`no mode ${mode}`);
writeSync(1, `${JSON.stringify(await MODES[mode]())}\n`);
// As a node ends that cannot write: at once.
if (mode === "full") process.kill(process.pid, "SIGKILL");
await store[Symbol.asyncDispose]();
