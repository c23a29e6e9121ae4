import assert from "node:assert/strict";
import test from "node:test";
import { startApi, type TestApi } from "../../../tests/support/api.ts";
import type { CommandContext } from "../../commands/run.ts";
import { CONFIG_UNSET } from "../../model/config-schemas.ts";
import type { ZoneBody } from "../../model/objects.ts";
import type { Route } from "../route.ts";
import { auditRoutes } from "./audit.ts";
import { forwarderRoutes } from "./forwarders.ts";
import { stubZoneRoutes } from "./stub-zones.ts";

const OWN = Buffer.from([192, 0, 2, 99]);
const isOwnSocket = (address: Uint8Array, port: number) => port === 53 && OWN.equals(address);

const routes = (context: CommandContext): readonly Route[] => [
  ...forwarderRoutes({ ...context, isOwnSocket }),
  ...stubZoneRoutes({ ...context, isOwnSocket }),
  ...auditRoutes(context),
];

const KINDS = [
  { path: "/forwarders", field: "upstreams", id: /^fwd_/, kind: "forwarder", member: "forwarder_id" },
  { path: "/stub-zones", field: "hints", id: /^stb_/, kind: "stub-zone", member: "stub_zone_id" },
] as const;

const HELD: ZoneBody = {
  id: "zon_1",
  name: "held.example.",
  default_ttl: 60,
  soa: { mname: "ns.x.", rname: "h.x.", refresh: 1, retry: 1, expire: 1, minimum: 1 },
  deletion_lock: false,
};

async function made(api: TestApi, path: string, json: object) {
  const { status, body, text } = await api.ask("POST", path, { as: "editor", json });
  assert.equal(status, 200, text);
  return body;
}

