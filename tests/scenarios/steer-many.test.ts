/** Many gated records: equal probes are one, and ten thousand records with twenty thousand values are answered rightly. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { test } from "node:test";
import { waitFor } from "../support/wait.ts";
import { figure } from "./notify-world.ts";
import {
  httpTemplate,
  type Steering,
  startBackends,
  startSteering,
  untilAnswered,
  valuesOf,
  WAIT_MS,
  ZONE,
} from "./steer-world.ts";

const AT_ONCE = 64;

async function importRecords({ api }: Steering, records: readonly object[]): Promise<void> {
  const { status, body } = await api.ask("POST", "/zones/import", { zones: [{ name: ZONE, records }] });
  assert.equal(status, 200, JSON.stringify(body));
}

/** What is imported is answered a moment later. */
async function untilPublished(world: Steering, count: number): Promise<void> {
  for (const name of ["r0", `r${count - 1}`]) {
    await waitFor(`${name} exists`, WAIT_MS, async () => (await world.dig(`${name}.${ZONE}`, "A"))[0] !== "");
  }
  await waitFor("nothing is to be published", WAIT_MS, async () => {
    return (await figure(world.node, "svc_publish_waiting_zones")) === 0;
  });
}

/** The values of r0, r1, ... in order. */
async function answersOf(world: Steering, count: number): Promise<string[]> {
  const answers: string[] = [];
  for (let first = 0; first < count; first += AT_ONCE) {
    const names = Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, index) => `r${first + index}`);
    const some = await Promise.all(names.map((name) => world.ask(name)));
    answers.push(...some.map((values) => values.toSorted().join(" ")));
  }
  return answers;
}

test("five thousand records with one template and the same addresses are one probe each address, and change together", async () => {
  const [A, B] = ["127.0.8.1", "127.0.8.2"];
  const count = 5_000;
  await using backends = await startBackends(A, B);
  await using world = await startSteering();
  const health_check_template = httpTemplate(backends.port);
  const records = Array.from({ length: count }, (_, index) => ({
    name: `r${index}`,
    type: "A",
    values: valuesOf(A, B),
    health_check_template,
  }));
  await importRecords(world, records);
  await waitFor("all are gated", WAIT_MS, async () => (await world.health("limit=1"))[0]?.gates.count === count);
  await untilPublished(world, count);
  const [connectionsBefore, beginMs] = [backends.at(A).connections, performance.now()];
  await waitFor("five rounds", WAIT_MS, () => backends.at(A).connections >= connectionsBefore + 5);
  const seconds = (performance.now() - beginMs) / 1_000;
  for (const address of [A, B]) {
    const { connections } = backends.at(address);
    assert.ok(
      connections - connectionsBefore <= seconds + 3,
      `${connections - connectionsBefore} probes in ${seconds} s`,
    );
  }
  await backends.at(B).kill();
  await untilAnswered(world, "r0", [A]);
  assert.deepEqual([...new Set(await answersOf(world, count))], [A], "one verdict is everybody's");
});

/** Three rounds of probes take over thirty seconds, and longer where the machine does not keep up. */
const MANY_MS = 300_000;
const RECORDS = 10_000;
const [EVERY_DEAD, EVERY_BOTH_DEAD] = [10, 1_000];

/** An address of its own for each value; those that a server behind 127.201.0.0/16 answers are dead. */
function addressesOf(index: number): [string, string] {
  const rest = `${index >> 8}.${index & 255}`;
  return [
    `127.${index % EVERY_BOTH_DEAD === 0 ? 201 : 101}.${rest}`,
    `127.${index % EVERY_DEAD === 0 ? 202 : 102}.${rest}`,
  ];
}

function expectedOf(index: number): string {
  const [first, second] = addressesOf(index);
  const isFailingOpen = index % EVERY_BOTH_DEAD === 0;
  return index % EVERY_DEAD === 0 && !isFailingOpen ? first : `${first} ${second}`;
}

const sayWith = (status: string) => `HTTP/1.1 ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;
const [ALIVE, DEAD] = [sayWith("200 OK"), sayWith("503 Service Unavailable")];

/** HTTP of the simplest kind on all of 127.0.0.0/8, so that most of the machine is the node's. */
async function startLoopback(): Promise<AsyncDisposable & { readonly port: number; readonly seen: Set<string> }> {
  const seen = new Set<string>();
  const server: Server = createServer({ noDelay: true }, (socket) => {
    const address = socket.localAddress ?? "";
    seen.add(address);
    socket.on("error", () => {});
    socket.once("data", () => socket.end(address.startsWith("127.20") ? DEAD : ALIVE));
  });
  server.listen({ port: 0, host: "0.0.0.0", backlog: 4_096 });
  await once(server, "listening");
  const bound = server.address();
  assert.ok(bound !== null && typeof bound === "object");
  return { port: bound.port, seen, [Symbol.asyncDispose]: async () => void server.close() };
}

test("ten thousand records with twenty thousand values are all probed, and answered without the dead", async (t) => {
  await using backend = await startLoopback();
  await using world = await startSteering();
  const health_check_template = { protocol: "http", port: backend.port, interval_seconds: 10, timeout_seconds: 5 };
  const records = Array.from({ length: RECORDS }, (_, index) => ({
    name: `r${index}`,
    type: "A",
    values: valuesOf(...addressesOf(index)),
    health_check_template,
  }));
  const beganMs = performance.now();
  const took = (what: string) => t.diagnostic(`${what} after ${Math.round(performance.now() - beganMs)} ms`);
  await importRecords(world, records);
  took("imported");
  const dead = RECORDS / EVERY_DEAD + RECORDS / EVERY_BOTH_DEAD;
  const probes = (state: string) => figure(world.node, `svc_health_probes{state="${state}"}`);
  await waitFor(
    "every value is judged",
    MANY_MS,
    async () => {
      return (await probes("healthy")) === 2 * RECORDS - dead && (await probes("unhealthy")) === dead;
    },
    200,
  );
  took("all judged");
  await untilPublished(world, RECORDS);
  assert.equal(await probes("unknown"), 0);
  assert.equal(backend.seen.size, 2 * RECORDS);
  assert.equal(await figure(world.node, "svc_health_records_failing_open"), RECORDS / EVERY_BOTH_DEAD);
  assert.equal(
    await figure(world.node, 'svc_health_records{status="degraded"}'),
    RECORDS / EVERY_DEAD - RECORDS / EVERY_BOTH_DEAD,
  );
  const answers = await answersOf(world, RECORDS);
  for (const [index, answer] of answers.entries()) assert.equal(answer, expectedOf(index), `r${index}`);
  took("all answers right");
  t.diagnostic(`lateness p99 ${await figure(world.node, 'svc_health_probe_lateness_seconds{quantile="0.99"}')} s`);
  assert.equal((await world.health()).length, 2 * RECORDS);
  assert.equal((await world.health("state=unhealthy")).length, dead);
  took("statuses listed");
});
