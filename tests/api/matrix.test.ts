/**
 * Every route x caller x CSRF header x zone, against a table that is written by hand. Each request ends in a refusal by
 * design, be it only of its nonsense at the very end, so that all of them together change nothing.
 */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import type { ApiReply } from "../support/api.ts";
import { type Asker, type Furniture, startWorld } from "./world.ts";

/**
 * Role, whether the CSRF header is needed, what a token confined to zones may do ("any": what everybody may, "zone": only
 * in its zones, "some": only when it has a zone at all, "none": nothing), the route.
 */
const TABLE = `
public    csrf  any   POST /auth/login
public    csrf  any   POST /auth/refresh
public    csrf  any   POST /auth/logout
public    -     any   GET /auth/idp/status
public    -     any   GET /auth/idp/login
public    -     any   GET /auth/idp/callback
admin     -     any   GET /auth/idp/config
admin     csrf  none  PUT /auth/idp/config
readonly  -     any   GET /zones
editor    csrf  none  POST /zones
readonly  -     any   GET /zones/{id}
editor    csrf  zone  PUT /zones/{id}
editor    csrf  none  DELETE /zones/{id}
readonly  csrf  any   GET /zones/{id}/export
editor    csrf  zone  POST /zones/{id}/import
readonly  csrf  any   GET /zones/export
editor    csrf  some  POST /zones/import
readonly  -     any   GET /zones/{zoneId}/records
editor    csrf  zone  POST /zones/{zoneId}/records
readonly  -     any   GET /records/{id}
editor    csrf  zone  PUT /records/{id}
editor    csrf  zone  DELETE /records/{id}
editor    csrf  zone  POST /zones/{zoneId}/records/bulk-delete
readonly  -     any   GET /overrides
editor    csrf  none  POST /overrides
readonly  -     any   GET /overrides/{id}
editor    csrf  none  PUT /overrides/{id}
editor    csrf  none  DELETE /overrides/{id}
readonly  -     any   GET /healthchecks
editor    csrf  none  POST /healthchecks
readonly  -     any   GET /healthchecks/{id}
editor    csrf  none  PUT /healthchecks/{id}
editor    csrf  none  DELETE /healthchecks/{id}
readonly  -     any   GET /healthchecks/{id}/status
readonly  -     any   GET /health/status
readonly  -     any   GET /explain
admin     csrf  none  POST /service-accounts
admin     -     any   GET /service-accounts
admin     -     any   GET /service-accounts/{id}
admin     csrf  none  POST /service-accounts/{id}/revoke
admin     csrf  none  POST /service-accounts/{id}/rotate
admin     csrf  none  DELETE /service-accounts/{id}
admin     -     any   GET /users
admin     csrf  none  POST /users
admin     -     any   GET /users/{id}
admin     csrf  none  PUT /users/{id}
admin     csrf  none  DELETE /users/{id}
readonly  -     any   GET /tsig-keys
admin     csrf  none  POST /tsig-keys
readonly  -     any   GET /tsig-keys/{name}
admin     csrf  none  PUT /tsig-keys/{name}
admin     csrf  none  DELETE /tsig-keys/{name}
readonly  -     any   GET /subnet-mappings
editor    csrf  none  POST /subnet-mappings
readonly  -     any   GET /subnet-mappings/{id}
editor    csrf  none  DELETE /subnet-mappings/{id}
readonly  -     any   GET /regions
readonly  -     any   GET /forwarders/default
editor    csrf  none  PUT /forwarders/default
admin     -     any   GET /forwarders/hardening
admin     csrf  none  PUT /forwarders/hardening
readonly  -     any   GET /forwarders
editor    csrf  none  POST /forwarders
readonly  -     any   GET /forwarders/{id}
editor    csrf  none  PUT /forwarders/{id}
editor    csrf  none  DELETE /forwarders/{id}
readonly  -     any   GET /stub-zones
editor    csrf  none  POST /stub-zones
readonly  -     any   GET /stub-zones/{id}
editor    csrf  none  PUT /stub-zones/{id}
editor    csrf  none  DELETE /stub-zones/{id}
readonly  -     any   GET /blocklist
editor    csrf  none  PUT /blocklist
readonly  -     any   GET /cache
editor    csrf  none  POST /cache/flush
admin     csrf  none  POST /debug/enable
admin     csrf  none  POST /debug/disable
readonly  -     any   GET /debug/status
admin     csrf  any   GET /debug/tail
admin     csrf  none  DELETE /debug/tail
readonly  -     any   GET /config/rate-limits
admin     csrf  none  PUT /config/rate-limits
readonly  -     any   GET /config/delete-guardrails
admin     csrf  none  PUT /config/delete-guardrails
readonly  -     any   GET /config/region-discovery
admin     csrf  none  PUT /config/region-discovery
readonly  -     any   GET /config/axfr
admin     csrf  none  PUT /config/axfr
readonly  -     any   GET /config/query-log
admin     csrf  none  PUT /config/query-log
readonly  -     any   GET /config/dynamic-dns
admin     csrf  none  PUT /config/dynamic-dns
readonly  -     any   GET /config/cache
admin     csrf  none  PUT /config/cache
readonly  -     any   GET /config/recursion
admin     csrf  none  PUT /config/recursion
readonly  -     any   GET /config/replication
admin     csrf  none  PUT /config/replication
readonly  -     any   GET /config/health-probe-policy
admin     csrf  none  PUT /config/health-probe-policy
readonly  -     any   GET /config/private-endpoints
admin     csrf  none  PUT /config/private-endpoints
readonly  -     any   GET /transport-config
admin     csrf  none  PUT /transport-config
readonly  -     any   GET /observability/otlp
admin     csrf  none  PUT /observability/otlp
editor    -     any   GET /audit
editor    csrf  any   GET /audit/export
readonly  -     any   GET /nodes
readonly  -     any   GET /nodes/self
admin     csrf  none  DELETE /nodes/{id}
admin     csrf  none  POST /cluster/join
readonly  -     any   GET /cluster/consistency
editor    -     any   GET /conflicts
editor    -     any   GET /conflicts/{id}
editor    csrf  none  POST /conflicts/{id}/reapply
readonly  -     any   GET /stats
public    -     any   GET /openapi.json
`;

