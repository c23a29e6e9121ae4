/** Every route, asked as every role, with and without the CSRF header, and with tokens confined to zones. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Actor } from "../../src/commands/run.ts";
import type { ApiReply } from "../support/api.ts";
import { startWholeApi } from "../support/whole-api.ts";

/** The least role of each route, as the specification and the conventions of the API have it. */
const ACCESS = `
public   POST /auth/login, POST /auth/refresh, POST /auth/logout, GET /auth/idp/status, GET /auth/idp/login, GET /auth/idp/callback
admin    GET /auth/idp/config, PUT /auth/idp/config
readonly GET /zones, GET /zones/:id, GET /zones/:id/export, GET /zones/export, GET /zones/:zoneId/records, GET /records/:id
editor   POST /zones, PUT /zones/:id, DELETE /zones/:id, POST /zones/:id/import, POST /zones/import
editor   POST /zones/:zoneId/records, PUT /records/:id, DELETE /records/:id, POST /zones/:zoneId/records/bulk-delete
readonly GET /overrides, GET /overrides/:id
editor   POST /overrides, PUT /overrides/:id, DELETE /overrides/:id
admin    POST /service-accounts, GET /service-accounts, GET /service-accounts/:id, DELETE /service-accounts/:id
admin    POST /service-accounts/:id/revoke, POST /service-accounts/:id/rotate
admin    GET /users, POST /users, GET /users/:id, PUT /users/:id, DELETE /users/:id
readonly GET /tsig-keys, GET /tsig-keys/:name
admin    POST /tsig-keys, PUT /tsig-keys/:name, DELETE /tsig-keys/:name
readonly GET /subnet-mappings, GET /subnet-mappings/:id, GET /regions, GET /stats
editor   POST /subnet-mappings, DELETE /subnet-mappings/:id, GET /audit, GET /audit/export
`;
const DOCUMENTS = [
  ...[
    "rate-limits",
    "delete-guardrails",
    "region-discovery",
    "axfr",
    "query-log",
    "dynamic-dns",
    "cache",
    "replication",
  ],
  ...["health-probe-policy", "private-endpoints"],
].map((name) => `/config/${name}`);
const SENSITIVE = new Set(["GET /zones/:id/export", "GET /zones/export", "GET /audit/export"]);
/** What a token confined to zones may write. */
const CONFINED = new Set([
  "PUT /zones/:id",
  "POST /zones/:id/import",
  "POST /zones/import",
  "POST /zones/:zoneId/records",
  "POST /zones/:zoneId/records/bulk-delete",
  "PUT /records/:id",
  "DELETE /records/:id",
]);

function expectedAccess(): ReadonlyMap<string, string> {
  const access = new Map<string, string>();
  for (const line of ACCESS.trim().split("\n")) {
    const [role = "", list = ""] = line.split(/ +(.*)/);
    for (const operation of list.split(", ")) access.set(operation, role);
  }
  for (const path of [...DOCUMENTS, "/transport-config", "/observability/otlp"]) {
    access.set(`GET ${path}`, "readonly").set(`PUT ${path}`, "admin");
  }
  return access;
}

const RANKS = ["public", "readonly", "editor", "admin"];

test("the table of routes is the one that is written down here", async () => {
  await using api = await startWholeApi();
  const found = api.routes.map(({ method, path, access }) => `${method} ${path} ${access}`).sort();
  assert.deepEqual(found, [...expectedAccess()].map(([operation, access]) => `${operation} ${access}`).sort());
});

