import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { startChild } from "../support/process.ts";
import { signIn } from "./api-client.ts";
import { ADMIN_PASSWORD, adoptNode, MAIN } from "./running-node.ts";

const directory = await mkdtemp(join(tmpdir(), "signpost-config-"));
after(() => rm(directory, { recursive: true, force: true }));
const file = join(directory, "signpost.yaml");

const ENVIRONMENT = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("SVC_")));

function run(words: readonly string[], env: Readonly<Record<string, string>> = {}) {
  return spawnSync(process.execPath, [MAIN, ...words], {
    env: { ...ENVIRONMENT, ...env },
    encoding: "utf8",
    timeout: 120_000,
  });
}

test("--check says that the settings are valid, or every fault, and starts nothing", async () => {
  await writeFile(file, `node: { data_dir: ${directory}/never }\ndns: { listen: ["127.0.0.1:53"] }\n`);
  const good = run(["--config", file, "--check"]);
  assert.deepEqual([good.status, good.stdout, good.stderr], [0, "the configuration is valid\n", ""]);
  const variable = run(["--check"], { SVC_DNS_THREADS: "many" });
  assert.deepEqual([variable.status, variable.stdout], [1, ""]);
  assert.match(variable.stderr, /^signpost: SVC_DNS_THREADS is "many"; it takes a whole number/);
  await writeFile(file, "dns:\n  lissen: []\nnotifications:\n  enabled: true\n");
  for (const words of [
    ["--config", file, "--check"],
    ["--config", file],
    [`--config=${file}`, "--reset-admin-password"],
  ]) {
    const { status, stdout, stderr } = run(words);
    assert.equal(status, 1);
    assert.equal(stdout, "");
    assert.deepEqual(stderr.trimEnd().split("\n"), [
      `${file}:2: unknown key dns.lissen; did you mean dns.listen?`,
      "notifications.enabled is true without a sink; set notifications.webhook_url or notifications.eventgrid_topic_endpoint",
      "signpost: the configuration has 2 faults",
    ]);
  }
});

test("a node runs by its configuration file", async () => {
  await writeFile(
    file,
    `node: { id: node-from-file, data_dir: ${directory}/data }
dns: { listen: ["127.0.0.1:0"], threads: 1 }
api: { listen: "127.0.0.1:0", allowed_origins: ["https://console.corp.test"] }
management: { listen: "127.0.0.1:0" }
auth: { initial_admin_password: "${ADMIN_PASSWORD}" }
log: { format: json }
`,
  );
  const child = await startChild("node", process.execPath, [MAIN, "--config", file]);
  await using node = await adoptNode(child, directory, false);
  await using client = await signIn(node.api);
  const zone = await client.ask("POST", "/zones", { name: "made.test." });
  assert.equal(zone.status, 200);
  const { body } = await client.ask("GET", "/audit?limit=1");
  assert.equal(body.items[0].node_id, "node-from-file");
});
