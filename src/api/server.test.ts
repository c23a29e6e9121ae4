import assert from "node:assert/strict";
import { Readable } from "node:stream";
import test from "node:test";
import Type from "typebox";
import { startApi } from "../../tests/support/api.ts";
import { cidrFromText } from "../base/ip.ts";
import type { LogFields } from "../base/log.ts";
import type { Caller, CommandContext } from "../commands/run.ts";
import { Refusal } from "../model/refusal.ts";
import { type Reply, type Route, route } from "./route.ts";

const streamed = {
  headers: { "content-type": "application/json; charset=utf-8" },
  get body() {
    return Readable.from(['{"items":[1,2', ',3],"next_cursor":null}'].map((piece) => Buffer.from(piece)));
  },
};

const Thing = Type.Object(
  { name: Type.String({ maxLength: 10 }), count: Type.Optional(Type.Integer()) },
  { additionalProperties: false },
);
const Params = Type.Object({ id: Type.String({ maxLength: 40 }) });

const base = { tag: "things", summary: "Do", response: Type.Unknown() };

function answer({
  caller,
  ...input
}: {
  readonly caller: Caller;
  readonly body?: unknown;
  readonly query?: unknown;
}): Reply {
  return { body: { dryRun: caller.dryRun, address: caller.address, query: input.query, body: input.body } };
}

/** Rows whose bodies or answers are other than JSON objects. */
function oddRoutes(): readonly Route[] {
  return [
    route({ ...base, method: "POST", path: "/optional", access: "editor", body: Type.Optional(Thing), handle: answer }),
    route({
      ...base,
      method: "POST",
      path: "/raw",
      access: "editor",
      rawBody: ["text/dns"],
      bodyLimitBytes: 100,
      handle: ({ body }) => ({ body: { bytes: Buffer.isBuffer(body) ? body.length : -1 } }),
    }),
    route({
      ...base,
      method: "GET",
      path: "/broken",
      access: "readonly",
      handle: () => {
        throw new Error("the cellar is on fire");
      },
    }),
    route({ ...base, method: "GET", path: "/stream", access: "readonly", handle: () => streamed }),
    route({
      ...base,
      method: "GET",
      path: "/endless",
      access: "readonly",
      handle: () => ({ headers: { "content-type": "text/plain" }, body: endless() }),
    }),
    route({
      ...base,
      method: "POST",
      path: "/elsewhere",
      access: "public",
      handle: () => ({ status: 303, headers: { location: "/x", "set-cookie": ["a=1", "b=2"] }, body: undefined }),
    }),
  ];
}

/** Every kind of row there is. */
function sampleRoutes(): readonly Route[] {
  const find = ({ id }: { readonly id: string }) => {
    if (id !== "known") throw new Refusal("not_found", "there is no such thing");
  };
  const Query = Type.Object({
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 9 })),
    all: Type.Optional(Type.Boolean()),
    q: Type.Optional(Type.String({ maxLength: 5 })),
  });
  return [
    route({ ...base, method: "GET", path: "/things", access: "readonly", query: Query, handle: answer }),
    route({ ...base, method: "POST", path: "/things", access: "editor", body: Thing, handle: answer }),
    route({ ...base, method: "GET", path: "/things/:id", access: "readonly", params: Params, find, handle: answer }),
    route({
      ...base,
      method: "PUT",
      path: "/things/:id",
      access: "editor",
      params: Params,
      find,
      body: Thing,
      handle: answer,
    }),
    route({ ...base, method: "DELETE", path: "/things/:id", access: "admin", params: Params, find, handle: answer }),
    route({ ...base, method: "GET", path: "/secret", access: "readonly", sensitive: true, handle: answer }),
    route({
      ...base,
      method: "POST",
      path: "/login",
      access: "public",
      rateClass: "auth",
      body: Type.Object({ username: Type.String() }),
      handle: answer,
    }),
    ...oddRoutes(),
  ];
}

const endless = () =>
  Readable.from(
    (function* () {
      for (;;) yield "x".repeat(65_536);
    })(),
  );

