/** A secondary that knows one node only learns from it, when it starts again, what others wrote meanwhile. */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import { signIn } from "../scenarios/api-client.ts";
import { create, figure } from "../scenarios/notify-world.ts";
import { exchangeUdp } from "../support/dns-client.ts";
import { decodeMessage, encodeQuery } from "../support/dns-message.ts";
import { launchKnot } from "../support/peers/knot.ts";
import { launchNsd } from "../support/peers/nsd.ts";
import { requireProgram } from "../support/peers.ts";
import { type RunningServer, type ServerProgram, startServer } from "../support/server.ts";
import { waitFor } from "../support/wait.ts";
import { startAgain, startCluster, untilAnswers, untilReady } from "./cluster-world.ts";

const ZONE = "corp.test";
const NAME = `www.${ZONE}`;
const A = 1;
/** An address that no other test has, so that nobody takes the port while the node is away. */
const HOST = `127.${randomInt(1, 255)}.${randomInt(255)}.${randomInt(1, 255)}`;
/** A retry of a SOA by itself, and a refresh, are far beyond the end of this test. */
const ASKS_SECONDS = 3_600;

function knotOf(primary: number): ServerProgram {
  return {
    name: "knot",
    command: "knotd",
    configure: (place, port) =>
      launchKnot(place, port, {
        sections: [
          "remote:",
          "  - id: primary",
          `    address: ${HOST}@${primary}`,
          "acl:",
          "  - id: told",
          "    address: 127.0.0.1",
          "    action: notify",
          "zone:",
          `  - domain: ${ZONE}`,
          `    storage: "${place}"`,
          "    master: primary",
          "    acl: told",
          `    refresh-min-interval: ${ASKS_SECONDS}`,
          `    retry-min-interval: ${ASKS_SECONDS}`,
        ],
      }),
  };
}

function nsdOf(primary: number): ServerProgram {
  return {
    name: "nsd",
    command: "nsd",
    configure: (place, port) =>
      launchNsd(place, port, {
        server: ["xfrd-reload-timeout: 0"],
        clauses: [
          "zone:",
          `  name: "${ZONE}"`,
          `  zonefile: "${place}/corp.zone"`,
          `  request-xfr: ${HOST}@${primary} NOKEY`,
          "  allow-notify: 127.0.0.1 NOKEY",
          `  min-refresh-time: ${ASKS_SECONDS}`,
          `  min-retry-time: ${ASKS_SECONDS}`,
        ],
      }),
  };
}

async function addressAt({ port }: RunningServer): Promise<string | undefined> {
  const response = await exchangeUdp({ port }, encodeQuery({ name: NAME, type: A }), 5_000);
  const rdata = response === undefined ? undefined : decodeMessage(response).answer[0]?.rdata;
  return rdata === undefined ? undefined : [...Buffer.from(rdata, "hex")].join(".");
}

test("what another node wrote while a node was away its secondaries have from it soon after its start", async (t) => {
  if (!["knotd", "nsd"].every((program) => requireProgram(t, program) !== undefined)) return;
  await using cluster = await startCluster(2, {}, { listen: `${HOST}:0` });
  // The greater of the two ids leaves the comparison to the other one for a while.
  const [other, node] = cluster.nodes;
  assert.ok(node);
  await using api = await signIn(other.api);
  const settings = { enabled: true, allow_networks: ["127.0.0.1/32"], notify_debounce_seconds: 0 };
  assert.equal((await api.ask("PUT", "/config/axfr", settings)).status, 200);
  const zone = await create(api, "/zones", { name: `${ZONE}.` });
  const www = { name: "www", type: "A", values: [{ value: "192.0.2.1" }] };
  const record = await create(api, `/zones/${zone}/records`, www);
  await untilAnswers(node, NAME, ["192.0.2.1"]);
  const primary = node.dns[0]?.port ?? 0;
  await using servers = new AsyncDisposableStack();
  const secondaries: RunningServer[] = [];
  for (const program of [knotOf(primary), nsdOf(primary)]) {
    const zones = [{ name: ZONE, file: "" }];
    secondaries.push(servers.use(await startServer(program, { zones, readyWithinMs: 60_000 })));
  }
  const notify_targets = secondaries.map(({ port }) => `127.0.0.1:${port}`);
  assert.equal((await api.ask("PUT", "/config/axfr", { notify_targets })).status, 200);

  await node.child.stop();
  assert.equal((await api.ask("PUT", `/records/${record}`, { values: [{ value: "192.0.2.2" }] })).status, 200);
  // Its writer tells them, and they find nobody to ask: it does not tell them again.
  await waitFor("they were told", 60_000, async () => {
    return (await figure(other, "svc_dns_notify_answered_total")) === secondaries.length;
  });
  await using again = await startAgain(node, { join: [other.peers] });
  await untilReady(again);
  for (const secondary of secondaries) {
    await waitFor(
      `${secondary.name} has it`,
      60_000,
      async () => (await addressAt(secondary)) === "192.0.2.2",
      50,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${secondary.output()}\n${again.child.output()}`);
    });
  }
});