type Row = {
  readonly least: "public" | "readonly" | "editor" | "admin";
  readonly needsCsrf: boolean;
  readonly confined: string;
  readonly method: string;
  readonly path: string;
};

const RANKS = ["public", "readonly", "editor", "admin"] as const;

const ROWS: readonly Row[] = TABLE.trim()
  .split("\n")
  .map((line) => {
    const [role, csrf, confined = "", method = "", path = ""] = line.split(/ +/);
    const least = RANKS.find((rank) => rank === role);
    assert.ok(least !== undefined && ["any", "zone", "some", "none"].includes(confined), line);
    return { least, needsCsrf: csrf === "csrf", confined, method, path };
  });

/** What the path's parameter stands for: something in each zone, or in none. */
type Target = { readonly path: string; readonly where: "mine" | "other" | "unknown" | "no zone" };

function targetsOf({ path }: Row, { zones, records, ...others }: Furniture): readonly Target[] {
  if (!path.includes("{")) return [{ path, where: "no zone" }];
  const put = (id: string) => path.replace(/\{\w+\}/, encodeURIComponent(id));
  const unknown = { path: put("unknown"), where: "unknown" } as const;
  const [, collection = ""] = path.split("/");
  const inZones = { zones, records }[collection];
  if (inZones !== undefined) {
    return [{ path: put(inZones[0]), where: "mine" }, { path: put(inZones[1]), where: "other" }, unknown];
  }
  const { user, account, override, mapping, key, check, forwarder, stub, node, conflict } = others;
  const id = {
    users: user,
    "service-accounts": account,
    overrides: override,
    "subnet-mappings": mapping,
    "tsig-keys": key,
    healthchecks: check,
    forwarders: forwarder,
    "stub-zones": stub,
    nodes: node,
    conflicts: conflict,
  }[collection];
  assert.ok(id !== undefined, path);
  return [{ path: put(id), where: "no zone" }, unknown];
}

