/**
 * How long replication takes with real stores in real time, both ends in this one thread: `node
 * tests/cluster/replication-speed.ts [RECORDS] [DIFFERING]`. Prints one line a measurement.
 */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { type NodeStore, openStore } from "../../src/store/open-store.ts";
import { seededChance } from "../support/chance.ts";
import { createReplicationNetwork, type VirtualTime } from "../support/replication-network.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";

const RECORDS = Number(process.argv[2] ?? 1_000_000);
const DIFFERING = Number(process.argv[3] ?? 10_000);
const ZONES = 100;
const BATCH = 5_000;

/** The same as the virtual one, and everything takes as long as it takes. */
function realTime(): VirtualTime {
  const poll = async (condition: () => boolean) => {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  return {
    timers: {
      now: () => performance.now(),
      after: (delayMs, run) => {
        const timer = setTimeout(run, Math.max(0, delayMs));
        return () => clearTimeout(timer);
      },
    },
    track: (work) => work,
    pass: async (ms) => {
      const end = performance.now() + ms;
      await poll(() => performance.now() >= end);
    },
    until: (_what, _limitMs, condition) => poll(condition),
  };
}

async function open(directory: string, nodeId: string): Promise<NodeStore> {
  const folder = await mkdtemp(join(directory, nodeId));
  return openStore({ directory: folder, nodeId, secretKey: { kind: "cluster", key: new Uint8Array(32).fill(7) } });
}

async function fill(store: NodeStore, from: number, to: number, ttl: number): Promise<void> {
  for (let at = from; at < to; at += BATCH) {
    await store.writeInSlices(function* (tx) {
      for (let each = at; each < Math.min(at + BATCH, to); each++) {
        tx.put("record", recordBody(`z${each % ZONES}.`, `h${each}`, { ttl }));
        yield;
      }
    });
  }
}

async function measured(name: string, work: () => Promise<void>): Promise<void> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const start = performance.now();
  const cpu = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(cpu);
  const seconds = (performance.now() - start) / 1000;
  delay.disable();
  const held = (share: number) => (delay.percentile(share) / 1e6).toFixed(0);
  console.error(
    `${name}: ${seconds.toFixed(2)} s, of which ${((user + system) / 1e6).toFixed(2)} s on a core; thread held p99 ${held(99)} ms, longest ${(delay.max / 1e6).toFixed(0)} ms`,
  );
}

const directory = await mkdtemp(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "signpost-speed-"));
try {
  const time = realTime();
  const net = createReplicationNetwork({ chance: seededChance(1), latencyMs: 0 }, time);
  const [one, two] = [await open(directory, "n0"), await open(directory, "n1")];
  await measured(`${RECORDS} records written`, async () => {
    await one.write((tx) => {
      for (let zone = 0; zone < ZONES; zone++) tx.put("zone", zoneBody(`z${zone}.`));
    });
    await fill(one, 0, RECORDS, 1);
  });
  await measured("digest built", () => one.digest.ready());
  net.start(one);
  const { replicator } = net.start(two, { isJoining: true });
  await measured("first sync, with the second's detection (1 s)", () =>
    time.until("complete", 0, () => replicator.isComplete()),
  );
  await time.until("agreed", 0, () => one.digest.root() === two.digest.root());
  net.partition(["n0"], ["n1"]);
  await time.pass(1_500);
  await fill(one, 0, DIFFERING / 2, 2);
  await fill(two, DIFFERING / 2, DIFFERING, 2);
  net.partition();
  await time.until("connected", 0, () => net.isConnected("n0", "n1"));
  await measured(`${DIFFERING} differing objects`, () =>
    time.until("equal", 0, () => one.digest.root() === two.digest.root()),
  );
  await measured(`${DIFFERING} records written and replicated`, async () => {
    await fill(one, 0, DIFFERING, 3);
    await time.until("equal", 0, () => one.digest.root() === two.digest.root());
  });
  for (const node of net.nodes.values()) console.error(node.nodeId, JSON.stringify(node.replicator.counters()));
  await net.stopAll();
  for (const store of [one, two]) await store[Symbol.asyncDispose]();
} finally {
  await rm(directory, { recursive: true, force: true });
}
