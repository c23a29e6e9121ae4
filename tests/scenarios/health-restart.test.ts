/** What is known of a backend outlives the thread that probes it and the process. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openUdpClient } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import { waitFor } from "../support/wait.ts";
import { type ApiClient, signIn } from "./api-client.ts";
import { dig } from "./dig.ts";
import { type ScenarioNode, startNode } from "./running-node.ts";

const NAME = "app.example.test.";
const [UP, DOWN] = ["127.0.0.1", "127.0.0.77"] as const;

async function startBackend(): Promise<Server & { readonly port: number }> {
  const server = createServer((socket) => socket.destroy());
  server.listen(0, UP);
  await once(server, "listening");
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  return Object.assign(server, { port: address.port });
}

async function createGated(api: ApiClient, port: number): Promise<void> {
  const zones = await api.ask("GET", "/zones");
  const zone = zones.body.items.find((item: { readonly name: string }) => item.name === "example.test.");
  const { status, body } = await api.ask("POST", `/zones/${zone.id}/records`, {
    name: "app",
    type: "A",
    ttl: 5,
    values: [{ value: UP }, { value: DOWN }],
    health_check_template: { protocol: "tcp", port, interval_seconds: 5, timeout_seconds: 1 },
  });
  assert.equal(status, 200, JSON.stringify(body));
}

async function answers(node: ScenarioNode): Promise<string[]> {
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  return (await dig(endpoint, NAME, "A")).split("\n").toSorted();
}

async function itemOf(node: ScenarioNode, value: string) {
  await using api = await signIn(node.api);
  const { status, body } = await api.ask("GET", "/health/status");
  assert.equal(status, 200, JSON.stringify(body));
  return body.items.find((item: { readonly value?: string }) => item.value === value);
}

test("a dead backend leaves the answers, and is in none of them when the node has started again", async () => {
  const directory = await mkdtemp(join(tmpdir(), "signpost-scenario-"));
  const backend = await startBackend();
  try {
    let since: string;
    {
      await using node = await startNode({ directory });
      await using api = await signIn(node.api);
      await createGated(api, backend.port);
      assert.deepEqual(await answers(node), [UP, DOWN], "what was never probed counts as healthy");
      await waitFor("the dead value is withheld", 40_000, async () => (await answers(node)).length === 1);
      assert.deepEqual(await answers(node), [UP]);
      const item = await waitFor("its status", 5_000, async () => {
        const found = await itemOf(node, DOWN);
        return found?.state === "unhealthy" && found;
      });
      assert.equal(item.probes.at(-1).error, "refused");
      since = item.since;
    }
    await using again = await startNode({ directory, zones: [] });
    // The very first answers of the new process, and all until its own probes have verdicts.
    const [endpoint] = again.dns;
    assert.ok(endpoint);
    const client = await openUdpClient(endpoint);
    const query = encodeQuery({ name: "app.example.test", type: 1 });
    const down = Buffer.from(DOWN.split(".").map(Number));
    try {
      for (let asked = 0; asked < 2_000; asked++) {
        const answer = await client.ask(query, 5_000);
        assert.ok(answer !== undefined);
        assert.ok(!Buffer.from(answer).includes(down), `answer ${asked} has the dead backend`);
      }
    } finally {
      client.close();
    }
    const item = await itemOf(again, DOWN);
    assert.deepEqual([item.state, item.since], ["unhealthy", since]);
  } finally {
    backend.close();
    await rm(directory, { recursive: true, force: true });
  }
});
