import assert from "node:assert/strict";
import { test } from "node:test";
import { startApi, type TestApi } from "../../../tests/support/api.ts";
import { ALONE } from "../../../tests/support/commands.ts";
import { BULK_IDS_MAX } from "../../model/limits.ts";
import { recordRoutes } from "./records.ts";
import { zoneRoutes } from "./zones.ts";

type World = TestApi & { readonly zoneId: string };

async function givenZone(name = "corp."): Promise<World> {
  const api = await startApi((context) => [...zoneRoutes(context, ALONE), ...recordRoutes(context)]);
  const { body } = await api.ask("POST", "/zones", { json: { name } });
  return { ...api, zoneId: body.id };
}

const A = (name: string, value = "192.0.2.1") => ({ name, type: "A", ttl: 300, values: [{ value }] });

test("a record is created with its place and version, read, edited with what was read, and deleted", async () => {
  await using world = await givenZone();
  const made = await world.ask("POST", `/zones/${world.zoneId}/records`, { as: "editor", json: A("WWW") });
  assert.equal(made.status, 200, made.text);
  const { id } = made.body;
  assert.match(id, /^rec_/);
  assert.equal(made.headers.location, `/api/v1/records/${id}`);
  assert.deepEqual([made.body.name, made.body.fqdn, made.body.zone_id], ["www", "www.corp.", world.zoneId]);
  const read = await world.ask("GET", `/records/${id}`, { as: "readonly" });
  assert.deepEqual(read.body, made.body);
  assert.equal(read.headers.etag, made.headers.etag);
  const headers = { "if-match": read.headers.etag! };
  const written = await world.ask("PUT", `/records/${id}`, { json: { ...read.body, ttl: 60 }, headers });
  assert.equal(written.status, 200, written.text);
  assert.equal(written.body.ttl, 60);
  assert.equal((await world.ask("DELETE", `/records/${id}`, { headers })).status, 412);
  const gone = await world.ask("DELETE", `/records/${id}`);
  assert.deepEqual([gone.status, gone.body], [200, { deleted: true, id }]);
  for (const method of ["GET", "DELETE"]) assert.equal((await world.ask(method, `/records/${id}`)).status, 404);
});

test("what is wrong with a record is said with a pointer, and nothing is made", async () => {
  await using world = await givenZone();
  const wrong: readonly (readonly [unknown, string])[] = [
    [{ ...A("www"), ttl: 2_147_483_648 }, "/ttl"],
    [{ ...A("www"), ttl: -1 }, "/ttl"],
    [{ ...A("www"), ttl: "300" }, "/ttl"],
    [{ ...A("a..b") }, "/name"],
    [{ ...A("www"), values: [] }, "/values"],
    [{ name: "www", type: "A" }, "/values"],
    [A("www", "192.0.2.256"), "/values/0/value"],
    [{ ...A("www", "fe80::1%eth0"), type: "AAAA" }, "/values/0/value"],
    [{ ...A("www"), type: "SOA" }, "/type"],
    [{ ...A("@", "target.corp."), type: "CNAME" }, "/name"],
    [
      { ...A("www"), lb_policy: { method: "weighted", value_weights: { "192.0.2.1": 101 } } },
      "/lb_policy/value_weights/192.0.2.1",
    ],
    [
      { ...A("www"), lb_policy: { method: "weighted", value_weights: { "192.0.2.9": 1 } } },
      "/lb_policy/value_weights/192.0.2.9",
    ],
    [{ ...A("www"), unknown: 1 }, "/unknown"],
  ];
  for (const [json, pointer] of wrong) {
    const reply = await world.ask("POST", `/zones/${world.zoneId}/records`, { json });
    assert.equal(reply.status, 400, `${JSON.stringify(json)}: ${reply.text}`);
    assert.equal(reply.body.errors[0].pointer, pointer, JSON.stringify(json));
  }
  assert.equal(world.store.count("record"), 0);
});

