import assert from "node:assert/strict";
import { test } from "node:test";
import type { RefusedItem } from "../store/merge.ts";
import type { RawItem } from "../store/raw-items.ts";
import { createInbox } from "./inbox.ts";
import { INBOX_BYTES_MAX } from "./limits.ts";

type Applying = {
  readonly text: string;
  readonly resolve: (refused: readonly RefusedItem[]) => void;
  readonly reject: (thrown: unknown) => void;
};

/** An inbox whose transactions the test lets end. Each arrival has its name as the zone of all its items. */
function makeWorld() {
  const begun: Applying[] = [];
  const told: string[] = [];
  const inbox = createInbox({
    now: () => 0,
    apply: (items) =>
      new Promise((resolve, reject) => {
        const names = items.map((item) => ("zone" in item ? item.zone : ""));
        begun.push({ text: [...new Set(names)].join(" "), resolve, reject });
      }),
  });
  return {
    inbox,
    told,
    begun: () => begun.map(({ text }) => text),
    offer: (name: string, source: object, count: number, { bytes = 1, from = source } = {}) =>
      inbox.offer({
        bytes,
        from,
        items: Array.from({ length: count }, (): RawItem => ({ item: "serial", zone: name, life: "", serial: 1 })),
        source,
        onApplied: (refused) => told.push([name, ...refused.map(({ index }) => index)].join(" ")),
        onFailed: () => told.push(`${name} failed`),
      }),
    ends: (name: string, refused: readonly RefusedItem[] = []) => {
      begun.find(({ text }) => text === name)?.resolve(refused);
      return new Promise((resolve) => setImmediate(resolve));
    },
    fails: (name: string) => {
      begun.find(({ text }) => text === name)?.reject(new Error("no"));
      return new Promise((resolve) => setImmediate(resolve));
    },
  };
}

const [ONE, OTHER] = [{ name: "one" }, { name: "other" }];

test("what is small goes ahead of what is large from elsewhere, and is told as soon as it is there", async () => {
  const { told, begun, offer, ends } = makeWorld();
  for (const name of ["large1", "large2", "large3"]) offer(name, ONE, 500);
  offer("small", OTHER, 1);
  assert.deepEqual(begun(), ["large1", "large2", "small"]);
  await ends("small");
  assert.deepEqual(told, ["small"]);
  await ends("large1");
  assert.deepEqual([told, begun().slice(3)], [["small", "large1"], ["large3"]]);
});

test("what comes from one source begins and is told in its order", async () => {
  const { told, begun, offer, ends } = makeWorld();
  offer("first", ONE, 1);
  offer("large", ONE, 400);
  offer("last", ONE, 1);
  offer("elsewhere", OTHER, 1);
  assert.deepEqual(begun(), ["first", "large", "elsewhere"]);
  await ends("large");
  assert.deepEqual([told, begun().slice(3)], [[], []]);
  await ends("first");
  assert.deepEqual([told, begun().slice(3)], [["first", "large"], ["last"]]);
});

test("large ones that wait share a transaction with the small ones behind them, up to a batch", async () => {
  const { told, begun, offer, ends } = makeWorld();
  for (const name of ["a", "b", "c"]) offer(name, ONE, 200);
  offer("d", ONE, 1);
  offer("e", ONE, 400);
  assert.deepEqual(begun(), ["a", "b"]);
  await ends("a");
  assert.deepEqual(begun().slice(2), ["c d"]);
  await ends("b");
  await ends("c d");
  assert.deepEqual([told, begun().slice(3)], [["a", "b", "c", "d"], ["e"]]);
});

test("a transaction that ends first is told behind those before it, and each hears of its own refused items", async () => {
  const { inbox, told, begun, offer, ends, fails } = makeWorld();
  offer("a", ONE, 2);
  offer("b", ONE, 2);
  assert.deepEqual(begun(), ["a", "b"]);
  offer("c", OTHER, 3);
  offer("d", ONE, 3);
  await ends("b", [{ index: 1, reason: "future" }]);
  assert.deepEqual(told, []);
  await fails("a");
  assert.deepEqual([told, begun().slice(2)], [["a failed", "b 1"], ["c d"]]);
  await ends("c d", [
    { index: 2, reason: "future" },
    { index: 3, reason: "future" },
  ]);
  assert.deepEqual(told.slice(2), ["c 2", "d 0"]);
  assert.equal(inbox.depth(), 0);
  await inbox.idle();
});

test("of more bytes than may wait those of the peer with the most are dropped, and of the others nothing", async () => {
  const { inbox, told, begun, offer, ends } = makeWorld();
  const [peer, hostile] = [{ name: "peer" }, { name: "hostile" }];
  const quarter = { bytes: INBOX_BYTES_MAX / 4 };
  offer("a", ONE, 500, { ...quarter, from: hostile });
  offer("b", ONE, 500, { ...quarter, from: hostile });
  offer("c", ONE, 500, { bytes: 1, from: peer });
  offer("d", OTHER, 500, { ...quarter, from: hostile });
  assert.deepEqual(told, []);
  offer("e", ONE, 500, { ...quarter, from: hostile });
  assert.deepEqual(told, ["d failed", "e failed"]);
  assert.equal(inbox.depth(), 1_500);
  // What is being stored cannot be dropped, and leaves room when it is told of.
  assert.deepEqual(begun(), ["a", "b"]);
  await ends("a");
  await ends("b");
  assert.deepEqual(begun().slice(2), ["c"]);
  for (const name of ["f", "g", "h"]) offer(name, OTHER, 500, { ...quarter, from: hostile });
  await ends("c");
  assert.deepEqual(told.slice(2), ["a", "b", "c"]);
});