for (const { path, field, id, kind, member } of KINDS) {
  test(`${path}: created by an editor, read by anyone, changed, moved and deleted`, async () => {
    await using api = await startApi(routes);
    const servers = ["192.0.2.53", "[2001:DB8::53]:5353"];
    const created = await api.ask("POST", path, {
      as: "editor",
      json: { domain: "Partner.Example.", [field]: servers, comment: "until May" },
    });
    assert.equal(created.status, 200, created.text);
    const { created_at, updated_at, ...body } = created.body;
    assert.match(body.id, id);
    assert.equal(created_at, updated_at);
    assert.deepEqual(body, {
      id: body.id,
      domain: "partner.example.",
      [field]: servers,
      comment: "until May",
      warnings: [],
    });
    const place = `${path}/${body.id}`;
    assert.equal(created.headers.location, `/api/v1${place}`);
    assert.equal((await api.ask("POST", path, { as: "readonly", json: {} })).status, 403);

    const read = await api.ask("GET", place, { as: "readonly" });
    const { warnings: _, ...shown } = created.body;
    assert.deepEqual(read.body, shown);
    assert.equal(read.headers.etag, created.headers.etag);
    // GET, edit, PUT; and what a create answered can be sent back as well.
    const back = await api.ask("PUT", place, { json: created.body });
    assert.deepEqual([back.status, back.headers.etag], [200, created.headers.etag], back.text);
    const stale = { "if-match": '"another"' };
    assert.equal((await api.ask("PUT", place, { json: { comment: null }, headers: stale })).status, 412);
    const changed = await api.ask("PUT", place, { json: { comment: null, domain: "other.example." } });
    assert.deepEqual([changed.status, changed.body.comment, changed.body.domain], [200, undefined, "other.example."]);
    assert.equal(changed.body.id, body.id);
    assert.equal(api.store.get(kind, ["partner.example."]), undefined);
    assert.equal((await api.ask("PUT", place, { json: { id: "fwd_other" } })).status, 400);

    const rehearsed = await api.ask("DELETE", `${place}?dry_run=true`);
    assert.deepEqual([rehearsed.status, api.store.count(kind)], [200, 1]);
    assert.deepEqual((await api.ask("DELETE", place, { as: "editor" })).body, { deleted: true, id: body.id });
    assert.equal((await api.ask("GET", place)).status, 404);
    const { items } = (await api.ask("GET", `/audit?resource=${kind}`)).body;
    assert.deepEqual(
      items.map(({ action, result }: { action: string; result: string }) => `${action} ${result}`),
      ["delete success", "update success", "update unchanged", "create success"],
    );
  });

  test(`${path}: what does not fit is refused by name`, async () => {
    await using api = await startApi(routes);
    const good = ["192.0.2.53"];
    const table: readonly (readonly [object, string, RegExp?])[] = [
      [{ domain: "partner.example", [field]: good }, "/domain", /"partner\.example\."/],
      [{ domain: ".", [field]: good }, "/domain", /\/forwarders\/default/],
      [{ domain: "*.example.", [field]: good }, "/domain", /without the asterisk/],
      [{ domain: "a..b.", [field]: good }, "/domain"],
      [{ domain: "a.example." }, `/${field}`],
      [{ domain: "a.example.", [field]: [] }, `/${field}`],
      [{ domain: "a.example.", [field]: "192.0.2.53" }, `/${field}`],
      [{ domain: "a.example.", [field]: ["192.0.2.53", "192.0.2"] }, `/${field}/1`],
      [{ domain: "a.example.", [field]: ["192.0.2.53", "192.0.2.53:53"] }, `/${field}/1`, /same as entry 0/],
      [{ domain: "a.example.", [field]: ["192.0.2.53", "192.0.2.99:53"] }, `/${field}/1`, /this node itself/],
      [{ domain: "a.example.", [field]: Array.from({ length: 17 }, (_, at) => `192.0.2.${at}`) }, `/${field}`],
      [{ domain: "a.example.", [field]: good, comment: 7 }, "/comment"],
      [{ domain: "a.example.", [field]: good, enabled: true }, "/enabled"],
    ];
    for (const [json, pointer, detail] of table) {
      const { status, body, text } = await api.ask("POST", path, { json });
      assert.deepEqual([status, body.errors?.[0]?.pointer], [400, pointer], `${JSON.stringify(json)}: ${text}`);
      if (detail !== undefined) assert.match(body.errors[0].detail, detail);
    }
    assert.equal(api.store.count(kind), 0);
  });

  test(`${path}: one of a domain, whichever of the two it is`, async () => {
    await using api = await startApi(routes);
    const json = { domain: "partner.example.", [field]: ["192.0.2.53"] };
    const { id: first } = await made(api, path, json);
    for (const other of KINDS) {
      const again = await api.ask("POST", other.path, {
        json: { domain: "PARTNER.example.", [other.field]: ["192.0.2.54"] },
      });
      assert.deepEqual([again.status, again.body.code, again.body[member]], [409, "conflict", first]);
      const { id } = await made(api, other.path, { domain: "second.example.", [other.field]: ["192.0.2.54"] });
      const moved = await api.ask("PUT", `${other.path}/${id}`, { json: { domain: "partner.example." } });
      assert.deepEqual([moved.status, moved.body[member]], [409, first]);
      assert.equal((await api.ask("DELETE", `${other.path}/${id}`)).status, 200);
    }
    await api.store.write((tx) => tx.put("zone", HELD));
    const { warnings } = await made(api, path, { ...json, domain: "held.example." });
    assert.match(warnings[0], /holds the zone held\.example\. itself/);
  });

  test(`${path}: listed by domain, by part and in pages`, async () => {
    await using api = await startApi(routes);
    for (const name of ["a", "b", "c"]) {
      await made(api, path, { domain: `${name}.example.`, [field]: [`198.51.100.${name.charCodeAt(0)}`] });
    }
    const names = async (query: string) =>
      (await api.ask("GET", `${path}${query}`, { as: "readonly" })).body.items.map(
        ({ domain }: { domain: string }) => domain,
      );
    assert.deepEqual(await names(""), ["a.example.", "b.example.", "c.example."]);
    assert.deepEqual(await names("?domain=B.example"), ["b.example."]);
    assert.deepEqual(await names("?q=198.51.100.99"), ["c.example."]);
    assert.deepEqual(await names("?q=nothing"), []);
    const page = (await api.ask("GET", `${path}?limit=2`)).body;
    assert.deepEqual(await names(`?limit=2&cursor=${page.next_cursor}`), ["c.example."]);
    assert.equal((await api.ask("GET", `${path}?upstream=x`)).status, 400);
  });
}

test("hints are servers of plain DNS", async () => {
  await using api = await startApi(routes);
  const json = { domain: "a.example.", hints: ["tls://192.0.2.1#dns.example"] };
  const { status, body } = await api.ask("POST", "/stub-zones", { json });
  assert.deepEqual([status, body.errors[0].pointer], [400, "/hints/0"]);
});

test("where an upstream has become this node itself, the rest can be changed and the default forwarder disabled", async () => {
  await using api = await startApi(routes);
  const body = { id: "fwd_own", domain: "own.example.", upstreams: ["192.0.2.99"] };
  const settings = { upstreams: ["192.0.2.99"], enabled: true };
  await api.store.write((tx) => {
    tx.put("forwarder", body);
    tx.put("config", { name: "default-forwarder", settings });
  });
  assert.equal((await api.ask("PUT", "/forwarders/fwd_own", { json: { comment: "look at this" } })).status, 200);
  assert.equal((await api.ask("PUT", "/forwarders/fwd_own", { json: { upstreams: body.upstreams } })).status, 400);
  const path = "/forwarders/default";
  assert.equal((await api.ask("PUT", path, { json: { enabled: true } })).status, 400);
  assert.equal((await api.ask("PUT", path, { json: { enabled: false } })).status, 200);
  assert.equal((await api.ask("PUT", path, { json: { enabled: true } })).status, 400);
});

