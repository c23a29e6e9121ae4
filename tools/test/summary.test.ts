import assert from "node:assert/strict";
import test from "node:test";
import { type TestEvent, withOneSummary } from "./summary.ts";

function line(message: string, file?: string): TestEvent {
  return { type: "test:diagnostic", data: { nesting: 0, message, level: "info", ...(file && { file }) } };
}

async function collect(events: readonly TestEvent[]): Promise<{ passed: TestEvent[]; failures: number }> {
  let failures = 0;
  const source = async function* () {
    yield* events;
  };
  const passed: TestEvent[] = [];
  for await (const event of withOneSummary(source(), () => (failures += 1))) passed.push(event);
  return { passed, failures };
}

function messages(events: readonly TestEvent[]): string[] {
  return events.map(({ data }) => (data as { message: string }).message);
}

test("the summaries of two runs become one", async () => {
  const { passed, failures } = await collect([line("tests 3"), line("pass 3"), line("tests 4"), line("pass 4")]);
  assert.deepEqual(messages(passed).slice(0, 4), ["tests 7", "suites 0", "pass 7", "fail 0"]);
  assert.equal(failures, 0);
});

test("a failure of the first run is a failure of the whole", async () => {
  const { failures } = await collect([line("tests 3"), line("fail 1"), line("tests 4"), line("fail 0")]);
  assert.equal(failures, 1);
});

test("a run of no tests is a failure", async () => {
  const { failures } = await collect([line("tests 0")]);
  assert.equal(failures, 1);
});

test("what a test says itself is passed on", async () => {
  const { passed } = await collect([line("pass 9", "a.test.ts"), line("tests 1")]);
  assert.deepEqual(messages(passed).slice(0, 2), ["pass 9", "tests 1"]);
});
