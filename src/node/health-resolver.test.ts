import assert from "node:assert/strict";
import { test } from "node:test";
import { openLab, zone } from "../../tests/support/zone-lab.ts";
import { COUNTER, sumCounter, threadCounters } from "../image/counters.ts";
import { EPOCH_STRIDE, EPOCHS_AT } from "../image/shared.ts";
import { createHealthResolver, createSystemResolver } from "./health-resolver.ts";

const THREAD = 3;
const ZONE = zone(
  "own.test.",
  `both A 192.0.2.1
both A 192.0.2.2
both AAAA 2001:db8::1
chain CNAME link
link CNAME both
away CNAME far.elsewhere.test.
missing CNAME nowhere.own.test.
text TXT "no address"
*.wild A 192.0.2.9`,
);

function open(answers: Readonly<Record<string, readonly string[]>> = {}) {
  const lab = openLab([ZONE]);
  const asked: string[] = [];
  const time = { nowMs: 0 };
  const system = async (host: string) => {
    asked.push(host);
    return answers[host] ?? [];
  };
  const resolve = createHealthResolver(lab.shared, THREAD, system, () => time.nowMs);
  return { lab, asked, time, resolve };
}

for (const [host, addresses] of [
  ["both.own.test.", ["192.0.2.1", "192.0.2.2", "2001:db8::1"]],
  ["BOTH.own.Test.", ["192.0.2.1", "192.0.2.2", "2001:db8::1"]],
  ["chain.own.test.", ["192.0.2.1", "192.0.2.2", "2001:db8::1"]],
  ["any.wild.own.test.", ["192.0.2.9"]],
  ["text.own.test.", []],
  ["nowhere.own.test.", []],
  ["missing.own.test.", []],
  ["localhost.", ["127.0.0.1", "::1"]],
  ["a..b.", []],
] as const) {
  test(`${host} is answered here, and nobody else is asked`, async () => {
    const { asked, resolve } = open();
    assert.deepEqual((await resolve(host)).toSorted(), [...addresses].toSorted());
    assert.deepEqual(asked, []);
  });
}

test("a name that leads out of our zones is asked for where it leads", async () => {
  const { asked, resolve } = open({ "far.elsewhere.test.": ["198.51.100.7"] });
  assert.deepEqual(await resolve("away.own.test."), ["198.51.100.7"]);
  assert.deepEqual(asked, ["far.elsewhere.test."]);
});

test("other names are asked of the system, once in two seconds however many want to know", async () => {
  const { asked, time, resolve } = open({ "www.elsewhere.test.": ["198.51.100.8"] });
  const all = await Promise.all(Array.from({ length: 100 }, () => resolve("www.elsewhere.test.")));
  assert.deepEqual(new Set(all.flat()), new Set(["198.51.100.8"]));
  assert.equal(asked.length, 1);
  time.nowMs = 1_999;
  await resolve("www.elsewhere.test.");
  assert.equal(asked.length, 1);
  time.nowMs = 2_000;
  await resolve("www.elsewhere.test.");
  assert.equal(asked.length, 2);
});

test("what the system found is kept of 10,000 hosts", async () => {
  const { asked, resolve } = open();
  for (let host = 0; host <= 10_000; host++) await resolve(`host-${host}.elsewhere.test.`);
  await resolve("host-10000.elsewhere.test.");
  assert.equal(asked.length, 10_001);
  await resolve("host-0.elsewhere.test.");
  assert.equal(asked.length, 10_002);
});

test("a change of the zone is seen by the next question, an override too", async () => {
  const { lab, resolve } = open();
  assert.deepEqual(await resolve("new.own.test."), []);
  lab.publish(zone("own.test.", "new A 192.0.2.77"));
  assert.deepEqual(await resolve("new.own.test."), ["192.0.2.77"]);
  lab.override("www.elsewhere.test. A 192.0.2.78");
  assert.deepEqual(await resolve("www.elsewhere.test."), ["192.0.2.78"]);
});

test("asking leaves no trace: no query is counted, and nothing in the image is held", async () => {
  const { lab, resolve } = open();
  await resolve("both.own.test.");
  assert.ok(threadCounters(lab.shared, THREAD).every((count) => count === 0));
  assert.equal(sumCounter(lab.shared, COUNTER.SILENT), 0);
  assert.equal(new Int32Array(lab.shared.control)[EPOCHS_AT + THREAD * EPOCH_STRIDE], 0);
});

test("the system's resolver gives nothing for what does not exist, and does not fail", async () => {
  assert.deepEqual(await createSystemResolver()("nothing.invalid."), []);
});
