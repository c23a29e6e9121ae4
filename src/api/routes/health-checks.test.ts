import assert from "node:assert/strict";
import { test } from "node:test";
import { type ApiReply, startApi, type TestApi } from "../../../tests/support/api.ts";
import type { CommandContext } from "../../commands/run.ts";
import { HEALTH_CHECKS_MAX } from "../../model/limits.ts";
import type { HealthCheckBody } from "../../model/objects.ts";
import { auditRoutes } from "./audit.ts";
import { healthCheckRoutes } from "./health-checks.ts";

const routesWith = (areScriptsEnabled: boolean) => (context: CommandContext) => [
  ...healthCheckRoutes({ ...context, areScriptsEnabled }),
  ...auditRoutes(context),
];
const startChecks = () => startApi(routesWith(true));

const TCP = { name: "db", protocol: "tcp", target: "db.example:5432" };
const script_config = { command: "/usr/bin/check", args: ["--password", "hunter2"] };
const SCRIPT = { name: "job", protocol: "script", script_config };

const told = ({ status, body }: ApiReply) => [status, body.code ?? "", ...(body.errors ?? []).map(pointerOf)];
const pointerOf = ({ pointer }: { readonly pointer: string }) => pointer;
const namesOf = (reply: ApiReply) => reply.body.items.map(({ name }: { readonly name: string }) => name);

async function made(api: TestApi, json: object, as = "admin") {
  const { status, body, text } = await api.ask("POST", "/healthchecks", { json, as });
  assert.equal(status, 200, text);
  return body;
}

test("a check is created, read, edited with what was read, renamed and deleted", async () => {
  await using api = await startChecks();
  const created = await api.ask("POST", "/healthchecks", { json: TCP, as: "editor" });
  const { id, created_at, updated_at, ...shown } = created.body;
  assert.match(id, /^chk_[a-z2-7]{20}$/);
  assert.equal(created.headers.location, `/api/v1/healthchecks/${id}`);
  assert.equal(created_at, updated_at);
  assert.deepEqual(shown, { ...TCP, interval_seconds: 15, timeout_seconds: 5, failure_threshold: 3 });
  const read = await api.ask("GET", `/healthchecks/${id}`, { as: "readonly" });
  assert.deepEqual([read.body, read.headers.etag], [created.body, created.headers.etag]);
  const put = (json: object, headers = {}) => api.ask("PUT", `/healthchecks/${id}`, { as: "editor", json, headers });
  const edited = await put({ ...read.body, comment: "the ledger", interval_seconds: 60 });
  assert.deepEqual([edited.status, edited.body.comment, edited.body.interval_seconds], [200, "the ledger", 60]);
  const ifMatch = { "if-match": String(read.headers.etag) };
  assert.deepEqual(told(await put({ name: "x" }, ifMatch)), [412, "precondition_failed"]);
  const renamed = await put({ name: "ledger", comment: null }, { "if-match": String(edited.headers.etag) });
  assert.deepEqual([renamed.body.id, renamed.body.name, "comment" in renamed.body], [id, "ledger", false]);
  assert.equal((await api.ask("GET", `/healthchecks/${id}`)).body.name, "ledger");
  assert.equal((await made(api, TCP)).name, "db");
  assert.deepEqual((await api.ask("DELETE", `/healthchecks/${id}`, { as: "editor" })).body, { deleted: true, id });
  for (const method of ["GET", "DELETE"]) {
    assert.deepEqual(told(await api.ask(method, `/healthchecks/${id}`)), [404, "not_found"]);
  }
  assert.deepEqual(told(await put({})), [404, "not_found"]);
});

test("a name is taken once, also by a rename, and the refusal names who has it", async () => {
  await using api = await startChecks();
  const { id } = await made(api, TCP);
  const other = await made(api, { ...TCP, name: "other" });
  const again = await api.ask("POST", "/healthchecks", { json: TCP });
  assert.deepEqual([...told(again), again.body.health_check_id], [409, "conflict", "/name", id]);
  const onto = await api.ask("PUT", `/healthchecks/${other.id}`, { json: { name: "db" } });
  assert.deepEqual([...told(onto), onto.body.health_check_id], [409, "conflict", "/name", id]);
  assert.equal((await api.ask("PUT", `/healthchecks/${id}`, { json: { name: "db" } })).status, 200);
});

