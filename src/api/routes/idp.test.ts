import assert from "node:assert/strict";
import { test } from "node:test";
import { startSignInApi } from "../../../tests/support/sign-in.ts";

const SECRET = "of the provider's client";
const WHOLE = {
  enabled: true,
  issuer: "https://id.corp.test",
  client_id: "signpost",
  client_secret: SECRET,
  redirect_uri: "https://dns.corp.test/api/v1/auth/idp/callback",
  role_mapping: { "dns-admins": "admin" },
};

test("settings are kept by field, the secret is never shown, and what was read may be sent back", async () => {
  await using api = await startSignInApi();
  const put = (json: unknown, query = "") => api.ask("PUT", `/auth/idp/config${query}`, { json });
  const status = async () => (await api.ask("GET", "/auth/idp/status", { as: null })).body;
  const empty = await api.ask("GET", "/auth/idp/config");
  assert.deepEqual(Object.keys(empty.body), ["effective"]);
  assert.deepEqual(await status(), { enabled: false });
  const rehearsed = await put(WHOLE, "?dry_run=true");
  assert.equal(rehearsed.status, 200);
  assert.deepEqual(await status(), { enabled: false });
  const made = await put(WHOLE);
  assert.equal(made.status, 200);
  assert.deepEqual(await status(), { enabled: true });
  const read = await api.ask("GET", "/auth/idp/config");
  assert.equal(read.body.client_secret, "***");
  assert.deepEqual(read.body.effective.scopes, ["openid", "profile", "email"]);
  assert.equal(read.headers.etag, made.headers.etag);
  const back = await put({ ...read.body, default_role: "readonly" });
  assert.equal(back.status, 200, back.text);
  assert.equal(back.body.default_role, "readonly");
  const stored = () => api.store.get("config", ["idp"])?.body.settings;
  assert.equal(stored()?.client_secret, SECRET);
  await put({ default_role: null, role_claim: "roles" });
  assert.deepEqual(stored(), { ...WHOLE, role_claim: "roles" });
  const audit = api.store.auditPage({ resource: "config" }, { limit: 10 }).entries;
  assert.equal(audit.length, 3);
  for (const text of [made.text, read.text, back.text, JSON.stringify(audit)])
    assert.equal(text.includes(SECRET), false);
  await put({ enabled: false });
  const { status: code, body } = await api.ask("GET", "/auth/idp/login", { as: null });
  assert.deepEqual([code, body.code], [404, "not_found"]);
});

test("a version is asked for before anything is stored too, and a PUT that changes nothing is unchanged", async () => {
  await using api = await startSignInApi();
  const put = (json: unknown, ifMatch?: string) =>
    api.ask("PUT", "/auth/idp/config", {
      json,
      ...(ifMatch === undefined ? {} : { headers: { "if-match": ifMatch } }),
    });
  for (const ifMatch of ['"x"', "*"]) assert.equal((await put(WHOLE, ifMatch)).status, 412, ifMatch);
  assert.equal((await put({})).headers.etag, undefined);
  const made = await put(WHOLE);
  assert.equal((await put(WHOLE, String(made.headers.etag))).headers.etag, made.headers.etag);
  const { entries } = api.store.auditPage({ resource: "config" }, { limit: 10 });
  assert.deepEqual(
    entries.map(({ result, before, after }) => [result, before !== undefined, after !== undefined]),
    [
      ["unchanged", false, false],
      ["success", false, true],
      ["unchanged", false, false],
    ],
  );
});

test("bad settings are refused by field and change nothing", async () => {
  await using api = await startSignInApi();
  await api.ask("PUT", "/auth/idp/config", { json: WHOLE });
  const before = (await api.ask("GET", "/auth/idp/config")).text;
  const cases: [unknown, string][] = [
    [{ issuer: "http://id.corp.test" }, "/client_secret"],
    [{ issuer: "http://id.corp.test", client_secret: "x" }, "/issuer"],
    [{ issuer: null, client_secret: null }, "/issuer"],
    [{ issuer: "https://other.test", client_secret: "***" }, "/client_secret"],
    [{ redirect_uri: "https://dns.corp.test/" }, "/redirect_uri"],
    [{ scopes: ["profile"] }, "/scopes"],
    [{ scopes: ["openid", 'a"b'] }, "/scopes/1"],
    [{ scopes: [] }, "/scopes"],
    [{ role_mapping: { x: "root" } }, "/role_mapping/x"],
    [{ role_mapping: { ["x".repeat(200)]: "admin" } }, `/role_mapping/${"x".repeat(100)}`],
    [{ default_role: "root" }, "/default_role"],
    [{ allowed_domains: ["@corp.test"] }, "/allowed_domains/0"],
    [{ client_secret: "" }, "/client_secret"],
    [{ client_secret: "new\nline" }, "/client_secret"],
    [{ effective: { enabled: false } }, "/effective"],
    [{ enabled: "yes" }, "/enabled"],
    [{ unknown: 1 }, "/unknown"],
  ];
  for (const [json, pointer] of cases) {
    const reply = await api.ask("PUT", "/auth/idp/config", { json });
    assert.equal(reply.status, 400, JSON.stringify(json));
    assert.equal(reply.body.errors[0].pointer, pointer, JSON.stringify(reply.body.errors));
  }
  assert.equal((await api.ask("GET", "/auth/idp/config")).text, before);
});

test("the largest settings that are taken can be stored", async () => {
  await using api = await startSignInApi();
  const names = Array.from({ length: 50 }, (_, index) => `${index + 10}${"\u{1F431}".repeat(126)}`);
  const json = {
    ...WHOLE,
    role_mapping: Object.fromEntries(names.map((name) => [name, "readonly"])),
    allowed_domains: Array.from({ length: 50 }, (_, index) => `${index}`.padEnd(253, "a")),
    scopes: ["openid", ...Array.from({ length: 49 }, (_, index) => `${index}`.padEnd(100, "s"))],
    client_secret: "s".repeat(500),
  };
  const { status, text } = await api.ask("PUT", "/auth/idp/config", { json });
  assert.equal(status, 200, text);
});

test("only admins read or change the settings", async () => {
  await using api = await startSignInApi();
  await api.makeUser("eve", "editor");
  const { access } = await api.tokensOf("eve");
  for (const method of ["GET", "PUT"]) {
    assert.equal((await api.ask(method, "/auth/idp/config", { as: access })).body.code, "role_insufficient");
    assert.equal((await api.ask(method, "/auth/idp/config", { as: null })).status, 401);
  }
});
