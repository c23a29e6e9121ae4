/**
 * Walks the OpenAPI document of a running server and breaks every field of every body, every query parameter, every path
 * and every encoding, one at a time. Each has to be refused with its status, with a pointer to what is wrong, and without
 * having changed anything. What nobody thought of is for hostile.test.ts.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Route } from "../../src/api/route.ts";
import { ROLES } from "../../src/model/objects.ts";
import type { ApiReply, ApiRequest } from "../support/api.ts";
import { faultyBodies } from "./shapes.ts";
import { type Asker, startWorld, type World } from "./world.ts";

const IS_LONG = process.env.SIGNPOST_LONG !== undefined;

type Json = Readonly<Record<string, unknown>>;
type Parameter = { readonly name: string; readonly in: string; readonly schema: Json };
type Operation = {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly body: { readonly schema: Json; readonly example: unknown; readonly isRequired: boolean } | undefined;
  readonly media: readonly string[];
  /** Undefined where the operation takes no body. */
  readonly bodyBytesMax: number | undefined;
};

/** One request and what has to come of it. */
type Case = {
  readonly operation: Operation;
  readonly path: string;
  readonly request: ApiRequest;
  readonly what: string;
  readonly statuses: readonly number[];
  readonly pointer?: string;
  /** Of the refusal, where its status alone does not say it. */
  readonly code?: string;
  /** The part of the path that stands where an id should. */
  readonly part?: string;
};

async function operationsOf({ api }: World): Promise<readonly Operation[]> {
  const { paths } = (await api.ask("GET", "/openapi.json", { as: null })).body;
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(Object(operations)).map(([method, raw]) => {
      const { parameters, requestBody } = Object(raw);
      const content = requestBody?.content ?? {};
      const json = content["application/json"];
      return {
        method: method.toUpperCase(),
        path,
        parameters,
        media: Object.keys(content),
        bodyBytesMax: requestBody && Number(/At most (\d+) bytes/.exec(requestBody.description)?.[1]),
        body: json?.schema && { schema: json.schema, example: json.example, isRequired: requestBody.required },
      };
    }),
  );
}

/** The path with something that is there. */
function pathOf(
  { path }: Operation,
  { zones, records, user, account, override, mapping, key, check, forwarder, stub, node, conflict }: World["furniture"],
): string {
  const [, collection = ""] = path.split("/");
  const ids: Readonly<Record<string, string>> = {
    zones: zones[0],
    records: records[0],
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
  };
  return path.replace(/\{\w+\}/, () => encodeURIComponent(ids[collection] ?? assert.fail(path)));
}

const JSON_TYPE = { "content-type": "application/json" };

function bodyCases(operation: Operation, path: string): readonly Case[] {
  if (operation.body === undefined) return [];
  return faultyBodies(operation.body.schema, operation.body.example).map(({ text, pointer, what }) => ({
    operation,
    path,
    request: { body: text, headers: JSON_TYPE },
    what: `${pointer}: ${what}`,
    statuses: [400],
    pointer,
  }));
}

const DEEP = 70;
const NO_JSON: Readonly<Record<string, string | Uint8Array>> = {
  "an unfinished object": "{",
  "an unfinished word": "nul",
  "two values": "{}{}",
  "a byte order mark within": '{"a":\ufeff1}',
  "a NUL": "\u0000",
  "a hexadecimal number": '{"a":0x10}',
  NaN: '{"a":NaN}',
  "single quotes": "{'a':1}",
  "a comment": "{/**/}",
  "a trailing comma": '{"a":1,}',
  "a raw line break in a string": '{"a":"\n"}',
  "a member twice": '{"a":1,"a":2}',
  "a member twice, spelled differently": '{"a":1,"\\u0061":2}',
  "its prototype": '{"__proto__":{"role":"admin"}}',
  "its prototype, spelled": '{"\\u005f_proto__":{}}',
  "its prototype within": '{"a":[{"__proto__":1}]}',
  "too deep arrays": "[".repeat(DEEP) + "]".repeat(DEEP),
  "too deep objects": `${'{"a":'.repeat(DEEP)}1${"}".repeat(DEEP)}`,
  "fifty thousand brackets": "[".repeat(50_000),
  "bytes that are no UTF-8": Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
  "an overlong slash": Buffer.from([0x22, 0xc0, 0xaf, 0x22]),
  "a surrogate in UTF-8": Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
  "UTF-16": Buffer.from('{"name":"a"}', "utf16le"),
};