test("what is wrong is refused with its field, and nothing is written", async () => {
  await using api = await startChecks();
  const http = { name: "web", protocol: "https", target: "web.example:443" };
  const { id } = await made(api, { ...TCP, interval_seconds: 10, timeout_seconds: 10 });
  const wrong: readonly (readonly [object, string])[] = [
    [{ ...TCP, name: undefined }, "/name"],
    [{ ...TCP, name: " db" }, "/name"],
    [{ ...TCP, protocol: "udp" }, "/protocol"],
    [{ ...TCP, target: undefined }, "/target"],
    [{ ...TCP, target: "db.example" }, "/target"],
    [{ ...TCP, target: "2001:db8::1:5432:99999" }, "/target"],
    [{ ...TCP, interval_seconds: 0 }, "/interval_seconds"],
    [{ ...TCP, interval_seconds: 1.5 }, "/interval_seconds"],
    [{ ...TCP, interval_seconds: 5, timeout_seconds: 6 }, "/timeout_seconds"],
    [{ ...TCP, failure_threshold: 0 }, "/failure_threshold"],
    [{ ...TCP, failure_threshold: 101 }, "/failure_threshold"],
    [{ ...TCP, http_config: {} }, "/http_config"],
    [{ ...TCP, script_config }, "/script_config"],
    [{ ...TCP, interval: 5 }, "/interval"],
    [{ ...TCP, id: "chk_x" }, "/id"],
    [{ ...http, http_config: { expected_status: [99] } }, "/http_config/expected_status/0"],
    [{ ...http, http_config: { expected_status: [] } }, "/http_config/expected_status"],
    [{ ...http, http_config: { path: "healthz" } }, "/http_config/path"],
    [{ ...http, http_config: { headers: { "A B": "x" } } }, "/http_config/headers/A B"],
    [{ ...http, http_config: { headers: { "X-A": "***" } } }, "/http_config/headers/X-A"],
    [
      { ...http, http_config: { oauth2: { token_url: "http://login.example/", client_id: "a", client_secret: "b" } } },
      "/http_config/oauth2/token_url",
    ],
    [{ ...SCRIPT, script_config: undefined }, "/script_config"],
    [{ ...SCRIPT, script_config: { command: "sh -c x" } }, "/script_config/command"],
    [{ ...SCRIPT, script_config: { ...script_config, timeout_seconds: 16 } }, "/script_config/timeout_seconds"],
    [{ ...SCRIPT, script_config: { ...script_config, args: "x" } }, "/script_config/args"],
  ];
  for (const [json, pointer] of wrong) {
    const reply = await api.ask("POST", "/healthchecks", { json });
    assert.deepEqual(told(reply), [400, "invalid_request", pointer], `${JSON.stringify(json)}: ${reply.text}`);
  }
  for (const [json, pointer] of [
    [{ interval_seconds: 9 }, "/timeout_seconds"],
    [{ timeout_seconds: 11 }, "/timeout_seconds"],
    [{ target: null }, "/target"],
    [{ protocol: null }, "/protocol"],
    [{ id: "chk_x" }, "/id"],
    [{ updated_at: "2020-01-01T00:00:00Z" }, "/updated_at"],
  ] as const) {
    const reply = await api.ask("PUT", `/healthchecks/${id}`, { json });
    assert.deepEqual(told(reply), [400, "invalid_request", pointer], `${JSON.stringify(json)}: ${reply.text}`);
  }
  assert.equal(api.store.count("healthcheck"), 1);
  assert.equal(api.store.auditPage({}, { limit: 10 }).entries.length, 1);
});

test("only an administrator makes, changes or unmakes a script; everything else of it is an editor's", async () => {
  await using api = await startChecks();
  const refused = [403, "role_insufficient"];
  assert.deepEqual(told(await api.ask("POST", "/healthchecks", { as: "editor", json: SCRIPT })), refused);
  const { id } = await made(api, SCRIPT);
  const plain = await made(api, TCP, "editor");
  const put = (at: string, json: object, as = "editor") => api.ask("PUT", `/healthchecks/${at}`, { as, json });
  assert.deepEqual(told(await put(plain.id, { protocol: "script", script_config, target: null })), refused);
  assert.deepEqual(told(await put(id, { script_config: { ...script_config, args: [] } })), refused);
  assert.deepEqual(told(await put(id, { script_config: { ...script_config, command: "/usr/bin/id" } })), refused);
  assert.deepEqual(told(await put(id, { protocol: "tcp", script_config: null, target: "db.example:1" })), refused);
  const { body } = await api.ask("GET", `/healthchecks/${id}`, { as: "editor" });
  const edited = await put(id, { ...body, interval_seconds: 60, comment: "nightly" });
  assert.deepEqual([edited.status, edited.body.interval_seconds, edited.body.script_config], [200, 60, script_config]);
  const args = ["--password", "hunter3"];
  assert.equal((await put(id, { script_config: { ...script_config, args } }, "admin")).status, 200);
  assert.equal((await put(plain.id, { protocol: "script", script_config }, "admin")).status, 200);
  for (const each of [id, plain.id]) {
    assert.equal((await api.ask("DELETE", `/healthchecks/${each}`, { as: "editor" })).status, 200);
  }
});

