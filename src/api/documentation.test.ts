import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import test from "node:test";
import { startApi } from "../../tests/support/api.ts";

const NAMES = ["swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"];
const folder = join(dirname(createRequire(import.meta.url).resolve("@fastify/swagger-ui/package.json")), "static");

test("the files of the documentation come whole, with their length", async () => {
  await using api = await startApi(() => []);
  for (const name of NAMES) {
    const { length } = await readFile(join(folder, name));
    const text = await readFile(join(folder, name), "utf8");
    for (const count of [1, 2]) {
      const reply = await api.ask("GET", `//api/docs/${name}`, { as: null, ...(count === 2 && { http2: true }) });
      assert.equal(reply.status, 200);
      assert.equal(reply.headers["content-length"], String(length));
      assert.ok(reply.text === text, name);
    }
    const head = await api.ask("HEAD", `//api/docs/${name}`, { as: null });
    assert.deepEqual([head.status, head.text], [200, ""]);
  }
});

test("the documentation counts as reads of its address", async () => {
  await using api = await startApi(() => [], { rateLimit: (rateClass) => (rateClass === "read" ? 2 : 0) });
  const statuses: number[] = [];
  for (const path of ["", "/swagger-ui-bundle.js", "/swagger-ui.css", "/", "/start.js"]) {
    statuses.push((await api.ask("GET", `//api/docs${path}`, { as: null })).status);
  }
  assert.deepEqual(statuses, [200, 200, 429, 429, 429]);
});
