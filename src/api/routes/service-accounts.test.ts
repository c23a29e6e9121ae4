import assert from "node:assert/strict";
import { test } from "node:test";
import { ALONE, testCaller } from "../../../tests/support/commands.ts";
import { type SignInApi, startSignInApi } from "../../../tests/support/sign-in.ts";
import { authenticate } from "../../commands/authenticate.ts";
import { mayWriteZone } from "../../commands/permit.ts";
import { createZone } from "../../commands/zones.ts";
import { newToken } from "../../model/service-account.ts";

const DAY_MS = 86_400_000;

async function made(api: SignInApi, fields: object = {}) {
  const json = { name: "deploy", role: "admin", ...fields };
  const { status, body, text } = await api.ask("POST", "/service-accounts", { json });
  assert.equal(status, 200, text);
  return body;
}

test("the token is shown once, opens the API, and is kept only as a hash", async () => {
  await using api = await startSignInApi();
  const { token, ...account } = await made(api, { comment: "from CI", expires_at: "2030-01-01T01:00:00+01:00" });
  assert.match(token, /^svcsat_[a-z2-7]{20}_[\w-]{43}$/);
  const { id, created_at, updated_at, ...shown } = account;
  assert.deepEqual(shown, {
    name: "deploy",
    role: "admin",
    comment: "from CI",
    expires_at: "2030-01-01T00:00:00.000Z",
    revoked: false,
    version: 1,
    issuing_node: "test-node",
  });
  assert.equal(created_at, updated_at);
  assert.equal(await api.status(token), 200);
  const one = await api.ask("GET", `/service-accounts/${id}`);
  assert.deepEqual(one.body, { ...account, token: "***" });
  const list = await api.ask("GET", "/service-accounts");
  assert.deepEqual(list.body.items, [one.body]);
  // Base64url has underscores of its own.
  const secret = token.slice(-43);
  const audit = JSON.stringify(api.store.auditPage({}, { limit: 100 }).entries);
  const stored = JSON.stringify(api.store.byId("service-account", id));
  const hash = api.store.byId("service-account", id)?.body.secret_hash ?? "";
  for (const text of [one.text, list.text, audit, stored]) assert.equal(text.includes(secret), false);
  for (const text of [one.text, list.text, audit]) assert.equal(text.includes(hash), false);
});

test("a token ends by revocation, expiry, deletion, and with every rotation", async () => {
  await using api = await startSignInApi();
  const rotate = (id: string, json?: unknown) =>
    api.ask("POST", `/service-accounts/${id}/rotate`, json === undefined ? {} : { json });
  const { id, token } = await made(api, { expires_at: new Date(Date.now() + 2 * DAY_MS).toISOString() });
  const second = await rotate(id, { version: 1 });
  assert.deepEqual([second.status, second.body.version], [200, 2]);
  assert.equal(await api.status(token), 401);
  assert.equal(await api.status(second.body.token), 200);
  const again = await rotate(id, { version: 1 });
  assert.deepEqual([again.status, again.body.version, again.body.token], [200, 2, "***"], "the same call again");
  const noted = api.store.auditPage({ resource_id: id }, { limit: 2 }).entries;
  assert.deepEqual(
    noted.map(({ action, result }) => `${action} ${result}`),
    ["update unchanged", "update success"],
  );
  for (const version of [0, 3]) {
    const { status, body } = await rotate(id, { version });
    assert.deepEqual([status, body.code, body.version], [409, "version_mismatch", 2]);
  }
  assert.equal(await api.status(second.body.token), 200);
  const rehearsed = await api.ask("POST", `/service-accounts/${id}/rotate?dry_run=true`);
  assert.deepEqual([rehearsed.body.version, rehearsed.body.token], [3, "***"]);
  assert.equal(await api.status(second.body.token), 200);
  const third = await rotate(id);
  assert.equal(third.body.version, 3);
  assert.equal(third.body.expires_at, second.body.expires_at);
  api.clock.aheadMs = 3 * DAY_MS;
  assert.equal(await api.status(third.body.token), 401);
  const admin = (await api.tokensOf("admin")).access;
  assert.equal((await api.ask("POST", `/service-accounts/${id}/rotate`, { as: admin })).status, 409);
  api.clock.aheadMs = 0;
  assert.equal(await api.status(third.body.token), 200);
  const revoked = await api.ask("POST", `/service-accounts/${id}/revoke`);
  assert.deepEqual([revoked.status, revoked.body.revoked], [200, true]);
  assert.equal(await api.status(third.body.token), 401);
  assert.equal((await api.ask("POST", `/service-accounts/${id}/revoke`)).status, 200);
  assert.equal((await rotate(id)).status, 409);
  assert.equal((await api.ask("GET", "/service-accounts")).body.items.length, 1);
  const fresh = await made(api, { name: "short-lived" });
  assert.equal((await api.ask("DELETE", `/service-accounts/${fresh.id}`)).status, 200);
  assert.equal(await api.status(fresh.token), 401);
  assert.equal((await api.ask("GET", `/service-accounts/${fresh.id}`)).status, 404);
});

