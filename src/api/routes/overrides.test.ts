import assert from "node:assert/strict";
import { test } from "node:test";
import { startApi } from "../../../tests/support/api.ts";
import { overrideRoutes } from "./overrides.ts";

const A = (name: string, value = "192.0.2.1") => ({ name, type: "A", values: [{ value }] });

test("an override is created, listed, read, edited with what was read, and deleted", async () => {
  await using api = await startApi(overrideRoutes);
  const made = await api.ask("POST", "/overrides", { as: "editor", json: A("db.partner.example.") });
  assert.equal(made.status, 200, made.text);
  const { id } = made.body;
  assert.equal(made.headers.location, `/api/v1/overrides/${id}`);
  assert.equal(made.body.enabled, true);
  const list = await api.ask("GET", "/overrides?name=db.partner.example", { as: "readonly" });
  assert.deepEqual(list.body, { items: [made.body], next_cursor: null });
  assert.deepEqual((await api.ask("GET", "/overrides?q=nothing")).body.items, []);
  const edited = { ...made.body, enabled: false, expires_at: "2031-01-01T00:00:00Z" };
  const written = await api.ask("PUT", `/overrides/${id}`, { json: edited });
  assert.equal(written.status, 200, written.text);
  assert.equal((await api.ask("GET", `/overrides/${id}`)).body.expires_at, "2031-01-01T00:00:00.000Z");
  assert.equal("expires_at" in (await api.ask("PUT", `/overrides/${id}`, { json: { expires_at: null } })).body, false);
  assert.deepEqual((await api.ask("DELETE", `/overrides/${id}`)).body, { deleted: true, id });
  assert.equal((await api.ask("GET", `/overrides/${id}`)).status, 404);
});

test("values of overrides follow the rules of records", async () => {
  await using api = await startApi(overrideRoutes);
  const wrong: readonly (readonly [unknown, string])[] = [
    [A("db.example.", "192.0.2.300"), "/values/0/value"],
    [{ ...A("db.example."), values: [] }, "/values"],
    [{ ...A("db.example."), expires_at: "soon" }, "/expires_at"],
    [{ ...A("db.example."), ttl: 2_147_483_648 }, "/ttl"],
    [{ ...A("db.example."), protected: true }, "/protected"],
    [A("a..b."), "/name"],
  ];
  for (const [json, pointer] of wrong) {
    const reply = await api.ask("POST", "/overrides", { json });
    assert.equal(reply.status, 400, `${JSON.stringify(json)}: ${reply.text}`);
    assert.equal(reply.body.errors[0].pointer, pointer);
  }
  assert.equal(api.store.count("override"), 0);
});

test("only editors write overrides, and no confined token", async () => {
  await using api = await startApi(overrideRoutes);
  const { id } = (await api.ask("POST", "/overrides", { json: A("db.example.") })).body;
  const actor = { kind: "service-account", id: "sva_x", name: "x", role: "admin", zoneIds: ["zon_x"] } as const;
  for (const as of ["readonly", api.tokenFor(actor)]) {
    assert.equal((await api.ask("POST", "/overrides", { as, json: A("x.example.") })).status, 403);
    assert.equal((await api.ask("PUT", `/overrides/${id}`, { as, json: {} })).status, 403);
    assert.equal((await api.ask("DELETE", `/overrides/${id}`, { as })).status, 403);
    assert.equal((await api.ask("GET", `/overrides/${id}`, { as })).status, 200);
  }
});