test("where scripts are not enabled none can be made; one from elsewhere can still be edited and taken away", async () => {
  await using api = await startApi(routesWith(false));
  const refused = [409, "script_checks_disabled"];
  assert.deepEqual(told(await api.ask("POST", "/healthchecks", { as: "editor", json: SCRIPT })), [
    403,
    "role_insufficient",
  ]);
  assert.deepEqual(told(await api.ask("POST", "/healthchecks", { json: SCRIPT })), refused);
  const { id } = await made(api, TCP);
  const put = (at: string, json: object) => api.ask("PUT", `/healthchecks/${at}`, { json });
  assert.deepEqual(told(await put(id, { protocol: "script", script_config })), refused);
  const times = { interval_seconds: 15, timeout_seconds: 5, failure_threshold: 3 };
  const body: HealthCheckBody = { id: "chk_elsewhere", name: "job", protocol: "script", script_config, ...times };
  await api.store.write((tx) => void tx.put("healthcheck", body));
  assert.deepEqual(told(await put(body.id, { script_config: { command: "/usr/bin/id" } })), refused);
  assert.equal((await put(body.id, { comment: "x" })).status, 200);
  const away = await put(body.id, { protocol: "tcp", script_config: null, target: "db.example:1" });
  assert.deepEqual([away.status, away.body.protocol, "script_config" in away.body], [200, "tcp", false]);
});

test("secrets are masked everywhere, kept by ***, and do not follow the check elsewhere", async () => {
  await using api = await startChecks();
  const oauth2 = { token_url: "https://login.example/", client_id: "id", client_secret: "hush-hush" };
  const http_config = { headers: { Authorization: "Bearer abcdef" }, expected_status: [204] };
  const check = await made(api, { ...TCP, protocol: "https", http_config }, "editor");
  assert.equal(check.http_config.headers.Authorization, "***");
  const put = (json: object) => api.ask("PUT", `/healthchecks/${check.id}`, { as: "editor", json });
  const kept = await put({ ...check, interval_seconds: 30, http_config: { ...check.http_config, path: "/up" } });
  assert.equal(kept.status, 200, kept.text);
  const stored = () => api.store.byId("healthcheck", check.id)?.body;
  assert.deepEqual(stored()?.http_config, { ...http_config, path: "/up" });
  assert.deepEqual(told(await put({ target: "evil.example:5432" })), [
    400,
    "invalid_request",
    "/http_config/headers/Authorization",
  ]);
  assert.equal((await put({ protocol: "http" })).status, 400);
  assert.equal((await put({ target: "db.example:8443" })).status, 200);
  assert.equal((await put({ http_config: { oauth2 }, target: "evil.example:5432" })).status, 200);
  assert.deepEqual(stored()?.http_config, { oauth2 });
  const list = await api.ask("GET", "/healthchecks", { as: "readonly" });
  const one = await api.ask("GET", `/healthchecks/${check.id}`, { as: "readonly" });
  const audit = await api.ask("GET", "/audit?resource=healthcheck");
  assert.equal(audit.body.items.length, 4);
  for (const { text } of [list, one, audit, kept]) assert.doesNotMatch(text, /hush-hush|abcdef/);
});

test("the audit log has a script's command as it is, and its arguments as ***", async () => {
  await using api = await startChecks();
  const { id } = await made(api, SCRIPT);
  const changed = { ...script_config, args: ["hunter3"] };
  assert.equal((await api.ask("PUT", `/healthchecks/${id}`, { json: { script_config: changed } })).status, 200);
  assert.equal((await api.ask("DELETE", `/healthchecks/${id}`)).status, 200);
  const { body, text } = await api.ask("GET", `/audit?resource_id=${id}`);
  type Entry = { readonly action: string; readonly before?: HealthCheckBody; readonly after?: HealthCheckBody };
  assert.deepEqual(
    body.items.map(({ action, before, after }: Entry) => [action, before?.script_config, after?.script_config]),
    [
      ["delete", { command: "/usr/bin/check", args: ["***"] }, undefined],
      ["update", { command: "/usr/bin/check", args: ["***", "***"] }, { command: "/usr/bin/check", args: ["***"] }],
      ["create", undefined, { command: "/usr/bin/check", args: ["***", "***"] }],
    ],
  );
  assert.doesNotMatch(text, /hunter|--password/);
});

