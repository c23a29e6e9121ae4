/**
 * Walks the OpenAPI document and sends each operation requests that nobody should send: wrong types, sizes, encodings,
 * roles, tokens, headers and ids. Whatever comes, the answer is a success or a problem document, never a 500, never a
 * dropped connection, and a refusal changes nothing. `SEED` repeats a run, `HOSTILE_REQUESTS` is how many each operation
 * gets.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { PROBLEMS } from "../../src/api/problem.ts";
import type { ApiReply, ApiRequest } from "../support/api.ts";
import { type Chance, seededChance } from "../support/chance.ts";
import { type Asker, type Furniture, furnish, startWorld, type World } from "./world.ts";

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
const requestsEach = Number(process.env.HOSTILE_REQUESTS ?? 80);

type Parameter = { readonly name: string; readonly in: string; readonly example?: unknown };
type Operation = {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly media: readonly string[];
  readonly example: unknown;
};

const TEXTS = [
  "",
  " ",
  "\u0000",
  "a\nb",
  "\ud800",
  "e\u0301".repeat(300),
  "\u202egnp.exe",
  "\u{1f600}".repeat(70),
  "xn--\u00fc.example.",
  "..",
  "../../../etc/passwd",
  "__proto__",
  "constructor",
  "*",
  "@",
  "a..b",
  "fe80::1%eth0",
  "1.2.3.256",
  "' OR 1=1 --",
  "$(id)",
  "***",
  "null",
  "-0",
  "9".repeat(400),
  "x".repeat(70_000),
  `${"a.".repeat(200)}`,
  "2026-02-30T25:61:61Z",
  "https://user:pass@[::1]:99999/#",
];
const VALUES: readonly unknown[] = [
  ...TEXTS,
  ...[null, true, false, 0, -0, -1, 1, 0.5, 1e308, -1e308, 2 ** 31, 2 ** 32, 2 ** 53, Number.MIN_VALUE],
  ...[[], {}, [[]], [null], { a: 1 }, [{}], { "": "" }, { constructor: { prototype: 1 } }, Array(5_000).fill(0)],
  Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`k${index}`, index])),
];
/** What JSON.stringify cannot write. */
const RAW_BODIES = [
  "",
  "{",
  "nul",
  '{"a":1e999}',
  '{"a":1,"a":2}',
  '{"__proto__":{"role":"admin"}}',
  '{"name":"\\ud800"}',
  "[".repeat(50_000),
  `{"a":${"[".repeat(63)}${"]".repeat(63)}}`,
  "\ufeff{}",
  "{}{}",
  "\u0000",
  "0x10",
  "<xml/>",
  "a=b&c=d",
  "zone,name,type\n,,\n",
  '--x\r\nContent-Disposition: form-data; name="../../f"; filename="\u0000"\r\n\r\n\r\n--x--',
  "$INCLUDE /etc/passwd\n$ORIGIN .\n@ IN SOA",
  `"${"a".repeat(1_200_000)}"`,
];
const PATH_PARTS = [
  "unknown",
  "%00",
  "%ff",
  "%ED%A0%80",
  "..%2f..%2f",
  "a%2Fb",
  "%25",
  "%E2%98%83",
  "x".repeat(500),
  "-",
  "null",
  "%20",
  "zon_",
  "*",
];
const MEDIA = [
  "application/json",
  "text/csv",
  "text/dns",
  "multipart/form-data; boundary=x",
  "multipart/form-data",
  "text/plain",
  "",
  ";",
  "a/b/c",
  "application/json; charset=utf-16",
  `application/json; x=${"y".repeat(2_000)}`,
];
/** Credentials that open nothing. */
const TOKENS = [
  "Bearer svcsat_x",
  "Bearer svcsat_node_\u00ff",
  "Bearer a.b.c",
  "Bearer eyJhbGciOiJub25lIn0.e30.",
  `Bearer ${"x".repeat(5_000)}`,
  "Bearer",
  "Basic YTpi",
];
const HEADERS: readonly (readonly [string, string])[] = [
  ["if-match", '"x"'],
  ["if-match", "*"],
  ["if-match", `"${"x".repeat(4_000)}"`],
  ["x-request-id", "a\tb"],
  ["x-forwarded-for", "nonsense, 1.2.3.4"],
  ["cookie", "svc_session=a.b.c; svc_session=; =;;"],
  ["accept-encoding", "gzip;q=x"],
  ["content-encoding", "gzip"],
  ["range", "bytes=0-0,1-,-1"],
  ["origin", "null"],
  ["x-http-method-override", "DELETE"],
];

