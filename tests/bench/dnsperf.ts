import { runToEnd } from "../support/process.ts";
import type { RunningServer } from "../support/server.ts";
import type { UserTimeMeter } from "./user-time.ts";

export type Workload = {
  readonly name: string;
  readonly queryFile: string;
  readonly transport: "udp" | "tcp" | "dot" | "doh";
  /** Whether every query has an EDNS COOKIE of a client that has not met the server (RFC 7873 section 5.1). */
  readonly cookie: boolean;
};

/** One run of one workload against one server. */
export type Sample = {
  readonly queriesPerSecond: number;
  /** CPU time a completed query in microseconds, of the server's process tree. */
  readonly userUs: number;
  readonly systemUs: number;
  /** User time of the threads alone that answer, where they are known. */
  readonly answeringUserUs?: number;
  readonly lost: number;
  /** Completed queries by response code. */
  readonly rcodes: ReadonlyMap<string, number>;
};

const CLIENTS = 4;
const OUTSTANDING_EACH = 200;
const CLIENT_COOKIE = "0102030405060708";
const EDNS_COOKIE_CODE = 10;

/** Reads dnsperf's report. Throws when a figure is missing, so that a changed report is not read as zero. */
function parseReport(report: string): Pick<Sample, "queriesPerSecond" | "lost" | "rcodes"> & { completed: number } {
  const figure = (label: string): number => {
    const text = new RegExp(`^\\s*${label}:\\s+([0-9.]+)`, "m").exec(report)?.[1];
    if (text === undefined) throw new Error(`dnsperf's report lacks "${label}":\n${report}`);
    return Number(text);
  };
  const rcodes = new Map<string, number>();
  const line = /^\s*Response codes:\s+(.*)$/m.exec(report)?.[1] ?? "";
  for (const [, code, count] of line.matchAll(/([A-Z0-9]+) ([0-9]+) \(/g)) rcodes.set(code ?? "", Number(count));
  if (rcodes.size === 0) throw new Error(`dnsperf's report has no response codes:\n${report}`);
  return {
    queriesPerSecond: figure("Queries per second"),
    completed: figure("Queries completed"),
    lost: figure("Queries lost"),
    rcodes,
  };
}

export type Target = Pick<RunningServer, "name" | "port" | "cpu"> & {
  /** Of the threads that answer. */
  readonly answering?: UserTimeMeter;
};

/** Loads one server for `seconds` and measures what the load cost it. */
export async function measure(server: Target, workload: Workload, seconds: number): Promise<Sample> {
  const args = ["-s", "127.0.0.1", "-p", String(server.port), "-m", workload.transport, "-d", workload.queryFile];
  // dnsperf's -q is the total of all its clients.
  args.push("-c", String(CLIENTS), "-T", "1", "-q", String(CLIENTS * OUTSTANDING_EACH), "-l", String(seconds));
  if (workload.transport === "doh") args.push("-O", "doh-uri=https://localhost/dns-query");
  if (workload.cookie) args.push("-E", `${EDNS_COOKIE_CODE}:${CLIENT_COOKIE}`);
  const before = server.cpu();
  const endAnswering = await server.answering?.();
  const report = parseReport(await runToEnd("dnsperf", args, (seconds + 30) * 1000));
  const after = server.cpu();
  const answeringUserMs = await endAnswering?.();
  return {
    queriesPerSecond: report.queriesPerSecond,
    userUs: ((after.userMs - before.userMs) * 1000) / report.completed,
    systemUs: ((after.systemMs - before.systemMs) * 1000) / report.completed,
    ...(answeringUserMs === undefined ? {} : { answeringUserUs: (answeringUserMs * 1000) / report.completed }),
    lost: report.lost,
    rcodes: report.rcodes,
  };
}
