/** What a reader finds that stays inside while the name table is replaced under it. */
import assert from "node:assert/strict";
import test from "node:test";
import { createLookup, FOUND, findZone, type Lookup, lookUpName } from "../../src/answer/lookup.ts";
import { NODE, UNIT_WORDS } from "../../src/image/layout.ts";
import type { NameKey } from "../../src/image/name-key.ts";
import { createSharedImage } from "../../src/image/shared.ts";
import { directoryDepth, enterImage, type ImageView, leaveImage, openView, refreshView } from "../../src/image/view.ts";
import { collect, openImageWriter, removeRRset } from "../../src/image/writer.ts";
import { auditArena } from "./audit.ts";
import { keyOf, publishNumbered, putValue, readPattern } from "./content.ts";

const NAMES = 900;
/** Nothing is freed while the reader is inside: so many zones need a directory of depth 3. */
const ROUNDS = 24;
const READER = 1;

/** The value at a name of the zone that `findZone` put into `lookup`. */
function valueAt(view: ImageView, lookup: Lookup, name: NameKey, what: string): number {
  lookUpName(view, lookup, name);
  assert.equal(lookup.found, FOUND.NODE, what);
  if (lookup.node >= view.limit) refreshView(view);
  const rrset = view.words[lookup.node * UNIT_WORDS + NODE.RRSETS]!;
  assert.notEqual(rrset, 0, `${what} has an RRset`);
  return readPattern(view, rrset).value;
}

test("a reader that stays inside while the directory grows finds each zone whole that is activated meanwhile", () => {
  const shared = createSharedImage(5);
  const writer = openImageWriter(shared);
  publishNumbered(writer, "zone.test.", NAMES, () => 0);
  const changing = publishNumbered(writer, "changing.test.", 40, () => 0);
  const view = openView(shared);
  const keys = (apex: string, count: number) =>
    Array.from({ length: count }, (_, index) => keyOf(view, `n${index}.${apex}`));
  const names = keys("zone.test.", NAMES);
  const changingNames = keys("changing.test.", 40);
  const [held, lookup] = [createLookup(), createLookup()];
  enterImage(view, READER);
  const depth = directoryDepth(view);
  assert.notEqual(findZone(view, held, names[0]!, 0), 0);
  for (let round = 1; round <= ROUNDS; round++) {
    publishNumbered(writer, "zone.test.", NAMES, () => round);
    for (const name of changingNames) {
      assert.ok(removeRRset(writer, changing, name, 1, false));
      putValue(writer, changing, name, round);
    }
    collect(writer);
    for (const [index, name] of names.entries()) {
      assert.notEqual(findZone(view, lookup, name, 0), 0);
      assert.equal(valueAt(view, lookup, name, `n${index} of round ${round}`), round);
      assert.equal(valueAt(view, held, name, `n${index} of the zone that the reader holds, in round ${round}`), 0);
    }
    for (const [index, name] of changingNames.entries()) {
      assert.notEqual(findZone(view, lookup, name, 0), 0);
      assert.equal(valueAt(view, lookup, name, `n${index} that went and came back, in round ${round}`), round);
    }
  }
  assert.ok(directoryDepth(view) >= depth + 2, `directory of depth ${directoryDepth(view)}`);
  leaveImage(view, READER);
  while (collect(writer));
  auditArena(writer);
});
