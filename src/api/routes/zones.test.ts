import assert from "node:assert/strict";
import { test } from "node:test";
import { startApi } from "../../../tests/support/api.ts";
import { ALONE } from "../../../tests/support/commands.ts";
import { zoneRoutes } from "./zones.ts";

const start = () => startApi((context) => zoneRoutes(context, ALONE));

test("a zone is created with its place and version, read, edited with what was read, and deleted", async () => {
  await using api = await start();
  const made = await api.ask("POST", "/zones", { as: "editor", json: { name: "corp." } });
  assert.equal(made.status, 200, made.text);
  const { id } = made.body;
  assert.equal(made.headers.location, `/api/v1/zones/${id}`);
  assert.match(made.body.warnings.join(), /ns1\.corp\./);
  const read = await api.ask("GET", `/zones/${id}`, { as: "readonly" });
  assert.equal(read.headers.etag, made.headers.etag);
  assert.deepEqual({ ...read.body, warnings: made.body.warnings }, made.body);
  assert.equal(read.body.status, "active");
  assert.equal(read.body.record_count, 0);
  assert.ok(Math.abs(Date.parse(read.body.created_at) - Date.now()) < 60_000);
  const edited = { ...read.body, default_ttl: 60 };
  const written = await api.ask("PUT", `/zones/${id}`, { json: edited, headers: { "if-match": read.headers.etag! } });
  assert.equal(written.status, 200, written.text);
  assert.equal(written.body.default_ttl, 60);
  assert.notEqual(written.headers.etag, read.headers.etag);
  const stale = await api.ask("PUT", `/zones/${id}`, { json: {}, headers: { "if-match": read.headers.etag! } });
  assert.deepEqual([stale.status, stale.body.code], [412, "precondition_failed"]);
  assert.equal((await api.ask("PUT", `/zones/${id}`, { json: written.body })).status, 200);
  const gone = await api.ask("DELETE", `/zones/${id}`);
  assert.deepEqual([gone.status, gone.body], [200, { deleted: true, id }]);
  assert.equal((await api.ask("GET", `/zones/${id}`)).status, 404);
});

test("what is wrong with a zone is said with a pointer, and nothing is made", async () => {
  await using api = await start();
  const wrong: readonly (readonly [unknown, string])[] = [
    [{}, "/name"],
    [{ name: "corp" }, "/name"],
    [{ name: "a..b." }, "/name"],
    [{ name: 5 }, "/name"],
    [{ name: "corp.", default_ttl: -1 }, "/default_ttl"],
    [{ name: "corp.", default_ttl: "60" }, "/default_ttl"],
    [{ name: "corp.", soa: { mname: "ns1" } }, "/soa/mname"],
    [{ name: "corp.", deletion_lock: null }, "/deletion_lock"],
    [{ name: "corp.", colour: "red" }, "/colour"],
    [{ name: "corp.", lb_policy: { method: "fastest" } }, "/lb_policy/method"],
  ];
  for (const [json, pointer] of wrong) {
    const reply = await api.ask("POST", "/zones", { json });
    assert.equal(reply.status, 400, `${JSON.stringify(json)}: ${reply.text}`);
    assert.equal(reply.body.errors[0].pointer, pointer, JSON.stringify(json));
  }
  assert.equal(api.store.count("zone"), 0);
  assert.match((await api.ask("POST", "/zones", { json: { name: "corp" } })).body.detail, /corp\./);
});

test("a second zone of that name is a conflict that names the first; a locked one is not deleted", async () => {
  await using api = await start();
  const { id } = (await api.ask("POST", "/zones", { json: { name: "corp.", deletion_lock: true } })).body;
  const again = await api.ask("POST", "/zones", { json: { name: "corp." } });
  assert.deepEqual([again.status, again.body.code, again.body.zone_id], [409, "conflict", id]);
  const locked = await api.ask("DELETE", `/zones/${id}`);
  assert.deepEqual([locked.status, locked.body.code], [409, "deletion_locked"]);
  assert.equal((await api.ask("GET", `/zones/${id}`)).status, 200);
  const readOnly = await api.ask("PUT", `/zones/${id}`, { json: { name: "other." } });
  assert.deepEqual([readOnly.status, readOnly.body.errors[0].pointer], [400, "/name"]);
  const both = { lb_policy: { method: "latency" }, clear_lb_policy: true };
  assert.equal((await api.ask("PUT", `/zones/${id}`, { json: both })).status, 400);
});