for (const http2 of [false, true]) {
  test(`the refusals come in their order over HTTP/${http2 ? 2 : 1.1}`, async () => {
    await using api = await startApi(() => sampleRoutes(), {
      rateLimit: (rateClass) => (rateClass === "write" ? 6 : 1000),
    });
    const put = (id: string, options: object) =>
      api.ask("PUT", `/things/${id}`, { ...options, ...(http2 ? { http2: true as const } : {}) });
    const bad = { as: "nobody", noCsrf: true, body: "{", headers: { "content-type": "text/plain" } } as const;
    const codes = [
      await put("unknown", bad),
      await put("unknown", { ...bad, as: null }),
      await put("unknown", { ...bad, as: "readonly" }),
      await put("unknown", { ...bad, as: "editor" }),
      await put("unknown", { ...bad, as: "editor", noCsrf: undefined }),
      await put("known", { ...bad, as: "editor", noCsrf: undefined }),
      await put("known", { as: "editor", json: { name: 1 } }),
      await put("known", { as: "editor", json: { name: "a" } }),
      await put("unknown", { ...bad, as: "readonly" }),
      await put("unknown", bad),
    ];
    assert.deepEqual(
      codes.map(({ status, body }) => `${status} ${body.code ?? ""}`.trim()),
      [
        "401 not_authenticated",
        "401 not_authenticated",
        "403 role_insufficient",
        "403 csrf_header_missing",
        "404 not_found",
        "415 media_type_unsupported",
        "400 invalid_request",
        "200",
        "429 rate_limited",
        "401 not_authenticated",
      ],
    );
    const limited = codes[8]!;
    assert.match(String(limited.headers["retry-after"]), /^[1-9][0-9]*$/);
    assert.equal(codes[0]!.headers["www-authenticate"], 'Bearer realm="svc"');
  });
}

test("a problem document names code, status, fields and the request's id", async () => {
  await using api = await startApi(() => sampleRoutes());
  const { status, headers, body } = await api.ask("POST", "/things", {
    json: { count: "1", other: 2 },
    headers: { "x-request-id": "abc-1" },
  });
  assert.equal(status, 400);
  assert.match(String(headers["content-type"]), /^application\/problem\+json/);
  assert.equal(headers["x-request-id"], "abc-1");
  assert.deepEqual(body, {
    type: "urn:svc:problem:invalid_request",
    title: "The request is not valid",
    status: 400,
    detail: "/name is missing",
    code: "invalid_request",
    errors: [
      { pointer: "/name", detail: "is missing" },
      { pointer: "/count", detail: "must be an integer, not a string" },
      { pointer: "/other", detail: "is not a field of this object" },
    ],
  });
  const hostile = await api.ask("GET", "/things", { headers: { "x-request-id": "a b\tc" } });
  assert.match(String(hostile.headers["x-request-id"]), /^[A-Za-z0-9_-]{16}$/);
});

test("what is no JSON, no UTF-8, too deep, repeated or too large is refused and named", async () => {
  await using api = await startApi(() => sampleRoutes());
  const post = async (body: string | Uint8Array, type = "application/json") => {
    const reply = await api.ask("POST", "/things", { body, headers: { "content-type": type } });
    return `${reply.status} ${reply.body.detail}`;
  };
  assert.match(await post('{"name":'), /^400 the text is not valid JSON/);
  assert.match(await post(Buffer.from([0x22, 0xff, 0x22])), /^400 the text is not valid UTF-8/);
  assert.match(await post('{"name":"a","name":"b"}'), /^400 the member "name" is there twice/);
  assert.match(await post('{"name":"a","__proto__":{"count":1}}'), /^400 a member must not be named __proto__/);
  assert.match(await post(`${"[".repeat(100_000)}`), /^400 the text is nested deeper/);
  assert.match(await post("[]"), /^400 the body must be an object, not an array/);
  assert.match(await post(""), /^400 a body is needed/);
  assert.match(await post(`{"name":"${"x".repeat(2 ** 20)}"}`), /^413 the body must not have more than 1048576 bytes/);
  assert.match(await post("{}", "application/json; charset=latin1"), /^415 the only charset is utf-8/);
  assert.match(await post("{}", "nonsense"), /^415/);
  assert.match(await post('{"name":"a"}', 'Application/JSON; charset="UTF-8"'), /^200/);
  const squeezed = await api.ask("POST", "/things", {
    body: "{}",
    headers: { "content-type": "application/json", "content-encoding": "gzip" },
  });
  assert.equal(squeezed.status, 415);
});

test("a chunked body is bounded without a declared length", async () => {
  await using api = await startApi(() => sampleRoutes());
  const type = { "content-type": "text/dns" };
  const fits = await api.ask("POST", "/raw", { body: "x".repeat(100), headers: type });
  assert.deepEqual(fits.body, { bytes: 100 });
  const over = await api.ask("POST", "/raw", {
    body: Readable.from(["x".repeat(60), "x".repeat(60)]) as unknown as string,
    headers: type,
  });
  assert.equal(over.status, 413);
  assert.equal((await api.ask("POST", "/raw", { json: {} })).status, 415);
});

test("a body may be left out where the route says so, and must be where it takes none", async () => {
  await using api = await startApi(() => sampleRoutes());
  assert.equal((await api.ask("POST", "/optional")).status, 200);
  assert.equal((await api.ask("POST", "/optional", { json: { name: 3 } })).status, 400);
  assert.equal((await api.ask("DELETE", "/things/known")).status, 200);
  assert.equal((await api.ask("DELETE", "/things/known", { json: {} })).status, 200);
  assert.equal((await api.ask("DELETE", "/things/known", { json: { force: true } })).status, 400);
});

