import assert from "node:assert/strict";
import test from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Agent, request } from "undici";
import { auditRoutes } from "../../src/api/routes/audit.ts";
import { startApi } from "../support/api.ts";

const ENTRIES = 200_000;
const MEMORY_MB = 32;
const SAMPLE_BYTES = 10_000_000;

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

/**
 * What is alive, without what waits to be collected: that says more of how busy the collector was than of the export. The
 * resident size would count the store's file too, whose pages the kernel maps as they are read and may take back.
 */
function aliveBytes(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test(`an export of ${ENTRIES} entries has all of them and holds few in memory`, async () => {
  await using api = await startApi(auditRoutes);
  for (let at = 0; at < ENTRIES; at += 5_000) {
    await api.store.write((tx) => {
      for (let index = at; index < at + 5_000; index++) {
        tx.audit({
          user_id: "usr_a",
          user_name: "alice",
          source_address: "192.0.2.1",
          request_id: `r${index}`,
          action: "update",
          resource: "record",
          resource_id: `rec_${index}`,
          resource_name: `www.${index}`,
          result: "success",
          after: { values: [{ value: "192.0.2.2" }], comment: "x".repeat(200) },
        });
      }
    });
  }
  const agent = new Agent({ connect: { rejectUnauthorized: false } });
  const headers = { authorization: "Bearer admin", "x-svc-csrf": "1" };
  const response = await request(`${api.url}/api/v1/audit/export`, { headers, dispatcher: agent });
  const before = aliveBytes();
  let [lines, bytes, peak, nextSample] = [0, 0, 0, 0];
  for await (const chunk of response.body) {
    bytes += chunk.length;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++;
    if (bytes < nextSample) continue;
    nextSample += SAMPLE_BYTES;
    peak = Math.max(peak, aliveBytes() - before);
  }
  await agent.destroy();
  assert.equal(lines, ENTRIES);
  assert.ok(bytes > 3 * MEMORY_MB * 1e6, `${bytes} bytes are too few to tell`);
  assert.ok(peak < MEMORY_MB * 1e6, `${Math.round(peak / 1e6)} MB more at ${Math.round(bytes / 1e6)} MB`);
});
