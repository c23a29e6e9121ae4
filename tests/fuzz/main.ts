/**
 * `node tests/fuzz/main.ts [--packets N] [--seed N] [--overrides]`: mutated packets against the answerer, each response held against
 * the oracle, on request with overrides over some of the names. Exit code 1 at the first wrong one, with the packet that shows it and the seed that makes it again.
 */
import { parseArgs } from "node:util";
import { runCampaign } from "./campaign.ts";

const { values } = parseArgs({
  options: {
    packets: { type: "string", default: "10000000" },
    seed: { type: "string", default: "1" },
    overrides: { type: "boolean", default: false },
  },
});
const [packets, seed] = [Number(values.packets), Number(values.seed)];
if (!Number.isInteger(packets) || packets < 1 || !Number.isInteger(seed)) {
  console.error("usage: node tests/fuzz/main.ts [--packets N] [--seed N] [--overrides]");
  process.exit(1);
}

const table = (counts: ReadonlyMap<string | number, number>): string =>
  [...counts].map(([key, value]) => `${key} ${value.toLocaleString("en")}`).join(", ");

const startedAt = performance.now();
try {
  const campaign = runCampaign({
    packets,
    seed,
    overrides: values.overrides,
    onProgress: (sent) => console.error(`${sent.toLocaleString("en")} packets`),
  });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
  console.log(`${campaign.packets.toLocaleString("en")} packets in ${seconds} s, seed ${seed}: all answered rightly`);
  console.log(`packets: ${table(campaign.kinds)}`);
  console.log(`rcodes: ${table(campaign.rcodes)}`);
} catch (error) {
  console.error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
