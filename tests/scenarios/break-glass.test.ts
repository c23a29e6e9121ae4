import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Agent, fetch } from "undici";
import { signIn } from "./api-client.ts";
import { ADMIN_PASSWORD, MAIN, startNode } from "./running-node.ts";

const parent = await mkdtemp(join(tmpdir(), "signpost-glass-"));
after(() => rm(parent, { recursive: true, force: true }));

const CLUSTER_KEY = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

/** What is to be refused for its key must not be refused because another program has the default port. */
const FREE_PORTS = Object.fromEntries(
  ["DNS", "MANAGEMENT", "API", "REPLICATION"].map((name) => [`SVC_${name}_LISTEN`, "127.0.0.1:0"]),
);

type Outcome = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

/** The program with a configuration file of these lines. */
async function run(
  directory: string,
  lines: readonly string[],
  words: readonly string[],
  input = "",
): Promise<Outcome> {
  const file = join(directory, "signpost.yaml");
  await writeFile(file, [`node: { data_dir: ${JSON.stringify(join(directory, "data"))} }`, ...lines, ""].join("\n"));
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith("SVC_"));
  const env = { ...Object.fromEntries(others), ...FREE_PORTS };
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, "--config", file, ...words], {
    input,
    env,
    encoding: "utf8",
    timeout: 120_000,
  });
  return { code: status, stdout, stderr };
}

test("with the service stopped the admin gets a new password, is enabled, and has no session left", async () => {
  const directory = await mkdtemp(join(parent, "data-"));
  let token = "";
  {
    await using node = await startNode({ directory });
    await using client = await signIn(node.api);
    // Another admin, so that the first may be disabled.
    const other = { username: "other", password: "password of another admin", role: "admin" };
    assert.equal((await client.ask("POST", "/users", other)).status, 200);
    token = (await client.ask("POST", "/auth/login", { username: "admin", password: ADMIN_PASSWORD })).body
      .access_token;
    await using second = await signIn(node.api, other.password, "other");
    const { items } = (await second.ask("GET", "/users")).body;
    const admin = items.find(({ username }: { username: string }) => username === "admin");
    assert.equal((await second.ask("PUT", `/users/${admin.id}`, { enabled: false })).status, 200);
    await assert.rejects(signIn(node.api), /401/);

    const running = await run(directory, [], ["--reset-admin-password"]);
    assert.equal(running.code, 1);
    assert.match(running.stderr, /^signpost: another instance runs on the data directory/);
    assert.equal(running.stdout, "");
  }
  const reset = await run(directory, [], ["--reset-admin-password"]);
  assert.equal(reset.code, 0, reset.stderr);
  assert.match(reset.stdout, /^admin password: \S{16,}\n$/);
  const password = reset.stdout.slice("admin password: ".length).trim();
  {
    await using node = await startNode({ directory });
    await assert.rejects(signIn(node.api), /401/, "the former password");
    await using client = await signIn(node.api, password);
    const { items } = (await client.ask("GET", "/audit?action=reset-password")).body;
    assert.equal(items.length, 1);
    assert.equal(items[0].user_name, "system");
    const { status } = await fetchZones(node.api, token);
    assert.equal(status, 401, "a session of before");
  }
  const given = await run(directory, [], ["--admin-password-stdin"], "the given password here\n");
  assert.equal(given.code, 0, given.stderr);
  assert.ok(!`${given.stdout}${given.stderr}`.includes("the given password here"));
  await using node = await startNode({ directory });
  await using _ = await signIn(node.api, "the given password here");
});

async function fetchZones(api: string, token: string): Promise<{ readonly status: number }> {
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  const response = await fetch(`${api}/api/v1/zones`, { dispatcher, headers: { authorization: `Bearer ${token}` } });
  await response.text();
  await dispatcher.destroy();
  return response;
}

test("secrets that the cluster's key seals need it; without it, or with another, nothing changes", async () => {
  const directory = await mkdtemp(join(parent, "data-"));
  const env = { SVC_REPLICATION_ENCRYPT_KEY: CLUSTER_KEY, SVC_REPLICATION_LISTEN: "127.0.0.1:0" };
  {
    await using _ = await startNode({ directory, env });
  }
  const other = Buffer.from(CLUSTER_KEY).toString("base64");
  for (const lines of [[], [`replication: { encrypt_key: ${other} }`]]) {
    for (const words of [["--reset-admin-password"], ["--admin-password-stdin"]]) {
      const { code, stdout, stderr } = await run(directory, lines, words, "the given password here\n");
      assert.equal(code, 1);
      assert.equal(stdout, "");
      assert.match(stderr, /^signpost: .*key/);
      assert.ok(!stderr.includes(other));
    }
    const started = await run(directory, lines, []);
    assert.equal(started.code, 1, "the service does not start either");
    assert.match(started.stderr, /^signpost: .*key/);
  }
  {
    await using node = await startNode({ directory, env });
    await using _ = await signIn(node.api);
  }
  const lines = [`replication: { encrypt_key: ${CLUSTER_KEY} }`];
  assert.equal((await run(directory, lines, ["--admin-password-stdin"], "the given password here")).code, 0);
  await using node = await startNode({ directory, env });
  await using _ = await signIn(node.api, "the given password here");
});

test("a weak password, none, or a directory without a store is refused", async () => {
  const directory = await mkdtemp(join(parent, "data-"));
  const missing = await run(directory, [], ["--reset-admin-password"]);
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /^signpost: there is no store in the data directory/);
  {
    await using _ = await startNode({ directory });
  }
  for (const input of ["", "\n", "fifteen letters", "\u0000".repeat(70_000)]) {
    const { code, stdout, stderr } = await run(directory, [], ["--admin-password-stdin"], input);
    assert.deepEqual([code, stdout], [1, ""], stderr);
    assert.match(stderr, /^signpost: the password/);
  }
  await using node = await startNode({ directory });
  await using _ = await signIn(node.api);
});
