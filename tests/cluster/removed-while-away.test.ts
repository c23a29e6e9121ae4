/** A node that the others held for dead, and that somebody removed meanwhile, is one of them again when it is back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ApiClient, signIn } from "../scenarios/api-client.ts";
import { waitFor } from "../support/wait.ts";
import { kill, startCluster, statusesOf } from "./cluster-world.ts";

type Entry = { readonly action: string; readonly resource_id: string };

async function timesMade(api: ApiClient, id: string): Promise<number> {
  const { body } = await api.ask("GET", "/audit?resource=node&limit=50");
  return (body.items as Entry[]).filter((entry) => entry.action === "create" && entry.resource_id === id).length;
}

test("a node that was cut off and removed meanwhile writes itself anew when it is back, without a restart", async () => {
  await using cluster = await startCluster(2);
  const [a, b] = cluster.nodes;
  assert.ok(b);
  await using api = await signIn(a.api);
  await waitFor("its entry of the audit log", 30_000, async () => (await timesMade(api, "b")) === 1);
  // It neither hears nor answers, as behind a network that is cut, and knows nothing of that afterwards.
  process.kill(b.child.pid, "SIGSTOP");
  try {
    await waitFor("it is dead", 30_000, async () => (await statusesOf(api)).b === "dead");
    assert.equal((await api.ask("DELETE", "/nodes/b")).status, 200);
    assert.deepEqual(await statusesOf(api), { a: "alive" });
  } finally {
    process.kill(b.child.pid, "SIGCONT");
  }
  await waitFor("it is alive", 30_000, async () => (await statusesOf(api)).b === "alive");
  await waitFor("it has written itself", 30_000, async () => (await timesMade(api, "b")) === 2);
  // What is stored is shown of a node that is gone as well.
  await kill(b);
  await waitFor("it is dead", 30_000, async () => (await statusesOf(api)).b === "dead");
});
