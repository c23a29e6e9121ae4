/** Overrides written over the API of a node, and what dig has of them at once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "../support/wait.ts";
import { type ApiClient, signIn } from "./api-client.ts";
import { dig } from "./dig.ts";
import { type ScenarioNode, startNode } from "./running-node.ts";

const NAME = "db.partner.example.";

async function open(node: ScenarioNode) {
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  const api = await signIn(node.api);
  return {
    api,
    ask: (...words: string[]) => dig(endpoint, ...words),
    status: async (...words: string[]) => {
      const output = await dig(endpoint, "+noshort", "+comments", ...words);
      const flags = /flags: ([^;]*);/.exec(output)?.[1] ?? "";
      return `${/status: (\w+)/.exec(output)?.[1]}${flags.includes("aa") ? " aa" : ""}`;
    },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  };
}

async function create(api: ApiClient, given: object): Promise<string> {
  const { status, body } = await api.ask("POST", "/overrides", given);
  assert.equal(status, 200, JSON.stringify(body));
  return body.id;
}

test("created, changed, disabled, renamed and deleted: dig has each at once", async () => {
  await using node = await startNode();
  await using world = await open(node);
  const { api, ask, status } = world;
  assert.equal(await status(NAME, "A"), "REFUSED");
  const id = await create(api, { name: NAME, type: "A", values: [{ value: "10.0.0.9" }], ttl: 60 });
  assert.equal(await ask(NAME, "A"), "10.0.0.9");
  assert.equal(await status(NAME, "A"), "NOERROR aa");
  assert.equal(await status(NAME, "AAAA"), "NOERROR aa");
  assert.equal(await ask(NAME, "AAAA"), "");
  assert.equal(await status(`x.${NAME}`, "A"), "REFUSED");
  assert.equal(await ask(NAME, "A", "+tcp"), "10.0.0.9");

  const put = (body: object) => api.ask("PUT", `/overrides/${id}`, body);
  assert.equal((await put({ values: [{ value: "10.0.0.10" }, { value: "10.0.0.11" }] })).status, 200);
  assert.deepEqual((await ask(NAME, "A")).split("\n").sort(), ["10.0.0.10", "10.0.0.11"]);
  assert.equal((await put({ enabled: false })).status, 200);
  assert.equal(await status(NAME, "A"), "REFUSED");
  assert.equal((await put({ enabled: true, values: [{ value: "10.0.0.12" }] })).status, 200);
  assert.equal(await ask(NAME, "A"), "10.0.0.12");
  assert.equal((await put({ name: "other.partner.example." })).status, 200);
  assert.equal(await status(NAME, "A"), "REFUSED");
  assert.equal(await ask("other.partner.example.", "A"), "10.0.0.12");
  assert.equal((await api.ask("DELETE", `/overrides/${id}`)).status, 200);
  assert.equal(await status("other.partner.example.", "A"), "REFUSED");
});

test("an override expires by itself, and one that has expired answers nothing", async () => {
  await using node = await startNode();
  await using world = await open(node);
  const { api, ask, status } = world;
  const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
  const given = { type: "A", values: [{ value: "10.0.0.9" }] };
  const id = await create(api, { ...given, name: NAME, expires_at: inAnHour });
  await create(api, { ...given, name: "stays.example.", expires_at: inAnHour });
  await create(api, { ...given, name: "past.example.", expires_at: "2001-01-01T00:00:00Z" });
  assert.equal(await ask(NAME, "A"), "10.0.0.9");
  assert.equal(await status("past.example.", "A"), "REFUSED");
  const expiresAt = Date.now() + 1500;
  const soon = { expires_at: new Date(expiresAt).toISOString() };
  assert.equal((await api.ask("PUT", `/overrides/${id}`, soon)).status, 200);
  await waitFor("the override ends", 10_000, async () => (await status(NAME, "A")) === "REFUSED");
  assert.ok(Date.now() >= expiresAt);
  assert.equal(await ask("stays.example.", "A"), "10.0.0.9");
});

test("in a CNAME chain, over a zone's record, and after the node's next start", async () => {
  await using node = await startNode();
  await using world = await open(node);
  const { api, ask, status } = world;
  const { body: zones } = await api.ask("GET", "/zones");
  const zoneId = zones.items[0].id;
  const cname = { name: "partner", type: "CNAME", values: [{ value: NAME }] };
  assert.equal((await api.ask("POST", `/zones/${zoneId}/records`, cname)).status, 200);
  assert.equal(await ask("partner.example.test", "A"), NAME);
  await create(api, { name: NAME, type: "CNAME", values: [{ value: "mail.example.test." }] });
  assert.deepEqual((await ask("partner.example.test", "A")).split("\n"), [NAME, "mail.example.test.", "192.0.2.25"]);

  const id = await create(api, { name: "mail.example.test.", type: "A", values: [{ value: "10.0.0.25" }] });
  assert.deepEqual((await ask("partner.example.test", "A")).split("\n"), [NAME, "mail.example.test.", "10.0.0.25"]);
  assert.equal(await ask("mail.example.test", "A"), "10.0.0.25");
  assert.equal(await ask("mail.example.test", "AAAA"), "");
  assert.equal(await status("mail.example.test", "AAAA"), "NOERROR aa");
  const mx = await ask("example.test", "MX", "+noshort", "+comments", "+answer", "+additional");
  assert.match(mx, /ADDITIONAL[\s\S]*mail\.example\.test\.\s+300\s+IN\s+A\s+10\.0\.0\.25/);
  assert.doesNotMatch(mx, /192\.0\.2\.25/);
  assert.equal((await api.ask("DELETE", `/overrides/${id}`)).status, 200);
  assert.equal(await ask("mail.example.test", "A"), "192.0.2.25");
  assert.equal(await ask("mail.example.test", "AAAA"), "2001:db8::25");
  await node.child.stop();
  await using next = await startNode({ directory: node.directory, zones: [] });
  const [endpoint] = next.dns;
  assert.ok(endpoint);
  assert.deepEqual((await dig(endpoint, NAME, "A")).split("\n"), ["mail.example.test.", "192.0.2.25"]);
});
