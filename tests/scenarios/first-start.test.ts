import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { signIn } from "./api-client.ts";
import { dig } from "./dig.ts";
import { EXAMPLE_ZONE, startNode } from "./running-node.ts";

const parent = await mkdtemp(join(tmpdir(), "signpost-first-"));
after(() => rm(parent, { recursive: true, force: true }));

/** Every line of the output that shows a password. */
function passwordsIn(output: string): readonly string[] {
  return [...output.matchAll(/^admin password: (\S+)$/gm)].map(([, password]) => password ?? "");
}

test("the first start prints the admin's password once, and the password opens the API", async () => {
  const directory = await mkdtemp(join(parent, "data-"));
  let password = "";
  {
    await using node = await startNode({ directory, adminPassword: null });
    const passwords = passwordsIn(node.child.output());
    assert.equal(passwords.length, 1);
    [password = ""] = passwords;
    assert.ok(password.length >= 16);
    assert.equal(node.child.output().split(password).length, 2, "nowhere else, the log included");
    await using client = await signIn(node.api, password);
    assert.equal((await client.ask("GET", "/zones")).body.items[0].name, "example.test.");
  }
  for (const file of ["key", "node-id", "store", "api-key.pem"]) {
    const { mode } = await stat(join(directory, "data", file));
    assert.equal(mode & 0o077, 0, `${file} is for its owner only`);
  }
  await using again = await startNode({ directory, adminPassword: null });
  assert.deepEqual(passwordsIn(again.child.output()), []);
  await using client = await signIn(again.api, password);
  const { items } = (await client.ask("GET", "/audit?action=create&resource=user")).body;
  assert.equal(items.length, 1);
});

test("a first start that fails does not use up the one showing of the password", async () => {
  const directory = await mkdtemp(join(parent, "data-"));
  const env = { SVC_API_TLS_CERT_FILE: join(directory, "none.crt"), SVC_API_TLS_KEY_FILE: join(directory, "none.key") };
  await assert.rejects(startNode({ directory, env, adminPassword: null }), (error: Error) => {
    assert.match(error.message, /cannot use the certificate/);
    assert.deepEqual(passwordsIn(error.message), []);
    return true;
  });
  await using node = await startNode({ directory, adminPassword: null });
  assert.equal(passwordsIn(node.child.output()).length, 1);
});

test("a configured password is used at the first start only and never printed", async () => {
  const directory = await mkdtemp(join(parent, "data-"));
  const file = join(directory, "password");
  await writeFile(file, "the configured password\n");
  const env = { SVC_AUTH_INITIAL_ADMIN_PASSWORD_FILE: file };
  {
    await using node = await startNode({ directory, env, adminPassword: null });
    await using _ = await signIn(node.api, "the configured password");
    assert.ok(!node.child.output().includes("password:"));
    assert.ok(!node.child.output().includes("the configured password"));
  }
  await writeFile(file, "another password, too late\n");
  await using node = await startNode({ directory, env, adminPassword: null });
  await assert.rejects(signIn(node.api, "another password, too late"), /401/);
  await using _ = await signIn(node.api, "the configured password");
});

test("a zone file is imported once; what the API changed afterwards stays", async () => {
  const directory = await mkdtemp(join(parent, "data-"));
  let nodeId = "";
  {
    await using node = await startNode({ directory });
    assert.ok(node.messages().includes(`imported zone example.test. from ${EXAMPLE_ZONE}`));
    await using client = await signIn(node.api);
    const [zone] = (await client.ask("GET", "/zones")).body.items;
    const body = { name: "new", type: "A", values: [{ value: "192.0.2.77" }] };
    assert.equal((await client.ask("POST", `/zones/${zone.id}/records`, body)).status, 200);
    const [endpoint] = node.dns;
    assert.ok(endpoint);
    assert.equal(await dig(endpoint, "new.example.test", "A"), "192.0.2.77");
    nodeId = (await client.ask("GET", "/audit?limit=1")).body.items[0].node_id;
    assert.equal(nodeId, (await readFile(join(directory, "data", "node-id"), "utf8")).trim());
  }
  await using node = await startNode({ directory });
  assert.ok(node.messages().includes(`zone example.test. is stored already; ${EXAMPLE_ZONE} is left alone`));
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  assert.equal(await dig(endpoint, "new.example.test", "A"), "192.0.2.77");
  await using client = await signIn(node.api);
  assert.equal((await client.ask("GET", "/audit?limit=1")).body.items[0].node_id, nodeId);
});

test("a node without zones says how to make one", async () => {
  await using node = await startNode({ zones: [] });
  assert.ok(node.messages().some((message) => message.startsWith("no zone is served; create one through the API")));
  assert.equal((await node.get("/readyz")).status, 200);
});
