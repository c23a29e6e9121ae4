import assert from "node:assert/strict";
import test from "node:test";
import { usedBytes } from "../../src/image/arena.ts";
import { SEGMENT_UNITS, UNIT_BYTES } from "../../src/image/layout.ts";
import { CONTROL, createSharedImage } from "../../src/image/shared.ts";
import { enterImage, leaveImage, openView } from "../../src/image/view.ts";
import { collect, openImageWriter } from "../../src/image/writer.ts";
import type { ImageWriter } from "../../src/image/writer-state.ts";
import { seededChance } from "../support/chance.ts";
import { auditArena } from "./audit.ts";
import { publishNumbered } from "./content.ts";

const MIB = 2 ** 20;

/** Segments of the name table stay once they are there, so they are no measure of what a content needs. */
function contentBytes(writer: ImageWriter): number {
  return usedBytes(writer.arena) - writer.segments.size * SEGMENT_UNITS * UNIT_BYTES;
}

test("a thousand replacements of zones of every size leave as much memory in use as the first", () => {
  const chance = seededChance(20);
  const writer = openImageWriter(createSharedImage(3));
  const publish = (zone: string, count: number, from: number) => {
    publishNumbered(writer, zone, count, (index) => from + index * 13);
    while (collect(writer));
  };
  const settle = () => {
    for (const zone of ["one.", "two.", "three."]) publish(zone, 100, 5);
    return contentBytes(writer);
  };
  const first = settle();
  let [limitAfterSome, rssAfterSome] = [0, 0];
  for (let round = 0; round < 1_800; round++) {
    // The largest are a hundred times the smallest, so that blocks of all sizes come and go.
    publish(
      chance.pick(["one.", "two.", "three."]),
      10 + chance.below(10) ** 2 * chance.below(12),
      chance.below(90_000),
    );
    if (round === 800) [limitAfterSome, rssAfterSome] = [writer.view.limit, process.memoryUsage().rss];
  }
  assert.equal(settle(), first);
  auditArena(writer);
  assert.ok(writer.view.limit <= limitAfterSome * 1.3, `the arena ends at ${writer.view.limit}, was ${limitAfterSome}`);
  const rss = process.memoryUsage().rss;
  assert.ok(rss < rssAfterSome + 48 * MIB, `${rss / MIB} MiB resident, were ${rssAfterSome / MIB}`);
});

test("a thousand growths leave nothing behind in the views that follow them", () => {
  const shared = createSharedImage(3);
  const views = [openView(shared), openView(shared)];
  const grow = (times: number) => {
    for (let count = 0; count < times; count++) {
      shared.arena.grow(shared.arena.byteLength + 4_096);
      Atomics.add(new Int32Array(shared.control), CONTROL.GENERATION, 1);
      for (const [thread, view] of views.entries()) {
        enterImage(view, thread);
        leaveImage(view, thread);
      }
    }
  };
  grow(100);
  const { rss, external, arrayBuffers } = process.memoryUsage();
  grow(1_000);
  for (const view of views) assert.equal(view.words.byteLength, shared.arena.byteLength);
  const now = process.memoryUsage();
  assert.ok(now.rss < rss + 16 * MIB, `${now.rss / MIB} MiB resident, were ${rss / MIB}`);
  assert.ok(now.external < external + 16 * MIB && now.arrayBuffers < arrayBuffers + 16 * MIB);
});
