import assert from "node:assert/strict";
import test from "node:test";
import { startApi } from "../../../tests/support/api.ts";
import { followConfig } from "../../commands/config-documents.ts";
import { CONFIG_SCHEMAS, CONFIG_UNSET } from "../../model/config-schemas.ts";
import { configRoutes } from "./config.ts";

test("every document can be read by anyone, sent back by an admin, and is the same then", async () => {
  await using api = await startApi(configRoutes);
  const paths = configRoutes(api.context)
    .filter(({ method }) => method === "GET")
    .map(({ path }) => path);
  const elsewhere = ["default-forwarder", "hardening"];
  assert.equal(paths.length, Object.keys(CONFIG_SCHEMAS).length - elsewhere.length);
  for (const path of paths) {
    const read = await api.ask("GET", path, { as: "readonly" });
    assert.equal(read.status, 200, read.text);
    assert.equal((await api.ask("PUT", path, { as: "editor", json: {} })).status, 403);
    const back = await api.ask("PUT", path, { json: read.body });
    assert.deepEqual([back.status, back.body], [200, read.body], `${path} ${back.text}`);
  }
  assert.equal(api.store.count("config"), 0, "defaults are computed, never stored");
  assert.deepEqual(Object.keys(CONFIG_UNSET), Object.keys(CONFIG_SCHEMAS));
});

test("rate limits: 0 is what was configured, and the default is what applies", async () => {
  await using api = await startApi(configRoutes);
  const follow = followConfig(api.store, "rate-limits");
  const unset = (await api.ask("GET", "/config/rate-limits")).body;
  assert.deepEqual(unset, {
    auth: 0,
    upload: 0,
    write: 0,
    read: 0,
    effective: { auth: 60, upload: 6, write: 6000, read: 30_000 },
  });
  const put = await api.ask("PUT", "/config/rate-limits", { json: { auth: 10_000_000 } });
  assert.deepEqual([put.body.auth, put.body.effective.auth, put.body.write], [10_000_000, 10_000_000, 0]);
  assert.equal(follow().effective.auth, 10_000_000);
  assert.equal((await api.ask("PUT", "/config/rate-limits", { json: { auth: 10_000_001 } })).status, 400);
  assert.equal((await api.ask("PUT", "/config/rate-limits", { json: { auth: null } })).body.auth, 0);
  assert.equal(follow().effective.auth, 60);
});

test("replication: what applies is what the node started with, and beside it stands what its next start makes of it", async () => {
  const timing = { push_pull_interval_seconds: 7, readyz_queue_threshold: 900 };
  await using api = await startApi((context) => configRoutes(context, { zeros: timing }));
  const path = "/config/replication";
  const unset = (await api.ask("GET", path)).body;
  const own = { push_pull_interval_seconds: 0, readyz_queue_threshold: 0 };
  assert.deepEqual(unset, { ...own, effective: timing, effective_after_restart: timing });
  assert.deepEqual((await api.ask("PUT", path, { json: unset })).body, unset);
  const put = (await api.ask("PUT", path, { json: { ...unset, push_pull_interval_seconds: 60 } })).body;
  assert.deepEqual(put.effective, timing);
  assert.deepEqual(put.effective_after_restart, { push_pull_interval_seconds: 60, readyz_queue_threshold: 900 });
  assert.deepEqual((await api.ask("GET", path)).body, put);
  assert.deepEqual((await api.ask("PUT", path, { json: put })).body, put);
  for (const field of ["effective", "effective_after_restart"]) {
    const wrong = await api.ask("PUT", path, { json: { [field]: { ...put[field], readyz_queue_threshold: 5_000 } } });
    assert.deepEqual([wrong.status, wrong.body.errors[0].pointer], [400, `/${field}`]);
  }
});

