import assert from "node:assert/strict";
import test from "node:test";
import { startApi } from "../../../tests/support/api.ts";
import { encodeName as wire } from "../../../tests/support/dns-message.ts";
import { fakeCache } from "../../../tests/support/fake-cache.ts";
import type { CommandContext } from "../../commands/run.ts";
import { auditRoutes } from "./audit.ts";
import { cacheRoutes } from "./cache.ts";

function startCacheApi() {
  const cache = fakeCache();
  return {
    cache,
    api: startApi((context: CommandContext) => [...cacheRoutes(context, cache), ...auditRoutes(context)]),
  };
}

test("the figures of the cache are anybody's to read", async () => {
  const { cache, api: starting } = startCacheApi();
  await using api = await starting;
  const { status, body } = await api.ask("GET", "/cache", { as: "readonly" });
  assert.deepEqual([status, body.node_id, body.hits, body.capacity_bytes], [200, "node-1", 5, 2 ** 20]);
  cache.isAway = true;
  const away = await api.ask("GET", "/cache");
  assert.deepEqual([away.status, away.body.code, away.headers["retry-after"]], [503, "not_ready", "1"]);
});

test("an editor flushes everything, a name, or a name with all below it, and the log says so", async () => {
  const { cache, api: starting } = startCacheApi();
  await using api = await starting;
  const flush = (json: object, path = "/cache/flush") => api.ask("POST", path, { as: "editor", json });
  assert.equal((await api.ask("POST", "/cache/flush", { as: "readonly", json: {} })).status, 403);
  assert.deepEqual((await flush({})).body, { node_id: "node-1", flushed: 2 });
  assert.equal((await flush({ name: "WWW.Example" })).status, 200);
  assert.equal((await flush({ name: "example.", subtree: true })).status, 200);
  assert.deepEqual((await flush({ name: "example." }, "/cache/flush?dry_run=true")).body.flushed, 0);
  const expected = [
    { name: undefined, isSubtree: false },
    { name: Buffer.from(wire("www.example.")), isSubtree: false },
    { name: Buffer.from(wire("example.")), isSubtree: true },
  ];
  assert.deepEqual(
    cache.flushes.map(({ name, isSubtree }) => ({ name: name && Buffer.from(name), isSubtree })),
    expected,
  );
  const { items } = (await api.ask("GET", "/audit?resource=cache")).body;
  assert.deepEqual(
    items.map(({ action, resource_name }: Record<string, string>) => [action, resource_name]),
    [
      ["flush", "example."],
      ["flush", "www.example."],
      ["flush", "everything"],
    ],
  );
});

test("a flush that makes no sense, or that nobody does, is refused", async () => {
  const { cache, api: starting } = startCacheApi();
  await using api = await starting;
  for (const [json, pointer] of [
    [{ name: "a..b" }, "/name"],
    [{ name: "" }, "/name"],
    [{ subtree: true }, "/subtree"],
    [{ names: ["a."] }, "/names"],
  ] as const) {
    const { status, body } = await api.ask("POST", "/cache/flush", { json });
    assert.deepEqual([status, body.errors[0].pointer], [400, pointer]);
  }
  cache.isAway = true;
  assert.equal((await api.ask("POST", "/cache/flush", { json: {} })).status, 503);
  assert.deepEqual(cache.flushes, []);
  assert.deepEqual((await api.ask("GET", "/audit?resource=cache")).body.items, []);
});
