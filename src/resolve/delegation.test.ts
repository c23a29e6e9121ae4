import assert from "node:assert/strict";
import { test } from "node:test";
import { wireName } from "../../tests/support/scripted-replies.ts";
import { type Cut, createKept, cutKey, nearestCut, serversOf } from "./delegation.ts";
import { NAME_SERVER_ADDRESSES_MAX } from "./resolver-limits.ts";

test("values are kept for their time, and the least recently used goes first", () => {
  const clock = { seconds: 100 };
  const kept = createKept<number>(3, () => clock.seconds);
  for (const [key, seconds] of [
    ["a", 10],
    ["b", 20],
    ["c", 30],
  ] as const)
    kept.put(key, seconds, seconds);
  assert.equal(kept.get("a"), 10);
  kept.put("d", 40, 40);
  assert.equal(kept.get("b"), undefined);
  assert.equal(kept.size(), 3);
  clock.seconds = 110;
  assert.equal(kept.get("a"), undefined);
  assert.equal(kept.get("c"), 30);
  kept.put("c", 31, 5);
  assert.equal(kept.get("c"), 31);
  kept.removeWhere((value) => value === 31);
  assert.deepEqual([kept.get("c"), kept.get("d")], [undefined, 40]);
  kept.remove("d");
  assert.equal(kept.size(), 0);
});

test("the longest cut known that the name lies at or below is the nearest, of the same route, and never the domain itself", () => {
  const learned = createKept<Cut>(10, () => 0);
  for (const cut of ["corp.test.", "b.corp.test.", "a.b.corp.test."])
    learned.put(cutKey(20, wireName(cut)), { cut: wireName(cut), servers: [] }, 60);
  const nearest = (name: string, type = 1, route = 20): Uint8Array | undefined =>
    nearestCut(learned, route, wireName("corp.test."), wireName(name), type)?.cut;
  assert.deepEqual(nearest("x.a.b.corp.test."), wireName("a.b.corp.test."));
  assert.deepEqual(nearest("a.b.corp.test."), wireName("a.b.corp.test."));
  assert.deepEqual(nearest("xa.b.corp.test."), wireName("b.corp.test."));
  assert.equal(nearest("c.corp.test."), undefined);
  assert.equal(nearest("corp.test."), undefined);
  assert.equal(nearest("a.b.corp.test.", 1, 21), undefined);
  // DS stands above the cut that it is about.
  assert.deepEqual(nearest("a.b.corp.test.", 43), wireName("b.corp.test."));
});

test("a bounded number of addresses is asked", () => {
  const addresses = Array.from({ length: 200 }, (_, index) => Uint8Array.of(192, 0, 2, index));
  assert.equal(serversOf(addresses, 53).length, NAME_SERVER_ADDRESSES_MAX);
});
