import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { exportRoutes } from "../../src/api/routes/export.ts";
import { importRoutes } from "../../src/api/routes/import.ts";
import { recordRoutes } from "../../src/api/routes/records.ts";
import { zoneRoutes } from "../../src/api/routes/zones.ts";
import { createImportThread } from "../../src/node/import-thread.ts";
import { startApi, type TestApi } from "../support/api.ts";
import { ALONE } from "../support/commands.ts";

async function world(): Promise<TestApi> {
  const thread = createImportThread();
  const api = await startApi((context) => [
    ...zoneRoutes(context, ALONE),
    ...recordRoutes(context),
    ...importRoutes(context, { parse: thread.parse, peers: ALONE }),
    ...exportRoutes(context),
  ]);
  return {
    ...api,
    [Symbol.asyncDispose]: async () => {
      await api[Symbol.asyncDispose]();
      await thread[Symbol.asyncDispose]();
    },
  };
}

const DNS = { "content-type": "text/dns" };

function vector(file: string): string {
  return readFileSync(new URL(`../vectors/${file}`, import.meta.url), "utf8");
}

test("real zone files: import, export, import again with no difference", async () => {
  await using api = await world();
  const files = ["example.test.zone", "diff-corp.zone", "diff-child.zone", "dig-axfr.zone", "windows-export.zone"];
  for (const file of files) {
    const isWindows = file.startsWith("windows");
    const text = `${isWindows ? "$ORIGIN corp.example.test.\n" : ""}${vector(file)}`;
    const first = await api.ask("POST", "/zones/import", { headers: DNS, body: text });
    assert.equal(first.status, 200, `${file}: ${first.text}`);
    const id = first.body.zones[0].zone_id;
    const exported = await api.ask("GET", `/zones/${id}/export`);
    assert.equal(exported.status, 200);
    const again = await api.ask("POST", "/zones/import", { headers: DNS, body: exported.text });
    assert.equal(again.status, 200, again.text);
    assert.deepEqual([again.body.created, again.body.updated, again.body.parse_errors], [0, 0, []]);
  }
  const bundle = await api.ask("GET", "/zones/export");
  const all = await api.ask("POST", "/zones/import", { json: bundle.body });
  assert.equal(all.status, 200, all.text);
});
