/**
 * A hundred thousand distinct questions at once while the upstream is dead: what of memory that takes, how and when they end,
 * and how long answers for our own zones take meanwhile.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type ScenarioNode, startNode } from "../scenarios/running-node.ts";
import { freePort } from "../support/ports.ts";
import { runToEnd, startChild } from "../support/process.ts";
import { waitFor } from "../support/wait.ts";
import { openPool } from "./api-load.ts";
import { signInTo } from "./api-peers.ts";
import type { FloodSeen, SteadySeen } from "./dead-client.ts";
import { markdown } from "./table.ts";

const QUESTIONS = 100_000;
const FLOOD_SECONDS = 2;
const QUIET_SECONDS = 5;
/** While the questions are sent, and as long as the last of them waits. */
const BUSY_SECONDS = 9;
const CLIENT = fileURLToPath(new URL("./dead-client.ts", import.meta.url));
const SILENT = fileURLToPath(new URL("./silent-upstream.ts", import.meta.url));
const CLIENT_MS = 60_000;
const WATCH_MS = 250;
/** Promised of answers for our own zones meanwhile. */
const OWN_P99_MAX_MS = 2;

async function seen<Seen>(args: readonly (string | number)[]): Promise<Seen> {
  return JSON.parse(await runToEnd(process.execPath, [CLIENT, ...args.map(String)], CLIENT_MS));
}

function residentMiB({ child }: ScenarioNode): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, "latin1"));
  return Number(match?.[1] ?? Number.NaN) / 1_024;
}

type Peak = { residentMiB: number; inFlight: number; waiting: number };

/** Looks at the node every now and then until it is told to end, and gives the highest of what it saw. */
function watchPeak(node: ScenarioNode): () => Promise<Peak> {
  const peak: Peak = { residentMiB: 0, inFlight: 0, waiting: 0 };
  const over = Promise.withResolvers<void>();
  let isOver = false;
  const look = async () => {
    peak.residentMiB = Math.max(peak.residentMiB, residentMiB(node));
    const text = await (await node.get("/metrics")).text();
    const figure = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1] ?? 0);
    peak.inFlight = Math.max(peak.inFlight, figure("svc_forward_in_flight"));
    peak.waiting = Math.max(peak.waiting, figure("svc_forward_waiting"));
  };
  const loop = async () => {
    while (!isOver) {
      await look();
      await Promise.race([over.promise, new Promise((resolve) => setTimeout(resolve, WATCH_MS))]);
    }
  };
  const done = loop();
  return async () => {
    isOver = true;
    over.resolve();
    await done;
    return peak;
  };
}

type Upstream = { readonly title: string; readonly port: number; readonly stop: () => Promise<unknown> };

async function openUpstream(kind: "silent" | "refusing"): Promise<Upstream> {
  if (kind === "refusing") return { title: "nobody listens", port: await freePort(), stop: async () => {} };
  const child = await startChild("upstream", process.execPath, [SILENT]);
  const port = Number(await waitFor("the upstream", 10_000, () => /^port (\d+)$/m.exec(child.output())?.[1]));
  process.kill(child.pid, "SIGSTOP");
  const stop = async () => {
    process.kill(child.pid, "SIGCONT");
    await child.stop();
  };
  return { title: "silent", port, stop };
}

async function forwardTo(node: ScenarioNode, port: number): Promise<void> {
  await using pool = openPool(await signInTo(node.api, 1), 1);
  const body = JSON.stringify({ upstreams: [`127.0.0.1:${port}`], enabled: true });
  await pool.ask({ method: "PUT", path: "/api/v1/forwarders/default", body });
}

const ms = (value: number) => value.toFixed(value < 10 ? 2 : 0);

function rcodeText(rcodes: Readonly<Record<string, number>>): string {
  const answered = Object.values(rcodes).reduce((sum, count) => sum + count, 0);
  const silent = QUESTIONS - answered;
  return `SERVFAIL ${rcodes["2"] ?? 0}, others ${answered - (rcodes["2"] ?? 0)}, none ${silent}`;
}

type Row = { readonly cells: readonly string[]; readonly ownMs: number };

/** The same twice: of an upstream that nothing is known of, and of one that is known to be dead. */
async function measureUpstream(upstream: Upstream): Promise<readonly Row[]> {
  await using node = await startNode({ env: { SVC_DNS_THREADS: "0" } });
  const port = node.dns[0]?.port ?? 0;
  await forwardTo(node, upstream.port);
  // What runs often is compiled by then.
  await seen<SteadySeen>(["steady", port, QUIET_SECONDS]);
  const quiet = await seen<SteadySeen>(["steady", port, QUIET_SECONDS]);
  const rows: Row[] = [];
  for (const round of ["unknown", "known to be dead"]) {
    const before = residentMiB(node);
    const endWatch = watchPeak(node);
    const [flood, own] = await Promise.all([
      seen<FloodSeen>(["flood", port, QUESTIONS, FLOOD_SECONDS]),
      seen<SteadySeen>(["steady", port, BUSY_SECONDS]),
    ]);
    const peak = await endWatch();
    const cells = [
      `${upstream.title}, ${round}`,
      rcodeText(flood.rcodes),
      flood.waitedMs.map(ms).join(" / "),
      String(peak.inFlight),
      String(peak.waiting),
      [before, peak.residentMiB, residentMiB(node)].map((value) => value.toFixed(0)).join(" / "),
      quiet.latencyMs.map(ms).join(" / "),
      own.latencyMs.map(ms).join(" / "),
      ms(own.worstMs),
      String(own.lost),
    ];
    rows.push({ cells, ownMs: own.latencyMs[1] });
  }
  return rows;
}

/** A Markdown table, and whether what is promised of answers for our own zones holds. */
export async function measureForwardDead(): Promise<string> {
  const rows: Row[] = [];
  for (const kind of ["silent", "refusing"] as const) {
    const upstream = await openUpstream(kind);
    try {
      rows.push(...(await measureUpstream(upstream)));
    } finally {
      await upstream.stop();
    }
  }
  const heading = [
    "upstream",
    "answers",
    "after ms (p50 / p99 / max)",
    "in flight",
    "waiting",
    "MiB (before / peak / after)",
    "own zone, quiet ms",
    "meanwhile ms",
    "p99 of the worst second",
    "lost",
  ];
  const worst = Math.max(...rows.map(({ ownMs }) => ownMs));
  const verdict = worst < OWN_P99_MAX_MS ? "holds" : "MISSED";
  const table = markdown(
    heading,
    rows.map(({ cells }) => [...cells]),
  );
  const promise = `p99 for our own zone ${ms(worst)} ms, promised under ${OWN_P99_MAX_MS}: ${verdict}`;
  return `${table}\n\n- ${QUESTIONS.toLocaleString("en")} distinct questions within ${FLOOD_SECONDS} s, ${promise}`;
}
