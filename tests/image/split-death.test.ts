import assert from "node:assert/strict";
import test from "node:test";
import { createLookup, FOUND, findZone, lookUpName } from "../../src/answer/lookup.ts";
import { createSharedImage, type SharedImage } from "../../src/image/shared.ts";
import { openView } from "../../src/image/view.ts";
import { collect, createZone, deleteZone, discardZone, openImageWriter, rrsetOf } from "../../src/image/writer.ts";
import type { ImageWriter } from "../../src/image/writer-state.ts";
import { auditArena } from "./audit.ts";
import { keyOf, publishNumbered, putValue, readPattern } from "./content.ts";
import { dieAt } from "./death.ts";

/** With a few names more the table's first segment is full, and two take its place. */
const NAMES = 3_060;
const MORE = 40;
/** Directory words that the first split stores, lower half first. */
const DIRECTORY = 2 ** 16;

/** An image whose writer died at store `at` of adding names to a zone that did not answer yet. */
function dieSplitting(at: number): SharedImage {
  const shared = createSharedImage(99);
  const writer = openImageWriter(shared);
  publishNumbered(writer, "stable.", NAMES, (index) => index);
  const zone = createZone(writer, keyOf(writer.view, "more."));
  const died = dieAt(at, () => {
    for (let index = 0; index < MORE; index++) putValue(writer, zone, keyOf(writer.view, `n${index}.more.`), index);
  });
  assert.ok(died, `death ${at}`);
  return shared;
}

function checkStable(writer: ImageWriter): void {
  const view = openView(writer.view.shared);
  const lookup = createLookup();
  for (let index = 0; index < NAMES; index++) {
    const name = keyOf(view, `n${index}.stable.`);
    assert.notEqual(findZone(view, lookup, name, 0), 0);
    lookUpName(view, lookup, name);
    assert.equal(lookup.found, FOUND.NODE, `n${index}.stable.`);
    assert.equal(readPattern(view, rrsetOf(writer, lookup.node, 1)).value, index);
  }
}

/** Fills and empties the table until every segment was replaced again. */
function useOn(writer: ImageWriter): void {
  for (const count of [9_000, 20, 6_000]) {
    publishNumbered(writer, "more.", count, (index) => index);
    const half = createZone(writer, keyOf(writer.view, "half."));
    for (let index = 0; index < 500; index++) putValue(writer, half, keyOf(writer.view, `n${index}.half.`), index);
    discardZone(writer, half);
    while (collect(writer));
    auditArena(writer);
    checkStable(writer);
  }
  deleteZone(writer, keyOf(writer.view, "more."));
  while (collect(writer));
  auditArena(writer);
}

/** The first death behind which the two ends of the directory differ. */
function firstDeathInSplit(): number {
  for (let at = 1; at < 1_000; at += 2) {
    const directory = new Int32Array(dieSplitting(at).directory);
    if (directory[0] !== directory[DIRECTORY - 1]) return at;
  }
  throw new Error("no segment was split");
}

test("a writer that dies while it splits a segment of the table leaves one that can be used on", () => {
  const start = firstDeathInSplit();
  // Two deaths a store. Behind half of the stores the directory looks whole, and is not.
  const halves = start - 1 + DIRECTORY;
  const end = start - 1 + DIRECTORY * 2;
  for (const at of [
    start - 3,
    start - 1,
    start,
    start + 4_000,
    halves - 1,
    halves,
    halves + 1,
    end - 2,
    end,
    end + 1,
  ]) {
    const writer = openImageWriter(dieSplitting(at));
    while (collect(writer));
    auditArena(writer);
    checkStable(writer);
    useOn(writer);
  }
});

test("a writer that dies while it enters the first segment leaves a table that can be used on", () => {
  for (const at of [0, 1, 7, DIRECTORY, 2 * DIRECTORY - 1]) {
    const shared = createSharedImage(99);
    const first = openImageWriter(shared);
    assert.ok(dieAt(at, () => void publishNumbered(first, "early.", 3, (index) => index)));
    const writer = openImageWriter(shared);
    publishNumbered(writer, "stable.", NAMES, (index) => index);
    while (collect(writer));
    auditArena(writer);
    checkStable(writer);
  }
});