/** The refusals in their order: 401, 403 role, 403 zone, 403 CSRF, 404, and at last 400 for the nonsense that was sent. */
function expectedOf(row: Row, { role, zones }: Asker, csrf: string | undefined, { where, path }: Target): string {
  if (row.least !== "public") {
    if (role === "nobody") return "401 not_authenticated";
    if (RANKS.indexOf(role) < RANKS.indexOf(row.least)) return "403 role_insufficient";
    if (zones !== undefined && !mayConfined(row, zones, where, path)) return "403 zone_not_permitted";
  }
  if (row.needsCsrf && csrf !== "1") return "403 csrf_header_missing";
  return where === "unknown" ? "404 not_found" : "400 invalid_request";
}

function mayConfined({ confined }: Row, zones: string, where: Target["where"], path: string): boolean {
  if (confined === "any") return true;
  if (confined === "none" || zones !== "mine") return false;
  // A record that is not there lies in no zone, so that "not found" is what there is to say; an unknown zone is none of its own.
  return confined === "some" || where === "mine" || (where === "unknown" && path.startsWith("/records/"));
}

/** Something that no route takes, so that who comes in is refused at the very last. */
function nonsense({ method, least }: Row, target: Target): { readonly path: string; readonly body?: string } {
  const reads = method === "GET" || method === "HEAD";
  if (reads) return { path: `${target.path}?nonsense=%zz` };
  return { path: target.path, body: least === "public" ? "nonsense" : '{"nonsense"' };
}

function shown({ status, body, headers }: ApiReply): string {
  const isProblem = String(headers["content-type"]).startsWith("application/problem+json") && body?.status === status;
  return `${status} ${isProblem ? body.code : "without a problem document"}`;
}

async function inParallel<Item>(items: readonly Item[], width: number, work: (item: Item) => Promise<void>) {
  const queue = items.values();
  const worker = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: width }, worker));
}

const limits = { rate: 10_000_000 };
const probe = () => ({ status: 200, contentType: "text/plain", body: "fine" });
/** One for all tests: none of them may change anything. */
const world = await startWorld({ rateLimit: () => limits.rate, probe });
after(() => world[Symbol.asyncDispose]());

test("the table names every route, and no other", async () => {
  const { paths } = (await world.api.ask("GET", "/openapi.json", { as: null })).body;
  const documented = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(Object(operations)).map(([method, operation]) => {
      const access = Object(operation)["x-access"];
      return `${access} ${method.toUpperCase()} ${path}`;
    }),
  );
  assert.deepEqual(documented.sort(), ROWS.map(({ least, method, path }) => `${least} ${method} ${path}`).sort());
  const own = "GET /openapi.json";
  const served = world.routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
  assert.deepEqual([...served, own].sort(), ROWS.map(({ method, path }) => `${method} ${path}`).sort());
});

