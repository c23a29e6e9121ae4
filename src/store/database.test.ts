import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { seededChance } from "../../tests/support/chance.ts";
import { type Database, openDatabase, TABLE } from "./database.ts";

const KEYS = 12;
const STEPS = 1_500;
const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31);

/** Lets the event loop turn once. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const keyOf = (number: number) => Buffer.from([number]);

function allOf(database: Database): ReadonlyMap<number, string> {
  const rows = database.range(TABLE.META, { prefix: new Uint8Array(0), limit: 100 });
  return new Map(rows.map(({ key, value }) => [key[0] ?? -1, value]));
}

function sorted(model: ReadonlyMap<number, string>): ReadonlyMap<number, string> {
  return new Map([...model].sort(([one], [other]) => one - other));
}

test("each transaction reads what all before it wrote, on the disk or on the way; what throws leaves nothing", async (t) => {
  t.diagnostic(`SEED=${SEED}`);
  const chance = seededChance(SEED);
  const directory = mkdtempSync(join(tmpdir(), "signpost-database-"));
  const database = openDatabase(join(directory, "store"));
  const model = new Map<number, string>();
  const settled: Promise<unknown>[] = [];
  let [beside, unsettled] = [0, 0];
  try {
    for (let step = 0; step < STEPS; step++) {
      const isRefused = chance.below(6) === 0;
      const changes = Array.from({ length: 1 + chance.below(3) }, (_, index) => ({
        number: chance.below(KEYS),
        value: chance.below(3) === 0 ? undefined : `${step}-${index}`,
      }));
      const work = () => {
        if (unsettled > 1) beside++;
        for (let number = 0; number < KEYS; number++) {
          assert.equal(database.get(TABLE.META, keyOf(number)), model.get(number), `step ${step}`);
        }
        assert.deepEqual([...allOf(database)], [...sorted(model)], `step ${step}`);
        for (const { number, value } of changes) {
          if (value === undefined) database.remove(TABLE.META, keyOf(number));
          else database.put(TABLE.META, keyOf(number), value);
          if (isRefused) continue;
          if (value === undefined) model.delete(number);
          else model.set(number, value);
        }
        return !isRefused;
      };
      unsettled++;
      const running = database.run(work).finally(() => {
        unsettled--;
      });
      running.catch(() => undefined);
      settled.push(running);
      for (let turn = chance.below(4); turn > 1; turn--) await nextTurn();
      if (unsettled > 20) await settled.at(-1);
    }
    await Promise.all(settled);
    assert.ok(beside > STEPS / 10, `${beside} ran beside others`);
    await database.close();
    const again = openDatabase(join(directory, "store"));
    assert.deepEqual([...allOf(again)], [...sorted(model)]);
    await again.close();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
