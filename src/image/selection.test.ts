import assert from "node:assert/strict";
import test from "node:test";
import { auditArena } from "../../tests/image/audit.ts";
import { keyOf } from "../../tests/image/content.ts";
import { CANDIDATE, METHOD, SELECTED_FLAG, SELECTION, SELECTION_FLAG, selectionAt, UNIT_WORDS } from "./layout.ts";
import { regionNumber, setOwnRegion } from "./regions.ts";
import type { RRsetWire } from "./rrset-block.ts";
import type { RRsetSelection } from "./selection.ts";
import { CONTROL, createSharedImage } from "./shared.ts";
import {
  activateZone,
  collect,
  createZone,
  ensureNode,
  openImageWriter,
  putRRset,
  removeRRset,
  rrsetOf,
} from "./writer.ts";
import { unitsOfRRset } from "./writer-state.ts";

const A = 1;
const RR_BYTES = 16;

function selectedRRset(count: number, preferred: readonly number[]): RRsetWire {
  const selection: RRsetSelection = {
    method: METHOD.WEIGHTED,
    flags: SELECTION_FLAG.AFFINITY,
    affinitySeconds: 60,
    candidates: Array.from({ length: count }, (_, index) => ({
      offset: index * RR_BYTES,
      length: RR_BYTES,
      health: index,
      region: 7,
      weight: 1 << 20,
      hash: ~index,
    })),
    preferred,
  };
  const length = count * RR_BYTES;
  return {
    type: A,
    ttl: 30,
    count,
    wire: new Uint8Array(length),
    length,
    pointers: new Uint8Array(0),
    pointerCount: 0,
    selection,
  };
}

test("a selected RRset has its table behind its RRs, word for word", () => {
  const writer = openImageWriter(createSharedImage(1));
  const key = keyOf(writer.view, "zone.test.");
  const zone = createZone(writer, key);
  putRRset(writer, zone, zone.apex, selectedRRset(3, [11, 12]), false);
  activateZone(writer, zone, key);
  const rrset = rrsetOf(writer, zone.apex, A);
  const { words } = writer.view;
  assert.equal(words[rrset * UNIT_WORDS + 1], A | SELECTED_FLAG);
  const table = selectionAt(rrset, words[rrset * UNIT_WORDS + 2]!);
  assert.deepEqual(
    [...words.subarray(table, table + SELECTION.WORDS)],
    [METHOD.WEIGHTED | SELECTION_FLAG.AFFINITY | (2 << 16), 60, 0],
  );
  const last = table + SELECTION.WORDS + 2 * CANDIDATE.WORDS;
  assert.deepEqual(
    [...words.subarray(last, last + CANDIDATE.WORDS + 2)],
    [32 | (RR_BYTES << 16), 2, 7, 1 << 20, ~2, 11, 12],
  );
});

test("blocks of every size are counted whole, kept by a successor and given back", () => {
  const shared = createSharedImage(1);
  const first = openImageWriter(shared);
  const key = keyOf(first.view, "zone.test.");
  const zone = createZone(first, key);
  for (let count = 1; count <= 40; count++) {
    const node = ensureNode(first, zone, keyOf(first.view, `n${count}.zone.test.`));
    putRRset(
      first,
      zone,
      node,
      selectedRRset(
        count,
        Array.from({ length: count % 6 }, (_, index) => index + 1),
      ),
      false,
    );
  }
  activateZone(first, zone, key);
  auditArena(first);
  const writer = openImageWriter(shared);
  auditArena(writer);
  assert.equal(writer.view.control[CONTROL.RRSETS], 40);
  const used = unitsOfRRset(
    writer.view,
    rrsetOf(writer, ensureNode(writer, zone, keyOf(writer.view, "n40.zone.test.")), A),
  );
  assert.ok(used > (40 * (RR_BYTES + CANDIDATE.WORDS * 4)) / 16, `${used} units`);
  for (let count = 1; count <= 40; count++) {
    assert.ok(removeRRset(writer, zone, keyOf(writer.view, `n${count}.zone.test.`), A, false));
  }
  while (collect(writer));
  auditArena(writer);
  assert.equal(writer.view.control[CONTROL.RRSETS], 0);
});

test("a table that does not fit its RRs is refused", () => {
  const writer = openImageWriter(createSharedImage(1));
  const zone = createZone(writer, keyOf(writer.view, "zone.test."));
  const made = { ...selectedRRset(2, []), count: 3 };
  assert.throws(() => putRRset(writer, zone, zone.apex, made, false), RangeError);
});

test("the node's own region is a word of its own", () => {
  const writer = openImageWriter(createSharedImage(1));
  assert.equal(writer.view.control[CONTROL.OWN_REGION], 0);
  setOwnRegion(writer, regionNumber("eu-west"));
  assert.equal(writer.view.control[CONTROL.OWN_REGION], regionNumber("eu-west"));
});
