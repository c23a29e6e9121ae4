import assert from "node:assert/strict";
import test from "node:test";
import { usedBytes } from "../../src/image/arena.ts";
import {
  NODE,
  RRSET,
  SEGMENT_SLOTS,
  SEGMENT_UNITS,
  UNIT_BYTES,
  UNIT_WORDS,
  ZONE,
  ZONE_ENTRY,
  ZONE_ENTRY_ROUTE,
} from "../../src/image/layout.ts";
import { offerRecursion } from "../../src/image/recursion.ts";
import { putRegions } from "../../src/image/regions.ts";
import { CONTROL, createSharedImage, type SharedImage } from "../../src/image/shared.ts";
import { findNode, openView } from "../../src/image/view.ts";
import {
  beginChange,
  collect,
  createZone,
  deleteZone,
  discardZone,
  endChange,
  ensureNode,
  keepName,
  openImageWriter,
  putRRset,
  removeRRset,
  rrsetOf,
  setNegativeSoa,
  setRoute,
  showOverrides,
  type ZoneHandle,
} from "../../src/image/writer.ts";
import type { ImageWriter } from "../../src/image/writer-state.ts";
import { auditArena } from "./audit.ts";
import { keyOf, patternRRset, publishNumbered, putValue, readPattern } from "./content.ts";
import { dieAt } from "./death.ts";

const SEED = 4711;
const STABLE = 40;
const ROUTED = ["far.away.", "sub.changing.test.", "changing.test."] as const;

type Step = (writer: ImageWriter, zone: ZoneHandle) => void;

const key = (writer: ImageWriter, name: string) => keyOf(writer.view, name);

/** Each of these dies at every one of its stores. The zone changing.test. is active, with some names, when they begin. */
const STEPS: Readonly<Record<string, Step>> = {
  "an RRset is put": (writer, zone) => putValue(writer, zone, key(writer, "n1.changing.test."), 99),
  "a deep name is added": (writer, zone) => putValue(writer, zone, key(writer, "*.a.b.c.changing.test."), 5),
  "a name is removed": (writer, zone) => removeRRset(writer, zone, key(writer, "n2.changing.test."), 1, false),
  "several names change": (writer, zone) => {
    beginChange(writer, zone);
    for (let index = 0; index < 5; index++)
      putValue(writer, zone, key(writer, `n${index}.changing.test.`), 600 + index);
    endChange(writer, zone);
  },
  "a cut comes and goes": (writer, zone) => {
    const cut = key(writer, "cut.changing.test.");
    putRRset(writer, zone, ensureNode(writer, zone, cut), patternRRset(2, 8), true);
    removeRRset(writer, zone, cut, 2, true);
  },
  "a name is kept without records, and let go": (writer, zone) => {
    keepName(writer, zone, key(writer, "kept.below.changing.test."), true);
    putValue(writer, zone, key(writer, "kept.below.changing.test."), 7);
    removeRRset(writer, zone, key(writer, "kept.below.changing.test."), 1, false);
    keepName(writer, zone, key(writer, "kept.below.changing.test."), false);
  },
  "a zone is replaced": (writer) => publishNumbered(writer, "changing.test.", 12, (index) => 1_000 + index),
  "a zone is made and given up": (writer) => {
    const zone = createZone(writer, key(writer, "given.up."));
    setNegativeSoa(writer, zone, patternRRset(6, 3));
    putValue(writer, zone, key(writer, "a.given.up."), 4);
    discardZone(writer, zone);
  },
  "a zone is made below another, and deleted": (writer) => {
    publishNumbered(writer, "sub.changing.test.", 3, (index) => index);
    deleteZone(writer, key(writer, "sub.changing.test."));
  },
  "overrides come, are replaced and go": (writer) => {
    for (const value of [8, 9]) {
      const overrides = createZone(writer, key(writer, "."));
      setNegativeSoa(writer, overrides, patternRRset(6, value));
      putValue(writer, overrides, key(writer, "a.far.away."), value);
      showOverrides(writer, overrides);
      beginChange(writer, overrides);
      putValue(writer, overrides, key(writer, "changing.test."), value);
      removeRRset(writer, overrides, key(writer, "a.far.away."), 1, false);
      endChange(writer, overrides);
    }
    showOverrides(writer, undefined);
  },
  "routes come, change and go, with zones and without": (writer) => {
    for (const name of ROUTED) setRoute(writer, key(writer, name), 50);
    publishNumbered(writer, "sub.changing.test.", 3, (index) => index);
    setRoute(writer, key(writer, "far.away."), 51);
    deleteZone(writer, key(writer, "sub.changing.test."));
    for (const name of ROUTED) setRoute(writer, key(writer, name), 0);
  },
  "the negative SOA, the regions and the networks of recursion change": (writer, zone) => {
    setNegativeSoa(writer, zone, patternRRset(6, 77));
    putRegions(writer, [{ address: Uint8Array.of(10, 0, 0, 0), prefixLength: 8, region: 1 }]);
    putRegions(writer, [{ address: Uint8Array.of(10, 0, 0, 0), prefixLength: 8, region: 2 }]);
    for (const last of [1, 2]) {
      offerRecursion(writer, [{ address: Uint8Array.of(10, 0, 0, last), prefixBits: 32, hostBitsSet: false }]);
    }
  },
};

