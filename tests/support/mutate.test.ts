import assert from "node:assert/strict";
import test from "node:test";
import { seededChance } from "./chance.ts";
import { mutateInto, newScratch, packetCorpus } from "./mutate.ts";

function packetsOf(seed: number, count: number): string[] {
  const corpus = packetCorpus(["host.corp.test.", "."]);
  const chance = seededChance(seed);
  const scratch = newScratch();
  return Array.from({ length: count }, () => {
    mutateInto(scratch, chance, corpus);
    return scratch.bytes.toString("hex", 0, scratch.length);
  });
}

test("a seed gives the same packets again", () => {
  assert.deepEqual(packetsOf(7, 500), packetsOf(7, 500));
});

test("packets are of many kinds", () => {
  assert.ok(new Set(packetsOf(1, 2_000)).size > 1_200);
});

test("mutation leaves the corpus as it is", () => {
  const corpus = packetCorpus(["host.corp.test."]);
  const before = corpus.map((packet) => packet.toString("hex"));
  const chance = seededChance(3);
  const scratch = newScratch();
  for (let left = 1_000; left > 0; left -= 1) mutateInto(scratch, chance, corpus);
  assert.deepEqual(
    corpus.map((packet) => packet.toString("hex")),
    before,
  );
});
