/**
 * Walks the OpenAPI document and sends each operation requests that nobody should send: wrong types, sizes, encodings,
 * roles, tokens, headers and ids. Whatever comes, the answer is a success or a problem document, never a 500, never a
 * dropped connection, and a refusal changes nothing. `SEED` repeats a run, `HOSTILE_REQUESTS` is how many each operation
 * gets.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { ApiReply, ApiRequest } from "../support/api.ts";
import { type Chance, seededChance } from "../support/chance.ts";
import { startWholeApi, type WholeApi } from "../support/whole-api.ts";

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
const requestsEach = Number(process.env.HOSTILE_REQUESTS ?? 40);

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
const TOKENS = [
  null,
  "nobody",
  "readonly",
  "editor",
  "admin",
  "admin",
  "admin",
  "svcsat_x",
  "svcsat_node_\u00ff",
  "a.b.c",
  "eyJhbGciOiJub25lIn0.e30.",
  "x".repeat(5_000),
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
    const name =
      names.length > 0 && chance.below(3) > 0
        ? chance.pick(names)
        : chance.pick(["x", "%ff", "limit", "__proto__", "dry_run"]);
    return `${name}=${chance.pick(["true", "1", "0", "-1", "", "%ff", "%00", "99999999999999999999", "a".repeat(3_000), "AAAA", "2026-01-01", "%F0%9F%98%80"])}`;
  });
  return pairs.length === 0 ? target : `${target}?${pairs.join("&")}`;
}

function requestOf(chance: Chance, operation: Operation): ApiRequest {
  const as = chance.pick(TOKENS);
  const type = operation.media.length > 0 && chance.below(4) > 0 ? chance.pick(operation.media) : chance.pick(MEDIA);
  const headers: Record<string, string> = type === "" ? {} : { "content-type": type };
  for (let count = chance.below(3); count > 0; count--) {
    const [name, value] = chance.pick(HEADERS);
    headers[name] = value;
  }
  const isJson = operation.example !== undefined && chance.below(4) > 0;
  let json = operation.example;
  for (let count = 1 + chance.below(3); count > 0; count--) json = mutated(chance, json);
  const body = isJson ? JSON.stringify(json) : chance.pick(RAW_BODIES);
  const hasBody = operation.method !== "GET" && chance.below(8) > 0;
  return {
    as,
    headers,
    ...(hasBody ? { body } : {}),
    ...(chance.below(8) === 0 ? { noCsrf: true as const } : {}),
    // undici keeps what it had still to send of a body that was refused, until its connection is full of it.
    ...(body.length < 50_000 && chance.below(4) === 0 ? { http2: true as const } : {}),
  };
}

/** Something of each kind, so that ids lead somewhere. */
async function furnish(api: WholeApi): Promise<readonly string[]> {
  const made = async (path: string, json: object) => {
    const { status, body, text } = await api.ask("POST", path, { json });
    assert.equal(status, 200, text);
    return body.id as string;
  };
  const zone = await made("/zones", { name: "hostile.example." });
  return [
    zone,
    await made(`/zones/${zone}/records`, { name: "www", type: "A", values: [{ value: "192.0.2.1" }] }),
    await made(`/zones/${zone}/records`, { name: "kept", type: "TXT", values: [{ value: "x" }], protected: true }),
    await made("/overrides", { name: "www.other.example.", type: "A", values: [{ value: "192.0.2.1" }] }),
    await made("/users", { username: "victim", password: "a long enough password", role: "editor" }),
    await made("/service-accounts", { name: "robot", role: "editor" }),
    await made("/subnet-mappings", { subnet: "10.0.0.0/8", region_id: "eu" }),
    (await made("/tsig-keys", { name: "key." })) && "key.",
  ];
}

function faultOf({ status, headers, body, text }: ApiReply): string | undefined {
  if (status < 400) return undefined;
  if (status >= 500 && status !== 502 && status !== 503) return `${status} ${text}`;
  const isProblem = /^application\/problem\+json/.test(String(headers["content-type"]));
  if (!isProblem || body.status !== status || typeof body.code !== "string")
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

test(`hostile requests to every operation (SEED=${seed})`, async () => {
  const logged: string[] = [];
  await using api = await startWholeApi({ log: (level, message) => level === "error" && logged.push(message) });
  const chance = seededChance(seed);
  const operations = operationsOf((await api.ask("GET", "/openapi.json", { as: null })).body);
  assert.ok(operations.length > 60, `${operations.length} operations`);
  let changes = 0;
  api.store.onChange((batch) => {
    changes += batch.changes.length;
  });
  const faults: string[] = [];
  const statuses = new Map<number, number>();
  for (const operation of operations) {
    const ids = await furnish(api).catch(() => ["unknown"]);
    for (let count = 0; count < requestsEach && faults.length < 20; count++) {
      const target = targetOf(chance, operation, ids);
      const request = requestOf(chance, operation);
      const what = `${operation.method} ${target.slice(0, 200)} ${JSON.stringify(request).slice(0, 600)}`;
      const before = changes;
      try {
        const reply = await api.ask(operation.method, target, request);
        statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
        const fault =
          faultOf(reply) ??
          (reply.status >= 400 && changes !== before ? `${reply.status} changed something` : undefined);
        if (fault !== undefined) faults.push(`${what}: ${fault.slice(0, 600)}`);
      } catch (error) {
        faults.push(`${what}: ${error}`);
      }
    }
  }
  assert.deepEqual(faults, [], `SEED=${seed} ${[...statuses]}`);
  assert.deepEqual(logged, []);
  // A walk that is refused at the door learns nothing: successes and refusals of fields have to be among the answers.
  for (const status of [200, 400, 401, 403, 404, 415])
    assert.ok((statuses.get(status) ?? 0) > 0, `no ${status}: ${[...statuses]}`);
});
