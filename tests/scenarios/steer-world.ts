/** What scenarios of steering have in common: a node with a zone, backends that can die, and who asks from where. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { type DnsClient, openUdpClient } from "../support/dns-client.ts";
import { decodeMessage, type EdnsOption, encodeQuery } from "../support/dns-message.ts";
import { freePort } from "../support/ports.ts";
import { waitFor } from "../support/wait.ts";
import { type ApiClient, signIn } from "./api-client.ts";
import { dig } from "./dig.ts";
import { create } from "./notify-world.ts";
import { type NodeSetup, type ScenarioNode, startNode } from "./running-node.ts";
import { sharedNode } from "./shared-node.ts";

export const ZONE = "steer.test.";
export const WAIT_MS = 60_000;

/** From where a question comes: the local address of its socket, and the network that it names (RFC 7871). */
export type Asker = { readonly from?: string; readonly network?: string };

export type Steering = AsyncDisposable & {
  readonly node: ScenarioNode;
  readonly api: ApiClient;
  readonly zoneId: string;
  /** A record of the zone; gives its id. */
  readonly record: (json: object) => Promise<string>;
  /** The A records of a name, below the zone where it has no final dot, in the order of the answer. */
  readonly ask: (name: string, asker?: Asker) => Promise<string[]>;
  /** What `dig` has, line by line. */
  readonly dig: (...words: string[]) => Promise<string[]>;
  /** The items of /health/status that a query selects, such as "record_id=rec_...". */
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever came back.
  readonly health: (query?: string) => Promise<any[]>;
};

/** ECS of an IPv4 network, "10.1.2.0/24". */
export function clientSubnet(network: string): EdnsOption {
  const [address = "", length = ""] = network.split("/");
  const bytes = address.split(".").map(Number);
  return {
    code: 8,
    data: Uint8Array.from([0, 1, Number(length), 0, ...bytes.slice(0, Math.ceil(Number(length) / 8))]),
  };
}

export async function startSteering(setup: NodeSetup = {}): Promise<Steering> {
  await using undo = new AsyncDisposableStack();
  return await steeringOf(undo.use(await startNode({ zones: [], ...setup })), undo);
}

/**
 * What `startSteering` does, with one node for all tests of a file, one after the other. Each finds it as a new one is but for
 * its counters and its log. To be called outside of tests.
 */
export function sharedSteering(setup: Omit<NodeSetup, "zones" | "directory"> = {}): () => Promise<Steering> {
  const shared = sharedNode(setup);
  return async () => {
    await using undo = new AsyncDisposableStack();
    return await steeringOf(await shared(), undo);
  };
}

