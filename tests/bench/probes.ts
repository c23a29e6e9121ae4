import { readdirSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openDataDirectory } from "../../src/node/data-directory.ts";
import { nodeKeys } from "../../src/node/keys.ts";
import { nodeIdOf } from "../../src/node/node-id.ts";
import { openStore } from "../../src/store/open-store.ts";
import { startNode } from "../scenarios/running-node.ts";
import { type Child, startChild } from "../support/process.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";
import { waitFor } from "../support/wait.ts";
import { markdown } from "./table.ts";

const PROBES = 20_000;
const INTERVAL_SECONDS = 10;
const MEASURED_MS = 60_000;
const ZONE = "probes.test.";
const SLICE = 2_000;
const BACKEND = fileURLToPath(new URL("./probe-backend.ts", import.meta.url));
/** Promised: CPU of the whole process at most half a core, and the 99th percentile of lateness. */
const CORES_MAX = 0.5;
const LATENESS_MAX_MS = 250;

/** Distinct loopback addresses, so that each is a probe of its own. */
function addressOf(index: number): string {
  return `127.${1 + (index >> 14)}.${(index >> 7) & 127}.${1 + (index & 127)}`;
}

/** Records of two values each, into the store of a node that does not run. */
async function fillStore(data: string, port: number): Promise<void> {
  await mkdir(data, { recursive: true, mode: 0o700 });
  const { key, release } = openDataDirectory(data, undefined);
  const secretKey = nodeKeys(key, undefined).store;
  const store = await openStore({ directory: data, nodeId: nodeIdOf(data, undefined), secretKey });
  await store.write((tx) => {
    tx.put("zone", zoneBody(ZONE, { id: "zon_probes" }));
    tx.setState(ZONE, "active");
  });
  const template = { protocol: "http", port, interval_seconds: INTERVAL_SECONDS, timeout_seconds: 5 } as const;
  for (let first = 0; first < PROBES / 2; first += SLICE) {
    await store.write((tx) => {
      for (let index = first; index < first + SLICE; index++) {
        const values = [{ value: addressOf(index * 2) }, { value: addressOf(index * 2 + 1) }];
        const extra = { id: `rec_${index}`, ttl: 5, values, health_check_template: template };
        tx.put("record", recordBody(ZONE, `host-${index}`, extra));
      }
    });
  }
  await store[Symbol.asyncDispose]();
  release();
}

/** CPU time of one thread by its name, where the system tells; milliseconds. */
function threadCpuMs(pid: number, name: string): number | undefined {
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, "latin1");
    if (!stat.includes(`(${name})`)) continue;
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }
  return undefined;
}

async function portOf(backend: Child): Promise<number> {
  return Number(await waitFor("the backend", 10_000, () => /^port (\d+)$/m.exec(backend.output())?.[1]));
}

/**
 * 20,000 HTTP probes every ten seconds of a node that does nothing else: a Markdown table of its CPU and of how late probes
 * began, over a minute in the steady state.
 */
export async function measureProbes(directory: string): Promise<string> {
  const backend = await startChild("backend", process.execPath, [BACKEND]);
  try {
    const port = await portOf(backend);
    const home = join(directory, "probes");
    await fillStore(join(home, "data"), port);
    await using node = await startNode({ directory: home, zones: [] });
    const read = async () => {
      const text = await (await node.get("/metrics")).text();
      return (series: string) => {
        const line = text.split("\n").find((candidate) => candidate.startsWith(`${series} `));
        return Number(line?.slice(series.length + 1) ?? Number.NaN);
      };
    };
    const healthy = async () => (await read())('svc_health_probes{state="healthy"}') === PROBES;
    await waitFor("all probes healthy", 120_000, healthy, 500);
    // The first runs are spread over ten seconds, and find their phases in the interval after that.
    await pause(2 * INTERVAL_SECONDS * 1_000);
    const [before, cpuBefore, threadBefore] = [await read(), node.child.cpu(), threadCpuMs(node.child.pid, "health")];
    const startedMs = performance.now();
    await pause(MEASURED_MS);
    const tookMs = performance.now() - startedMs;
    const [after, cpu, thread] = [await read(), node.child.cpu(), threadCpuMs(node.child.pid, "health")];
    const done = after("svc_health_probes_done_total") - before("svc_health_probes_done_total");
    const [user, system] = [cpu.userMs - cpuBefore.userMs, cpu.systemMs - cpuBefore.systemMs];
    const cores = (user + system) / tookMs;
    const late = (quantile: string) => after(`svc_health_probe_lateness_seconds{quantile="${quantile}"}`) * 1_000;
    const threadShare =
      thread === undefined || threadBefore === undefined ? undefined : (thread - threadBefore) / tookMs;
    const heading = [
      "probes/s",
      "cores",
      "user",
      "system",
      "health thread",
      "us a probe",
      "late p50",
      "p99",
      "max ms",
      "MiB",
    ];
    const row = [
      ((done * 1_000) / tookMs).toFixed(0),
      cores.toFixed(3),
      (user / tookMs).toFixed(3),
      (system / tookMs).toFixed(3),
      threadShare?.toFixed(3) ?? "-",
      (((user + system) * 1_000) / done).toFixed(0),
      late("0.5").toFixed(1),
      late("0.99").toFixed(1),
      late("1").toFixed(1),
      (node.child.residentBytes() / 2 ** 20).toFixed(0),
    ];
    const isKept = cores <= CORES_MAX && late("0.99") < LATENESS_MAX_MS;
    const promise = `promised at most ${CORES_MAX} cores and p99 under ${LATENESS_MAX_MS} ms: ${isKept ? "holds" : "MISSED"}`;
    return `${markdown(heading, [row])}\n\n- ${PROBES.toLocaleString("en")} HTTP probes every ${INTERVAL_SECONDS} s, ${promise}`;
  } finally {
    await backend.stop();
  }
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
