import assert from "node:assert/strict";
import test from "node:test";
import { startApi } from "../../../tests/support/api.ts";
import { loneCluster } from "../../commands/cluster.ts";
import type { CommandContext } from "../../commands/run.ts";
import type { Route } from "../route.ts";
import { auditRoutes } from "./audit.ts";
import { configRoutes } from "./config.ts";
import { regionRoutes } from "./regions.ts";
import { statsRoutes } from "./stats.ts";
import { subnetMappingRoutes } from "./subnet-mappings.ts";
import { tsigKeyRoutes } from "./tsig-keys.ts";

const routes = (context: CommandContext): readonly Route[] => [
  ...auditRoutes(context),
  ...configRoutes(context),
  ...regionRoutes(context, "home"),
  ...statsRoutes(context, loneCluster({ id: "test-node", region: "", version: "1" })),
  ...subnetMappingRoutes(context),
  ...tsigKeyRoutes(context),
];

type Fault = { readonly pointer: string; readonly detail: string };
const pointers = (body: { readonly errors: readonly Fault[] }) => body.errors.map(({ pointer }) => pointer);

test("a TSIG key's secret is made where left out, shown once, and never again", async () => {
  await using api = await startApi(routes);
  const created = await api.ask("POST", "/tsig-keys", { json: { name: "Transfer.Key" } });
  assert.equal(created.status, 200, created.text);
  assert.equal(created.headers.location, "/api/v1/tsig-keys/transfer.key.");
  assert.equal(created.body.name, "transfer.key.");
  assert.equal(Buffer.from(created.body.secret, "base64").length, 32);
  const { secret } = created.body;
  const read = await api.ask("GET", "/tsig-keys/transfer.key", { as: "readonly" });
  assert.equal(read.body.secret, "***");
  assert.equal(read.headers.etag, created.headers.etag);
  assert.equal((await api.ask("GET", "/tsig-keys", { as: "readonly" })).body.items[0].secret, "***");
  // GET, edit, PUT: "***" keeps the secret.
  const changed = await api.ask("PUT", "/tsig-keys/transfer.key.", { json: { ...read.body, management_view: true } });
  assert.deepEqual([changed.status, changed.body.management_view, changed.body.secret], [200, true, "***"]);
  assert.equal(api.store.get("tsig-key", ["transfer.key."])?.body.secret, secret);
  const audit = await api.ask("GET", "/audit");
  assert.doesNotMatch(audit.text, new RegExp(RegExp.escape(secret)));
  assert.deepEqual(
    audit.body.items.map(({ action }: { action: string }) => action),
    ["update", "create"],
  );
});

test("a TSIG key of HMAC-MD5 is taken where the node's configuration says so, and one that is stored stays", async () => {
  let isTsigMd5Enabled = true;
  await using api = await startApi((context) =>
    tsigKeyRoutes({
      ...context,
      get isTsigMd5Enabled() {
        return isTsigMd5Enabled;
      },
    }),
  );
  const json = { name: "old.", algorithm: "hmac-md5" };
  const created = await api.ask("POST", "/tsig-keys", { json });
  assert.deepEqual([created.status, created.body.algorithm], [200, "hmac-md5"], created.text);
  assert.equal(Buffer.from(created.body.secret, "base64").length, 16);
  isTsigMd5Enabled = false;
  const kept = await api.ask("PUT", "/tsig-keys/old.", { json: { ...json, management_view: true } });
  assert.deepEqual([kept.status, kept.body.management_view], [200, true], kept.text);
  assert.equal((await api.ask("PUT", "/tsig-keys/old.", { json: { algorithm: "hmac-sha256" } })).status, 200);
  const back = await api.ask("PUT", "/tsig-keys/old.", { json });
  assert.deepEqual([back.status, pointers(back.body)], [400, ["/algorithm"]]);
});

