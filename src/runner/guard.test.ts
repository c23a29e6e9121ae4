import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createGuard } from "./guard.ts";
import { RULES_CHECK_MS, SELF_TEST_MS, SELF_TEST_RETRY_MS } from "./limits.ts";

/** A guard of a world that the test changes, on a clock that the test moves. */
function openGuard(context: TestContext) {
  context.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const world = { rules: undefined as string | undefined, sandbox: undefined as string | undefined, isBusy: false };
  const seen = { rules: 0, tests: 0, lost: [] as string[], log: [] as string[] };
  let nowMs = 0;
  const guard = createGuard({
    blockAddresses: async () => {
      seen.rules += 1;
      return world.rules;
    },
    testSandbox: async () => {
      seen.tests += 1;
      return world.sandbox;
    },
    onLost: (why) => seen.lost.push(why),
    isBusy: () => world.isBusy,
    log: (level, message) => seen.log.push(`${level} ${message}`),
    now: () => nowMs,
  });
  const pass = async (ms: number) => {
    nowMs += ms;
    context.mock.timers.tick(ms);
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  };
  context.after(() => guard[Symbol.dispose]());
  return { guard, world, seen, pass };
}

test("the first script waits for the first test", async (context) => {
  const { guard, seen } = openGuard(context);
  assert.equal(await guard.refusal(), undefined);
  assert.equal(seen.tests, 1);
  assert.deepEqual(seen.log, ["info the sandbox of scripts is as it must be"]);
});

test("a sandbox that leaks lets nothing run, until a later test finds it whole", async (context) => {
  const { guard, world, seen, pass } = openGuard(context);
  world.sandbox = "it sees /root";
  assert.equal(await guard.refusal(), "it sees /root");
  await pass(SELF_TEST_RETRY_MS);
  await pass(SELF_TEST_RETRY_MS);
  assert.equal(seen.tests, 3);
  assert.equal(seen.log.length, 1);
  world.sandbox = undefined;
  await pass(SELF_TEST_RETRY_MS);
  assert.equal(await guard.refusal(), undefined);
});

test("the sandbox is tested again and again, and what runs ends when it leaks", async (context) => {
  const { guard, world, seen, pass } = openGuard(context);
  assert.equal(await guard.refusal(), undefined);
  world.sandbox = "it has capabilities";
  await pass(SELF_TEST_MS);
  assert.deepEqual(seen.lost, ["it has capabilities"]);
  assert.equal(await guard.refusal(), "it has capabilities");
});

test("rules are looked at before a script when the last look is old, and not for each of many", async (context) => {
  const { guard, world, seen, pass } = openGuard(context);
  await guard.refusal();
  await Promise.all(Array.from({ length: 50 }, () => guard.refusal()));
  assert.equal(seen.rules, 1);
  world.rules = "a rule is gone";
  await pass(RULES_CHECK_MS);
  const told = await Promise.all([guard.refusal(), guard.refusal()]);
  assert.deepEqual(told, ["a rule is gone", "a rule is gone"]);
  assert.equal(seen.rules, 2);
  world.rules = undefined;
  await pass(RULES_CHECK_MS);
  assert.equal(await guard.refusal(), undefined);
});

test("while a script runs the rules are looked at by themselves", async (context) => {
  const { guard, world, seen, pass } = openGuard(context);
  await guard.refusal();
  await pass(RULES_CHECK_MS);
  assert.equal(seen.rules, 1);
  world.isBusy = true;
  world.rules = "a rule is gone";
  await pass(RULES_CHECK_MS);
  assert.deepEqual(seen.lost, ["a rule is gone"]);
});
