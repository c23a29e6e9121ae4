import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import type { HealthItem } from "../model/health-status.ts";
import { createBook, type GatedProbe, putEntry, zoneBook } from "./book.ts";
import type { ProbeSpec, ProbeState } from "./probe.ts";
import { keyOfParts, rowsBehind, type StatusFilter } from "./status-list.ts";
import { createStatusView, LOOKED_AT_MAX } from "./status-view.ts";

const ZONES = ["a.", "b.", "c."] as const;
const STATES: readonly ProbeState[] = ["healthy", "unhealthy", "unknown"];

function probeIn(state: ProbeState, slot: number): GatedProbe {
  const key = slot.toString(16).padStart(16, "0");
  const times = { intervalMs: 5_000, timeoutMs: 1_000, failureThreshold: 3 };
  const spec: ProbeSpec = { key, slot, protocol: "tcp", host: "192.0.2.1", port: 80, ...times };
  return { key, slot, spec, state, holders: 1, rrsets: new Set() };
}

/** `states`: one record each, of two values in that state. */
function openLab(states: readonly ProbeState[]) {
  const book = createBook(undefined, () => {});
  const probes = new Map(STATES.map((state, index) => [state, probeIn(state, index + 1)]));
  for (const [index, state] of states.entries()) {
    const zone = ZONES[index % ZONES.length] ?? "a.";
    const probe = probes.get(state);
    const value = { value: "192.0.2.1", region: undefined, probe, lacksSlot: false };
    const named = { zone, name: `host${index}`, type: "A", id: `rec_${index}`, method: undefined } as const;
    putEntry(book, zoneBook(book, zone), { ...named, values: [value, value], build: 0 });
  }
  const listed = { book, checks: { byId: new Map() } };
  // The health thread knows of none of them: the states are the book's.
  const view = createStatusView(listed, async () => []);
  return { listed, view };
}

function textOf(item: HealthItem): string {
  return item.kind === "value" ? `${item.zone} ${item.name} ${item.state}` : item.check_id;
}

/** All of it by pages of `limit`, each page in as many turns as it takes. */
async function listedBy({ view }: ReturnType<typeof openLab>, filter: StatusFilter, limit: number) {
  const texts: string[] = [];
  let turns = 0;
  let after: readonly string[] | undefined;
  for (;;) {
    const next = view.open(filter, after, limit);
    assert.ok(next !== undefined);
    let onPage = 0;
    for (;;) {
      const { items, end } = await next(false);
      turns += 1;
      onPage += items.length;
      texts.push(...items.map(textOf));
      if (end === undefined) continue;
      after = end.next;
      break;
    }
    assert.ok(onPage <= limit);
    if (after === undefined) return { texts, turns };
    assert.equal(onPage, limit, "a page that is not the last is full");
  }
}

test("pages of any size give every row that fits once and in order, whatever is left out between them", async () => {
  const filters = fc.record(
    { state: fc.constantFrom(...STATES), record_id: fc.constant("rec_3") },
    { requiredKeys: [] },
  );
  const states = fc.array(fc.constantFrom(...STATES), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(states, filters, fc.integer({ min: 1, max: 90 }), async (given, filter, limit) => {
      const lab = openLab(given);
      const all = [...rowsBehind(lab.listed, filter, undefined)].filter(({ fits }) => fits);
      const { texts } = await listedBy(lab, filter, limit);
      assert.equal(texts.length, all.length);
      assert.deepEqual((await listedBy(lab, filter, Number.POSITIVE_INFINITY)).texts, texts);
    }),
    { numRuns: 200 },
  );
});

test("a search that finds little looks at so many rows a turn and no more", async () => {
  const records = LOOKED_AT_MAX * 2;
  const states = Array.from(
    { length: records },
    (_, index): ProbeState => (index === records - 1 ? "unhealthy" : "healthy"),
  );
  const lab = openLab(states);
  for (const filter of [{ state: "unhealthy" }, { record_id: `rec_${records - 1}` }] as const) {
    const { texts, turns } = await listedBy(lab, filter, 1);
    assert.equal(texts.length, 2);
    assert.ok(turns >= 4, `${turns} turns`);
  }
});

test("a cursor of another list is none", () => {
  assert.equal(openLab([]).view.open({}, ["zone", "x"], 10), undefined);
  assert.equal(keyOfParts(["value", "a.", "host A", "x"]), undefined);
});
