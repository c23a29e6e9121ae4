import assert from "node:assert/strict";
import { test } from "node:test";
import { createPacketGate } from "./packet-gate.ts";
import { FAILED_PACKETS_OF_MEMBER_MAX, FAILED_PACKETS_OF_STRANGERS_MAX, FAILED_PACKETS_WITHIN_MS } from "./settings.ts";

const at = (...address: number[]) => ({ address: Uint8Array.from(address), port: 7946 });
const MEMBER = at(192, 0, 2, 1);
const OTHER = at(192, 0, 2, 2);

function gate() {
  let nowMs = 0;
  let asked = 0;
  const members = () => {
    asked += 1;
    return [{ endpoint: MEMBER }, { endpoint: OTHER }];
  };
  const made = createPacketGate({ now: () => nowMs, members });
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { ...made, pass, asked: () => asked };
}

test("strangers whose packets do not open are not tried beyond a number, whatever their addresses, and members are", () => {
  const { isWorthOpening, failed, pass, asked } = gate();
  for (let count = 0; count < FAILED_PACKETS_OF_STRANGERS_MAX; count++) {
    const from = at(203, 0, count >>> 8, count & 255);
    assert.ok(isWorthOpening(from));
    failed(from);
  }
  assert.ok(!isWorthOpening(at(203, 0, 113, 1)));
  assert.ok(!isWorthOpening(at(203, 0, 113, 2)));
  assert.ok(isWorthOpening(MEMBER));
  assert.equal(asked(), 1);
  pass(FAILED_PACKETS_WITHIN_MS);
  assert.ok(isWorthOpening(at(203, 0, 113, 1)));
});

test("packets in the name of one member's address take nothing from other members", () => {
  const { isWorthOpening, failed, pass } = gate();
  for (let count = 0; count < FAILED_PACKETS_OF_MEMBER_MAX; count++) failed(MEMBER);
  assert.ok(!isWorthOpening(MEMBER));
  assert.ok(isWorthOpening(OTHER));
  assert.ok(isWorthOpening(at(203, 0, 113, 1)));
  pass(FAILED_PACKETS_WITHIN_MS);
  assert.ok(isWorthOpening(MEMBER));
});