test("lists are filtered and paged", async () => {
  await using api = await startChecks();
  for (const name of ["b", "a", "Zürich", "c d"]) await made(api, { ...TCP, name });
  await made(api, { ...TCP, name: "web", protocol: "http", target: "192.0.2.9:80", comment: "Front door" });
  const list = (query: string) => api.ask("GET", `/healthchecks${query}`, { as: "readonly" });
  assert.deepEqual(namesOf(await list("")), ["Zürich", "a", "b", "c d", "web"]);
  assert.deepEqual(namesOf(await list("?name=a")), ["a"]);
  assert.deepEqual(namesOf(await list(`?name=${encodeURIComponent("Zu\u0308rich")}`)), ["Zürich"]);
  for (const query of ["?name=%20a", "?name=d", "?q=nothing", "?protocol=script"]) {
    assert.deepEqual((await list(query)).body, { items: [], next_cursor: null }, query);
  }
  assert.deepEqual(namesOf(await list("?protocol=http")), ["web"]);
  for (const query of ["?q=192.0.2.9", "?q=FRONT", "?q=eb"]) assert.deepEqual(namesOf(await list(query)), ["web"]);
  assert.deepEqual(told(await list("?protocol=udp")), [400, "invalid_request", "?protocol"]);
  const first = await list("?limit=3");
  const second = await list(`?limit=3&cursor=${first.body.next_cursor}`);
  assert.deepEqual([namesOf(first).length, namesOf(second), second.body.next_cursor], [3, ["c d", "web"], null]);
});

test("readers and confined tokens write nothing, and a dry run leaves nothing", async () => {
  await using api = await startChecks();
  const { id } = await made(api, TCP);
  const confined = { kind: "service-account", id: "sva_x", name: "x", role: "admin", zoneIds: ["zon_x"] } as const;
  for (const [as, code] of [
    ["readonly", "role_insufficient"],
    [api.tokenFor(confined), "zone_not_permitted"],
  ] as const) {
    const json = { ...TCP, name: "other" };
    assert.deepEqual(told(await api.ask("POST", "/healthchecks", { as, json })), [403, code]);
    assert.deepEqual(told(await api.ask("PUT", `/healthchecks/${id}`, { as, json: {} })), [403, code]);
    assert.deepEqual(told(await api.ask("DELETE", `/healthchecks/${id}`, { as })), [403, code]);
    assert.equal((await api.ask("GET", `/healthchecks/${id}`, { as })).status, 200);
  }
  const dry = await api.ask("POST", "/healthchecks?dry_run=true", { json: { ...TCP, name: "dry" } });
  assert.deepEqual([dry.status, dry.body.name, dry.headers.location], [200, "dry", undefined]);
  const moved = await api.ask("PUT", `/healthchecks/${id}?dry_run=true`, { json: { name: "dry" } });
  assert.deepEqual([moved.status, moved.body.name], [200, "dry"]);
  assert.equal((await api.ask("DELETE", `/healthchecks/${id}?dry_run=true`)).status, 200);
  assert.deepEqual(namesOf(await api.ask("GET", "/healthchecks")), ["db"]);
  assert.equal((await api.ask("GET", "/audit")).body.items.length, 1);
});

test("there are no more checks than the limit", async () => {
  await using api = await startChecks();
  const times = { interval_seconds: 15, timeout_seconds: 5, failure_threshold: 3 };
  await api.store.write((tx) => {
    for (let index = 1; index < HEALTH_CHECKS_MAX; index++) {
      const body = { id: `chk_${index}`, name: `check ${index}`, protocol: "tcp", target: "db.example:1" } as const;
      tx.put("healthcheck", { ...body, ...times });
    }
  });
  const { id } = await made(api, TCP);
  const over = await api.ask("POST", "/healthchecks", { json: { ...TCP, name: "one more" } });
  assert.deepEqual(told(over), [409, "conflict"]);
  assert.equal((await api.ask("PUT", `/healthchecks/${id}`, { json: { comment: "still" } })).status, 200);
  assert.equal((await api.ask("DELETE", `/healthchecks/${id}`)).status, 200);
  assert.equal((await made(api, { ...TCP, name: "one more" })).name, "one more");
});