const refused: readonly (readonly [string, object, string])[] = [
  ["/config/rate-limits", { auth: "1" }, "/auth"],
  ["/config/rate-limits", { reads: 1 }, "/reads"],
  ["/config/delete-guardrails", { bulk_delete_cap: 0 }, "/bulk_delete_cap"],
  ["/config/delete-guardrails", { default_zone_deletion_lock: 1 }, "/default_zone_deletion_lock"],
  ["/config/region-discovery", { mode: "guess" }, "/mode"],
  ["/config/axfr", { allow_networks: ["10.0.0.1/8"] }, "/allow_networks/0"],
  ["/config/axfr", { notify_targets: ["ns.example:99999"] }, "/notify_targets/0"],
  ["/config/axfr", { notify_targets: ["10.0.0.256"] }, "/notify_targets/0"],
  ["/config/query-log", { sample_rate: 0 }, "/sample_rate"],
  ["/config/dynamic-dns", { allow_unsigned_networks: "10.0.0.0/8" }, "/allow_unsigned_networks"],
  ["/config/cache", { min_ttl_seconds: 90_000 }, "/min_ttl_seconds"],
  ["/config/recursion", { allow_networks: ["10.0.0.0/8", "192.0.2.1/24"] }, "/allow_networks/1"],
  ["/config/recursion", { allow_networks: ["everybody"] }, "/allow_networks/0"],
  ["/config/recursion", { allow_networks: "0.0.0.0/0" }, "/allow_networks"],
  ["/config/replication", { readyz_queue_threshold: -1 }, "/readyz_queue_threshold"],
  ["/config/health-probe-policy", { managed_identity_hosts: ["10.0.0.1"] }, "/managed_identity_hosts/0"],
  ["/config/private-endpoints", { enabled: "yes" }, "/enabled"],
  ["/config/private-endpoints", { effective: { enabled: true } }, "/effective"],
  ["/transport-config", { dot_listen_addr: "localhost:853" }, "/dot_listen_addr"],
  ["/transport-config", { dot_listen_addr: "::1" }, "/dot_listen_addr"],
  ["/transport-config", { dot_enabled: true, doh_enabled: true, doh_listen_addr: "0.0.0.0:853" }, "/doh_listen_addr"],
  ["/observability/otlp", { enabled: true }, "/endpoint"],
  ["/observability/otlp", { endpoint: "ftp://x" }, "/endpoint"],
  ["/observability/otlp", { endpoint: "https://user:secret@x" }, "/endpoint"],
  ["/observability/otlp", { endpoint: "http://169.254.169.254/v1" }, "/endpoint"],
  ["/observability/otlp", { endpoint: "https://[fe80::1]/v1" }, "/endpoint"],
  ["/observability/otlp", { endpoint: "https://[::ffff:169.254.1.1]/v1" }, "/endpoint"],
  ["/observability/otlp", { endpoint: "http://collector.example", headers: { "x-key": "hush" } }, "/endpoint"],
  ["/observability/otlp", { headers: { "a b": "x" } }, "/headers/a b"],
  ["/observability/otlp", { headers: { "x-key": "a\r\nb: c" } }, "/headers/x-key"],
  ["/observability/otlp", { headers: { "x-key": "***" } }, "/headers/x-key"],
];

test("what does not fit is refused by name and changes nothing", async () => {
  await using api = await startApi(configRoutes);
  for (const [path, json, pointer] of refused) {
    const { status, body } = await api.ask("PUT", path, { json });
    assert.deepEqual(
      [status, body.errors?.[0]?.pointer],
      [400, pointer],
      `${path} ${JSON.stringify(json)} ${body.detail}`,
    );
  }
  assert.equal(api.store.count("config"), 0);
});

test("the headers of the metrics export are secrets", async () => {
  await using api = await startApi(configRoutes);
  const json = { enabled: true, endpoint: "https://collector.example/v1/metrics", headers: { "X-Key": "hush" } };
  const put = await api.ask("PUT", "/observability/otlp", { json });
  assert.equal(put.status, 200, put.text);
  assert.deepEqual([put.body.headers, put.body.effective.headers], [{ "X-Key": "***" }, { "X-Key": "***" }]);
  const back = await api.ask("PUT", "/observability/otlp", { json: { ...put.body, interval_seconds: 30 } });
  assert.equal(back.status, 200, back.text);
  assert.deepEqual(api.store.get("config", ["otlp"])?.body.settings.headers, { "X-Key": "hush" });
  assert.doesNotMatch(JSON.stringify(api.store.auditPage({}, { limit: 9 })), /hush/);
});

test("the headers of the metrics export do not follow it to another endpoint", async () => {
  await using api = await startApi(configRoutes);
  const put = (json: object) => api.ask("PUT", "/observability/otlp", { json });
  const first = await put({ endpoint: "https://collector.example/v1/metrics", headers: { "X-Key": "hush" } });
  assert.equal(first.status, 200, first.text);
  const endpoint = "https://evil.example/v1/metrics";
  for (const json of [{ endpoint }, { endpoint, headers: { "X-Key": "***" } }]) {
    const { status, body } = await put(json);
    assert.deepEqual([status, body.errors?.[0]?.pointer], [400, "/headers/X-Key"], body.detail);
  }
  assert.equal((await put({ endpoint: null })).status, 200);
  assert.equal((await put({ endpoint })).status, 400, "by way of none neither");
  assert.equal((await put({ endpoint, headers: null })).status, 200);
  assert.equal((await put({ endpoint: "http://127.0.0.1:4318/", headers: { "X-Key": "other" } })).status, 200);
});

test("If-Match guards a document", async () => {
  await using api = await startApi(configRoutes);
  const put = (enabled: boolean, ifMatch: string) =>
    api.ask("PUT", "/config/query-log", { json: { enabled }, headers: { "if-match": ifMatch } });
  assert.equal((await put(true, '"nothing"')).status, 412);
  const first = await api.ask("PUT", "/config/query-log", { json: { enabled: true } });
  const etag = String(first.headers.etag);
  assert.equal((await put(false, etag)).status, 200);
  assert.equal((await put(true, etag)).status, 412);
});
