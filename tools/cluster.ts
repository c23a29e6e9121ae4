/**
 * `npm run cluster`: three nodes of one cluster on 127.0.0.1 to 127.0.0.3, for whoever wants to see one. Each is a process with ports
 * and data of its own, and may be killed; what they held is removed at the end. The first argument is a folder to keep it in,
 * key and password included, so that the same cluster starts again from there.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));
const PORTS = { dns: 5353, api: 8443, management: 8080, replication: 7946 };
const NODES = [
  { id: "one", region: "west", address: "127.0.0.1" },
  { id: "two", region: "west", address: "127.0.0.2" },
  { id: "three", region: "east", address: "127.0.0.3" },
] as const;
type Node = (typeof NODES)[number];

const [given] = process.argv.slice(2);
const directory = given === undefined ? mkdtempSync(join(tmpdir(), "signpost-cluster-")) : resolve(given);
mkdirSync(directory, { recursive: true });
const clusterKey = keptSecret("cluster-key", process.env.SVC_REPLICATION_ENCRYPT_KEY);
const password = keptSecret("admin-password", process.env.SVC_AUTH_INITIAL_ADMIN_PASSWORD);

/** What the nodes of this folder were first started with: their stores open with that only. */
function keptSecret(name: string, given: string | undefined): string {
  const file = join(directory, name);
  if (existsSync(file)) return readFileSync(file, "utf8");
  const secret = given ?? randomBytes(24).toString("base64url");
  writeFileSync(file, secret, { mode: 0o600 });
  return secret;
}

function environmentOf({ id, region, address }: Node): NodeJS.ProcessEnv {
  const first = NODES[0];
  return {
    ...process.env,
    SVC_NODE_ID: id,
    SVC_NODE_REGION: region,
    SVC_NODE_DATA_DIR: join(directory, id),
    SVC_DNS_LISTEN: `${address}:${PORTS.dns}`,
    SVC_DNS_THREADS: "1",
    SVC_API_LISTEN: `${address}:${PORTS.api}`,
    SVC_MANAGEMENT_LISTEN: `${address}:${PORTS.management}`,
    SVC_REPLICATION_LISTEN: `${address}:${PORTS.replication}`,
    SVC_REPLICATION_ENCRYPT_KEY: clusterKey,
    // The first has the admin; the others learn of him, and of all else, from it.
    ...(id === first.id
      ? { SVC_AUTH_INITIAL_ADMIN_PASSWORD: password }
      : { SVC_REPLICATION_JOIN: `${first.address}:${PORTS.replication}` }),
    SVC_LOG_FORMAT: "text",
  };
}

function start(node: Node): ChildProcess {
  const child = spawn(process.execPath, [MAIN], { env: environmentOf(node), stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream }).on("line", (line) => process.stderr.write(`${node.id}: ${line}\n`));
  }
  return child;
}

async function isReady({ address }: Node): Promise<boolean> {
  try {
    return (await fetch(`http://${address}:${PORTS.management}/readyz`)).ok;
  } catch {
    return false;
  }
}

const POLL_MS = 100;

async function untilReady(node: Node, child: ChildProcess): Promise<void> {
  while (!(await isReady(node))) {
    if (child.exitCode !== null) throw new Error(`node ${node.id} ended at its start`);
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

function help(children: readonly ChildProcess[]): string {
  const [one, two, three] = NODES;
  const api = (node: Node) => `https://${node.address}:${PORTS.api}/api/v1`;
  const curl = "curl -sk -w '\\n' -H 'X-SVC-CSRF: 1' -H 'Content-Type: application/json'";
  const login = `{"username": "admin", "password": "${password}"}`;
  const zone = `{"name": "example.test."}`;
  const record = `{"name": "www", "type": "A", "ttl": 60, "values": [{"value": "192.0.2.1"}]}`;
  return [
    "",
    ...NODES.map(({ id, address }, index) => {
      const [dns, management] = [`${address}:${PORTS.dns}`, `http://${address}:${PORTS.management}`];
      return `node ${id.padEnd(5)}  DNS ${dns}  API https://${address}:${PORTS.api}  ${management}  pid ${children[index]?.pid}`;
    }),
    `admin's password: ${password}`,
    "",
    "Sign in at node one (sessions hold on every node):",
    `  TOKEN=$(${curl} ${api(one)}/auth/login -d '${login}' | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')`,
    "Write at node two:",
    `  ZONE=$(${curl} -H "Authorization: Bearer $TOKEN" ${api(two)}/zones -d '${zone}' | sed 's/.*"id":"\\(zon_[^"]*\\)".*/\\1/')`,
    `  ${curl} -H "Authorization: Bearer $TOKEN" ${api(two)}/zones/$ZONE/records -d '${record}'`,
    "Ask node three, a moment later (a new zone answers once all nodes have it):",
    `  sleep 1; dig @${three.address} -p ${PORTS.dns} www.example.test`,
    "Kill one, and go on writing and asking at the others; look at who is there, some seconds later:",
    `  kill -9 ${children[0]?.pid}; sleep 4`,
    `  ${curl} -H "Authorization: Bearer $TOKEN" ${api(two)}/nodes`,
    `  ${curl} -H "Authorization: Bearer $TOKEN" ${api(two)}/cluster/consistency`,
    given === undefined
      ? "Ctrl-C ends them and removes their data; npm run cluster -- FOLDER keeps it."
      : `Ctrl-C ends them; their data stays in ${directory}, to be started from again.`,
    "",
  ].join("\n");
}

const children: ChildProcess[] = [];
let isEnding = false;

async function end(exitCode: number): Promise<void> {
  if (isEnding) return;
  isEnding = true;
  const running = children.filter(({ exitCode: code, signalCode }) => code === null && signalCode === null);
  await Promise.all(
    running.map((child) => {
      child.kill("SIGTERM");
      return once(child, "exit");
    }),
  );
  if (given === undefined) rmSync(directory, { recursive: true, force: true });
  process.exit(exitCode);
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => void end(0));
try {
  for (const node of NODES) {
    const child = start(node);
    children.push(child);
    await untilReady(node, child);
  }
  process.stdout.write(help(children));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  await end(1);
}
