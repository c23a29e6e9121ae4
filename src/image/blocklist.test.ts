import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { auditArena } from "../../tests/image/audit.ts";
import { nameFromText } from "../dns/name.ts";
import {
  BLOCKLIST_SHARDS,
  beginBlocklist,
  blocklistCount,
  blocklistShard,
  discardBlocklist,
  findBlocked,
  hasShard,
  putShard,
  type ShardFingerprint,
  showBlocklist,
} from "./blocklist.ts";
import { createNameKey, readNameKey } from "./name-key.ts";
import { CONTROL, createSharedImage } from "./shared.ts";
import { type ImageView, openView } from "./view.ts";
import { collect, openImageWriter } from "./writer.ts";
import type { ImageWriter } from "./writer-state.ts";

function wireOf(name: string): Uint8Array {
  const result = nameFromText(name.toLowerCase());
  assert.ok(result.kind === "name", name);
  return result.name;
}

function shardOf(wire: Uint8Array): number {
  return blocklistShard(wire, 0, wire.length - 1);
}

let versions = 0;

/** Puts all of a list in force, or the shards that are told. */
function putList(writer: ImageWriter, names: Iterable<string>, only?: ReadonlySet<number>): void {
  const shards = new Map<number, Uint8Array[]>();
  for (const name of new Set(names)) {
    const wire = wireOf(name);
    const shard = shardOf(wire);
    shards.set(shard, [...(shards.get(shard) ?? []), wire]);
  }
  const draft = beginBlocklist(writer);
  for (let shard = 0; shard < BLOCKLIST_SHARDS; shard++) {
    if (only !== undefined && !only.has(shard)) continue;
    const packed = Buffer.concat(shards.get(shard) ?? []);
    putShard(writer, draft, shard, packed.length === 0 ? [0, 0] : [++versions, 7], packed);
  }
  showBlocklist(writer, draft);
}

const key = createNameKey();

/** The listed name that a name is at or below; undefined: none. */
function blockedBy(view: ImageView, name: string): string | undefined {
  const wire = wireOf(name);
  readNameKey(key, wire, 0, wire.length, view.control[CONTROL.HASH_SEED]!);
  const label = findBlocked(view, key);
  return label < 0 ? undefined : name.toLowerCase().split(".").slice(label).join(".");
}

/** Few labels, so that names are often above, below and beside each other; letters of both cases. */
const label = fc.constantFrom("a", "b", "A", "com", "example", "x".repeat(62));
const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => `${labels.join(".")}.`);

test("a name is blocked by the shortest listed name that it is at or below", () => {
  const writer = openImageWriter(createSharedImage(0x1234567));
  const view = openView(writer.view.shared);
  fc.assert(
    fc.property(fc.array(name, { maxLength: 30 }), fc.array(name, { maxLength: 30 }), (listed, asked) => {
      const names = new Set(listed.map((each) => each.toLowerCase()));
      putList(writer, names);
      assert.equal(blocklistCount(view), names.size);
      for (const each of [...asked, ...listed]) {
        const labels = each.toLowerCase().split(".").slice(0, -1);
        const suffixes = labels.map((_, index) => `${labels.slice(index).join(".")}.`);
        assert.equal(
          blockedBy(view, each),
          suffixes.findLast((suffix) => names.has(suffix)),
          each,
        );
      }
      while (collect(writer));
    }),
    { numRuns: 300 },
  );
  auditArena(writer);
});

test("one name of 127 labels and one of 255 bytes are listed and found", () => {
  const writer = openImageWriter(createSharedImage(5));
  const deep = `${"a.".repeat(126)}b.`;
  const long = `${`${"x".repeat(63)}.`.repeat(3)}${"y".repeat(61)}.`;
  putList(writer, [deep, long]);
  assert.deepEqual([blockedBy(writer.view, deep), blockedBy(writer.view, long)], [deep, long]);
  assert.equal(blockedBy(writer.view, deep.slice(2)), undefined);
  assert.equal(blockedBy(writer.view, long.slice(64)), undefined);
});

test("the shard of a name is the same in every process and version", () => {
  const shards = ["example.com.", "a.", "ads.tracker.example."].map((each) => shardOf(wireOf(each)));
  assert.deepEqual(shards, [95, 119, 92]);
});

test("a change of one shard leaves the blocks of the others where they are, and all memory is accounted for", () => {
  const writer = openImageWriter(createSharedImage(77));
  const reader = openView(writer.view.shared);
  const names = Array.from({ length: 20_000 }, (_, index) => `host-${index}.example${index % 97}.test.`);
  putList(writer, names);
  const before = beginBlocklist(writer);
  const added = "one.more.test.";
  const changed = shardOf(wireOf(added));
  putList(writer, [...names, added], new Set([changed]));
  const after = beginBlocklist(writer);
  const moved = [...before.references.keys()].filter((shard) => before.references[shard] !== after.references[shard]);
  assert.deepEqual(moved, [changed]);
  assert.equal(blocklistCount(reader), 20_001);
  for (const each of [...names, added]) assert.equal(blockedBy(reader, `www.${each}`), each);
  while (collect(writer));
  auditArena(writer);
  const successor = openImageWriter(writer.view.shared);
  while (collect(successor));
  auditArena(successor);
  for (const each of names) assert.equal(blockedBy(successor.view, each), each);
  putList(successor, []);
  while (collect(successor));
  auditArena(successor);
  assert.equal(blockedBy(reader, added), undefined);
});

test("replaced lists give their memory back", () => {
  const writer = openImageWriter(createSharedImage(3));
  const listOf = (round: number) => Array.from({ length: 5_000 }, (_, index) => `host-${index}.list${round % 3}.test.`);
  for (let round = 0; round < 6; round++) {
    putList(writer, listOf(round));
    while (collect(writer));
  }
  const limit = writer.view.limit;
  for (let round = 0; round < 30; round++) {
    putList(writer, listOf(round));
    while (collect(writer));
  }
  assert.equal(writer.view.limit, limit, "the arena grew");
  auditArena(writer);
});

test("a discarded draft changes nothing and keeps no memory; a shard is put anew within one", () => {
  const writer = openImageWriter(createSharedImage(8));
  putList(writer, ["kept.test."]);
  const draft = beginBlocklist(writer);
  const wire = wireOf("gone.test.");
  const print: ShardFingerprint = [4, 4];
  assert.equal(hasShard(draft, shardOf(wire), print), false);
  putShard(writer, draft, shardOf(wire), print, wire);
  putShard(writer, draft, shardOf(wire), print, wire);
  assert.equal(hasShard(draft, shardOf(wire), print), true);
  discardBlocklist(writer, draft);
  assert.equal(blockedBy(writer.view, "gone.test."), undefined);
  assert.equal(blockedBy(writer.view, "x.kept.test."), "kept.test.");
  auditArena(writer);
});

test("what are no names is refused", () => {
  const writer = openImageWriter(createSharedImage(8));
  const draft = beginBlocklist(writer);
  for (const wrong of [Uint8Array.of(0), Uint8Array.of(1, 97), Uint8Array.of(1, 97, 0, 64, 1)]) {
    assert.throws(() => putShard(writer, draft, 1, [1, 1], wrong), RangeError);
  }
  auditArena(writer);
});