/** What is in `undo`, and more, belongs to the outcome. */
async function steeringOf(node: ScenarioNode, undo: AsyncDisposableStack): Promise<Steering> {
  const api = undo.use(await signIn(node.api));
  const { body } = await api.ask("GET", "/zones");
  const stored = body.items.find(({ name }: { readonly name: string }) => name === ZONE);
  const zoneId = stored?.id ?? (await create(api, "/zones", { name: ZONE }));
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  const clients = new Map<string, Promise<DnsClient>>();
  undo.defer(async () => {
    for (const client of clients.values()) (await client).close();
  });
  const kept = undo.move();
  const clientFrom = (from: string) => {
    const client = clients.get(from) ?? openUdpClient(endpoint, from);
    clients.set(from, client);
    return client;
  };
  return {
    node,
    api,
    zoneId,
    record: (json) => create(api, `/zones/${zoneId}/records`, { ttl: 5, ...json }),
    ask: async (name, { from = "127.0.0.1", network } = {}) => {
      const client = await clientFrom(from);
      const options = network === undefined ? [] : [clientSubnet(network)];
      const fullName = name.endsWith(".") ? name : `${name}.${ZONE}`;
      const answer = await client.ask(encodeQuery({ name: fullName, type: 1, edns: { options } }));
      assert.ok(answer !== undefined, `${name} is answered`);
      const { rcode, answer: records } = decodeMessage(answer);
      assert.equal(rcode, 0, name);
      return records.filter(({ type }) => type === 1).map(({ rdata }) => Buffer.from(rdata, "hex").join("."));
    },
    dig: async (...words) => (await dig(endpoint, ...words)).split("\n"),
    health: async (query = "") => {
      const { status, body } = await api.ask("GET", `/health/status?${query}`);
      assert.equal(status, 200, JSON.stringify(body));
      return body.items;
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Waits until the answer for a name is exactly these values, in any order. */
export async function untilAnswered(world: Steering, name: string, values: readonly string[], asker?: Asker) {
  const wanted = values.toSorted().join(" ");
  let last = "";
  try {
    await waitFor(`${name} is ${wanted}`, WAIT_MS, async () => {
      last = (await world.ask(name, asker)).toSorted().join(" ");
      return last === wanted;
    });
  } catch (error) {
    throw new Error(`${String(error)}: ${last}\n${JSON.stringify(await world.health("kind=value"), null, 1)}`);
  }
}

/** Waits until the values of a record have the states that `states` gives; resolves to the items of all its values. */
export async function untilJudged(world: Steering, recordId: string, states: Readonly<Record<string, string>>) {
  return await waitFor(`states of ${recordId}: ${JSON.stringify(states)}`, WAIT_MS, async () => {
    const items = await world.health(`record_id=${recordId}`);
    const stateOf = new Map(items.map(({ value, state }) => [value, state]));
    return Object.entries(states).every(([value, state]) => stateOf.get(value) === state) && items;
  });
}

/** How often each answer came in `count` questions, by the values in it. */
export async function tally(world: Steering, name: string, count: number, asker?: Asker): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (let asked = 0; asked < count; asked++) {
    const answer = (await world.ask(name, asker)).join(" ");
    counts.set(answer, (counts.get(answer) ?? 0) + 1);
  }
  return counts;
}

export type Backend = {
  readonly address: string;
  /** How long it takes to answer. */
  delayMs: number;
  status: number;
  /** Statuses of the next answers, before `status` counts. */
  readonly plan: number[];
  /** Connections that it has seen. */
  connections: number;
  readonly kill: () => Promise<void>;
  readonly revive: () => Promise<void>;
};

export type Backends = AsyncDisposable & { readonly port: number; readonly at: (address: string) => Backend };

async function listenAt(server: Server, port: number, address: string): Promise<void> {
  server.listen({ port, host: address, exclusive: true });
  await once(server, "listening");
}

async function end(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}

function backendAt(address: string, port: number): Backend {
  const backend: Backend = {
    address,
    delayMs: 0,
    status: 200,
    plan: [],
    connections: 0,
    kill: () => end(server),
    revive,
  };
  const answer: RequestListener = (_, response) => {
    const status = backend.plan.shift() ?? backend.status;
    const send = () => void response.writeHead(status, { connection: "close" }).end("ok");
    if (backend.delayMs === 0) send();
    // An answer that nobody waits for any more does not keep the test alive.
    else setTimeout(send, backend.delayMs).unref();
  };
  let server = open();
  function open(): Server {
    return createServer(answer).on("connection", () => {
      backend.connections += 1;
    });
  }
  async function revive(): Promise<void> {
    server = open();
    await listenAt(server, port, address);
  }
  return backend;
}

/** HTTP servers on loopback addresses, all on one port; they listen. */
export async function startBackends(...addresses: readonly string[]): Promise<Backends> {
  const port = await freePort();
  const backends = new Map(addresses.map((address) => [address, backendAt(address, port)]));
  const dispose = async () => {
    for (const backend of backends.values()) await backend.kill();
  };
  try {
    for (const backend of backends.values()) await backend.revive();
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    port,
    at: (address) => {
      const backend = backends.get(address);
      assert.ok(backend, address);
      return backend;
    },
    [Symbol.asyncDispose]: dispose,
  };
}

/** A template that asks often. */
export function httpTemplate(port: number): object {
  return { protocol: "http", port, interval_seconds: 1, timeout_seconds: 1 };
}

export function valuesOf(...values: readonly string[]): object[] {
  return values.map((value) => ({ value }));
}
