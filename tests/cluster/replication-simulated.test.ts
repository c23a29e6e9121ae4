import assert from "node:assert/strict";
import test from "node:test";
import { runHistory } from "../support/replication-history.ts";

/** One seed alone, or so many of them. */
const ONLY = process.env.SIGNPOST_SIM_SEED;
const SEEDS = Number(process.env.SIGNPOST_SIM_SEEDS ?? 16);
/** They found a fault once: a digest that was built while a zone had no object. */
const MEMORABLE = [54, 185];
const FILE = "tests/cluster/replication-simulated.test.ts";

test("nodes that write, stop, stall and lose each other end alike, and lose nothing", async () => {
  const seeds = ONLY === undefined ? [...MEMORABLE, ...Array(SEEDS).keys()] : [Number(ONLY)];
  const failures: string[] = [];
  for (const seed of seeds) {
    try {
      await runHistory(seed);
    } catch (thrown) {
      const why = thrown instanceof Error ? (ONLY === undefined ? thrown.message : thrown.stack) : String(thrown);
      failures.push(`SIGNPOST_SIM_SEED=${seed} node --test ${FILE}\n  ${why}`);
    }
  }
  assert.equal(
    failures.length,
    0,
    `${failures.length} of ${seeds.length} seeds failed; to run them again:\n${failures.join("\n")}`,
  );
});
