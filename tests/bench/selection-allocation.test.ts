import assert from "node:assert/strict";
import test from "node:test";
import { getHeapStatistics } from "node:v8";
import { TRANSPORT } from "../../src/image/counters.ts";
import { openSelectionLab } from "../support/selection-lab.ts";
import { queryBytes, zone } from "../support/zone-lab.ts";

const METHODS = ["ALL", "ROUND_ROBIN", "FAILOVER", "LATENCY", "REGION", "GEO_FAILOVER", "WEIGHTED"] as const;
const REGIONS = ["west", "east", "north", "south"] as const;
const ROOM = 1232;
const BATCH = 64;

/** V8 counts what it allocates, collected since or not. */
function allocatedBytes(): number {
  const { total_allocated_bytes: bytes } = getHeapStatistics() as { readonly total_allocated_bytes?: number };
  return bytes ?? assert.fail("this Node does not count allocated bytes");
}

test("selecting allocates nothing once it is warm, whatever the method", () => {
  const lab = openSelectionLab([zone("corp.test.")], { nowSeconds: 1_800_000_000 });
  lab.regions({ "10.0.0.0/10": "west", "10.64.0.0/10": "east", "10.128.0.0/10": "north" }, "south");
  const queries: Uint8Array[] = [];
  for (const [index, method] of METHODS.entries()) {
    for (const affinitySeconds of [0, 300]) {
      const name = `n${index}-${affinitySeconds}.corp.test.`;
      const values = REGIONS.map((region, value) => ({
        value: `10.0.${index}.${value}`,
        probe: `${index}-${value}`,
        region,
        weight: value,
      }));
      lab.select(`${name} A`, { method, affinitySeconds, preferred: ["north"] }, values);
      lab.health(`${index}-1`, "UNHEALTHY");
      for (const value of [0, 2, 3]) lab.health(`${index}-${value}`, "HEALTHY", 1_000 + value * 40);
      queries.push(queryBytes(`${name} A`));
    }
  }
  const bytes = new Uint8Array(ROOM);
  const client = Uint8Array.of(10, 0, 0, 1);
  const run = (answers: number) => {
    for (let done = 0; done < answers; done += BATCH) {
      lab.answerer.enter();
      for (let slot = 0; slot < BATCH; slot++) {
        const query = queries[(done + slot) % queries.length]!;
        client[1] = done + slot * 37;
        bytes.set(query);
        lab.answerer.answer(bytes, 0, query.length, ROOM, client, 0, 4, TRANSPORT.UDP);
      }
      lab.answerer.leave();
    }
  };
  run(1_000_000);
  const before = allocatedBytes();
  run(500_000);
  const each = (allocatedBytes() - before) / 500_000;
  assert.ok(each < 6, `${each} bytes an answer`);
});
