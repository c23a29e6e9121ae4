import assert from "node:assert/strict";
import { test } from "node:test";
import { freshnessWindowMs, type ReplicationFigures, replicationReadiness } from "./replication-readiness.ts";

const GOOD: ReplicationFigures = {
  ...{ hasSynced: true, isPublished: true, syncedItems: 0, queueDepth: 0 },
  ...{ sinceExchangeMs: 1_000, applyMs: 5, peersAlive: 2, peersComplete: 2 },
};
const SETTINGS = { pushPullIntervalMs: 30_000, queueThreshold: 0 };

function notReady(figures: Partial<ReplicationFigures>, settings: Partial<typeof SETTINGS> = {}): readonly string[] {
  const components = replicationReadiness({ ...GOOD, ...figures }, { ...SETTINGS, ...settings });
  return Object.entries(components).flatMap(([name, { ready }]) => (ready ? [] : [name]));
}

test("the window of freshness is five of the longer interval, and never beyond 30 minutes", () => {
  for (const [interval, apply, expected] of [
    [30_000, 5, 150_000],
    [30_000, 40_000, 200_000],
    [1_000, 0, 5_000],
    [359_999, 0, 1_799_995],
    [360_000, 0, 1_800_000],
    [86_400_000, 0, 1_800_000],
    [1_000, 1_000_000, 1_800_000],
  ] as const) {
    assert.equal(freshnessWindowMs(interval, apply), expected);
  }
});

test("each component goes by its own figure, and skew by none", () => {
  assert.deepEqual(notReady({}), []);
  assert.deepEqual(notReady({ hasSynced: false }), ["initial_sync"]);
  assert.deepEqual(notReady({ queueDepth: 5_000 }), []);
  assert.deepEqual(notReady({ queueDepth: 5_001 }), ["replication_queue"]);
  assert.deepEqual(notReady({ queueDepth: 11 }, { queueThreshold: 10 }), ["replication_queue"]);
  assert.deepEqual(notReady({ queueDepth: 10 }, { queueThreshold: 10 }), []);
  assert.deepEqual(notReady({ sinceExchangeMs: 150_000 }), []);
  assert.deepEqual(notReady({ sinceExchangeMs: 150_001 }), ["replication_freshness"]);
  assert.deepEqual(notReady({ sinceExchangeMs: 150_001, applyMs: 31_000 }), []);
  assert.deepEqual(notReady({ sinceExchangeMs: 1_800_001 }, { pushPullIntervalMs: 3_600_000 }), [
    "replication_freshness",
  ]);
});

test("without another node alive a node is fresh, however long that is, and waits only for its first sync", () => {
  assert.deepEqual(notReady({ peersAlive: 0, peersComplete: 0, sinceExchangeMs: 10 ** 10 }), []);
  assert.deepEqual(notReady({ peersAlive: 1, peersComplete: 0, sinceExchangeMs: 10 ** 10 }), []);
  assert.deepEqual(notReady({ isPublished: false }), ["initial_sync"]);
  assert.deepEqual(notReady({ peersAlive: 0, hasSynced: false }), ["initial_sync"]);
});

test("details say what is and what may be", () => {
  const details = (figures: Partial<ReplicationFigures>) =>
    Object.values(replicationReadiness({ ...GOOD, ...figures }, SETTINGS)).map(({ detail }) => detail);
  assert.deepEqual(details({ queueDepth: 7, sinceExchangeMs: 12_345 }), [
    "done",
    "7 changes wait; up to 5000 may",
    "last exchange 12 s ago; up to 150 s may pass",
  ]);
  assert.deepEqual(
    details({ hasSynced: false, syncedItems: 42, peersAlive: 1 })[0],
    "42 objects so far; the node has not yet agreed with another one",
  );
  assert.equal(details({ hasSynced: false, peersAlive: 0 })[0], "no other node has been reached yet");
});