test("every route x role x CSRF header ends as its row says", async () => {
  await using api = await startWholeApi();
  const refusalOf = ({ status, body }: ApiReply) =>
    status === 401 || status === 403 ? `${status} ${body?.code}` : "in";
  const wrong: string[] = [];
  for (const [operation, access] of expectedAccess()) {
    const [method = "", path = ""] = operation.split(" ");
    for (const as of [null, "nobody", "readonly", "editor", "admin"] as const) {
      for (const noCsrf of [true, undefined]) {
        const needsCsrf = method !== "GET" || SENSITIVE.has(operation);
        const hasToken = as !== null && as !== "nobody";
        let expected = "in";
        if (access !== "public" && !hasToken) expected = "401 not_authenticated";
        else if (access !== "public" && RANKS.indexOf(access) > RANKS.indexOf(String(as)))
          expected = "403 role_insufficient";
        else if (needsCsrf && noCsrf) expected = "403 csrf_header_missing";
        const target = path.replace(/:\w+/g, "unknown");
        const reply = await api.ask(method, target, { as, ...(noCsrf && { noCsrf }) });
        // A public route may find fault with what its body or its cookie says.
        const found = access === "public" && refusalOf(reply) === "401 not_authenticated" ? "in" : refusalOf(reply);
        if (found !== expected) wrong.push(`${operation} as ${as} noCsrf ${noCsrf}: ${found}, not ${expected}`);
        if (expected === "in" && path.includes(":") && reply.status !== 404)
          wrong.push(`${operation}: ${reply.status}, not 404`);
        if (reply.status >= 500) wrong.push(`${operation} as ${as}: ${reply.status} ${reply.text}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});

test("every write x confinement to zones: only what lies in them, and with no zone at all nothing", async () => {
  await using api = await startWholeApi();
  const zones: string[] = [];
  const records: string[] = [];
  for (const name of ["mine.example.", "other.example."]) {
    const zone = await api.ask("POST", "/zones", { json: { name } });
    assert.equal(zone.status, 200, zone.text);
    zones.push(zone.body.id);
    const json = { name: "www", type: "A", values: [{ value: "192.0.2.1" }] };
    const record = await api.ask("POST", `/zones/${zone.body.id}/records`, { json });
    assert.equal(record.status, 200, record.text);
    records.push(record.body.id);
  }
  const token = (zoneIds: readonly string[], role: Actor["role"] = "admin") =>
    api.tokenFor({ kind: "service-account", id: "sva_x", name: "x", role, zoneIds });
  const [mine = "", other = ""] = zones;
  const wrong: string[] = [];
  for (const { method, path, access } of api.routes) {
    if (method === "GET" || access === "public") continue;
    const operation = `${method} ${path}`;
    for (const [where, zone, record] of [
      ["mine", mine, records[0]],
      ["other", other, records[1]],
    ] as const) {
      for (const [which, zoneIds] of [
        ["mine", [mine]],
        ["none", []],
        ["dead", ["zon_dead"]],
      ] as const) {
        const target = path.replace(/^\/records\/:id/, `/records/${record}`).replace(/:(id|zoneId|name)/g, zone);
        // The body is wrong on purpose: who is let in is told so, and nothing changes.
        const { status, body } = await api.ask(method, target, { as: token(zoneIds), json: ["wrong"] });
        const isOut = status === 403 && body.code === "zone_not_permitted";
        const mayIn = CONFINED.has(operation) && which === "mine" && (where === "mine" || path === "/zones/import");
        // The import of many zones looks at the zones that its body names.
        const isOwnCheck = path === "/zones/import";
        if (isOut === mayIn && !isOwnCheck)
          wrong.push(`${operation} in ${where} with ${which}: ${status} ${body.code}`);
        if (status >= 500) wrong.push(`${operation}: ${status}`);
        if (method === "DELETE" && !isOut && path === "/records/:id") assert.equal(where, "mine");
      }
    }
  }
  assert.deepEqual(wrong, []);
  const bundle = (await api.ask("GET", "/zones/export")).text;
  const imported = (as: string, text: string) =>
    api.ask("POST", "/zones/import?dry_run=true", { as, body: text, headers: { "content-type": "application/json" } });
  assert.equal((await imported(token([mine, other]), bundle)).status, 200);
  for (const text of [bundle, bundle.replaceAll("other.example.", "new.example.")]) {
    const refused = await imported(token([mine]), text);
    assert.deepEqual([refused.status, refused.body.code], [403, "zone_not_permitted"]);
  }
});
