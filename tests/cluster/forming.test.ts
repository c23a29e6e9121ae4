/** How clusters begin: three that know of each other, one that knows of nobody else, and one that joins with much to take. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { signIn } from "../scenarios/api-client.ts";
import { create } from "../scenarios/notify-world.ts";
import { ADMIN_PASSWORD } from "../scenarios/running-node.ts";
import { exchangeUdp } from "../support/dns-client.ts";
import { decodeMessage, encodeQuery } from "../support/dns-message.ts";
import { freePort } from "../support/ports.ts";
import { waitFor } from "../support/wait.ts";
import {
  type ClusterNode,
  isReady,
  startCluster,
  startClusterNode,
  statusesOf,
  untilAgreed,
  untilAnswers,
  untilReady,
} from "./cluster-world.ts";

const REFUSED = 5;
const address = (name: string, value: string) => ({ name, type: "A", ttl: 60, values: [{ value }] });

test("three empty nodes that name each other are one cluster, with one admin", async () => {
  const ports = [await freePort(), await freePort(), await freePort()];
  const addresses = ports.map((port) => `127.0.0.1:${port}`);
  await using nodes = new AsyncDisposableStack();
  const started = await Promise.all(
    addresses.map(async (listen, index): Promise<ClusterNode> => {
      const env = { SVC_REPLICATION_LISTEN: listen, SVC_AUTH_INITIAL_ADMIN_PASSWORD: ADMIN_PASSWORD };
      return nodes.use(await startClusterNode({ id: "abc".charAt(index), join: addresses, env }));
    }),
  );
  for (const node of started) await untilReady(node);
  const [first, , last] = started;
  assert.ok(first && last);
  const admins = async () => {
    await using api = await signIn(last.api);
    return (await api.ask("GET", "/users")).body.items.length;
  };
  await waitFor("the admin has come", 90_000, () =>
    admins().then(
      (count) => count === 1,
      () => false,
    ),
  );
  await using api = await signIn(first.api);
  assert.deepEqual(await statusesOf(api), { a: "alive", b: "alive", c: "alive" });
  const zone = await create(api, "/zones", { name: "corp.test." });
  await create(api, `/zones/${zone}/records`, address("www", "192.0.2.1"));
  for (const node of started) await untilAnswers(node, "www.corp.test", ["192.0.2.1"]);
  await untilAgreed(last);
});

test("a node that is told of nobody but itself is ready, with an admin of its own", async () => {
  const own = `127.0.0.1:${await freePort()}`;
  const env = { SVC_REPLICATION_LISTEN: own, SVC_AUTH_INITIAL_ADMIN_PASSWORD: ADMIN_PASSWORD };
  await using node = await startClusterNode({ id: "a", join: [own], env });
  await untilReady(node);
  await using api = await signIn(node.api);
  assert.deepEqual(await statusesOf(api), { a: "alive" });
});

test("of a zone that a first sync brings a node answers nothing until it has all of it", async () => {
  await using cluster = await startCluster(1);
  const [a] = cluster.nodes;
  await using api = await signIn(a.api);
  const names = Array.from({ length: 10_000 }, (_, index) => `h${String(index).padStart(5, "0")}`);
  const records = names.map((name) => address(name, "192.0.2.1"));
  const imported = await api.ask("POST", "/zones/import", { zones: [{ name: "big.test.", records }] });
  assert.equal(imported.status, 200, JSON.stringify(imported.body));
  await using late = await startClusterNode({ id: "b", join: [a.peers], directory: join(cluster.directory, "b") });
  const [endpoint] = late.dns;
  assert.ok(endpoint);
  const rcodes = new Set<number>();
  const ask = async (): Promise<boolean> => {
    const wasReady = await isReady(late);
    const response = await exchangeUdp(endpoint, encodeQuery({ name: `${names.at(-1)}.big.test`, type: 1 }), 5_000);
    // A datagram may be lost where the machine is busy.
    if (response === undefined) return false;
    const { rcode, answer } = decodeMessage(response);
    if (answer.length === 0) rcodes.add(rcode);
    assert.ok(!wasReady || answer.length === 1, "ready, and the zone does not answer");
    return wasReady;
  };
  await waitFor("the node is ready", 60_000, ask, 1);
  assert.deepEqual(
    [...rcodes].filter((rcode) => rcode !== REFUSED),
    [],
  );
});