const WRONG_MEDIA = [
  "text/plain",
  "application/x-www-form-urlencoded",
  "application/jsonx",
  "application",
  "application/json; charset=utf-16",
  "application/json; charset=iso-8859-1",
  "text/html",
];

/** Encodings, media types and sizes, for the operations that take JSON. */
function encodingCases(operation: Operation, path: string): readonly Case[] {
  if (operation.method === "GET") return [];
  const common = { operation, path };
  const isJson = operation.body !== undefined;
  const cases: Case[] = [];
  for (const [what, body] of Object.entries(NO_JSON)) {
    if (operation.media.length > 1 && what !== "an unfinished object") continue;
    cases.push({ ...common, what, request: { body, headers: JSON_TYPE }, statuses: [400] });
  }
  if (!isJson) return cases;
  const text = JSON.stringify(operation.body?.example);
  for (const type of WRONG_MEDIA) {
    cases.push({ ...common, what: type, request: { body: text, headers: { "content-type": type } }, statuses: [415] });
  }
  const gzip = { ...JSON_TYPE, "content-encoding": "gzip" };
  cases.push({ ...common, what: "gzip", request: { body: text, headers: gzip }, statuses: [415] });
  cases.push({ ...common, what: "no media type", request: { body: text }, statuses: [415] });
  const large = JSON.stringify("x".repeat(operation.bodyBytesMax ?? 0));
  cases.push({ ...common, what: "too large", request: { body: large, headers: JSON_TYPE }, statuses: [413] });
  if (operation.body?.isRequired) {
    const pointer = "";
    cases.push({ ...common, what: "no body", request: {}, statuses: [400], pointer });
    cases.push({
      ...common,
      what: "an empty body",
      request: { body: "", headers: JSON_TYPE },
      statuses: [400],
      pointer,
    });
  }
  return cases;
}

function wrongTexts({ type, minimum, maximum, maxLength, minLength, enum: words }: Json): readonly string[] {
  if (type === "boolean") return ["", "1", "0", "TRUE", "yes", "true,true", "null", "%00"];
  if (type === "integer") {
    const bounds = [minimum, maximum].filter((bound) => typeof bound === "number");
    const beyond = bounds.map((bound) => String(bound === minimum ? bound - 1 : bound + 1));
    return ["", "1.5", "1e3", "%2B1", "NaN", "Infinity", "0x10", "01", "1n", "%201", "9".repeat(30), ...beyond];
  }
  if (Array.isArray(words)) return ["", "nonsense", inOtherCase(String(words[0])), `${words[0]}%00`];
  const texts = typeof maxLength === "number" && maxLength < 8_000 ? ["x".repeat(maxLength + 1)] : [];
  return Number(minLength ?? 0) > 0 ? ["", ...texts] : texts;
}

function inOtherCase(word: string): string {
  const upper = word.toUpperCase();
  return upper === word ? word.toLowerCase() : upper;
}

function queryCases(operation: Operation, path: string): readonly Case[] {
  const request: ApiRequest =
    operation.method === "GET" ? {} : { body: JSON.stringify(operation.body?.example ?? {}), headers: JSON_TYPE };
  const asked = (query: string, pointer: string): Case => {
    return { operation, path: `${path}?${query}`, request, what: query.slice(0, 200), statuses: [400], pointer };
  };
  // Where a provider sends the browser back to, it adds what it likes (RFC 6749 section 4.1.2).
  const ignoresUnknown = operation.path === "/auth/idp/callback";
  const unknown = (query: string, pointer: string) => (ignoresUnknown ? [] : [asked(query, pointer)]);
  const own = operation.parameters.filter((parameter) => parameter.in === "query");
  return [
    ...own.flatMap(({ name, schema }) => [
      ...wrongTexts(schema).map((text) => asked(`${name}=${text}`, `?${name}`)),
      ...["%", "%f", "%zz", "%ff", "%c0%af", "%ED%A0%80"].map((text) => asked(`${name}=${text}`, `?${name}`)),
      asked(`${name}=1&${name}=1`, `?${name}`),
      ...unknown(`${name}%5B%5D=1`, `?${name}[]`),
    ]),
    ...["nonsense", "__proto__", "constructor", "toString"].flatMap((name) => unknown(`${name}=1`, `?${name}`)),
    ...unknown("%00=1", "?\u0000"),
    asked(`x=${"y".repeat(9_000)}`, "?"),
    asked(Array.from({ length: 40 }, (_, index) => `k${index}=1`).join("&"), "?"),
  ];
}

