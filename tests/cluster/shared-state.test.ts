/** Who may do what, and how a node answers: changed at one node, in force at the others at once and without a restart. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { after, test } from "node:test";
import { Agent, fetch } from "undici";
import { type ApiClient, signIn } from "../scenarios/api-client.ts";
import { create } from "../scenarios/notify-world.ts";
import { ADMIN_PASSWORD, MAIN } from "../scenarios/running-node.ts";
import { env as certificates, kdig, VERIFIED } from "../scenarios/transport-world.ts";
import { exchangeUdp } from "../support/dns-client.ts";
import { decodeMessage, encodeQuery } from "../support/dns-message.ts";
import { requireProgram } from "../support/peers.ts";
import { runToEnd } from "../support/process.ts";
import { tableHandler } from "../support/scripted-replies.ts";
import { startScriptedUpstream } from "../support/scripted-upstream.ts";
import { waitFor } from "../support/wait.ts";
import {
  CLUSTER_KEY,
  type ClusterNode,
  startAgain,
  startCluster,
  startClusterNode,
  statusesOf,
  untilAnswers,
  untilReady,
} from "./cluster-world.ts";

const NXDOMAIN = 3;
const RECURSION_DESIRED = 0x100;
const cluster = await startCluster(2, certificates);
after(() => cluster[Symbol.asyncDispose]());
const [a, second] = cluster.nodes;
assert.ok(second);
const b = second;

const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
after(() => dispatcher.destroy());

/** With a token, as any program uses one. */
async function call({ api }: ClusterNode, token: string, path: string, method = "GET") {
  const headers = { authorization: `Bearer ${token}`, "x-svc-csrf": "1" };
  const response = await fetch(`${api}/api/v1${path}`, { method, dispatcher, headers });
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever came back.
  const body: any = await response.json();
  return { status: response.status, body };
}

async function untilStatus(node: ClusterNode, token: string, status: number): Promise<void> {
  await waitFor(
    `${status} at ${node.id}`,
    10_000,
    async () => (await call(node, token, "/zones")).status === status,
    2,
  );
}

