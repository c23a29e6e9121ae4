import assert from "node:assert/strict";
import test from "node:test";
import { RATE_TABLE_MAX } from "./limits.ts";
import { createRateLimiter, rateKey } from "./rate-limiter.ts";

test("a minute's worth may come at once, and refills evenly", () => {
  let now = 0;
  const { take } = createRateLimiter(
    () => 6,
    () => now,
  );
  for (let count = 0; count < 6; count++) assert.equal(take("write", "a"), 0);
  assert.equal(take("write", "a"), 10);
  assert.equal(take("write", "b"), 0, "keys are counted apart");
  assert.equal(take("read", "a"), 0, "classes too");
  now = 9_000;
  assert.equal(take("write", "a"), 1, "in a second there is one again");
  now = 10_000;
  assert.equal(take("write", "a"), 0);
  assert.equal(take("write", "a"), 10);
  now = 3_600_000;
  for (let count = 0; count < 6; count++) assert.equal(take("write", "a"), 0);
  assert.notEqual(take("write", "a"), 0, "never more than a minute's worth");
});

test("a changed limit holds at once", () => {
  let limit = 1;
  const { take } = createRateLimiter(
    () => limit,
    () => 0,
  );
  assert.equal(take("read", "a"), 0);
  assert.notEqual(take("read", "a"), 0);
  limit = 2;
  assert.equal(take("read", "new"), 0);
  assert.equal(take("read", "new"), 0);
  assert.notEqual(take("read", "new"), 0);
});

test("a key may have several limits", () => {
  const { take } = createRateLimiter(
    () => 2,
    () => 0,
  );
  for (let count = 0; count < 6; count++) assert.equal(take("auth", "a", 3), 0);
  assert.equal(take("auth", "a", 3), 10);
});

test("the table is bounded, and forgets what was used least lately", () => {
  const { take } = createRateLimiter(
    () => 1,
    () => 0,
  );
  take("read", "kept");
  take("read", "forgotten");
  for (let index = 0; index < RATE_TABLE_MAX - 1; index++) {
    take("read", `k${index}`);
    if (index === 0) take("read", "kept");
  }
  assert.notEqual(take("read", "kept"), 0);
  assert.equal(take("read", "forgotten"), 0);
});

test("IPv6 counts by /64, IPv4 by address", () => {
  assert.equal(rateKey("2001:db8:1:2:3:4:5:6"), rateKey("2001:db8:1:2:ffff::1"));
  assert.notEqual(rateKey("2001:db8:1:2::1"), rateKey("2001:db8:1:3::1"));
  assert.equal(rateKey("192.0.2.7"), "192.0.2.7");
});
