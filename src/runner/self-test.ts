/** The runner's test of itself: what a script would meet in the sandbox, tried out there before any script is. */
import { closeSync, openSync, readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { errorText } from "../base/errors.ts";
import { SELF_TEST_CONNECT_MS, SELF_TEST_DEADLINE_MS } from "./limits.ts";
import { type Cell, EXTRA_DESCRIPTOR, endSandbox, startInCell } from "./run-script.ts";
import { limitedCommand } from "./sandbox.ts";

export type Attempt = { readonly host: string; readonly port: number; readonly over: "tcp" | "udp" };

const METADATA = [
  { host: "169.254.169.254", port: 80 },
  { host: "::ffff:169.254.169.254", port: 80 },
  { host: "168.63.129.16", port: 80 },
  { host: "168.63.129.16", port: 32526 },
  { host: "fd00:ec2::254", port: 80 },
] as const;

/** Attempts to reach what scripts must not reach. An address of a link needs the name of one. */
function attempts(): Attempt[] {
  const link = Object.entries(networkInterfaces()).find(([, addresses]) => addresses?.some((one) => !one.internal));
  const targets = [...METADATA, ...(link === undefined ? [] : [{ host: `fe80::1%${link[0]}`, port: 80 }])];
  return targets.flatMap((target) => (["tcp", "udp"] as const).map((over) => ({ ...target, over })));
}

/** What no script may see of any host, whatever the service's own files are. */
const NEVER_SEEN = ["/root", "/home", "/var", "/run", "/sys", "/boot", "/etc/passwd", "/etc/shadow", "/etc/signpost"];
/** PATH and LANG are given; bubblewrap and the shell's habits set PWD. */
const ENVIRONMENT = ["PATH", "LANG", "PWD"];
/** Bubblewrap's first process and the test itself. */
const PROCESSES = 2;

const NOT_ROUTED = ["EACCES"];
/** Where a machine has no IPv6 at all, nothing is reached over it either. */
const NOT_ROUTED_IPV6 = ["EACCES", "ENETUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT"];

function isMapped(host: string): boolean {
  return host.startsWith("::ffff:");
}

function attemptFault({ host, port, over }: Attempt, code: unknown): string | undefined {
  const isIpv6 = host.includes(":") && !isMapped(host);
  // A mapped address needs an IPv6 socket; without one there is no such way.
  const expected = isIpv6 ? NOT_ROUTED_IPV6 : isMapped(host) ? [...NOT_ROUTED, "EAFNOSUPPORT"] : NOT_ROUTED;
  if (expected.some((one) => one === code)) return undefined;
  const how = code === "" ? "can be reached" : `is not refused by this machine (${String(code)})`;
  return `${host} port ${port} ${how} over ${over.toUpperCase()}`;
}

/** What is wrong by the report of inside.ts; undefined when all is well. The first fault is told: one is enough. */
export function reportFault(report: unknown, userId: number, tried: readonly Attempt[]): string | undefined {
  if (typeof report !== "object" || report === null) return "the report is none";
  const fields: Readonly<Record<string, unknown>> = { ...report };
  if (fields.userId !== userId || fields.effectiveUserId !== userId) return `it runs as user ${String(fields.userId)}`;
  const status: Readonly<Record<string, unknown>> = { ...(fields.status instanceof Object ? fields.status : {}) };
  for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) {
    if (!/^0+$/.test(String(status[set]))) return `it has capabilities (${set} ${String(status[set])})`;
  }
  if (status.NoNewPrivs !== "1") return "it may gain privileges";
  if (status.Seccomp !== "2") return "its system calls are not filtered";
  const lists = ["groups", "environment", "seen", "writable", "codes", "descriptors"].map((name) => fields[name]);
  if (!lists.every((list) => Array.isArray(list))) return "the report is not whole";
  const [groups = [], environment = [], seen = [], writable = [], codes = [], descriptors = []] = lists;
  if (groups.includes(0)) return "it is in the group of root";
  const foreign = environment.find((name) => !ENVIRONMENT.includes(String(name)));
  if (foreign !== undefined) return `it sees the variable ${String(foreign)}`;
  if (seen.length > 0) return `it sees ${String(seen[0])}`;
  if (writable.length > 0) return `it can write to ${String(writable[0])}`;
  const open = descriptors.find((one) => one !== EXTRA_DESCRIPTOR);
  if (open !== undefined) return `it has the open file ${String(open)} of another program`;
  if (fields.processes !== PROCESSES) return `it sees ${String(fields.processes)} processes`;
  return tried.map((attempt, index) => attemptFault(attempt, codes[index])).find((fault) => fault !== undefined);
}

/**
 * Tries the sandbox out. `hidden`: paths of the service that must not be seen. Undefined when all is as it must be, else
 * what is not.
 */
export async function testSandbox(cell: Cell, hidden: readonly string[]): Promise<string | undefined> {
  const tried = attempts();
  const asked = JSON.stringify({
    hidden: [...NEVER_SEEN, ...hidden],
    attempts: tried,
    attemptMs: SELF_TEST_CONNECT_MS,
  });
  try {
    const text = await runInside(cell, readFileSync(new URL("./inside.ts", import.meta.url), "utf8"), asked);
    const report: unknown = JSON.parse(text);
    return reportFault(report, cell.userId, tried);
  } catch (error) {
    return errorText(error);
  }
}

/** Runs a program by this very Node, which the sandbox has as an open file only. What it wrote; throws when it fails. */
function runInside(cell: Cell, program: string, argument: string): Promise<string> {
  const node = openSync(process.execPath, "r");
  const command = [`/proc/self/fd/${EXTRA_DESCRIPTOR}`, "--input-type=module-typescript", "-", argument];
  const child = startInCell(cell, limitedCommand(Math.ceil(SELF_TEST_DEADLINE_MS / 1000), command), node);
  closeSync(node);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      endSandbox(child);
      reject(new Error(`no report within ${SELF_TEST_DEADLINE_MS} ms`));
    }, SELF_TEST_DEADLINE_MS);
    let output = "";
    let faults = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      output += chunk.toString("utf8");
    });
    child.stderr?.on("data", (chunk: Buffer) => {
      faults = (faults + chunk.toString("utf8")).slice(0, 1_000);
    });
    child.once("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      if (code === 0) resolve(output);
      else reject(new Error(`it cannot be tried (${code ?? signal}): ${faults.trim()}`));
    });
    child.stdin?.end(program);
  });
}