test("a token confined to zones writes none of them", async () => {
  await using api = await startApi(routes);
  const actor = { kind: "service-account", id: "sva_1", name: "x", role: "admin", zoneIds: ["zon_1"] } as const;
  const as = api.tokenFor(actor);
  for (const [method, path] of [
    ["POST", "/forwarders"],
    ["POST", "/stub-zones"],
    ["PUT", "/forwarders/default"],
    ["PUT", "/forwarders/hardening"],
  ] as const) {
    const { status, body } = await api.ask(method, path, { as, json: {} });
    assert.deepEqual([status, body.code], [403, "zone_not_permitted"], path);
  }
});

test("the default forwarder: off and empty at first, an editor's to change", async () => {
  await using api = await startApi(routes);
  const path = "/forwarders/default";
  const unset = CONFIG_UNSET["default-forwarder"];
  const first = (await api.ask("GET", path, { as: "readonly" })).body;
  assert.deepEqual(first, { ...unset, effective: unset });
  assert.equal((await api.ask("PUT", path, { as: "readonly", json: {} })).status, 403);
  const empty = await api.ask("PUT", path, { as: "editor", json: { enabled: true } });
  assert.deepEqual([empty.status, empty.body.errors[0].pointer], [400, "/upstreams"]);
  const upstreams = ["192.0.2.53", "tls://dns.example#dns.example"];
  const put = await api.ask("PUT", path, { as: "editor", json: { upstreams, enabled: true } });
  assert.deepEqual([put.status, put.body.upstreams, put.body.effective.enabled], [200, upstreams, true]);
  for (const [json, pointer] of [
    [{ upstreams: [] }, "/upstreams"],
    [{ upstreams: ["192.0.2.1", "x:"] }, "/upstreams/1"],
    [{ upstreams: ["192.0.2.99"] }, "/upstreams/0"],
    [{ upstreams: ["192.0.2.1", "192.0.2.1:53"] }, "/upstreams/1"],
    [{ upstream: [] }, "/upstream"],
  ] as const) {
    const { status, body } = await api.ask("PUT", path, { json });
    assert.deepEqual([status, body.errors[0].pointer], [400, pointer], JSON.stringify(json));
  }
  assert.deepEqual((await api.ask("GET", path)).body, put.body);
  assert.equal((await api.ask("PUT", path, { json: { enabled: false, upstreams: null } })).status, 200);
  assert.deepEqual((await api.ask("GET", path)).body, first);
});

test("hardening: an administrator's alone, with the safe half on", async () => {
  await using api = await startApi(routes);
  const path = "/forwarders/hardening";
  for (const as of ["readonly", "editor"] as const) {
    assert.equal((await api.ask("GET", path, { as })).status, 403);
    assert.equal((await api.ask("PUT", path, { as, json: {} })).status, 403);
  }
  const first = (await api.ask("GET", path)).body;
  const { case_randomization, dns_cookies, bailiwick_scrubbing, rebinding_protection, serve_stale } = first;
  assert.deepEqual([case_randomization, dns_cookies, bailiwick_scrubbing], [true, true, true]);
  assert.deepEqual([rebinding_protection, serve_stale, first.refuse_any], [false, false, false]);
  const json = { rebinding_protection: true, rebinding_exceptions: ["lan.example."], min_ttl_seconds: 5 };
  const put = await api.ask("PUT", path, { json });
  assert.deepEqual([put.status, put.body.effective.rebinding_exceptions], [200, ["lan.example."]], put.text);
  for (const [bad, pointer] of [
    [{ rebinding_exceptions: ["lan.example"] }, "/rebinding_exceptions/0"],
    [{ rebinding_exceptions: ["a.", "A."] }, "/rebinding_exceptions/1"],
    [{ max_udp_size: 511 }, "/max_udp_size"],
    [{ max_udp_size: 4097 }, "/max_udp_size"],
    [{ max_ttl_seconds: 4 }, "/min_ttl_seconds"],
    [{ serve_stale_seconds: 0 }, "/serve_stale_seconds"],
    [{ cookies: true }, "/cookies"],
  ] as const) {
    const { status, body } = await api.ask("PUT", path, { json: bad });
    assert.deepEqual([status, body.errors[0].pointer], [400, pointer], JSON.stringify(bad));
  }
});
