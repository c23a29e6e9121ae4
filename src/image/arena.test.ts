import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { type Arena, allocate, openArena, release, usedBytes } from "./arena.ts";
import { UNIT_BYTES } from "./layout.ts";
import { createSharedImage } from "./shared.ts";
import { openView } from "./view.ts";

function createArena(): Arena {
  return openArena(openView(createSharedImage(1)));
}

test("an empty arena uses nothing, and reference 0 is never given out", () => {
  const arena = createArena();
  assert.equal(usedBytes(arena), 0);
  assert.notEqual(allocate(arena, 1), 0);
  assert.equal(usedBytes(arena), UNIT_BYTES);
});

test("blocks in use never overlap, and what was freed is all there again", () => {
  const actions = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 3_000 }), fc.nat()), { maxLength: 300 });
  fc.assert(
    fc.property(actions, (steps) => {
      const arena = createArena();
      const blocks: { reference: number; units: number }[] = [];
      for (const [isRelease, units, pick] of steps) {
        const block = isRelease ? blocks.splice(pick % (blocks.length + 1), 1)[0] : undefined;
        if (block !== undefined) release(arena, block.reference, block.units);
        else if (!isRelease) blocks.push({ reference: allocate(arena, units), units });
      }
      const used = blocks.reduce((sum, { units }) => sum + units, 0);
      assert.equal(usedBytes(arena), used * UNIT_BYTES);
      let end = 1;
      for (const { reference, units } of blocks.sort((a, b) => a.reference - b.reference)) {
        assert.ok(reference >= end, "overlap");
        end = reference + units;
      }
      assert.ok(end <= arena.view.limit);
    }),
    { numRuns: 60 },
  );
});

test("freed neighbours become one large block before the arena grows", () => {
  const arena = createArena();
  const { limit } = arena.view;
  const blocks = Array.from({ length: 60 }, () => allocate(arena, 1_000));
  for (const block of blocks) release(arena, block, 1_000);
  allocate(arena, limit - 10_000);
  assert.equal(arena.view.limit, limit);
});

test("no block lies across an end that the arena once had: readers may still have views that stop there", () => {
  const arena = createArena();
  const { limit } = arena.view;
  const first = allocate(arena, limit - 11);
  const second = allocate(arena, 20);
  assert.equal(second, limit, "the arena has grown");
  release(arena, first, limit - 11);
  release(arena, second, 20);
  for (const units of [limit + 60, 3_000, limit - 2_000, 20_000]) {
    const block = allocate(arena, units);
    assert.ok(block >= limit || block + units <= limit, `${units} units at ${block}`);
  }
});

test("the largest size is a RangeError, behind which everything that fits is still given out once", () => {
  const shared = createSharedImage(1);
  const arena = openArena(openView({ ...shared, arena: new SharedArrayBuffer(2 ** 20, { maxByteLength: 2 ** 21 }) }));
  assert.throws(() => allocate(arena, 2 ** 21 / UNIT_BYTES), RangeError);
  const given = new Set<number>();
  assert.throws(() => {
    for (;;) {
      const block = allocate(arena, 1_024);
      assert.ok(!given.has(block), `block ${block} was given out twice`);
      given.add(block);
    }
  }, RangeError);
  assert.equal(given.size, 2 ** 21 / UNIT_BYTES / 1_024 - 1);
});