test("every route x caller x CSRF header x zone ends as its row says, and changes nothing", async () => {
  const before = world.digest();
  const wrong: string[] = [];
  let asked = 0;
  const rows = ROWS.flatMap((row) => (row.method === "GET" ? [row, { ...row, method: "HEAD" }] : [row]));
  const cases = rows.flatMap((row) =>
    targetsOf(row, world.furniture).flatMap((target, index) =>
      world.askers
        .filter((asker) => isAsked(row, asker, index))
        .flatMap((asker) => csrfOf(row, asker).map((csrf) => ({ row, target, asker, csrf }))),
    ),
  );
  await inParallel(cases, 8, async ({ row, target, asker, csrf }) => {
    const { path, body } = nonsense(row, target);
    const headers = {
      ...(csrf === undefined ? {} : { "x-svc-csrf": csrf }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    };
    const reply = await world.ask(row.method, path, asker, { noCsrf: true, headers, ...(body && { body }) });
    asked++;
    const expected = expectedOf(row, asker, csrf, target);
    const found = row.method === "HEAD" ? String(reply.status) : shown(reply);
    if (found !== (row.method === "HEAD" ? expected.slice(0, 3) : expected)) {
      const what = `${row.method} ${row.path} (${target.where}) as ${asker.name}, CSRF ${csrf}`;
      wrong.push(`${what}: ${found}, not ${expected}`);
    }
  });
  assert.deepEqual(wrong.slice(0, 50), [], `${wrong.length} of ${asked}`);
  assert.equal(world.changes(), 0);
  assert.equal(world.digest(), before);
  assert.deepEqual(world.faultsLogged, []);
});

/** Everybody, but who has no credentials only once a route, and HEAD, which is GET without its body, a few. */
function isAsked({ method }: Row, { name, role }: Asker, targetIndex: number): boolean {
  if (method === "HEAD") return ["no credentials", "user readonly", "user editor", "cookie admin"].includes(name);
  return role !== "nobody" || targetIndex === 0;
}

/** All three of the header for those who get that far; who has no credentials is not asked for it. */
function csrfOf({ needsCsrf, least }: Row, { role }: Asker): readonly (string | undefined)[] {
  if (role === "nobody" && least !== "public") return ["1"];
  return needsCsrf ? [undefined, "0", "1"] : [undefined];
}

function limitedTo(rate: number): Disposable {
  const usual = limits.rate;
  limits.rate = rate;
  return {
    [Symbol.dispose]: () => {
      limits.rate = usual;
    },
  };
}

test("429 comes after 401 and before all else, on every route, and never on the probes", async () => {
  const askerOf = (name: string): Asker => world.askers.find((asker) => asker.name === name) ?? assert.fail(name);
  const before = world.digest();
  using _ = limitedTo(0.5);
  const wrong: string[] = [];
  for (const row of ROWS) {
    const [target] = targetsOf(row, world.furniture);
    assert.ok(target !== undefined);
    for (const name of ["no credentials", "revoked account", "user readonly", "account admin of zone none"]) {
      const reply = await world.ask(row.method, target.path, askerOf(name), { noCsrf: true });
      const isOut = row.least !== "public" && askerOf(name).role === "nobody";
      const expected = isOut ? "401 not_authenticated" : "429 rate_limited";
      if (shown(reply) !== expected) wrong.push(`${row.method} ${row.path} as ${name}: ${shown(reply)}`);
      if (!isOut && !/^[1-9][0-9]*$/.test(String(reply.headers["retry-after"])))
        wrong.push(`${row.path}: no Retry-After`);
    }
  }
  assert.deepEqual(wrong, []);
  assert.equal((await world.api.ask("GET", "/nowhere", { as: null })).status, 429);
  for (const path of ["//healthz", "//readyz", "//metrics"]) {
    assert.equal((await world.api.ask("GET", path, { as: null })).status, 200, path);
  }
  assert.equal(world.digest(), before);
});

test("every other method at every path is 405 with the ones that are taken, and changes nothing", async () => {
  const before = world.digest();
  const admin = world.askers.find(({ name }) => name === "user admin") ?? assert.fail();
  const wrong: string[] = [];
  for (const path of new Set(ROWS.map((row) => row.path))) {
    const rows = ROWS.filter((row) => row.path === path);
    const [row] = rows;
    const [target] = row === undefined ? [] : targetsOf(row, world.furniture);
    assert.ok(target !== undefined);
    // /zones/import is no /zones/{id}: it takes its own methods only.
    const taken = new Set(rows.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method])));
    for (const method of ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"]) {
      if (taken.has(method)) continue;
      const { status, headers, body } = await world.ask(method, target.path, admin);
      if (
        status !== 405 ||
        headers.allow !== [...taken].sort().join(", ") ||
        (method !== "HEAD" && body?.code !== "method_not_allowed")
      )
        wrong.push(`${method} ${path}: ${status} ${headers.allow} ${body?.code}`);
    }
  }
  assert.deepEqual(wrong, []);
  assert.equal(world.digest(), before);
});