test("query parameters are strict, and dry_run belongs to every route that changes something", async () => {
  await using api = await startApi(() => sampleRoutes());
  const faults = async (query: string) => {
    const { status, body } = await api.ask("GET", `/things?${query}`);
    return status === 200
      ? body.query
      : body.errors.map(({ pointer, detail }: { pointer: string; detail: string }) => `${pointer} ${detail}`)[0];
  };
  assert.deepEqual(await faults("limit=9&all=true&q=a%20b"), { limit: 9, all: true, q: "a b" });
  assert.equal(await faults("limit=10"), "?limit must be from 1 to 9");
  for (const text of ["1.0", "01", "0x1", "", "1e0", "%31x"])
    assert.match(await faults(`limit=${text}`), /^\?limit must be an integer/);
  assert.match(await faults("all=yes"), /^\?all must be true or false/);
  assert.match(await faults("limits=1"), /the nearest is limit$/);
  assert.match(await faults("q=a&q=b"), /^\?q is there more than once/);
  assert.match(await faults("q=%ff"), /^\?q is not valid percent-encoded UTF-8/);
  assert.match(await faults("q=abcdefg"), /^\?q must not be longer/);
  assert.match(await faults("__proto__=1"), /^\?__proto__ is not a parameter/);
  assert.match(await faults("dry_run=true"), /is not a parameter/);
  assert.equal((await api.ask("POST", "/things?dry_run=true", { json: { name: "a" } })).body.dryRun, true);
  assert.equal((await api.ask("POST", "/things?dry_run=1", { json: { name: "a" } })).status, 400);
  assert.equal((await api.ask("POST", "/things", { json: { name: "a" } })).body.dryRun, false);
});

test("unknown paths are 404, broken ones too, other methods 405 with Allow", async () => {
  await using api = await startApi(() => sampleRoutes());
  assert.equal((await api.ask("GET", "/nothing")).status, 404);
  assert.equal((await api.ask("GET", "/things/")).status, 404);
  assert.equal((await api.ask("GET", "//")).status, 404);
  const patch = await api.ask("PATCH", "/things/known");
  assert.deepEqual(
    [patch.status, patch.headers.allow, patch.body.code],
    [405, "DELETE, GET, HEAD, PUT", "method_not_allowed"],
  );
  assert.equal((await api.ask("OPTIONS", "/things")).status, 405);
  assert.equal((await api.ask("GET", "/things/%zz")).status, 404);
  assert.equal((await api.ask("GET", "/things/%ff")).status, 404);
  assert.equal((await api.ask("GET", `/things/${"x".repeat(300)}`)).status, 404);
  assert.equal((await api.ask("GET", `/things/${"x".repeat(2000)}`)).status, 404);
  const head = await api.ask("HEAD", "/things/known");
  assert.deepEqual([head.status, head.text], [200, ""]);
  assert.equal((await api.ask("HEAD", "/stream")).status, 200);
});

test("a fault of the program is a 500 without its words, which the log has with the request's id", async () => {
  const lines: { readonly message: string; readonly fields: LogFields | undefined }[] = [];
  await using api = await startApi(() => sampleRoutes(), {
    log: (_level, message, fields) => lines.push({ message, fields }),
  });
  const { status, text, headers } = await api.ask("GET", "/broken");
  assert.equal(status, 500);
  assert.doesNotMatch(text, /cellar|\.ts/);
  const line = lines.find(({ message }) => /cellar/.test(message));
  assert.equal(line?.fields?.request_id, headers["x-request-id"]);
});

test("sensitive GETs need the CSRF header, public routes pass over bad credentials", async () => {
  await using api = await startApi(() => sampleRoutes());
  assert.equal((await api.ask("GET", "/secret", { noCsrf: true })).body.code, "csrf_header_missing");
  assert.equal((await api.ask("GET", "/secret")).status, 200);
  assert.equal((await api.ask("GET", "/secret", { noCsrf: true, headers: { "x-svc-csrf": "true" } })).status, 403);
  assert.equal((await api.ask("POST", "/login", { as: "nonsense", json: { username: "a" } })).status, 200);
  assert.equal((await api.ask("POST", "/login", { as: null, noCsrf: true, json: { username: "a" } })).status, 403);
  const moved = await api.ask("POST", "/elsewhere", { as: null });
  assert.deepEqual([moved.status, moved.headers.location, moved.headers["set-cookie"]], [303, "/x", ["a=1", "b=2"]]);
});

