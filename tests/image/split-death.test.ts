import assert from "node:assert/strict";
import test from "node:test";
import { createLookup, FOUND, findZone, lookUpName } from "../../src/answer/lookup.ts";
import { createSharedImage, type SharedImage } from "../../src/image/shared.ts";
import { directoryDepth, directoryInUse, openView } from "../../src/image/view.ts";
import { collect, createZone, deleteZone, discardZone, openImageWriter, rrsetOf } from "../../src/image/writer.ts";
import type { ImageWriter } from "../../src/image/writer-state.ts";
import { auditArena } from "./audit.ts";
import { keyOf, publishNumbered, putValue, readPattern } from "./content.ts";
import { dieAt, firstDeath } from "./death.ts";

/** With some names more a segment of the table is full, and two take its place. */
const MORE = 240;

/** An image with `names` names, and what would put names more into a zone that does not answer yet. */
function beforeSplit(names: number): { readonly shared: SharedImage; readonly addNames: () => void } {
  const shared = createSharedImage(99);
  const writer = openImageWriter(shared);
  publishNumbered(writer, "stable.", names, (index) => index);
  const zone = createZone(writer, keyOf(writer.view, "more."));
  const addNames = () => {
    for (let index = 0; index < MORE; index++) putValue(writer, zone, keyOf(writer.view, `n${index}.more.`), index);
  };
  return { shared, addNames };
}

/** An image whose writer died at store `at` of adding names. */
function dieSplitting(at: number, names: number): SharedImage {
  const { shared, addNames } = beforeSplit(names);
  assert.ok(dieAt(at, addNames), `death ${at}`);
  return shared;
}

function checkStable(writer: ImageWriter, names: number): void {
  const view = openView(writer.view.shared);
  const lookup = createLookup();
  for (let index = 0; index < names; index++) {
    const name = keyOf(view, `n${index}.stable.`);
    assert.notEqual(findZone(view, lookup, name, 0), 0);
    lookUpName(view, lookup, name);
    assert.equal(lookup.found, FOUND.NODE, `n${index}.stable.`);
    assert.equal(readPattern(view, rrsetOf(writer, lookup.node, 1)).value, index);
  }
}

/** Fills and empties the table until every segment was replaced again. */
function useOn(writer: ImageWriter, names: number): void {
  for (const count of [9_000, 20, 6_000]) {
    publishNumbered(writer, "more.", count, (index) => index);
    const half = createZone(writer, keyOf(writer.view, "half."));
    for (let index = 0; index < 500; index++) putValue(writer, half, keyOf(writer.view, `n${index}.half.`), index);
    discardZone(writer, half);
    while (collect(writer));
    auditArena(writer);
    checkStable(writer, names);
  }
  deleteZone(writer, keyOf(writer.view, "more."));
  while (collect(writer));
  auditArena(writer);
}

/** The first death behind which the directory has `depth` and does not name the same segment everywhere. */
function firstDeathWith(depth: number, names: number): number {
  const { shared, addNames } = beforeSplit(names);
  const isSplit = () => {
    const view = openView(shared);
    return directoryDepth(view) === depth && new Set(directoryInUse(view)).size > 1;
  };
  return firstDeath(addNames, isSplit) ?? assert.fail("no segment was split");
}

for (const { depth, names } of [
  { depth: 1, names: 3_060 },
  { depth: 2, names: 6_000 },
]) {
  test(`a writer that dies while it splits a segment leaves a table that can be used on, directory of depth ${depth}`, () => {
    const start = firstDeathWith(depth, names);
    for (let at = start - 14; at < start + 14; at++) {
      const writer = openImageWriter(dieSplitting(at, names));
      while (collect(writer));
      auditArena(writer);
      checkStable(writer, names);
      // At `start` the two words that hold the directory's depth differ.
      if ((at - start) % 4 === 0) useOn(writer, names);
    }
  });
}

test("a writer that dies while it enters the first segment leaves a table that can be used on", () => {
  for (const at of [0, 1, 2, 3, 4, 5]) {
    const shared = createSharedImage(99);
    const first = openImageWriter(shared);
    assert.ok(dieAt(at, () => void publishNumbered(first, "early.", 3, (index) => index)));
    const writer = openImageWriter(shared);
    publishNumbered(writer, "stable.", 100, (index) => index);
    while (collect(writer));
    auditArena(writer);
    checkStable(writer, 100);
  }
});
