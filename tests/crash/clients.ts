/** All clients of a crash test: signed in, each with its own part of the node to write to. */
import assert from "node:assert/strict";
import { ADMIN_PASSWORD, type ScenarioNode } from "../scenarios/running-node.ts";
import { seededChance } from "../support/chance.ts";
import { openUdpClient } from "../support/dns-client.ts";
import { type CrashClient, createCrashClient } from "./client.ts";
import { checkContested, checkDns, entriesByRequest, readHeld, readLog } from "./verify.ts";
import { type Counts, createWriter, type Writer } from "./writer.ts";

const CLIENTS = 6;

export type Clients = AsyncDisposable & {
  readonly reader: CrashClient;
  readonly writers: readonly Writer[];
  /** Id of the zone that all of them write to. */
  readonly sharedZone: string;
  /** What the node took and refused so far. */
  readonly count: (field: keyof Counts) => number;
  readonly summary: () => string;
};

/**
 * `node` gives the node as it is now, which may be another one than before. `http`: every other client speaks HTTP/2, or
 * none does.
 */
export async function openClients(node: () => ScenarioNode, seed: number, http: "both" | "1.1"): Promise<Clients> {
  const clients = Array.from({ length: CLIENTS }, (_, index) =>
    createCrashClient(() => node().api, http === "both" && index % 2 === 0),
  );
  const [reader] = clients;
  assert.ok(reader);
  const sharedZone = await prepare(clients);
  const writers = clients.map((client, index) =>
    createWriter(client, index, seededChance(seed * 100 + index), sharedZone),
  );
  const count = (field: keyof Counts) => writers.reduce((total, { counts }) => total + counts[field], 0);
  return {
    reader,
    writers,
    sharedZone,
    count,
    summary: () => {
      const unknown = `${count("unknown")} without an answer, ${count("unknownButMade")} of them made`;
      return `${count("acknowledged")} acknowledged, ${count("refused")} refused, ${unknown}`;
    },
    [Symbol.asyncDispose]: async () => {
      for (const client of clients) await client[Symbol.asyncDispose]();
    },
  };
}

/** Signs every client in and raises the limits of requests; gives the id of a zone that all of them may write. */
async function prepare(clients: readonly CrashClient[]): Promise<string> {
  for (const client of clients) await client.signIn("admin", ADMIN_PASSWORD);
  const limits = { auth: 10_000_000, upload: 10_000_000, write: 10_000_000, read: 10_000_000 };
  const raised = await clients[0]?.ask({ method: "PUT", path: "/config/rate-limits", json: limits });
  assert.equal(raised?.status, 200);
  const zone = await clients[0]?.ask({ method: "POST", path: "/zones", json: { name: "shared.test." } });
  return zone?.body.id;
}

/** The state after a restart: as acknowledged, as logged since `since`, as answered. Gives how many queries that took. */
export async function checkNode(
  node: ScenarioNode,
  { reader, writers, sharedZone }: Clients,
  since: Date,
): Promise<number> {
  const held = await readHeld(reader);
  const log = await readLog(reader, since);
  const touched = writers.flatMap((writer) => [...writer.touched()]);
  for (const writer of writers) writer.verify(held, entriesByRequest(log));
  checkContested(held, sharedZone, log);
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  const dns = await openUdpClient(endpoint);
  try {
    return await checkDns(dns, held, touched);
  } finally {
    dns.close();
  }
}