/** A body that is too large is not looked at. */
function ofItsSize(each: Case): Case {
  const { operation, path, request, what } = each;
  const bytes = request.body === undefined ? 0 : Buffer.byteLength(request.body);
  const isTooLarge = operation.bodyBytesMax !== undefined && bytes > operation.bodyBytesMax;
  return isTooLarge ? { operation, path, request, what, statuses: [413] } : each;
}

const WRONG_PARTS = [
  ...["%", "%f", "%zz", "%ff", "%c0%af", "%ED%A0%80", "%00", "..%2f..%2f", "a%2Fb", "%25", "%E2%98%83", "%0d%0aX:y"],
  ...["x".repeat(500), "x".repeat(4_000), "-", "null", "undefined", "__proto__", "constructor", "*", "%20", "zon_"],
  ...["zon_aaaaaaaaaaaaaaaaaaaa", "0", "-1", "NaN", "..;", "%F0%9F%98%80", "a,b", "a;b=c"],
];

function pathCases(operation: Operation): readonly Case[] {
  if (!operation.path.includes("{")) return [];
  const request: ApiRequest =
    operation.method === "GET" ? {} : { body: JSON.stringify(operation.body?.example ?? {}), headers: JSON_TYPE };
  return WRONG_PARTS.map((part) => ({
    operation,
    path: operation.path.replace(/\{\w+\}/, part),
    request,
    what: `the path part ${part.slice(0, 100)}`,
    part,
    statuses: [400, 404],
  }));
}

const CODES: Readonly<Record<number, string>> = {
  400: "invalid_request",
  401: "not_authenticated",
  403: "zone_not_permitted",
  404: "not_found",
  413: "body_too_large",
  415: "media_type_unsupported",
};

function faultOf(
  { statuses, pointer, code: wanted }: Case,
  { status, headers, body, text }: ApiReply,
): string | undefined {
  if (!statuses.includes(status)) return `${status} ${text.slice(0, 400)}`;
  if (!String(headers["content-type"]).startsWith("application/problem+json")) return `no problem document: ${text}`;
  const { code, title, detail, type, errors } = body;
  if (code !== (wanted ?? CODES[status]) || body.status !== status || type !== `urn:svc:problem:${code}`) return text;
  if (![title, detail].every((part) => typeof part === "string" && part !== "")) return `without words: ${text}`;
  if (/node_modules|\.ts\b|at Object|\n {4}at /.test(`${detail}`)) return `tells too much: ${text}`;
  const pointers: readonly unknown[] = errors.map((error: Json) => error.pointer);
  // A name that cannot be read back is shortened or replaced; all others are told as they were sent.
  if (pointer !== undefined && !pointers.includes(pointer))
    return `points to ${JSON.stringify(pointers)}: ${text.slice(0, 300)}`;
  return undefined;
}

async function runCases(world: World, asker: Asker, cases: readonly Case[]): Promise<readonly string[]> {
  const faults: string[] = [];
  const queue = cases.values();
  const worker = async () => {
    for (const each of queue) {
      const what = `${each.operation.method} ${each.path.slice(0, 120)} ${each.what}`;
      try {
        const fault = faultOf(each, await world.ask(each.operation.method, each.path, asker, each.request));
        if (fault !== undefined) faults.push(`${what}: ${fault}`);
      } catch (error) {
        faults.push(`${what}: ${error}`);
      }
    }
  };
  await Promise.all(Array.from({ length: 6 }, worker));
  return faults;
}

const PATH_PART_MAX = 512;

/** Whether the path leads to its route at all: what cannot be read is refused before anybody is asked who he is. */
function isReadable({ part = "" }: Case): boolean {
  try {
    return decodeURIComponent(part).length <= PATH_PART_MAX;
  } catch {
    return false;
  }
}

/** What this caller is refused for before anybody looks at the request, in the order of the refusals. */
function refusalAtTheDoor(
  { role, zones }: Asker,
  row: Route,
  { part }: Case,
): Pick<Case, "statuses" | "code"> | undefined {
  if (row.access === "public") return undefined;
  if (role === "nobody") return { statuses: [401] };
  if (ROLES.indexOf(role) < ROLES.indexOf(row.access)) return { statuses: [403], code: "role_insufficient" };
  if (zones === undefined || row.method === "GET") return undefined;
  if (row.confinedTo === undefined) return { statuses: [403] };
  // An id of no zone is none of the token's zones; one of no record touches none.
  return part === undefined ? undefined : { statuses: [403, 404] };
}

