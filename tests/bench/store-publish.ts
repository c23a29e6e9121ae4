/** Measures publishing from a store: the whole of it at the start, a large import, and one record after another. */
import { performance } from "node:perf_hooks";
import { openStorePublisher } from "../../src/publish/store-publisher.ts";
import { openStoreLab, type StoreLab } from "../support/store-lab.ts";
import { openLab } from "../support/zone-lab.ts";

const RECORDS = Number(process.argv[2] ?? 1_000_000);
const ZONES = 20;
const SINGLES = 2000;

function say(what: string, value: number, unit: string): void {
  process.stdout.write(`${what.padEnd(58)} ${value.toFixed(2)} ${unit}\n`);
}

/**
 * The longest turn of the event loop from now to `stop`, in milliseconds of this thread's processor: what others on the
 * machine take is not ours.
 */
function watchLoop(): { readonly stop: () => number } {
  const busyMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  let longest = 0;
  let last = busyMs();
  let handle: NodeJS.Immediate;
  const turn = () => {
    const now = busyMs();
    longest = Math.max(longest, now - last);
    last = now;
    handle = setImmediate(turn);
  };
  handle = setImmediate(turn);
  return {
    stop: () => {
      clearImmediate(handle);
      return longest;
    },
  };
}

/** How long a second publisher's listener holds the thread: the first one's cannot be seen from outside. */
function timeListener({ store }: StoreLab): () => number {
  let tookMs = 0;
  const timed: typeof store = {
    ...store,
    onChange: (listener) =>
      store.onChange((batch) => {
        const start = performance.now();
        listener(batch);
        tookMs = performance.now() - start;
      }),
  };
  const publisher = openStorePublisher({ store: timed, writer: openLab([]).writer, log: () => undefined });
  return () => {
    publisher[Symbol.dispose]();
    return tookMs;
  };
}

async function fill(world: StoreLab, zone: string, from: number, count: number): Promise<void> {
  await world.write((edit) => {
    if (edit.tx.get("zone", [zone]) === undefined) edit.zone({ name: zone });
    for (let index = from; index < from + count; index++) {
      const value = `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
      edit.record(zone, { name: `host${index}`, type: "A", values: [{ value }] });
    }
  });
}

async function measureSingles(world: StoreLab): Promise<void> {
  for (let index = 0; index < SINGLES; index++) await fill(world, "zone0.test.", 10_000_000 + index, 1);
  const before = world.publisher.stats();
  for (let index = 0; index < SINGLES; index++) await fill(world, "zone0.test.", 20_000_000 + index, 1);
  const after = world.publisher.stats();
  say("one record, commit to image, mean", ((after.publishedMs - before.publishedMs) / SINGLES) * 1000, "us");
}

async function measureImport(world: StoreLab, zone: string): Promise<void> {
  const heard = timeListener(world);
  await fill(world, zone, 0, 50_000);
  say(`50,000 records into ${zone}: hearing of them`, heard(), "ms");
  const loop = watchLoop();
  const start = performance.now();
  await world.publisher.settled();
  say(`50,000 records into ${zone}: acknowledgement to image`, performance.now() - start, "ms");
  say("  longest turn of the event loop meanwhile", loop.stop(), "ms");
}

async function measureStart(world: StoreLab): Promise<void> {
  const lab = openLab([]);
  using publisher = openStorePublisher({ store: world.store, writer: lab.writer, log: () => undefined });
  const heap = process.memoryUsage().heapUsed;
  const loop = watchLoop();
  const start = performance.now();
  await publisher.start();
  say(`start with ${world.store.count("record")} records`, (performance.now() - start) / 1000, "s");
  say("  longest turn of the event loop meanwhile", loop.stop(), "ms");
  say("  heap grown by", (process.memoryUsage().heapUsed - heap) / 2 ** 20, "MiB");
  say("  arena", lab.shared.arena.byteLength / 2 ** 20, "MiB");
}

await using world = await openStoreLab();
for (let at = 0; at < RECORDS; at += 10_000) {
  const zone = (at / 10_000) % ZONES;
  await fill(world, `zone${zone}.test.`, at, 10_000);
}
await world.publisher.settled();
await measureSingles(world);
await measureImport(world, "fresh.test.");
await measureImport(world, "zone1.test.");
await measureStart(world);