function operationsOf(document: { readonly paths: Record<string, Record<string, unknown>> }): readonly Operation[] {
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, raw]) => {
      const operation = raw as {
        parameters: Parameter[];
        requestBody?: { content: Record<string, { example?: unknown }> };
      };
      const content = operation.requestBody?.content ?? {};
      const example = content["application/json"]?.example;
      return {
        method: method.toUpperCase(),
        path,
        parameters: operation.parameters,
        media: Object.keys(content),
        example,
      };
    }),
  );
}

/** A copy of `value` with one place in it changed. */
function mutated(chance: Chance, value: unknown): unknown {
  const isContainer = typeof value === "object" && value !== null;
  if (!isContainer || chance.below(5) === 0) return chance.pick(VALUES);
  const entries = Object.entries(value);
  const at = chance.below(entries.length + 1);
  const entry = entries[at];
  if (entry === undefined) entries.push([chance.pick(TEXTS), chance.pick(VALUES)]);
  else if (chance.below(6) === 0) entries.splice(at, 1);
  else entries[at] = [entry[0], mutated(chance, entry[1])];
  return Array.isArray(value) ? entries.map(([, each]) => each) : Object.fromEntries(entries);
}

function targetOf(chance: Chance, { path, parameters }: Operation, ids: readonly string[]): string {
  const target = path.replace(/\{\w+\}/g, () => (chance.below(2) === 0 ? chance.pick(ids) : chance.pick(PATH_PARTS)));
  const names = parameters.filter(({ in: place }) => place === "query").map(({ name }) => name);
  const pairs = Array.from({ length: chance.below(4) }, () => {
    const name: string =
      names.length > 0 && chance.below(3) > 0
        ? chance.pick(names)
        : chance.pick(["x", "%ff", "limit", "__proto__", "dry_run"]);
    return `${name}=${chance.pick(["true", "1", "0", "-1", "", "%ff", "%00", "99999999999999999999", "a".repeat(3_000), "AAAA", "2026-01-01", "%F0%9F%98%80"])}`;
  });
  return pairs.length === 0 ? target : `${target}?${pairs.join("&")}`;
}

function requestOf(chance: Chance, operation: Operation): ApiRequest {
  const type = operation.media.length > 0 && chance.below(4) > 0 ? chance.pick(operation.media) : chance.pick(MEDIA);
  const headers: Record<string, string> = type === "" ? {} : { "content-type": type };
  for (let count = chance.below(3); count > 0; count--) {
    const [name, value] = chance.pick(HEADERS);
    headers[name] = value;
  }
  if (chance.below(12) === 0) headers.authorization = chance.pick(TOKENS);
  const isJson = operation.example !== undefined && chance.below(4) > 0;
  let json = operation.example;
  for (let count = 1 + chance.below(3); count > 0; count--) json = mutated(chance, json);
  const body = isJson ? JSON.stringify(json) : chance.pick(RAW_BODIES);
  const hasBody = operation.method !== "GET" && chance.below(8) > 0;
  return {
    headers,
    ...(hasBody ? { body } : {}),
    ...(chance.below(8) === 0 ? { noCsrf: true as const } : {}),
    // undici keeps what it had still to send of a body that was refused, until its connection is full of it.
    ...(body.length < 50_000 && chance.below(4) === 0 ? { http2: true as const } : {}),
  };
}

function idsOf({ zones, records, node, conflict, key, ...others }: Furniture): readonly string[] {
  const { user, account, override, mapping } = others;
  return [...zones, ...records, user, account, override, mapping, node, conflict, encodeURIComponent(key)];
}

function codesOf(status: number): readonly string[] {
  return Object.entries(PROBLEMS).flatMap(([code, [of]]) => (of === status ? [code] : []));
}

