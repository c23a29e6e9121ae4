import assert from "node:assert/strict";
import test from "node:test";
import { type Arena, allocate, openArena } from "./arena.ts";
import { advanceEpoch, createRetired, epochIsOver, type Retired, reclaim, retire } from "./reclaim.ts";
import { CONTROL, createSharedImage, MAX_THREADS } from "./shared.ts";
import { enterImage, type ImageView, leaveImage, openView } from "./view.ts";

const UNITS = 3;

function setUp(epoch: number): { view: ImageView; arena: Arena; retired: Retired; retireBlock: () => void } {
  const view = openView(createSharedImage(1));
  view.control[CONTROL.EPOCH] = epoch;
  const arena = openArena(view);
  const retired = createRetired();
  return { view, arena, retired, retireBlock: () => retire(retired, view.control, allocate(arena, UNITS), UNITS) };
}

/** The epochs around which the arithmetic could go wrong. */
const EPOCHS = [1, 2, 1_000, 2 ** 31 - 3, 2 ** 31 - 2, 2 ** 31 - 1, -(2 ** 31), -(2 ** 31) + 1, -3, -2, -1];

test("epochs rise by one, wrap around at 2^31, and leave out 0", () => {
  const { view } = setUp(2 ** 31 - 1);
  advanceEpoch(view.control);
  assert.equal(view.control[CONTROL.EPOCH], -(2 ** 31));
  view.control[CONTROL.EPOCH] = -1;
  advanceEpoch(view.control);
  assert.equal(view.control[CONTROL.EPOCH], 1);
});

for (const epoch of EPOCHS) {
  test(`a block waits for the reader that was inside when it was retired in epoch ${epoch}`, () => {
    const { view, arena, retired, retireBlock } = setUp(epoch);
    enterImage(view, MAX_THREADS - 1);
    retireBlock();
    for (let again = 0; again < 5; again++) {
      assert.equal(reclaim(retired, arena), 1);
      advanceEpoch(view.control);
    }
    leaveImage(view, MAX_THREADS - 1);
    assert.equal(reclaim(retired, arena), 0);
    assert.equal(arena.freeUnits, UNITS);
  });

  test(`a reader that entered behind epoch ${epoch} holds nothing of it back`, () => {
    const { view, arena, retired, retireBlock } = setUp(epoch);
    retireBlock();
    advanceEpoch(view.control);
    enterImage(view, 0);
    assert.equal(reclaim(retired, arena), 0);
    assert.equal(arena.freeUnits, UNITS);
  });
}

test("blocks retired before and behind a reader's entry: those before are free, the others wait", () => {
  const { view, arena, retired, retireBlock } = setUp(2 ** 31 - 2);
  retireBlock();
  advanceEpoch(view.control);
  enterImage(view, 7);
  for (let count = 0; count < 4; count++) {
    retireBlock();
    advanceEpoch(view.control);
  }
  assert.equal(reclaim(retired, arena), 4);
  assert.equal(arena.freeUnits, UNITS);
  leaveImage(view, 7);
  assert.equal(reclaim(retired, arena), 0);
  assert.equal(arena.freeUnits, UNITS * 5);
});

test("a reader that comes back every time cannot hold a block for ever", () => {
  const { view, arena, retired, retireBlock } = setUp(1);
  enterImage(view, 1);
  retireBlock();
  reclaim(retired, arena);
  leaveImage(view, 1);
  enterImage(view, 1);
  assert.equal(reclaim(retired, arena), 0);
});

test("a thread that is outside is in no epoch", () => {
  const { view } = setUp(5);
  assert.ok(epochIsOver(view.control, 5));
  enterImage(view, 3);
  assert.ok(!epochIsOver(view.control, 5));
  assert.ok(epochIsOver(view.control, 4));
});
