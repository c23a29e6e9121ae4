/** Updates on their way to `control`: their bounds, those sent again, and what is not answered. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { RCODE } from "../dns/codes.ts";
import { UPDATE_JOINED_MAX, UPDATE_MS, UPDATES_OF_CLIENT_MAX, UPDATES_UNDER_WAY_MAX } from "../primary/limits.ts";
import type { FromPrimary } from "../primary/messages.ts";
import { createUpdates } from "./primary-updates.ts";

function open() {
  const told: FromPrimary[] = [];
  const rcodes: (readonly [who: string, rcode: number])[] = [];
  const world = { nowMs: 0, isThere: true };
  const updates = createUpdates({
    tell: (message) => {
      if (world.isThere) told.push(message);
      return world.isThere;
    },
    now: () => world.nowMs,
  });
  const begin = (who: string, host = 1, sameness?: string) => {
    const request = {
      keyName: undefined,
      address: Uint8Array.of(10, 0, host >> 8, host & 255),
      message: new Uint8Array(12),
    };
    updates.begin(request, sameness, (rcode) => rcodes.push([who, rcode]));
  };
  const idOf = (index: number): number => {
    const message = told[index];
    return message?.kind === "update" ? message.id : assert.fail(`update ${index} was not told`);
  };
  return { updates, told, rcodes, world, begin, idOf };
}

test("each is answered with what it came to, in whatever order", () => {
  const { updates, rcodes, begin, idOf } = open();
  begin("a");
  begin("b");
  updates.answered(idOf(1), RCODE.YXDOMAIN);
  updates.answered(idOf(0), RCODE.NOERROR);
  updates.answered(idOf(0), RCODE.REFUSED);
  updates.answered(99, RCODE.REFUSED);
  assert.deepEqual(rcodes, [
    ["b", RCODE.YXDOMAIN],
    ["a", RCODE.NOERROR],
  ]);
  assert.equal(updates.underWay(), 0);
});

test("what is sent again while it is under way is carried out once, and answered as often as there is room", () => {
  const { updates, told, rcodes, begin, idOf } = open();
  for (let time = 0; time < UPDATE_JOINED_MAX + 5; time++) begin(`${time}`, 1, "same");
  begin("other", 1, "other");
  assert.equal(told.length, 2);
  updates.answered(idOf(0), RCODE.NOERROR);
  assert.equal(rcodes.length, UPDATE_JOINED_MAX + 1);
  assert.equal(updates.counts.joined, UPDATE_JOINED_MAX + 4);
  begin("later", 1, "same");
  assert.equal(told.length, 3);
});

test("one client, and all of them, have so many under way", () => {
  const { updates, told, rcodes, begin, idOf } = open();
  for (let count = 0; count <= UPDATES_OF_CLIENT_MAX; count++) begin("one");
  assert.deepEqual(rcodes, [["one", RCODE.SERVFAIL]]);
  for (let host = 2; told.length < UPDATES_UNDER_WAY_MAX; host++) begin("many", host);
  begin("another", 9_999);
  assert.deepEqual(rcodes.at(-1), ["another", RCODE.SERVFAIL]);
  assert.equal(updates.counts.tooMany, 2);
  updates.answered(idOf(0), RCODE.NOERROR);
  begin("again");
  assert.deepEqual([told.length, updates.underWay()], [UPDATES_UNDER_WAY_MAX + 1, UPDATES_UNDER_WAY_MAX]);
});

test("without an outcome it is SERVFAIL: late, with the end of control, or where there is none", () => {
  const { updates, rcodes, world, begin, idOf } = open();
  begin("late", 1, "same");
  world.nowMs = UPDATE_MS - 1;
  begin("lost");
  updates.sweep();
  assert.deepEqual(rcodes, []);
  world.nowMs = UPDATE_MS;
  updates.sweep();
  assert.deepEqual(rcodes, [["late", RCODE.SERVFAIL]]);
  updates.answered(idOf(0), RCODE.NOERROR);
  updates.failAll();
  assert.deepEqual(rcodes.slice(1), [["lost", RCODE.SERVFAIL]]);
  world.isThere = false;
  begin("away");
  assert.deepEqual(rcodes.slice(2), [["away", RCODE.SERVFAIL]]);
  assert.deepEqual([updates.underWay(), updates.counts.late], [0, 1]);
});