test("a token is its role, and never a user with a session", async () => {
  await using api = await startSignInApi();
  const { token } = await made(api, { role: "editor" });
  const reply = await api.ask("GET", "/users", { as: token });
  assert.deepEqual([reply.status, reply.body.code], [403, "role_insufficient"]);
  assert.equal((await api.ask("POST", "/auth/logout", { as: token })).status, 409);
  assert.equal((await api.ask("GET", "/users", { as: null, headers: { cookie: `svc_session=${token}` } })).status, 401);
});

test("another node's token names its issuer, unless every node takes it", async () => {
  for (const scope of ["issuing-node", "cluster"] as const) {
    await using api = await startSignInApi(scope);
    const { id } = await made(api);
    const stored = api.store.byId("service-account", id)?.body;
    assert.ok(stored !== undefined);
    const { token, secretHash } = newToken(id);
    await api.store.write((tx) =>
      tx.put("service-account", { ...stored, secret_hash: secretHash, issuing_node: "node-b" }),
    );
    const { status, body } = await api.ask("GET", "/users", { as: token });
    const rotated = await api.ask("POST", `/service-accounts/${id}/rotate`);
    if (scope === "cluster") assert.deepEqual([status, rotated.status], [200, 200]);
    else {
      assert.deepEqual([status, body.issuing_node], [401, "node-b"]);
      assert.deepEqual([rotated.status, rotated.body.issuing_node], [409, "node-b"]);
      const guess = await api.ask("GET", "/users", { as: `${token.slice(0, -1)}${token.endsWith("A") ? "B" : "A"}` });
      assert.equal(guess.status, 401);
      assert.equal(guess.body.issuing_node, undefined, "who has not the secret learns nothing");
    }
  }
});

test("zone_ids confine a token to zones that live; it makes no accounts and no users", async () => {
  await using api = await startSignInApi();
  const zoneOf = async (name: string) => (await createZone(api.context, testCaller(), ALONE, { name })).stored.body;
  const [one, other] = [await zoneOf("one.test."), await zoneOf("other.test.")];
  const actorOf = (token: string) => authenticate(api.signIn, { kind: "bearer", token });
  const confined = await made(api, { name: "confined", zone_ids: [one.id] });
  assert.deepEqual(confined.zone_ids, [one.id]);
  const actor = await actorOf(confined.token);
  assert.deepEqual([mayWriteZone(api.store, actor, one.id), mayWriteZone(api.store, actor, other.id)], [true, false]);
  const nowhere = await actorOf((await made(api, { name: "nowhere", zone_ids: [] })).token);
  assert.equal(mayWriteZone(api.store, nowhere, one.id), false);
  for (const [path, json] of [
    ["/users", { username: "eve", password: "a long enough password", role: "admin" }],
    ["/service-accounts", { name: "eve", role: "admin" }],
  ] as const) {
    const { status, body } = await api.ask("POST", path, { as: confined.token, json });
    assert.deepEqual([status, body.code], [403, "zone_not_permitted"]);
  }
  assert.equal((await api.ask("PUT", "/auth/idp/config", { as: confined.token, json: {} })).status, 403);
  const rotated = await api.ask("POST", `/service-accounts/${confined.id}/rotate`);
  assert.deepEqual(rotated.body.zone_ids, [one.id]);
  await api.store.write((tx) => tx.deleteZone("one.test."));
  assert.equal(mayWriteZone(api.store, await actorOf(rotated.body.token), one.id), false);
});

test("bad fields are named, and nothing is made", async () => {
  await using api = await startSignInApi();
  await made(api);
  const good = { name: "other", role: "editor" };
  const inYears = (years: number) => new Date(Date.now() + years * 365.25 * DAY_MS).toISOString();
  const cases: [object, string, number][] = [
    [{ ...good, name: "deploy" }, "/name", 409],
    [{ ...good, name: "" }, "/name", 400],
    [{ ...good, name: " padded" }, "/name", 400],
    [{ ...good, name: "n\u00fcll" }, "/name", 400],
    [{ ...good, role: "root" }, "/role", 400],
    [{ ...good, zone_ids: ["zon_none"] }, "/zone_ids/0", 400],
    [{ ...good, zone_ids: "all" }, "/zone_ids", 400],
    [{ ...good, zone_ids: null }, "/zone_ids", 400],
    [{ ...good, zone_ids: ["a", "a"] }, "/zone_ids/1", 400],
    [{ ...good, expires_at: inYears(-0.1) }, "/expires_at", 400],
    [{ ...good, expires_at: inYears(10.1) }, "/expires_at", 400],
    [{ ...good, expires_at: "tomorrow" }, "/expires_at", 400],
    [{ ...good, token: "svcsat_mine" }, "/token", 400],
  ];
  for (const [json, pointer, status] of cases) {
    const reply = await api.ask("POST", "/service-accounts", { json });
    assert.equal(reply.status, status, JSON.stringify(json));
    assert.equal(reply.body.errors[0].pointer, pointer);
  }
  assert.equal((await api.ask("GET", "/service-accounts")).body.items.length, 1);
  assert.equal((await made(api, { ...good, expires_at: inYears(9.9) })).revoked, false);
  for (const action of ["revoke", "rotate"]) {
    assert.equal((await api.ask("POST", `/service-accounts/sva_none/${action}`)).status, 404);
  }
});
