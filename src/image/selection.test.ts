import assert from "node:assert/strict";
import test from "node:test";
import { auditArena } from "../../tests/image/audit.ts";
import { keyOf } from "../../tests/image/content.ts";
import { METHOD, type Method, SELECTED_FLAG, SELECTION_FLAG, selectionAt, UNIT_WORDS } from "./layout.ts";
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

type Kind = { readonly method?: Method; readonly hasAffinity?: boolean; readonly bytes?: number };

/** Weighted and with affinity, of RRs that are all as long, unless told otherwise: `lastBytes` more of the last one. */
function selectedRRset(count: number, preferred: readonly number[], kind: Kind = {}, lastBytes = 0): RRsetWire {
  const { method = METHOD.WEIGHTED, hasAffinity = true, bytes = RR_BYTES } = kind;
  const selection: RRsetSelection = {
    method,
    flags: hasAffinity ? SELECTION_FLAG.AFFINITY : 0,
    affinitySeconds: 60,
    candidates: Array.from({ length: count }, (_, index) => ({
      offset: index * bytes,
      length: index === count - 1 ? bytes + lastBytes : bytes,
      health: index,
      region: 7,
      weight: 1 << 20,
      hash: ~index,
    })),
    preferred,
  };
  const length = count * bytes + lastBytes;
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

/** The words of the table of an RRset, as it comes to lie in an image, up to the end of `length` words. */
function tableOf(made: RRsetWire, length: number): number[] {
  const writer = openImageWriter(createSharedImage(1));
  const key = keyOf(writer.view, "zone.test.");
  const zone = createZone(writer, key);
  putRRset(writer, zone, zone.apex, made, false);
  activateZone(writer, zone, key);
  auditArena(writer);
  const rrset = rrsetOf(writer, zone.apex, A);
  const { words } = writer.view;
  assert.equal(words[rrset * UNIT_WORDS + 1], A | SELECTED_FLAG);
  const table = selectionAt(rrset, words[rrset * UNIT_WORDS + 2]!);
  return [...words.subarray(table, table + length)];
}

test("a selected RRset has its table behind its RRs, word for word, and in it only what its selection asks for", () => {
  const { WEIGHTED, REGION, FAILOVER } = METHOD;
  const { AFFINITY } = SELECTION_FLAG;
  const even = RR_BYTES << 8;
  const [hashes, shares, regions] = [[~0, ~1, ~2], Array(3).fill(1 << 20), [7, 7, 7]];
  const all = [WEIGHTED | AFFINITY | even | (2 << 16), 0, 0, 1, 2, 60, ...hashes, ...shares, 11, 12];
  assert.deepEqual(tableOf(selectedRRset(3, [11, 12]), all.length), all);
  const weighted = [WEIGHTED | even, 0, 0, 1, 2, ...shares];
  assert.deepEqual(tableOf(selectedRRset(3, [], { hasAffinity: false }), weighted.length), weighted);
  const region = [REGION | even | (1 << 16), 0, 0, 1, 2, ...regions, 11];
  assert.deepEqual(tableOf(selectedRRset(3, [11], { method: REGION, hasAffinity: false }), region.length), region);
  const failover = [FAILOVER | even, 0, 0, 1, 2];
  assert.deepEqual(tableOf(selectedRRset(3, [], { method: FAILOVER, hasAffinity: false }), failover.length), failover);
  const affine = [FAILOVER | AFFINITY | even, 0, 0, 1, 2, 60, ...hashes];
  assert.deepEqual(tableOf(selectedRRset(3, [], { method: FAILOVER }), affine.length), affine);
});

test("RRs of several lengths, and those too long for META, have their places in the table", () => {
  const { WEIGHTED, FAILOVER } = METHOD;
  const { AFFINITY } = SELECTION_FLAG;
  const [first, second] = [RR_BYTES << 16, RR_BYTES | ((RR_BYTES + 3) << 16)];
  const uneven = [WEIGHTED | AFFINITY | (1 << 16), 0, 0, 1, first, second, 60, ~0, ~1, 1 << 20, 1 << 20, 11];
  assert.deepEqual(tableOf(selectedRRset(2, [11], {}, 3), uneven.length), uneven);
  const kind = { method: FAILOVER, hasAffinity: false };
  const longest = [FAILOVER | (255 << 8), 0, 0, 1];
  assert.deepEqual(tableOf(selectedRRset(2, [], { ...kind, bytes: 255 }), longest.length), longest);
  const tooLong = [FAILOVER, 0, 0, 1, 256 << 16, 256 | (256 << 16)];
  assert.deepEqual(tableOf(selectedRRset(2, [], { ...kind, bytes: 256 }), tooLong.length), tooLong);
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
  assert.ok(used > (40 * (RR_BYTES + 3 * 4)) / 16, `${used} units`);
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