function faultOf({ status, headers, body, text }: ApiReply): string | undefined {
  if (status < 400) return undefined;
  if (status >= 500 && status !== 502 && status !== 503) return `${status} ${text}`;
  const isProblem = /^application\/problem\+json/.test(String(headers["content-type"]));
  if (!isProblem || body.status !== status || !codesOf(status).includes(body.code))
    return `no problem document: ${status} ${text}`;
  if (!Array.isArray(body.errors) || /node_modules|\.ts:|at Object|\n {4}at /.test(text))
    return `tells too much: ${text}`;
  if (
    status === 400 &&
    !/percent|request line|JSON|UTF-8|nested|body|twice|__proto__/.test(body.detail) &&
    body.errors.length === 0
  ) {
    return `names no field: ${text}`;
  }
  return undefined;
}

/** One after the other, so that what changes is known to come from the request that is under way. */
async function walk(
  world: World,
  chance: Chance,
  operation: Operation,
  ids: readonly string[],
  seen: Seen,
): Promise<void> {
  const admins = world.askers.filter(({ role, zones }) => role === "admin" && zones === undefined);
  for (let count = 0; count < requestsEach && seen.faults.length < 20; count++) {
    const target = targetOf(chance, operation, ids);
    const request = requestOf(chance, operation);
    // Half of them as one who may do everything: a walk that is refused at the door learns nothing.
    const asker: Asker = chance.below(2) === 0 ? chance.pick(admins) : chance.pick(world.askers);
    const what = `${operation.method} ${target.slice(0, 200)} as ${asker.name} ${JSON.stringify(request).slice(0, 600)}`;
    const before = world.changes();
    try {
      const reply = await world.ask(operation.method, target, asker, request);
      seen.statuses.set(reply.status, (seen.statuses.get(reply.status) ?? 0) + 1);
      const isDry = /[?&]dry_run=true(&|$)/.test(target);
      const hasChanged = world.changes() !== before;
      const changed = hasChanged && (reply.status >= 400 || isDry) ? `${reply.status} changed something` : undefined;
      const unasked = hasChanged && operation.method === "GET" ? "a GET changed something" : undefined;
      const stolen = hasChanged && !mayChange(operation, asker) ? "changed what it may not" : undefined;
      const fault = faultOf(reply) ?? changed ?? unasked ?? stolen;
      if (fault !== undefined) seen.faults.push(`${what}: ${fault.slice(0, 600)}`);
    } catch (error) {
      seen.faults.push(`${what}: ${error}`);
    }
  }
}

/** Whether there is anything at all that the one who asks may change; public routes are for everybody. */
function mayChange({ path }: Operation, { role, zones }: Asker): boolean {
  if (/^\/auth\/(login|logout|refresh)$/.test(path)) return true;
  return (role === "editor" || role === "admin") && (zones === undefined || zones === "mine");
}

type Seen = { readonly faults: string[]; readonly statuses: Map<number, number> };

test(`hostile requests to every operation (SEED=${seed})`, async () => {
  await using world = await startWorld();
  const chance = seededChance(seed);
  const operations = operationsOf((await world.api.ask("GET", "/openapi.json", { as: null })).body);
  assert.ok(operations.length > 60, `${operations.length} operations`);
  const seen: Seen = { faults: [], statuses: new Map() };
  const isSigningIn = ({ path }: Operation) => path.startsWith("/auth/l") || path === "/auth/refresh";
  for (const [index, operation] of operations.entries()) {
    const own = `-${index}`;
    const furniture = isSigningIn(operation) ? undefined : await furnish(world.make, own).catch(() => undefined);
    await walk(world, chance, operation, idsOf({ ...world.furniture, ...furniture }), seen);
  }
  const statuses = [...seen.statuses].sort(([one], [other]) => one - other);
  assert.deepEqual(seen.faults, [], `SEED=${seed} ${statuses}`);
  assert.deepEqual(world.faultsLogged, []);
  for (const status of [200, 400, 401, 403, 404, 415])
    assert.ok((seen.statuses.get(status) ?? 0) > 0, `no ${status}: ${statuses}`);
});
