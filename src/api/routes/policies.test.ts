/** What policies and templates of health checks are refused for, by every door that takes them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startApi, type TestApi } from "../../../tests/support/api.ts";
import { ALONE } from "../../../tests/support/commands.ts";
import { overrideRoutes } from "./overrides.ts";
import { recordRoutes } from "./records.ts";
import { zoneRoutes } from "./zones.ts";

const start = () =>
  startApi((context) => [...zoneRoutes(context, ALONE), ...recordRoutes(context), ...overrideRoutes(context)]);

const ONE = "192.0.2.1";
const TWO = "192.0.2.2";
const values = [{ value: ONE }, { value: TWO }];
const weighted = (value_weights: object) => ({ lb_policy: { method: "weighted", value_weights } });
const template = (fields: object) => ({ health_check_template: { protocol: "http", ...fields } });

/** Fields beside the values, and the pointer to what is wrong with them. */
const WRONG: readonly (readonly [object, string])[] = [
  [{ lb_policy: { method: "fastest" } }, "/lb_policy/method"],
  [{ lb_policy: {} }, "/lb_policy/method"],
  [{ lb_policy: { method: "failover", failover_order: ["192.0.2.9"] } }, "/lb_policy/failover_order/0"],
  [{ lb_policy: { method: "region", region_preference: ["e u"] } }, "/lb_policy/region_preference/0"],
  [{ lb_policy: { method: "round-robin", affinity_ttl_seconds: 0 } }, "/lb_policy/affinity_ttl_seconds"],
  [{ lb_policy: { method: "round-robin", sticky: true } }, "/lb_policy/sticky"],
  [weighted({ [ONE]: 101 }), `/lb_policy/value_weights/${ONE}`],
  [weighted({ [ONE]: -1 }), `/lb_policy/value_weights/${ONE}`],
  [weighted({ [ONE]: 0.5 }), `/lb_policy/value_weights/${ONE}`],
  [weighted({ [ONE]: 60, [TWO]: 41 }), "/lb_policy/value_weights"],
  [weighted({ "192.0.2.9": 1 }), "/lb_policy/value_weights/192.0.2.9"],
  [template({ protocol: "udp" }), "/health_check_template/protocol"],
  [template({ protocol: "script" }), "/health_check_template/protocol"],
  [template({ protocol: "tcp" }), "/health_check_template/port"],
  [template({ port: 0 }), "/health_check_template/port"],
  [template({ timeout_seconds: 16 }), "/health_check_template/timeout_seconds"],
  [template({ interval_seconds: 5, timeout_seconds: 6 }), "/health_check_template/timeout_seconds"],
  [template({ interval_seconds: 0 }), "/health_check_template/interval_seconds"],
  [template({ failure_threshold: 5 }), "/health_check_template/failure_threshold"],
  [template({ protocol: "tcp", port: 80, http_config: {} }), "/health_check_template/http_config"],
  [template({ http_config: { expected_status: [600] } }), "/health_check_template/http_config/expected_status/0"],
  [template({ http_config: { headers: { Host: "x" } } }), "/health_check_template/http_config/headers/Host"],
];

const post = (api: TestApi, path: string, json: object) => api.ask("POST", path, { as: "editor", json });

async function refusedAt(api: TestApi, method: string, path: string, json: object, pointer: string): Promise<void> {
  const { status, body, text } = await api.ask(method, path, { as: "editor", json });
  const what = `${method} ${path} ${JSON.stringify(json)}: ${text}`;
  assert.equal(status, 400, what);
  assert.ok(
    body.errors.some((fault: { readonly pointer: string }) => fault.pointer === pointer),
    what,
  );
}

test("a wrong policy or template is 400 with its pointer, in a create and in an update, of records and overrides", async () => {
  await using api = await start();
  const zone = (await post(api, "/zones", { name: "corp.example." })).body.id;
  const a = { type: "A", values };
  const record = (await post(api, `/zones/${zone}/records`, { ...a, name: "www" })).body.id;
  const override = (await post(api, "/overrides", { ...a, name: "www.else.example." })).body.id;
  const entries = api.store.auditPage({}, { limit: 100 }).entries.length;
  for (const [fields, pointer] of WRONG) {
    await refusedAt(api, "POST", `/zones/${zone}/records`, { ...a, name: "new", ...fields }, pointer);
    await refusedAt(api, "PUT", `/records/${record}`, fields, pointer);
    await refusedAt(api, "POST", "/overrides", { ...a, name: "new.else.example.", ...fields }, pointer);
    await refusedAt(api, "PUT", `/overrides/${override}`, fields, pointer);
  }
  assert.equal(api.store.auditPage({}, { limit: 100 }).entries.length, entries);
  assert.deepEqual([api.store.count("record"), api.store.count("override")], [1, 1]);
});

test("types that cannot be probed take no template, and delegations no policy", async () => {
  await using api = await start();
  const zone = (await post(api, "/zones", { name: "corp.example." })).body.id;
  const records = `/zones/${zone}/records`;
  const rows: readonly (readonly [string, object])[] = [
    ["MX", { values: [{ value: "mx.example." }], priority: 10 }],
    ["TXT", { values: [{ value: "text" }] }],
    ["NS", { values: [{ value: "ns.example." }] }],
    ["PTR", { values: [{ value: "host.example." }] }],
    ["CAA", { values: [{ value: "ca.example" }], tag: "issue" }],
  ];
  for (const [type, fields] of rows) {
    const json = { name: "www", type, ...fields };
    assert.equal((await post(api, `${records}?dry_run=true`, json)).status, 200, type);
    await refusedAt(api, "POST", records, { ...json, ...template({}) }, "/health_check_template");
  }
  const delegation = { name: "sub", type: "NS", values: [{ value: "ns.example." }] };
  await refusedAt(api, "POST", records, { ...delegation, lb_policy: { method: "failover" } }, "/lb_policy");
});

test("an update that leaves a weight without its value, or a timeout over its interval, is refused", async () => {
  await using api = await start();
  const zone = (await post(api, "/zones", { name: "corp.example." })).body.id;
  const given = { name: "www", type: "A", values, ...weighted({ [TWO]: 30 }), ...template({ timeout_seconds: 5 }) };
  const { id } = (await post(api, `/zones/${zone}/records`, given)).body;
  const at = `/records/${id}`;
  await refusedAt(api, "PUT", at, { values: [{ value: ONE }] }, `/lb_policy/value_weights/${TWO}`);
  const { body } = await api.ask("GET", at);
  const late = { health_check_template: { ...body.health_check_template, interval_seconds: 4 } };
  await refusedAt(api, "PUT", at, late, "/health_check_template/timeout_seconds");
  assert.deepEqual((await api.ask("GET", at)).body, body);
});

test("the default of a zone is a known method and names no values", async () => {
  await using api = await start();
  const { id } = (await post(api, "/zones", { name: "corp.example." })).body;
  for (const [lb_policy, pointer] of [
    [{ method: "fastest" }, "/lb_policy/method"],
    [{ method: "weighted", value_weights: { [ONE]: 1 } }, "/lb_policy/value_weights"],
    [{ method: "failover", failover_order: [ONE] }, "/lb_policy/failover_order"],
  ] as const) {
    await refusedAt(api, "POST", "/zones", { name: "lab.example.", lb_policy }, pointer);
    await refusedAt(api, "PUT", `/zones/${id}`, { lb_policy }, pointer);
  }
});
