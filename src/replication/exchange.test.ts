import assert from "node:assert/strict";
import test from "node:test";
import { fakeReplicaStore } from "../../tests/support/fake-replica-store.ts";
import { compareVersions, exchange } from "./exchange.ts";
import { UNDER_WAY_MANY } from "./limits.ts";
import type { Ask, Question } from "./messages.ts";

test("what one side has and the other has not goes there, and what differs goes both ways", async () => {
  const versions = (given: Readonly<Record<string, string>>) =>
    Object.entries(given).map(([ref, version]) => ({ ref, version }));
  const mine = versions({ same: "1", changed: "1", onlyHere: "1" });
  const theirs = versions({ same: "1", changed: "2", onlyThere: "1" });
  assert.deepEqual(await compareVersions(mine, theirs, () => Promise.resolve()), {
    here: ["changed", "onlyHere"],
    there: ["changed", "onlyThere"],
  });
});

const STATUS = { isComplete: true, collectedUpToMs: 0, lastAgreementMs: 0, agreements: {} };

/** What is asked of a peer that has nothing while this store has one item. */
async function asked(queued: number, here: number, mayWait: boolean) {
  const store = fakeReplicaStore("n0");
  store.put(["a"], "1");
  const empty = fakeReplicaStore("n1").digest;
  const asks: Ask[] = [];
  const outcome = await exchange({
    store,
    mayWait,
    isFirstSync: false,
    status: () => STATUS,
    ask: async (ask, question, onPart) => {
      asks.push(ask);
      const told = { ask, body: question } as Question;
      if (told.ask === "root") onPart({ root: empty.root(), status: STATUS, queued } as never, 1);
      if (told.ask === "children") onPart({ children: empty.children(told.body.level, told.body.nodes) } as never, 1);
      if (told.ask === "versions") onPart({ versions: [] } as never, 1);
    },
    push: async () => undefined,
    pull: async () => 0,
    underWay: () => here,
    pause: async () => undefined,
    onCompared: () => undefined,
    onStatus: () => undefined,
    staleSide: () => "none",
  });
  return { kind: outcome.kind, asks: [...new Set(asks)] };
}

test("while much is under way at either end nobody looks for what is on its way, but not for ever", async () => {
  for (const [queued, here] of [
    [UNDER_WAY_MANY + 1, 0],
    [0, UNDER_WAY_MANY + 1],
  ] as const) {
    assert.deepEqual(await asked(queued, here, true), { kind: "busy", asks: ["root"] });
    assert.deepEqual((await asked(queued, here, false)).asks, ["root", "children", "versions"]);
  }
  assert.deepEqual((await asked(UNDER_WAY_MANY, 0, true)).asks, ["root", "children", "versions"]);
});
