import assert from "node:assert/strict";
import test from "node:test";
import { runCampaign } from "./campaign.ts";

test("200,000 mutated packets are each answered by the right rcode or by silence", () => {
  const { packets, kinds, rcodes } = runCampaign({ packets: 200_000, seed: 20_260_101 });
  assert.equal(packets, 200_000);
  // The mutations must leave some of every kind, or the test would say little.
  for (const kind of ["silence", "opcode", "malformed", "unsure", "query"])
    assert.ok((kinds.get(kind) ?? 0) > 2_000, kind);
  for (const rcode of [0, 1, 3, 4, 5]) assert.ok((rcodes.get(rcode) ?? 0) > 500, `rcode ${rcode}`);
});

test("and 100,000 more with overrides over a third of the names", () => {
  const { packets, rcodes } = runCampaign({ packets: 100_000, seed: 20_260_102, overrides: true });
  assert.equal(packets, 100_000);
  for (const rcode of [0, 1, 3, 4, 5]) assert.ok((rcodes.get(rcode) ?? 0) > 250, `rcode ${rcode}`);
});
