import assert from "node:assert/strict";
import { test } from "node:test";
import { createSimulatedClock } from "../../tests/support/simulated-clock.ts";
import { createDialer, redialDelayMs } from "./peers-dialer.ts";
import { createFailures } from "./peers-failures.ts";
import { createGate, gateKey } from "./peers-gate.ts";

const limits = { connections: 6, strangers: 3, strangersOfAddress: 2, members: 2 };

test("unfinished connections are bounded by address, in all, and apart for members", () => {
  const gate = createGate(limits, (key) => key === "10.0.0.9");
  const first = gate.enter("10.0.0.1");
  assert.ok(first && gate.enter("10.0.0.1"));
  assert.equal(gate.enter("10.0.0.1"), undefined, "the address has two");
  assert.ok(gate.enter("::ffff:10.0.0.2"));
  assert.equal(gate.enter("10.0.0.3"), undefined, "there are three");
  const member = gate.enter("10.0.0.9");
  assert.ok(member, "a member has a place of its own");
  assert.ok(gate.enter("10.0.0.9"));
  assert.equal(gate.enter("10.0.0.9"), undefined);
  first.settle();
  first.settle();
  assert.ok(gate.enter("10.0.0.1"), "an open stream takes no place of the unfinished");
  assert.equal(gate.enter("10.0.0.4"), undefined, "but one of all connections");
  member.leave();
  member.leave();
  assert.ok(gate.enter("10.0.0.9"));
});

test("an address of IPv6 counts for its /64, one of IPv4 as it is however it is written", () => {
  assert.equal(gateKey("2001:db8:1:2:3:4:5:6"), gateKey("2001:db8:1:2::1"));
  assert.notEqual(gateKey("2001:db8:1:2::1"), gateKey("2001:db8:1:3::1"));
  assert.equal(gateKey("fe80::1%eth0"), gateKey("fe80::2"));
  assert.equal(gateKey("::ffff:192.0.2.1"), "192.0.2.1");
});

test("the wait before the next attempt doubles from 0.2 s to 30 s, by chance down to half of it", () => {
  assert.deepEqual(
    [1, 2, 3, 8, 9, 1000].map((failures) => redialDelayMs(failures, 1)),
    [200, 400, 800, 25_600, 30_000, 30_000],
  );
  assert.equal(redialDelayMs(1, 0), 100);
  assert.equal(redialDelayMs(20, 0), 15_000);
});

test("a dialer dials at once, then waits longer and longer, unless it is told to hurry", async () => {
  const clock = createSimulatedClock();
  const at: number[] = [];
  const began = clock.now();
  const dialer = createDialer({
    dial: () => {
      at.push(clock.now() - began);
      return { abandon: () => {} };
    },
    timers: clock,
    random: () => 1,
  });
  await clock.pass(0);
  dialer.ended();
  await clock.pass(250);
  dialer.ended();
  await clock.pass(350);
  assert.deepEqual(at, [0, 200]);
  dialer.hurry();
  dialer.hurry();
  await clock.pass(0);
  assert.deepEqual(at, [0, 200, 600]);
  dialer.ended();
  await clock.pass(200);
  assert.equal(at.length, 4, "after the hurry the waits are short again");
  dialer.opened();
  dialer.hurry();
  await clock.pass(20_000);
  assert.equal(at.length, 4, "nothing is dialed while a stream is open");
  dialer.ended();
  await clock.pass(200);
  assert.equal(at.length, 5, "a stream that lived long counts for nothing");
  dialer.opened();
  dialer.ended();
  await clock.pass(399);
  assert.equal(at.length, 5, "one that ended at once is another failure");
  await clock.pass(1);
  assert.equal(at.length, 6);
  dialer.stop();
  dialer.ended();
  await clock.pass(100_000);
  assert.equal(at.length, 6);
});

test("a peer that reaches us is dialed at once where it could not be reached, but not where its streams end at once", async () => {
  const clock = createSimulatedClock();
  let dials = 0;
  const dial = () => {
    dials++;
    return { abandon: () => {} };
  };
  const dialer = createDialer({ dial, timers: clock, random: () => 1 });
  await clock.pass(0);
  dialer.ended();
  dialer.encourage();
  await clock.pass(0);
  assert.equal(dials, 2);
  dialer.opened();
  dialer.ended();
  dialer.encourage();
  await clock.pass(399);
  assert.equal(dials, 2);
  await clock.pass(1);
  assert.equal(dials, 3);
  dialer.stop();
});

test("failures are counted each time and said once a minute a peer; another key in words that name the setting", async () => {
  const clock = createSimulatedClock();
  const lines: string[] = [];
  const failures = createFailures((level, message, fields) => lines.push(`${level} ${fields?.node} ${message}`), clock);
  const peer = { role: "dialer", address: "10.0.0.1:7946", nodeId: "n2" } as const;
  for (let count = 0; count < 5; count++) failures.note({ kind: "key", detail: "x" }, peer);
  failures.note({ kind: "key", detail: "x" }, { ...peer, nodeId: "n3" });
  await clock.pass(60_000);
  failures.note({ kind: "key", detail: "x" }, peer);
  failures.note({ kind: "network", detail: "ECONNREFUSED" }, peer);
  assert.equal(failures.counts().key, 7);
  assert.equal(failures.counts().network, 1);
  const text = "a node has another replication.encrypt_key than this one: nothing is exchanged with it";
  assert.deepEqual(lines.slice(0, 3), [`warn n2 ${text}`, `warn n3 ${text}`, `warn n2 ${text}`]);
  assert.equal(lines[3], "info n2 a replication stream could not be opened");
  for (let count = 0; count < 5_000; count++)
    failures.note({ kind: "tls", detail: "x" }, { ...peer, address: `a${count}` });
  assert.equal(lines.length, 102, "a hundred lines a minute in all");
  assert.equal(failures.counts().tls, 5_000);
});