test("zones are listed whole, by pages and by filter, in canonical order", async () => {
  await using api = await start();
  const names = ["b.", "a.", "z.a.", "*.a.", "c."];
  for (const name of names) assert.equal((await api.ask("POST", "/zones", { json: { name } })).status, 200);
  const namesOf = (body: { items: readonly { name: string }[] }) => body.items.map(({ name }) => name);
  const whole = (await api.ask("GET", "/zones", { as: "readonly" })).body;
  assert.deepEqual(namesOf(whole), ["a.", "*.a.", "z.a.", "b.", "c."]);
  assert.equal(whole.next_cursor, null);
  const paged: string[] = [];
  let path: string | undefined = "/zones?limit=2";
  for (let pages = 0; path !== undefined; pages++) {
    assert.ok(pages < 3);
    const { body } = await api.ask("GET", path);
    paged.push(...namesOf(body));
    path = body.next_cursor === null ? undefined : `/zones?limit=2&cursor=${body.next_cursor}`;
  }
  assert.deepEqual(paged, namesOf(whole));
  assert.deepEqual(namesOf((await api.ask("GET", "/zones?q=A.")).body), ["a.", "*.a.", "z.a."]);
  assert.deepEqual(namesOf((await api.ask("GET", "/zones?name=Z.a")).body), ["z.a."]);
  assert.deepEqual(namesOf((await api.ask("GET", "/zones?name=a..b")).body), []);
});

test("a cursor that no list of zones gave is refused", async () => {
  await using api = await start();
  const cursorOf = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  for (const cursor of ["x", cursorOf({}), cursorOf(["a", "b", "c", "d"]), cursorOf(["a..b"]), cursorOf([5])]) {
    const reply = await api.ask("GET", `/zones?limit=5&cursor=${cursor}`);
    assert.deepEqual([reply.status, reply.body.errors[0].pointer], [400, "?cursor"], cursor);
  }
});

test("a token confined to zones may PUT them and no more", async () => {
  await using api = await start();
  const { id } = (await api.ask("POST", "/zones", { json: { name: "corp." } })).body;
  const { id: other } = (await api.ask("POST", "/zones", { json: { name: "lab." } })).body;
  const actor = { kind: "service-account", id: "sva_x", name: "x", role: "editor", zoneIds: [id] } as const;
  const as = api.tokenFor(actor);
  assert.equal((await api.ask("PUT", `/zones/${id}`, { as, json: { default_ttl: 5 } })).status, 200);
  for (const [method, path, json] of [
    ["PUT", `/zones/${other}`, {}],
    ["POST", "/zones", { name: "new." }],
    ["DELETE", `/zones/${id}`, undefined],
  ] as const) {
    const reply = await api.ask(method, path, json === undefined ? { as } : { as, json });
    assert.deepEqual([reply.status, reply.body.code], [403, "zone_not_permitted"], `${method} ${path}`);
  }
  assert.equal((await api.ask("GET", `/zones/${other}`, { as })).status, 200);
});

test("a dry run answers like the write and leaves nothing, no version either", async () => {
  await using api = await start();
  const reply = await api.ask("POST", "/zones?dry_run=true", { json: { name: "corp." } });
  assert.equal(reply.status, 200);
  assert.equal(reply.body.name, "corp.");
  assert.equal(reply.headers.etag, undefined);
  assert.equal(reply.headers.location, undefined);
  assert.equal(api.store.count("zone"), 0);
});