test("a PUT takes what it is given; type and ids are not for changing", async () => {
  await using world = await givenZone();
  const { id } = (await world.ask("POST", `/zones/${world.zoneId}/records`, { json: A("www") })).body;
  const put = (json: unknown) => world.ask("PUT", `/records/${id}`, { json });
  assert.equal((await put({ comment: "first" })).body.comment, "first");
  assert.equal("comment" in (await put({ comment: null })).body, false);
  assert.equal((await put({ name: "web" })).body.fqdn, "web.corp.");
  for (const [field, value] of Object.entries({
    type: "AAAA",
    id: "rec_x",
    zone_id: "zon_x",
    fqdn: "x.",
    created_at: "2020-01-01T00:00:00Z",
  })) {
    const reply = await put({ [field]: value });
    assert.deepEqual([reply.status, reply.body.errors[0].pointer], [400, `/${field}`]);
  }
  assert.equal((await put({ ttl: 2_147_483_648 })).status, 400);
  assert.equal((await put({ values: [] })).status, 400);
});

test("collisions are 409 and name what they collide with", async () => {
  await using world = await givenZone();
  const records = `/zones/${world.zoneId}/records`;
  const { id } = (await world.ask("POST", records, { json: { ...A("kept"), protected: true } })).body;
  const { id: plain } = (await world.ask("POST", records, { json: A("plain") })).body;
  const cname = { name: "alias", type: "CNAME", values: [{ value: "plain.corp." }] };
  const { id: alias } = (await world.ask("POST", records, { json: cname })).body;
  const expected = async (
    reply: Promise<{ status: number; body: { code: string; record_id: string } }>,
    code: string,
    of: string,
  ) => {
    const { status, body } = await reply;
    assert.deepEqual([status, body.code, body.record_id], [409, code, of]);
  };
  await expected(world.ask("POST", records, { json: A("kept", "192.0.2.2") }), "record_protected", id);
  await expected(world.ask("PUT", `/records/${plain}`, { json: { name: "kept" } }), "record_protected", id);
  await expected(world.ask("DELETE", `/records/${id}`), "record_protected", id);
  await expected(world.ask("POST", records, { json: A("alias") }), "name_owned", alias);
  await expected(world.ask("PUT", `/records/${plain}`, { json: { name: "alias" } }), "name_owned", alias);
  assert.equal((await world.ask("DELETE", `/records/${id}?force=true`)).status, 200);
});

test("records are listed whole, by pages and by filter; a cursor belongs to its zone", async () => {
  await using world = await givenZone();
  const records = `/zones/${world.zoneId}/records`;
  const { body: lab } = await world.ask("POST", "/zones", { json: { name: "lab." } });
  await world.store.write((tx) => {
    for (let index = 0; index < 1100; index++) {
      const given = { name: `h${index}`, type: "A" as const, ttl: 0, values: [{ value: `192.0.2.${index % 250}` }] };
      tx.put("record", { ...given, id: `rec_${index}`, zone: "corp.", protected: false, auto_populate: false });
    }
  });
  await world.ask("POST", records, { json: { name: "h7", type: "TXT", values: [{ value: "needle" }] } });
  const idsOf = (body: { items: readonly { id: string }[] }) => body.items.map(({ id }) => id);
  const whole = (await world.ask("GET", records, { as: "readonly" })).body;
  assert.equal(whole.items.length, 1101);
  assert.equal(new Set(idsOf(whole)).size, 1101);
  const paged: string[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const { body } = await world.ask("GET", `${records}?limit=400${cursor === "" ? "" : `&cursor=${cursor}`}`);
    paged.push(...idsOf(body));
    cursor = body.next_cursor;
  }
  assert.deepEqual(paged, idsOf(whole));
  assert.equal((await world.ask("GET", `${records}?name=h7`)).body.items.length, 2);
  assert.equal((await world.ask("GET", `${records}?name=H7.corp.&type=TXT`)).body.items.length, 1);
  assert.equal((await world.ask("GET", `${records}?q=NEEDLE`)).body.items[0].name, "h7");
  assert.equal((await world.ask("GET", `${records}?name=h7.lab.`)).body.items.length, 0);
  assert.equal((await world.ask("GET", `${records}?type=SOA`)).status, 400);
  const first = (await world.ask("GET", `${records}?limit=1`)).body.next_cursor;
  const elsewhere = await world.ask("GET", `/zones/${lab.id}/records?limit=1&cursor=${first}`);
  assert.deepEqual([elsewhere.status, elsewhere.body.errors[0].pointer], [400, "?cursor"]);
});

