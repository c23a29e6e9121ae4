import assert from "node:assert/strict";
import test from "node:test";
import { auditArena } from "../../tests/image/audit.ts";
import { keyOf } from "../../tests/image/content.ts";
import { seededChance } from "../../tests/support/chance.ts";
import { SEGMENT_SLOTS, SLOT_REMOVED, UNIT_WORDS } from "./layout.ts";
import type { NameKey } from "./name-key.ts";
import { createSharedImage } from "./shared.ts";
import { directoryDepth, directoryInUse, findNode } from "./view.ts";
import { collect, createZone, ensureNode, nodeOf, openImageWriter, putRRset, removeRRset } from "./writer.ts";
import type { ImageWriter } from "./writer-state.ts";

const NAMES = 100_000;
const A_RRSET = {
  type: 1,
  ttl: 1,
  count: 1,
  wire: new Uint8Array(16),
  length: 16,
  pointers: new Uint8Array(0),
  pointerCount: 0,
};

function createTable(): { writer: ImageWriter; names: readonly NameKey[]; zone: ReturnType<typeof createZone> } {
  const writer = openImageWriter(createSharedImage(42));
  const zone = createZone(writer, keyOf(writer.view, "test."));
  const names = Array.from({ length: NAMES }, (_, index) => keyOf(writer.view, `host-${index}.test.`));
  return { writer, names, zone };
}

/** What the writer counts of each segment is what stands in it, and the directory names it where its depth says. */
function checkSegments({ view, segments }: ImageWriter): void {
  const spans = new Map<number, number>();
  for (const segment of directoryInUse(view)) spans.set(segment, (spans.get(segment) ?? 0) + 1);
  assert.deepEqual([...spans.keys()].sort(), [...segments.keys()].sort());
  for (const [segment, { depth, live, used }] of segments) {
    assert.equal(spans.get(segment), 2 ** (directoryDepth(view) - depth));
    let [foundLive, foundUsed] = [0, 0];
    for (let slot = 0; slot < SEGMENT_SLOTS; slot++) {
      const reference = view.words[segment * UNIT_WORDS + slot * 2 + 1]!;
      if (reference !== 0) foundUsed++;
      if (reference !== 0 && reference !== SLOT_REMOVED) foundLive++;
    }
    assert.deepEqual([live, used], [foundLive, foundUsed]);
    assert.ok(used <= (SEGMENT_SLOTS * 3) / 4, "a look-up always meets an empty slot");
  }
}

test("a hundred thousand names are found as segments split, and names that are not there are not", () => {
  const { writer, names, zone } = createTable();
  for (const name of names) putRRset(writer, zone, ensureNode(writer, zone, name), A_RRSET, false);
  checkSegments(writer);
  assert.equal(new Set(names.map((name) => nodeOf(writer, zone, name))).size, NAMES);
  assert.ok(!names.some((name) => nodeOf(writer, zone, name) === 0));
  for (let index = 0; index < 1_000; index++) {
    assert.equal(nodeOf(writer, zone, keyOf(writer.view, `nohost-${index}.test.`)), 0);
    const name = names[index]!;
    assert.equal(findNode(writer.view, zone.incarnation + 1, name.hashes[0]!, name, 0, name.length - 5), 0);
  }
  // Hashes that spread badly would need far more segments than full ones would be.
  const least = NAMES / ((SEGMENT_SLOTS * 3) / 4);
  assert.ok(writer.segments.size < least * 2.2, `${writer.segments.size} segments`);
});

test("removed names leave slots that are passed, used again, and cleaned away", () => {
  const { writer, names, zone } = createTable();
  const chance = seededChance(7);
  const present = new Set<number>();
  for (let step = 0; step < 150_000; step++) {
    // The set of names drifts: everything is removed in the end, and the table never grows beyond what it holds.
    const index = (step >>> 2) + chance.below(2_000);
    const name = names[index]!;
    if (present.delete(index)) assert.ok(removeRRset(writer, zone, name, 1, false));
    else {
      putRRset(writer, zone, ensureNode(writer, zone, name), A_RRSET, false);
      present.add(index);
    }
    if (step % 1_000 === 0) while (collect(writer));
  }
  checkSegments(writer);
  for (const [index, name] of names.entries()) assert.equal(nodeOf(writer, zone, name) !== 0, present.has(index));
  for (const index of present) removeRRset(writer, zone, names[index]!, 1, false);
  while (collect(writer));
  auditArena(writer, [zone]);
});
