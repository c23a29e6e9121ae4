/** One node for the tests of a file, one after the other: its start takes far longer than what most of them ask of it. */
import assert from "node:assert/strict";
import { after } from "node:test";
import { waitFor } from "../support/wait.ts";
import { type ApiClient, signIn } from "./api-client.ts";
import { figure } from "./notify-world.ts";
import { type NodeSetup, type ScenarioNode, startNode } from "./running-node.ts";

const COLLECTIONS = ["/overrides", "/forwarders", "/stub-zones", "/subnet-mappings", "/zones"];
const DOCUMENTS = ["/forwarders/default", "/forwarders/hardening", "/config/cache"];
const WAIT_MS = 60_000;

async function succeed(api: ApiClient, method: string, path: string, json?: object) {
  const { status, body } = await api.ask(method, path, json);
  assert.equal(status, 200, `${method} ${path}: ${JSON.stringify(body)}`);
  return body;
}

/** Takes back all that a test can have changed, so that the node holds and knows what a new one without zones does. */
async function makeAsNew(node: ScenarioNode): Promise<void> {
  await using api = await signIn(node.api);
  for (const path of COLLECTIONS) {
    const { items } = await succeed(api, "GET", path);
    for (const { id } of items) await succeed(api, "DELETE", `${path}/${id}`);
  }
  for (const path of DOCUMENTS) {
    const { effective } = await succeed(api, "GET", path);
    const unset = Object.fromEntries(Object.keys(effective).map((field) => [field, null]));
    await succeed(api, "PUT", path, unset);
  }
  await succeed(api, "PUT", "/blocklist", { domains: [] });
  await succeed(api, "POST", "/cache/flush", {});
  await waitFor("nothing is probed", WAIT_MS, async () => {
    const states = ["unknown", "healthy", "unhealthy"];
    const counts = await Promise.all(states.map((state) => figure(node, `svc_health_probes{state="${state}"}`)));
    return counts.every((count) => count === 0);
  });
}

/**
 * Starts a node without zones for the first test that asks, and makes it as new for each that asks after that, but for its
 * counters and its log. To be called outside of tests: it ends after the last of them.
 */
export function sharedNode(setup: Omit<NodeSetup, "zones" | "directory"> = {}): () => Promise<ScenarioNode> {
  let started: Promise<ScenarioNode> | undefined;
  after(async () => (await started)?.[Symbol.asyncDispose]());
  return async () => {
    if (started === undefined) {
      started = startNode({ ...setup, zones: [] });
      return await started;
    }
    const node = await started;
    await makeAsNew(node);
    return node;
  };
}
