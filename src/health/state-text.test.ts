import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { forget, parseStateText, type Remembered, remember, stateParts, stateText } from "./state-text.ts";

const TIME = fc.nat(2 ** 31).map((seconds) => seconds * 1_000);
const STATE: fc.Arbitrary<Remembered> = fc.record({
  state: fc.constantFrom("healthy" as const, "unhealthy" as const),
  sinceMs: TIME,
  checkedMs: TIME,
  seenMs: TIME,
  failures: fc.nat(1e9 - 1),
  successes: fc.nat(1e9 - 1),
  latencyUs: fc.nat(2 ** 31 - 1),
});
const KEY = fc.stringMatching(/^[!-~]{1,64}$/);
const SOME: Remembered = {
  state: "unhealthy",
  sinceMs: 1,
  checkedMs: 2,
  seenMs: 3,
  failures: 3,
  successes: 0,
  latencyUs: 0,
};

test("what is written is read again", () => {
  fc.assert(
    fc.property(fc.dictionary(KEY, STATE), (states) => {
      const entries = new Map(Object.entries(states).map(([key, state]) => [key, { ...state }]));
      assert.deepEqual(parseStateText(stateText(entries)), entries);
    }),
  );
});

test("no text that is cut or changed is taken for one of ours", () => {
  const text = stateText([
    ["probe-1", SOME],
    ["probe-2", { ...SOME, state: "healthy" }],
  ]);
  assert.equal(parseStateText(text)?.size, 2);
  for (let length = 0; length < text.length; length++) {
    assert.equal(parseStateText(text.slice(0, length)), undefined, `cut to ${length}`);
    const changed = `${text.slice(0, length)}${text[length] === "1" ? "2" : "1"}${text.slice(length + 1)}`;
    assert.equal(parseStateText(changed), undefined, `changed at ${length}`);
  }
  for (const foreign of ["", "\n", "{}", "\0".repeat(4_096)]) assert.equal(parseStateText(foreign), undefined);
});

test("what nobody has probed for a week is forgotten", () => {
  const day = 24 * 3_600_000;
  const states = new Map([
    ["lately", { ...SOME, seenMs: 10 * day }],
    ["long ago", { ...SOME, seenMs: 10 * day - 1 }],
  ]);
  forget(states, 17 * day);
  assert.deepEqual([...states.keys()], ["lately"]);
});

test("there is an end to what is remembered: what came first makes way", () => {
  const states = new Map<string, Remembered>();
  for (let index = 0; index <= 250_000; index++) remember(states, `probe-${index}`, SOME);
  assert.equal(states.size, 250_000);
  assert.ok(!states.has("probe-0") && states.has("probe-1") && states.has("probe-250000"));
});

test("in parts it is the same text, and so many lines a turn", async () => {
  const states = new Map<string, Remembered>();
  for (let number = 0; number < 5_000; number++) {
    const times = { sinceMs: number, checkedMs: number + 1, seenMs: number + 2 };
    const counts = { failures: 0, successes: number, latencyUs: 400 };
    states.set(`key${number}`, { state: number % 2 === 0 ? "healthy" : "unhealthy", ...times, ...counts });
  }
  let turns = 0;
  const parts = await stateParts(states, async () => {
    turns += 1;
  });
  assert.equal(parts.join(""), stateText(states));
  assert.equal(turns, 2);
  assert.deepEqual(parseStateText((await stateParts([])).join("")), new Map());
});

test("what changes while it is made leaves a text that can be read", async () => {
  const state = {
    state: "healthy",
    failures: 0,
    successes: 1,
    sinceMs: 1,
    checkedMs: 2,
    seenMs: 3,
    latencyUs: 4,
  } as const;
  const states = new Map(Array.from({ length: 4_500 }, (_, number) => [`key${number}`, state] as const));
  const parts = await stateParts(states, async () => {
    states.delete("key4400");
    states.set("key0", state);
    states.delete("key1");
    states.set("key1", state);
  });
  const read = parseStateText(parts.join(""));
  assert.ok(read !== undefined);
  assert.equal(read.size, 4_499);
});