/** The case as this caller meets it: who may not come in hears that first, and nothing of what else is wrong. */
function asMetBy(asker: Asker, row: Route | undefined, each: Case, leavesOutCsrf: boolean): Case {
  const { operation, path, request, what } = each;
  const met = leavesOutCsrf ? { ...each, request: { ...request, noCsrf: true } as const } : each;
  if (row === undefined || !isReadable(each)) return met;
  const needsCsrf = row.method !== "GET" || row.sensitive === true;
  const csrf = leavesOutCsrf && needsCsrf ? { statuses: [403], code: "csrf_header_missing" } : undefined;
  const refusal = refusalAtTheDoor(asker, row, each) ?? csrf;
  return refusal === undefined ? met : { operation, path, request: met.request, what, ...refusal };
}

test("every field, parameter, path and encoding that is wrong is refused by name, and nothing changes", async (context) => {
  await using world = await startWorld();
  const admin = world.askers.find(({ name }) => name === "user admin") ?? assert.fail();
  const operations = await operationsOf(world);
  assert.ok(operations.length > 70, `${operations.length} operations`);
  const before = world.digest();
  for (const [name, casesOf] of Object.entries({ bodyCases, encodingCases, queryCases, pathCases })) {
    await context.test(name, async () => {
      const cases = operations
        .flatMap((operation) => casesOf(operation, pathOf(operation, world.furniture)))
        .map(ofItsSize);
      context.diagnostic(`${name}: ${cases.length}`);
      assert.ok(cases.length > 500, `${cases.length}`);
      const faults = await runCases(world, admin, cases);
      assert.deepEqual(faults.slice(0, 40), [], `${faults.length} of ${cases.length}`);
      assert.equal(world.changes(), 0);
      assert.equal(world.digest(), before);
    });
  }
  assert.deepEqual(world.faultsLogged, []);
});

/**
 * The first test asks everything as an admin. These share the cases of each operation in turn, so that each of them meets
 * every operation in every way; SIGNPOST_LONG=1 gives all cases to all of them.
 */
const OTHER_ASKERS = [
  { name: "no credentials", leavesOutCsrf: false },
  { name: "user readonly", leavesOutCsrf: false },
  { name: "user editor", leavesOutCsrf: false },
  { name: "user editor", leavesOutCsrf: true },
  { name: "account editor of zone mine", leavesOutCsrf: false },
];

test("who may not come in is refused for that first, and who may for what is wrong", async (context) => {
  await using world = await startWorld();
  const operations = await operationsOf(world);
  const rows = new Map(world.routes.map((row) => [`${row.method} ${row.path.replace(/:(\w+)/g, "{$1}")}`, row]));
  const missing = operations.filter(({ method, path }) => !rows.has(`${method} ${path}`)).map(({ path }) => path);
  assert.deepEqual(missing, ["/openapi.json"]);
  const all = operations.flatMap((operation) =>
    [bodyCases, encodingCases, queryCases, pathCases].flatMap((casesOf) =>
      casesOf(operation, pathOf(operation, world.furniture)).map(ofItsSize),
    ),
  );
  const before = world.digest();
  for (const [turn, { name, leavesOutCsrf }] of OTHER_ASKERS.entries()) {
    const title = leavesOutCsrf ? `${name} without the CSRF header` : name;
    await context.test(title, async () => {
      const asker = world.askers.find((each) => each.name === name) ?? assert.fail();
      const rowOf = ({ operation: { method, path } }: Case) => rows.get(`${method} ${path}`);
      const own = all.filter((_, index) => IS_LONG || index % OTHER_ASKERS.length === turn);
      const cases = own.map((each) => asMetBy(asker, rowOf(each), each, leavesOutCsrf));
      const early = cases.filter(({ statuses }) => statuses.some((status) => status === 401 || status === 403));
      context.diagnostic(`${title}: ${early.length} of ${cases.length} for who asks`);
      assert.ok(early.length > 50 && early.length < cases.length, `${early.length} of ${cases.length}`);
      const faults = await runCases(world, asker, cases);
      assert.deepEqual(faults.slice(0, 40), [], `${faults.length} of ${cases.length}`);
      assert.equal(world.changes(), 0);
      assert.equal(world.digest(), before);
    });
  }
  assert.deepEqual(world.faultsLogged, []);
});