function prepare(): { shared: SharedImage; writer: ImageWriter; zone: ZoneHandle } {
  const shared = createSharedImage(SEED);
  const writer = openImageWriter(shared);
  publishNumbered(writer, "stable.", STABLE, (index) => index * 3);
  const zone = publishNumbered(writer, "changing.test.", 8, (index) => 100 + index);
  setNegativeSoa(writer, zone, patternRRset(6, 1));
  while (collect(writer));
  return { shared, writer, zone };
}

/** Names of stable. answer as ever, in a view of their own. */
function checkStable(shared: SharedImage, writer: ImageWriter, count: number): void {
  const view = openView(shared);
  const entry = findNode(view, 0, key(writer, "stable.").hashes[0]!, key(writer, "stable."), 0, 7);
  assert.notEqual(entry, 0, "stable. has its entry");
  const incarnation = view.words[view.words[entry * 4 + 1]! * 4]!;
  for (let index = 0; index < count; index++) {
    const name = key(writer, `n${index}.stable.`);
    const node = findNode(view, incarnation, name.hashes[0]!, name, 0, name.length - 7);
    assert.notEqual(node, 0, `n${index}.stable. is there`);
    assert.deepEqual(readPattern(view, rrsetOf(writer, node, 1)), { type: 1, value: index * 3 });
  }
}

/** What metrics show is what is there, and a zone that never answered has left nothing. */
function checkFigures({ view, segments }: ImageWriter): void {
  const figures = { zones: 0, names: 0, rrsets: 0 };
  for (const segment of segments.keys()) {
    for (let slot = 0; slot < SEGMENT_SLOTS; slot++) {
      const node = view.words[segment * UNIT_WORDS + slot * 2 + 1]!;
      if (node <= 0) continue;
      const first = view.words[node * UNIT_WORDS + NODE.RRSETS]!;
      if (view.words[node * UNIT_WORDS + NODE.INCARNATION] === ZONE_ENTRY) {
        if (first === 0) {
          assert.notEqual(view.words[node * UNIT_WORDS + ZONE_ENTRY_ROUTE], 0, "a zone entry has a body or a route");
          continue;
        }
        assert.equal(view.words[first * UNIT_WORDS + ZONE.SEQUENCE]! % 2, 0, "no change of several names goes on");
        figures.zones++;
        continue;
      }
      figures.names++;
      for (let rrset = first; rrset !== 0; rrset = view.words[rrset * UNIT_WORDS + RRSET.NEXT]!) figures.rrsets++;
    }
  }
  const { control } = view;
  const overrides = control[CONTROL.OVERRIDES]! * UNIT_WORDS;
  if (overrides !== 0) assert.equal(view.words[overrides + ZONE.SEQUENCE]! % 2, 0, "nor one of overrides");
  const shown = { zones: control[CONTROL.ZONES], names: control[CONTROL.NAMES], rrsets: control[CONTROL.RRSETS] };
  assert.deepEqual(shown, figures);
}

/** Takes over, and brings the image to a content that is known: everything else must be free again. */
function takeOver(shared: SharedImage, stable: number): ImageWriter {
  const writer = openImageWriter(shared);
  checkStable(shared, writer, stable);
  while (collect(writer));
  auditArena(writer);
  checkFigures(writer);
  for (const name of ["sub.changing.test.", "given.up."]) deleteZone(writer, key(writer, name));
  for (const name of ROUTED) setRoute(writer, key(writer, name), 0);
  showOverrides(writer, undefined);
  publishNumbered(writer, "changing.test.", 8, (index) => 100 + index);
  putRegions(writer, []);
  offerRecursion(writer, []);
  while (collect(writer));
  auditArena(writer);
  checkStable(shared, writer, stable);
  return writer;
}

/** Bytes in use but for the name table's segments, whose number depends on the way that led there. */
function contentBytes(writer: ImageWriter): number {
  return usedBytes(writer.arena) - writer.segments.size * SEGMENT_UNITS * UNIT_BYTES;
}

for (const [name, step] of Object.entries(STEPS)) {
  test(`a writer that dies at any store while ${name} loses no memory and no zone`, () => {
    const expected = contentBytes(takeOver(prepare().shared, STABLE));
    let at = 0;
    for (; ; at++) {
      const { shared, writer, zone } = prepare();
      const died = dieAt(at, () => {
        step(writer, zone);
        while (collect(writer));
      });
      assert.equal(contentBytes(takeOver(shared, STABLE)), expected, `death ${at}`);
      if (!died) break;
    }
    assert.ok(at >= 4, `${at} stores`);
  });
}