test("bulk-delete counts, and is 422 above the cap", async () => {
  await using world = await givenZone();
  const records = `/zones/${world.zoneId}/records`;
  const { id } = (await world.ask("POST", records, { json: A("www") })).body;
  const { id: kept } = (await world.ask("POST", records, { json: { ...A("kept"), protected: true } })).body;
  for (const count of [101, BULK_IDS_MAX, BULK_IDS_MAX + 1]) {
    const many = { ids: Array.from({ length: count }, () => id), force: true };
    const refused = await world.ask("POST", `${records}/bulk-delete`, { json: many });
    assert.deepEqual([refused.status, refused.body.code], [422, "bulk_cap_exceeded"], `${count}`);
  }
  assert.equal(world.store.count("record"), 2);
  const reply = await world.ask("POST", `${records}/bulk-delete`, { json: { ids: [id, kept, "rec_x"], force: false } });
  assert.deepEqual(reply.body, { deleted: 1, protected_skipped: 1, not_found: 1 });
  for (const json of [{}, { ids: "x" }, { ids: [5] }, { ids: [], force: "yes" }, { ids: [], more: 1 }]) {
    assert.equal((await world.ask("POST", `${records}/bulk-delete`, { json })).status, 400, JSON.stringify(json));
  }
});

test("a token confined to a zone writes its records and no others", async () => {
  await using world = await givenZone();
  const { body: lab } = await world.ask("POST", "/zones", { json: { name: "lab." } });
  const { id } = (await world.ask("POST", `/zones/${world.zoneId}/records`, { json: A("www") })).body;
  const actor = { kind: "service-account", id: "sva_x", name: "x", role: "editor" } as const;
  const other = world.tokenFor({ ...actor, zoneIds: [lab.id] });
  const own = world.tokenFor({ ...actor, zoneIds: [world.zoneId] });
  const attempts = [
    ["POST", `/zones/${world.zoneId}/records`, A("new")],
    ["PUT", `/records/${id}`, { ttl: 5 }],
    ["POST", `/zones/${world.zoneId}/records/bulk-delete`, { ids: ["rec_x"] }],
    ["DELETE", `/records/${id}`, undefined],
  ] as const;
  for (const [method, path, json] of attempts) {
    const options = json === undefined ? {} : { json };
    const refused = await world.ask(method, path, { as: other, ...options });
    assert.deepEqual([refused.status, refused.body.code], [403, "zone_not_permitted"], `${method} ${path}`);
    assert.equal((await world.ask(method, path, { as: own, ...options })).status, 200, `${method} ${path}`);
  }
  assert.equal((await world.ask("DELETE", `/records/${id}`, { as: own })).status, 404);
});

test("an id of another kind, or one that is none, is not found", async () => {
  await using world = await givenZone();
  for (const id of [world.zoneId, "rec_", "%00", "..", "x".repeat(300), "%F0%9F%92%A9"]) {
    assert.equal((await world.ask("GET", `/records/${id}`)).status, 404, id);
  }
  assert.equal((await world.ask("GET", "/zones/rec_x/records")).status, 404);
});

test("secrets of a template are shown as ***, kept by a PUT of ***, and refused in a create", async () => {
  await using world = await givenZone();
  const template = (token: string) => ({ protocol: "https", http_config: { headers: { authorization: token } } });
  const records = `/zones/${world.zoneId}/records`;
  const given = { ...A("www"), health_check_template: template("s3cret") };
  const { id, health_check_template: shown } = (await world.ask("POST", records, { json: given })).body;
  assert.equal(shown.http_config.headers.authorization, "***");
  const read = await world.ask("GET", `/records/${id}`);
  assert.equal((await world.ask("PUT", `/records/${id}`, { json: { ...read.body, ttl: 5 } })).status, 200);
  const stored = world.store.byId("record", id)?.body.health_check_template?.http_config;
  assert.equal(stored?.headers?.authorization, "s3cret");
  const masked = await world.ask("POST", records, { json: { ...A("web"), health_check_template: template("***") } });
  assert.equal(masked.status, 400);
  const entries = JSON.stringify(world.store.auditPage({}, { limit: 100 }));
  assert.equal(entries.includes("s3cret"), false);
});