test("a TSIG key with wrong fields is refused and named", async () => {
  await using api = await startApi(routes);
  const post = (json: object) => api.ask("POST", "/tsig-keys", { json });
  const secret = Buffer.alloc(16, 7).toString("base64");
  for (const [json, pointer] of [
    [{ name: "a..b" }, "/name"],
    [{ name: "." }, "/name"],
    [{ name: "k", algorithm: "hmac-md5" }, "/algorithm"],
    [{ name: "k", secret: "***" }, "/secret"],
    [{ name: "k", secret: "AAAA" }, "/secret"],
    [{ name: "k", secret: `${secret}\n` }, "/secret"],
    [{ name: "k", secret: 7 }, "/secret"],
    [{ name: "k", grants: [{ zone: "corp" }] }, "/grants/0/zone"],
    [{ name: "k", grants: [{ zone: "corp.", names: ["www."] }] }, "/grants/0/names/0"],
    [{ name: "k", grants: [{ zone: "corp.", types: ["SOA"] }] }, "/grants/0/types/0"],
    [{ name: "k", id: "tsk_x" }, "/id"],
  ] as const) {
    const { status, body } = await post(json);
    assert.deepEqual([status, pointers(body)], [400, [pointer]], JSON.stringify(json));
  }
  assert.equal(
    (await post({ name: "k", secret, grants: [{ zone: "Corp.", names: ["WWW", "@"], update: true }] })).status,
    200,
  );
  assert.deepEqual(api.store.get("tsig-key", ["k."])?.body.grants, [
    { zone: "corp.", names: ["www", "@"], update: true },
  ]);
  const again = await post({ name: "K." });
  assert.deepEqual([again.status, again.body.code], [409, "conflict"]);
  assert.match(again.body.tsig_key_id, /^tsk_/);
  assert.equal((await api.ask("PUT", "/tsig-keys/k", { json: { name: "other" } })).status, 400);
  assert.equal((await api.ask("PUT", "/tsig-keys/none", { json: {} })).status, 404);
  assert.equal((await api.ask("PUT", "/tsig-keys/k", { json: { grants: null } })).body.grants, undefined);
});

test("a key that signs NOTIFY cannot go, and NOTIFY cannot be signed with a key that is not there", async () => {
  await using api = await startApi(routes);
  const axfr = (name: string | null) => api.ask("PUT", "/config/axfr", { json: { notify_tsig_key_name: name } });
  assert.deepEqual(pointers((await axfr("notify.")).body), ["/notify_tsig_key_name"]);
  await api.ask("POST", "/tsig-keys", { json: { name: "notify." } });
  assert.equal((await axfr("notify.")).status, 200);
  assert.equal((await api.ask("DELETE", "/tsig-keys/notify.")).status, 409);
  assert.equal((await axfr(null)).body.notify_tsig_key_name, null);
  const gone = await api.ask("DELETE", "/tsig-keys/notify");
  assert.deepEqual([gone.status, gone.body.deleted], [200, true]);
});

test("a subnet maps to one region: the same subnet again replaces, host bits and foreign sources are refused", async () => {
  await using api = await startApi(routes);
  const post = (json: object, as = "editor") => api.ask("POST", "/subnet-mappings", { json, as });
  const first = await post({ subnet: "10.1.0.0/16", region_id: "eu" });
  assert.equal(first.status, 200, first.text);
  const second = await post({ subnet: "10.1.0.0/16", region_id: "us", source: "manual" });
  assert.equal(second.body.id, first.body.id);
  assert.equal((await post({ subnet: "2001:DB8:0:0::/32", region_id: "eu" })).body.subnet, "2001:db8::/32");
  for (const [json, pointer] of [
    [{ subnet: "10.1.0.1/16", region_id: "eu" }, "/subnet"],
    [{ subnet: "10.1.0.0/33", region_id: "eu" }, "/subnet"],
    [{ subnet: "fe80::1%eth0/64", region_id: "eu" }, "/subnet"],
    [{ subnet: "10.2.0.0/16", region_id: "e u" }, "/region_id"],
    [{ subnet: "10.2.0.0/16", region_id: "" }, "/region_id"],
    [{ subnet: "10.2.0.0/16", region_id: "eu", source: "azure" }, "/source"],
  ] as const) {
    const { status, body } = await post(json);
    assert.deepEqual([status, pointers(body)], [400, [pointer]], JSON.stringify(json));
  }
  assert.equal((await post({ subnet: "10.2.0.0/16", region_id: "eu" }, "readonly")).status, 403);
  const other = { id: "other-node", address: "192.0.2.1:7946", version: "1" };
  await api.store.write((tx) => void tx.put("node", { ...other, region: "away" }));
  await api.store.write((tx) => void tx.put("node", { ...other, id: "nowhere", region: "" }));
  const regions = await api.ask("GET", "/regions", { as: "readonly" });
  assert.deepEqual(regions.body, { items: ["away", "eu", "home", "us"], next_cursor: null });
  const filtered = await api.ask("GET", "/subnet-mappings?region_id=us");
  assert.deepEqual(
    filtered.body.items.map(({ subnet }: { subnet: string }) => subnet),
    ["10.1.0.0/16"],
  );
  const page = await api.ask("GET", "/subnet-mappings?limit=1");
  const next = await api.ask("GET", `/subnet-mappings?limit=1&cursor=${page.body.next_cursor}`);
  assert.deepEqual([page.body.items.length, next.body.items.length, next.body.next_cursor], [1, 1, null]);
  assert.equal((await api.ask("DELETE", `/subnet-mappings/${first.body.id}`)).status, 200);
  assert.equal((await api.ask("DELETE", `/subnet-mappings/${first.body.id}`)).status, 404);
});

