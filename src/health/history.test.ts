import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { clearPlace, createHistory, freePlace, noteOutcome, outcomesAt, takePlace } from "./history.ts";
import { HISTORY_MAX, PROBE_ERRORS, type ProbeOutcome, type ProbeStatus } from "./probe.ts";

const OUTCOME: fc.Arbitrary<ProbeOutcome> = fc.oneof(
  fc.record({ latencyUs: fc.nat(2 ** 31) }),
  fc.record({ latencyUs: fc.nat(2 ** 31), error: fc.constantFrom(...PROBE_ERRORS) }),
  fc.record({ latencyUs: fc.nat(1_000), error: fc.constantFrom(...PROBE_ERRORS), detail: fc.string() }),
);

test("every place tells its own last outcomes, oldest first, however many places there are", () => {
  const note = fc.record({ probe: fc.nat(200), outcome: OUTCOME });
  fc.assert(
    fc.property(fc.array(note, { maxLength: 500 }), (notes) => {
      const history = createHistory();
      const places = Array.from({ length: 201 }, () => takePlace(history));
      const expected = places.map((): ProbeStatus["history"][number][] => []);
      for (const [atMs, { probe, outcome }] of notes.entries()) {
        noteOutcome(history, places[probe]!, atMs, outcome);
        expected[probe] = [...expected[probe]!, { ...outcome, atMs }].slice(-HISTORY_MAX);
      }
      for (const [probe, place] of places.entries()) assert.deepEqual(outcomesAt(history, place), expected[probe]);
    }),
  );
});

test("a full ring drops the oldest, and its detail", () => {
  const history = createHistory();
  const place = takePlace(history);
  noteOutcome(history, place, 0, { latencyUs: 1, error: "reset", detail: "the oldest" });
  for (let atMs = 1; atMs <= HISTORY_MAX; atMs++) noteOutcome(history, place, atMs, { latencyUs: atMs });
  assert.deepEqual(
    outcomesAt(history, place),
    Array.from({ length: HISTORY_MAX }, (_, index) => ({ atMs: index + 1, latencyUs: index + 1 })),
  );
});

test("a place that is given to another probe remembers nothing", () => {
  const history = createHistory();
  const place = takePlace(history);
  noteOutcome(history, place, 1, { latencyUs: 5, error: "status", detail: "status 503" });
  freePlace(history, place);
  assert.equal(takePlace(history), place);
  assert.deepEqual(outcomesAt(history, place), []);
  noteOutcome(history, place, 2, { latencyUs: 6, error: "status" });
  assert.deepEqual(outcomesAt(history, place), [{ atMs: 2, latencyUs: 6, error: "status" }]);
  clearPlace(history, place);
  assert.deepEqual(outcomesAt(history, place), []);
});

test("details are cut, and a latency that no probe has is bounded", () => {
  const history = createHistory();
  const place = takePlace(history);
  noteOutcome(history, place, 1, { latencyUs: 1e12, error: "protocol", detail: "x".repeat(1_000) });
  const [outcome] = outcomesAt(history, place);
  assert.equal(outcome?.detail?.length, 200);
  assert.equal(outcome?.latencyUs, 2 ** 32 - 1);
});
