import assert from "node:assert/strict";
import test from "node:test";
import { keyOf, publishNumbered } from "../../tests/image/content.ts";
import { createSharedImage } from "./shared.ts";
import { enterImage, leaveImage, openView } from "./view.ts";
import { collect, createZone, openImageWriter } from "./writer.ts";

test("an empty image is opened as it is", () => {
  const writer = openImageWriter(openImageWriter(createSharedImage(1)).view.shared);
  assert.equal(writer.segments.size, 0);
  assert.equal(writer.entriesByDepth.size, 0);
});

test("readers take over growth that a dead writer did not tell of", () => {
  const shared = createSharedImage(1);
  publishNumbered(openImageWriter(shared), "zone.test.", 3, (index) => index);
  const view = openView(shared);
  shared.arena.grow(shared.arena.byteLength * 2);
  openImageWriter(shared);
  enterImage(view, 0);
  assert.equal(view.words.byteLength, shared.arena.byteLength);
  leaveImage(view, 0);
});

test("a successor numbers incarnations beyond those it finds", () => {
  const shared = createSharedImage(1);
  const { incarnation } = publishNumbered(openImageWriter(shared), "zone.test.", 3, (index) => index);
  const writer = openImageWriter(shared);
  assert.ok(createZone(writer, keyOf(writer.view, "zone.test.")).incarnation > incarnation);
});

test("what a dead writer gave up is not used again while a reader is inside", () => {
  const shared = createSharedImage(1);
  const first = openImageWriter(shared);
  publishNumbered(first, "zone.test.", 50, (index) => index);
  const view = openView(shared);
  enterImage(view, 5);
  publishNumbered(first, "zone.test.", 1, (index) => index);
  const writer = openImageWriter(shared);
  assert.equal(collect(writer), true, "it waits");
  assert.equal(writer.arena.freeUnits, 0);
  leaveImage(view, 5);
  while (collect(writer));
  assert.ok(writer.arena.freeUnits > 0);
});
