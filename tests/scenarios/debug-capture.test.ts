/** Debug capture of a running node, over its API. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { RRTYPE } from "../../src/dns/codes.ts";
import { openUdpClient } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import { waitFor } from "../support/wait.ts";
import { type ApiClient, signIn } from "./api-client.ts";
import { dig } from "./dig.ts";
import { FAULTY_MAIN, type ScenarioNode, startNode } from "./running-node.ts";

async function askMany(node: ScenarioNode, count: number): Promise<void> {
  const client = await openUdpClient(node.dns[0]!);
  for (let asked = 0; asked < count; asked++) {
    assert.ok(await client.ask(encodeQuery({ name: `n${asked}.example.test.`, type: RRTYPE.A })));
  }
  client.close();
}

async function namesOf(api: ApiClient): Promise<string[]> {
  const { status, body } = await api.ask("GET", "/debug/tail");
  assert.equal(status, 200);
  return body.lines.map((line: string) => JSON.parse(line).name);
}

test("every query of the window is kept, whatever the sampling; the lines outlive the window and go with DELETE", async () => {
  await using node = await startNode({ env: { SVC_NODE_ID: "n-1" } });
  await using api = await signIn(node.api);
  await askMany(node, 5);
  assert.equal((await api.ask("PUT", "/config/query-log", { enabled: true, sample_rate: 1_000 })).status, 200);
  const opened = await api.ask("POST", "/debug/enable", { duration_seconds: 600 });
  assert.deepEqual([opened.status, opened.body.enabled, opened.body.node_id], [200, true, "n-1"]);
  const endsInMs = Date.parse(opened.body.expires_at) - Date.now();
  assert.ok(endsInMs > 500_000 && endsInMs <= 600_000);
  await dig(node.dns[0]!, "www.example.test", "A", "+tcp");
  await askMany(node, 20);
  await waitFor("21 lines", 20_000, async () => (await namesOf(api)).length === 21);
  const expected = ["www.example.test.", ...Array.from({ length: 20 }, (_, index) => `n${index}.example.test.`)];
  assert.deepEqual((await namesOf(api)).sort(), expected.sort());

  assert.equal((await api.ask("POST", "/debug/disable")).body.enabled, false);
  await askMany(node, 5);
  const { body: status } = await api.ask("GET", "/debug/status");
  assert.deepEqual(status, {
    node_id: "n-1",
    enabled: false,
    expires_at: null,
    lines: 21,
    dropped: 0,
    capacity: 1_000,
  });
  assert.equal((await namesOf(api)).length, 21);
  assert.equal((await api.ask("DELETE", "/debug/tail")).status, 200);
  assert.deepEqual((await api.ask("GET", "/debug/tail")).body, {
    node_id: "n-1",
    dropped: 0,
    capacity: 1_000,
    lines: [],
  });
  const { items } = (await api.ask("GET", "/audit?resource=debug")).body;
  assert.deepEqual(
    items.map(({ action }: Record<string, string>) => action),
    ["delete", "disable", "enable"],
  );
});

test("the last thousand lines are kept and the others counted; the window closes by itself", async () => {
  await using node = await startNode();
  await using api = await signIn(node.api);
  assert.equal((await api.ask("POST", "/debug/enable", { duration_seconds: 3_600 })).status, 200);
  await askMany(node, 1_500);
  await waitFor("500 dropped", 20_000, async () => (await api.ask("GET", "/debug/tail")).body.dropped === 500);
  const names = await namesOf(api);
  assert.equal(names.length, 1_000);
  assert.deepEqual([names[0], names.at(-1)], ["n500.example.test.", "n1499.example.test."]);
  // A window that is opened anew keeps what there is.
  assert.equal((await api.ask("POST", "/debug/enable", { duration_seconds: 1 })).status, 200);
  await waitFor("the end of the window", 20_000, async () => !(await api.ask("GET", "/debug/status")).body.enabled);
  await askMany(node, 3);
  assert.deepEqual(await namesOf(api), names);
});

test("a duration that is none, and a rehearsal, open nothing", async () => {
  await using node = await startNode();
  await using api = await signIn(node.api);
  for (const [json, pointer] of [
    [{ duration_seconds: 0 }, "/duration_seconds"],
    [{ duration_seconds: 3_601 }, "/duration_seconds"],
    [{ duration_seconds: 1.5 }, "/duration_seconds"],
    [{ duration_seconds: "60" }, "/duration_seconds"],
    [{ seconds: 60 }, "/seconds"],
  ] as const) {
    const { status, body } = await api.ask("POST", "/debug/enable", json);
    assert.deepEqual([status, body.errors[0].pointer], [400, pointer]);
  }
  assert.equal((await api.ask("POST", "/debug/enable?dry_run=true", {})).status, 200);
  assert.equal((await api.ask("GET", "/debug/status")).body.enabled, false);
  const { body } = await api.ask("POST", "/debug/enable");
  const endsInMs = Date.parse(body.expires_at) - Date.now();
  assert.ok(endsInMs > 800_000 && endsInMs <= 900_000);
});

test("a control thread that is replaced loses what was captured, and the log of queries goes on", async () => {
  const directory = await mkdtemp(join(tmpdir(), "signpost-debug-"));
  const [fault, path] = [join(directory, "fault"), join(directory, "queries")];
  try {
    await using node = await startNode({ main: FAULTY_MAIN, env: { FAULT_FILE: fault, SVC_QUERY_LOG_FILE: path } });
    await using api = await signIn(node.api);
    assert.equal((await api.ask("PUT", "/config/query-log", { enabled: true })).status, 200);
    assert.equal((await api.ask("POST", "/debug/enable")).status, 200);
    await askMany(node, 3);
    await waitFor("three lines", 20_000, async () => (await namesOf(api)).length === 3);
    await writeFile(fault, "at once");
    process.kill(node.child.pid, "SIGHUP");
    await waitFor("the death is reported", 20_000, async () => {
      await askMany(node, 1);
      return node.messages().some((message) => message.startsWith("thread control failed"));
    });
    await waitFor("the replacement serves", 20_000, async () => {
      await askMany(node, 1);
      return (await node.get("/readyz").catch(() => undefined))?.status === 200;
    });
    await dig(node.dns[0]!, "last.example.test", "A");
    await waitFor("a line of it", 20_000, async () => (await readFile(path, "utf8")).includes("last.example.test."));
    await using again = await signIn(node.api);
    assert.equal((await again.ask("GET", "/debug/status")).body.enabled, false);
    // What came while nobody was there to take it is told now; what was taken is gone.
    const names = await namesOf(again);
    assert.ok(!names.includes("n2.example.test.") && !names.includes("last.example.test."), names.join());
    assert.equal((await node.child.stop()).code, 0);
  } finally {
    await rm(directory, { recursive: true });
  }
});