test("a dry run changes nothing", async () => {
  await using api = await startApi(routes);
  const dry = await api.ask("POST", "/subnet-mappings?dry_run=true", {
    json: { subnet: "10.0.0.0/8", region_id: "eu" },
  });
  assert.deepEqual([dry.status, dry.headers.location, dry.headers.etag], [200, undefined, undefined]);
  assert.equal(
    (await api.ask("PUT", "/config/query-log?dry_run=true", { json: { enabled: true } })).body.enabled,
    true,
  );
  assert.equal((await api.ask("POST", "/tsig-keys?dry_run=true", { json: { name: "k" } })).status, 200);
  assert.deepEqual((await api.ask("GET", "/audit")).body.items, []);
  assert.equal((await api.ask("GET", "/config/query-log")).body.enabled, false);
  assert.equal(api.store.count("subnet-mapping") + api.store.count("tsig-key"), 0);
});

test("stats count", async () => {
  await using api = await startApi(routes);
  assert.deepEqual((await api.ask("GET", "/stats", { as: "readonly" })).body, {
    zones: 0,
    records: 0,
    nodes: 1,
    users: 0,
  });
});

test("the audit log is filtered, paged and exported", async () => {
  await using api = await startApi(routes);
  for (let index = 0; index < 60; index++) {
    const json = { subnet: `10.0.${index}.0/24`, region_id: "eu" };
    assert.equal((await api.ask("POST", "/subnet-mappings", { as: index % 2 ? "admin" : "editor", json })).status, 200);
  }
  const newest = await api.ask("GET", "/audit", { as: "editor" });
  assert.equal(newest.body.items.length, 50);
  assert.equal(newest.body.items[0].resource_name, "10.0.59.0/24");
  assert.deepEqual(newest.body.items[0].after.subnet, "10.0.59.0/24");
  const rest = await api.ask("GET", `/audit?cursor=${newest.body.next_cursor}`);
  assert.equal(rest.body.items.length, 10);
  assert.equal(rest.body.next_cursor, null);
  assert.equal((await api.ask("GET", "/audit?user_name=editor&limit=5000")).body.items.length, 30);
  assert.equal((await api.ask("GET", "/audit?action=delete")).body.items.length, 0);
  const today = new Date(api.context.now()).toISOString().slice(0, 10);
  assert.equal((await api.ask("GET", `/audit?from=${today}&to=${today}&limit=100`)).body.items.length, 60);
  assert.equal((await api.ask("GET", "/audit?to=2001-01-01T00:00:00%2B01:00")).body.items.length, 0);
  for (const query of [
    "from=yesterday",
    "to=2026-02-30",
    "from=2026-13-01",
    "from=2026-02-01&to=2026-01-01",
    "limit=0",
    "cursor=x",
    "who=me",
  ]) {
    assert.equal((await api.ask("GET", `/audit?${query}`)).status, 400, query);
  }
  assert.equal((await api.ask("GET", "/audit", { as: "readonly" })).status, 403);
  assert.equal((await api.ask("GET", "/audit/export", { noCsrf: true })).status, 403);
  const exported = await api.ask("GET", "/audit/export?user_name=admin", { as: "editor" });
  assert.match(String(exported.headers["content-type"]), /^application\/x-ndjson/);
  const lines = exported.text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual([lines.length, lines[0].resource_name], [30, "10.0.59.0/24"]);
  assert.equal((await api.ask("GET", "/audit/export?action=none")).text, "");
  const two = await api.ask("GET", "/audit/export?user_name=admin&limit=2");
  assert.equal(two.text, `${exported.text.split("\n").slice(0, 2).join("\n")}\n`);
});