async function put(api: ApiClient, path: string, json: object) {
  const { status, body } = await api.ask("PUT", path, json);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

const login = (api: ApiClient, username: string, password: string) =>
  api.ask("POST", "/auth/login", { username, password });

test("a session of one node holds at the other, and ends at both with logout, a new password, and the end of its user", async () => {
  await using atA = await signIn(a.api);
  await using atB = await signIn(b.api);
  const first = { username: "carol", password: "the first password of carol", role: "editor" };
  const carol = await create(atA, "/users", first);
  const begun = async (password: string): Promise<string> => {
    const { body } = await waitFor("carol signs in", 10_000, async () => {
      const answer = await login(atB, "carol", password);
      return answer.status === 200 && answer;
    });
    await untilStatus(a, body.access_token, 200);
    return body.access_token;
  };
  const left = await begun(first.password);
  assert.equal((await call(a, left, "/auth/logout", "POST")).status, 200);
  await untilStatus(b, left, 401);

  const old = await begun(first.password);
  const password = "the second password of carol";
  await put(atA, `/users/${carol}`, { password });
  await untilStatus(b, old, 401);
  assert.equal((await login(atB, "carol", first.password)).status, 401);

  const disabled = await begun(password);
  await put(atB, `/users/${carol}`, { enabled: false });
  await untilStatus(a, disabled, 401);
  assert.equal((await login(atA, "carol", password)).status, 401);
  assert.equal((await atA.ask("DELETE", `/users/${carol}`)).status, 200);
  await waitFor("b forgets her", 10_000, async () => (await atB.ask("GET", `/users/${carol}`)).status === 404);
});

test("the token of a service account is accepted by its issuer, and by a node that is set so; revoked it is by none", async () => {
  await using c = await startClusterNode({
    ...{ id: "c", directory: join(cluster.directory, "c"), join: [a.peers, b.peers] },
    env: { SVC_AUTH_SERVICE_ACCOUNT_SCOPE: "cluster" },
  });
  await untilReady(c);
  await using atA = await signIn(a.api);
  await using atC = await signIn(c.api);
  const { status, body } = await atA.ask("POST", "/service-accounts", { name: "robot", role: "readonly" });
  assert.equal(status, 200, JSON.stringify(body));
  await untilStatus(a, body.token, 200);
  await untilStatus(c, body.token, 200);
  await waitFor("b knows it", 10_000, async () => {
    const refused = await call(b, body.token, "/zones");
    assert.equal(refused.status, 401);
    return /\ba\b/.test(refused.body.detail);
  });
  assert.equal((await atC.ask("POST", `/service-accounts/${body.id}/revoke`)).status, 200);
  await untilStatus(a, body.token, 401);
  await untilStatus(c, body.token, 401);
  await c.child.stop();
});

test("keys, transfers and records of one node serve the clients of another", async (t) => {
  if (requireProgram(t, "dig") === undefined) return;
  await using atA = await signIn(a.api);
  await using atB = await signIn(b.api);
  const zone = await create(atA, "/zones", { name: "corp.test." });
  await create(atA, `/zones/${zone}/records`, { name: "www", type: "A", values: [{ value: "192.0.2.1" }] });
  await untilAnswers(b, "www.corp.test", ["192.0.2.1"]);
  const secret = Buffer.alloc(32, 7).toString("base64");
  await create(atA, "/tsig-keys", { name: "transfer.", algorithm: "hmac-sha256", secret });
  await put(atB, "/config/axfr", { enabled: true });
  for (const { dns, id } of [a, b]) {
    const words = [
      "@127.0.0.1",
      "-p",
      String(dns[0]?.port),
      "-y",
      `hmac-sha256:transfer:${secret}`,
      "corp.test",
      "AXFR",
    ];
    await waitFor(`${id} transfers`, 10_000, async () =>
      /\bwww\.corp\.test\..*192\.0\.2\.1/.test(await runToEnd("dig", words, 30_000)),
    );
  }
});

test("forwarders, the blocklist and who may ask are those of all", async () => {
  const table = "www.public.example. 300 A 192.0.2.80\nads.public.example. 300 A 192.0.2.81\n";
  await using upstream = await startScriptedUpstream({ handler: tableHandler(table) });
  await using atA = await signIn(a.api);
  await using atB = await signIn(b.api);
  await put(atA, "/forwarders/default", { upstreams: [`127.0.0.1:${upstream.port}`], enabled: true });
  const untilForwarded = async (wanted: string) => {
    for (const { dns, id } of [a, b]) {
      const [server] = dns;
      assert.ok(server);
      await waitFor(`${wanted} at ${id}`, 10_000, async () => {
        const query = encodeQuery({ name: "ads.public.example", type: 1, flags: RECURSION_DESIRED });
        const response = await exchangeUdp(server, query);
        if (response === undefined) return false;
        const { rcode, answer } = decodeMessage(response);
        return wanted === `${rcode} ${answer.map(({ rdata }) => rdata).join()}`.trim();
      });
    }
  };
  await untilForwarded("0 c0000251");
  await put(atB, "/blocklist", { domains: ["ads.public.example"] });
  await untilForwarded(`${NXDOMAIN}`);
  await put(atA, "/blocklist", { domains: [] });
  await untilForwarded("0 c0000251");
});

test("DNS over TLS that is switched on at one node is on at the other", async (t) => {
  if (requireProgram(t, "kdig") === undefined) return;
  await using atA = await signIn(a.api);
  await put(atA, "/transport-config", { dot_enabled: true, dot_listen_addr: "127.0.0.1:0" });
  for (const node of [a, b]) {
    const line = await waitFor(`${node.id} listens`, 10_000, () =>
      node.messages().findLast((message) => message.startsWith("DNS over TLS on 127.0.0.1:")),
    );
    const port = Number(line.split(":").at(-1));
    assert.match(await kdig(port, "+tls", ...VERIFIED, "+short", "www.corp.test", "A"), /192\.0\.2\.1/);
  }
});

test("a password that is reset with one node stopped is the password everywhere, and what sessions there were end", async () => {
  await using atA = await signIn(a.api);
  const { body } = await login(atA, "admin", ADMIN_PASSWORD);
  await b.child.stop();
  await waitFor("it has left", 20_000, async () => (await statusesOf(atA)).b === "left");
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, "--admin-password-stdin"], {
    input: "the password of the break-glass\n",
    encoding: "utf8",
    env: {
      ...process.env,
      SVC_NODE_ID: "b",
      SVC_NODE_DATA_DIR: join(b.directory, "data"),
      SVC_REPLICATION_ENCRYPT_KEY: CLUSTER_KEY,
    },
  });
  assert.equal(status, 0, `${stdout}${stderr}`);
  await using again = await startAgain(b, { join: [a.peers], env: certificates });
  await untilReady(again);
  await untilStatus(a, body.access_token, 401);
  await assert.rejects(signIn(a.api), /401/);
  for (const node of [a, again]) {
    await using _ = await signIn(node.api, "the password of the break-glass");
  }
  // Afterwards nobody asks for much more.
  await using api = await signIn(again.api, "the password of the break-glass");
  await put(api, "/config/rate-limits", { read: 3 });
  await using other = await signIn(a.api, "the password of the break-glass");
  await waitFor(
    "too many are refused at the other",
    10_000,
    async () => (await other.ask("GET", "/zones")).status === 429,
  );
});
