/**
 * The self-test's program. It runs where scripts run, tries what they must not be able to do, and writes what came of it
 * to standard output, as JSON. It imports nothing of this repository: no file of it can be seen from there.
 */
import { createSocket } from "node:dgram";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";

type Attempt = { readonly host: string; readonly port: number; readonly over: "tcp" | "udp" };
type Asked = { readonly hidden: readonly string[]; readonly attempts: readonly Attempt[]; readonly attemptMs: number };

/** The name of the errno that an attempt ends with; "" where it got through, "ETIMEDOUT" where nothing says no. */
function attemptTcp({ host, port }: Attempt, attemptMs: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: attemptMs });
    const settle = (code: string) => {
      socket.destroy();
      resolve(code);
    };
    socket.once("connect", () => settle(""));
    socket.once("timeout", () => settle("ETIMEDOUT"));
    socket.once("error", (error) => settle(codeOf(error)));
  });
}

function codeOf(error: NodeJS.ErrnoException): string {
  return error.code ?? "EUNKNOWN";
}

function attemptUdp({ host, port }: Attempt): Promise<string> {
  return new Promise((resolve) => {
    const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
    const settle = (code: string) => {
      socket.close();
      resolve(code);
    };
    socket.once("error", (error) => settle(codeOf(error)));
    socket.send(new Uint8Array(1), port, host, (error) => settle(error === null ? "" : codeOf(error)));
  });
}

/** Open files that came from outside: this process's own have O_CLOEXEC. */
function inheritedDescriptors(): number[] {
  const isOwn = (name: string) => {
    try {
      const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, "latin1"))?.[1] ?? "0";
      return (Number.parseInt(flags, 8) & 0o2000000) !== 0;
    } catch {
      return true;
    }
  };
  return readdirSync("/proc/self/fd")
    .filter((name) => Number(name) > 2 && !isOwn(name))
    .map(Number);
}

function canWrite(path: string): boolean {
  try {
    writeFileSync(path, "");
    return true;
  } catch {
    return false;
  }
}

const asked: Asked = JSON.parse(process.argv[2] ?? "{}");
const status = readFileSync("/proc/self/status", "latin1");
const codes = asked.attempts.map((attempt) =>
  attempt.over === "tcp" ? attemptTcp(attempt, asked.attemptMs) : attemptUdp(attempt),
);
const report = {
  userId: process.getuid?.(),
  effectiveUserId: process.geteuid?.(),
  groups: process.getgroups?.(),
  status: Object.fromEntries([...status.matchAll(/^(Cap\w+|NoNewPrivs|Seccomp):\s+(\w+)$/gm)].map((m) => [m[1], m[2]])),
  environment: Object.keys(process.env),
  seen: asked.hidden.filter((path) => existsSync(path)),
  writable: ["/written", "/usr/written", "/etc/written", "/dev/written"].filter(canWrite),
  descriptors: inheritedDescriptors(),
  processes: readdirSync("/proc").filter((name) => /^\d+$/.test(name)).length,
  codes: await Promise.all(codes),
};
process.stdout.write(JSON.stringify(report));