test("sign-ins are counted by address, and by user name so that one address keeps nobody out", async () => {
  await using api = await startApi(() => sampleRoutes(), {
    rateLimit: (rateClass) => (rateClass === "auth" ? 3 : 1000),
    trustedProxies: [cidrFromText("127.0.0.0/8")!],
  });
  const login = async (username: string, from: string) =>
    (await api.ask("POST", "/login", { json: { username }, headers: { "x-forwarded-for": from } })).status;
  const statuses: number[] = [];
  for (let count = 0; count < 5; count++) statuses.push(await login("a", "192.0.2.1"));
  assert.deepEqual(statuses, [200, 200, 200, 429, 429]);
  for (let host = 2; host <= 10; host++) {
    for (let count = 0; count < 3; count++) assert.equal(await login("A", `192.0.2.${host}`), 200, `from ${host}`);
  }
  assert.equal(await login("a", "192.0.2.11"), 429, "ten addresses at their limit");
  assert.equal(await login("b", "192.0.2.11"), 200);
});

test("a confined token writes in its zones only", async () => {
  const zones = new Map<string, string>();
  const rows = ({ store }: CommandContext) => {
    const base = { method: "POST", access: "editor", tag: "t", summary: "Do", response: Type.Unknown() } as const;
    const confinedTo = ({ id }: { readonly id: string }) => [id];
    const find = ({ id }: { readonly id: string }) => {
      if (store.byId("zone", id) === undefined) throw new Refusal("not_found", "no zone");
    };
    return [
      route({ ...base, path: "/in/:id", params: Params, confinedTo, find, handle: () => ({ body: {} }) }),
      route({ ...base, path: "/outside", handle: () => ({ body: {} }) }),
      route({ ...base, path: "/own-check", confinedTo: "body", handle: () => ({ body: {} }) }),
    ];
  };
  await using api = await startApi(rows);
  for (const name of ["a.", "b."]) {
    const soa = { mname: "ns.", rname: "h.", refresh: 1, retry: 1, expire: 1, minimum: 1 };
    await api.store.write((tx) =>
      tx.put("zone", { id: `zon_${name}`, name, default_ttl: 1, soa, deletion_lock: false }),
    );
    zones.set(name, `zon_${name}`);
  }
  const asks = async (zoneIds: readonly string[] | undefined, path: string) => {
    const as = api.tokenFor({
      kind: "service-account",
      id: "sva_x",
      name: "x",
      role: "editor",
      ...(zoneIds && { zoneIds }),
    });
    const { status, body } = await api.ask("POST", path, { as });
    return `${status} ${body.code ?? ""}`.trim();
  };
  const refused = "403 zone_not_permitted";
  assert.equal(await asks(undefined, `/in/zon_a.`), "200");
  assert.equal(await asks(["zon_a."], `/in/zon_a.`), "200");
  assert.equal(await asks(["zon_a."], `/in/zon_b.`), refused);
  assert.equal(await asks(["zon_a."], "/outside"), refused);
  assert.equal(await asks(["zon_a."], "/own-check"), "200");
  assert.equal(await asks([], `/in/zon_a.`), refused);
  assert.equal(await asks(["zon_dead"], `/in/zon_dead`), refused);
  assert.equal(await asks(undefined, `/in/zon_dead`), "404 not_found");
});

test("cross-origin requests are answered for listed origins only", async () => {
  const origin = "https://console.example";
  await using api = await startApi(() => sampleRoutes(), { allowedOrigins: [origin] });
  const preflight = (from: string) =>
    api.ask("OPTIONS", "/things", { as: null, headers: { origin: from, "access-control-request-method": "POST" } });
  const allowed = await preflight(origin);
  assert.equal(allowed.status, 204);
  assert.equal(allowed.headers["access-control-allow-origin"], origin);
  assert.match(String(allowed.headers["access-control-allow-headers"]), /X-SVC-CSRF/);
  const other = await preflight("https://evil.example");
  assert.deepEqual([other.status, other.headers["access-control-allow-origin"]], [405, undefined]);
  assert.equal(
    (await api.ask("GET", "/things", { headers: { origin } })).headers["access-control-allow-origin"],
    origin,
  );
});

test("probes answer outside the prefix, without a token and outside the limits", async () => {
  await using api = await startApi(() => sampleRoutes(), {
    rateLimit: () => 1,
    probe: (path) => ({ status: path === "/readyz" ? 503 : 200, contentType: "text/plain", body: path }),
  });
  for (const path of ["/healthz", "/readyz", "/metrics", "/healthz", "/metrics"]) {
    const reply = await api.ask("GET", `/${path}`, { as: null });
    assert.deepEqual([reply.status, reply.text], [path === "/readyz" ? 503 : 200, path]);
  }
});
