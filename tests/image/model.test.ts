import assert from "node:assert/strict";
import test from "node:test";
import { createLookup, FOUND, findZone, lookUpName } from "../../src/answer/lookup.ts";
import { NODE, RRSET, UNIT_BYTES, UNIT_WORDS } from "../../src/image/layout.ts";
import type { NameKey } from "../../src/image/name-key.ts";
import { CONTROL, MAX_THREADS } from "../../src/image/shared.ts";
import { enterImage, type ImageView, leaveImage, openView, refreshView } from "../../src/image/view.ts";
import { collect, discardZone } from "../../src/image/writer.ts";
import { seededChance } from "../support/chance.ts";
import { auditArena } from "./audit.ts";
import { keyOf, readPattern } from "./content.ts";
import { findInModel, type ModelFound } from "./model.ts";
import { PROGRESS, startReaders } from "./readers.ts";
import { change, createSubject, type Subject } from "./subject.ts";
import { STABLE_NAMES, UNIVERSE } from "./universe.ts";

/** No reader thread has this index. */
const COMPARER_THREAD = MAX_THREADS - 1;
const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31);
const STEPS = 12_000;
/** What readers see meanwhile; where other work keeps them from it, there are more steps. */
const LOOKUPS_MIN = 100_000;
const RRSETS_READ_MIN = 10_000;
const DURATION_MS_MAX = 60_000;
const STEPS_A_COMPARISON = 20;
const STEPS_AN_AUDIT = 300;
const READERS = 2;

const KINDS: Readonly<Record<number, ModelFound["kind"]>> = {
  [FOUND.NODE]: "node",
  [FOUND.WILDCARD]: "wildcard",
  [FOUND.CUT]: "cut",
  [FOUND.NOTHING]: "nothing",
};

/** What the image says of a name, in the model's words, with the values at the node. */
function findInImage(view: ImageView, key: NameKey): ModelFound & { readonly values: ReadonlyMap<number, number> } {
  const lookup = createLookup();
  const values = new Map<number, number>();
  if (findZone(view, lookup, key, 0) === 0) return { kind: "none", zone: "", name: "", values };
  lookUpName(view, lookup, key);
  const zone = `${labelTexts(key.lower, key.offsets[lookup.apexLabel]!, key.length).join(".")}.`;
  const kind = KINDS[lookup.found]!;
  if (kind === "nothing") return { kind, zone, name: "", values };
  refreshView(view);
  const at = lookup.node * UNIT_WORDS;
  const nameAt = lookup.node * UNIT_BYTES + NODE.NAME_BYTE;
  const name = labelTexts(view.bytes, nameAt, nameAt + (view.words[at + NODE.META]! & 0xff)).join(".");
  for (let rrset = view.words[at + NODE.RRSETS]!; rrset !== 0; ) {
    const { type, value } = readPattern(view, rrset);
    values.set(type, value);
    rrset = view.words[rrset * UNIT_WORDS + RRSET.NEXT]!;
  }
  return { kind, zone, name, values };
}

function labelTexts(bytes: Uint8Array, from: number, to: number): string[] {
  const labels: string[] = [];
  for (let at = from; at < to; at += bytes[at]! + 1) {
    labels.push(new TextDecoder().decode(bytes.slice(at + 1, at + 1 + bytes[at]!)));
  }
  return labels;
}

function compare({ active, writer }: Subject, view: ImageView, keys: ReadonlyMap<string, NameKey>): void {
  const zones = new Map([...active].map(([name, { model }]) => [name, model]));
  for (const [name, key] of keys) {
    const expected = findInModel(zones, name);
    const values = new Map(zones.get(expected.zone)?.get(expected.name) ?? []);
    if (expected.kind === "nothing") values.clear();
    assert.deepEqual(findInImage(view, key), { ...expected, values }, name);
  }
  assert.equal(view.control[CONTROL.ZONE_DEPTHS], depthsOf(writer.entriesByDepth), "depths of zones");
}

function depthsOf(entriesByDepth: ReadonlyMap<number, number>): number {
  let depths = 0;
  for (const [depth, zones] of entriesByDepth) if (zones > 0) depths |= 1 << Math.min(depth, 31);
  return depths;
}

/** Figures that metrics show, from the model. */
function expectedFigures({ active, fillerNames }: Subject): { names: number; rrsets: number; zones: number } {
  let names = STABLE_NAMES + 1 + Math.max(0, fillerNames + 1);
  let rrsets = STABLE_NAMES + Math.max(0, fillerNames);
  for (const { model } of active.values()) {
    names += model.size;
    for (const sets of model.values()) rrsets += sets.size;
  }
  return { names, rrsets, zones: active.size + 1 + (fillerNames < 0 ? 0 : 1) };
}

test("an image answers as a model in plain maps, and other threads never see a torn or misplaced RRset", async (t) => {
  t.diagnostic(`SEED=${SEED}`);
  const subject = createSubject(seededChance(SEED));
  const view = openView(subject.shared);
  const keys = new Map(UNIVERSE.map((name) => [name, keyOf(view, name)]));
  const readers = startReaders(subject.shared, new URL("./reader-entry.ts", import.meta.url), READERS);
  const { LOOKUPS, RRSETS_READ } = PROGRESS;
  const hasSeenEnough = () =>
    readers.progress[LOOKUPS]! > LOOKUPS_MIN && readers.progress[RRSETS_READ]! > RRSETS_READ_MIN;
  const lastMs = performance.now() + DURATION_MS_MAX;
  let faults: readonly string[] = [];
  try {
    for (let step = 1; step <= STEPS || (!hasSeenEnough() && performance.now() < lastMs); step++) {
      change(subject);
      collect(subject.writer);
      if (step % STEPS_A_COMPARISON === 0) {
        enterImage(view, COMPARER_THREAD);
        compare(subject, view, keys);
        leaveImage(view, COMPARER_THREAD);
      }
      if (step % STEPS_AN_AUDIT === 0) {
        auditArena(
          subject.writer,
          [...subject.staged.values()].map(({ handle }) => handle),
        );
      }
    }
  } finally {
    faults = await readers.stop();
  }
  assert.deepEqual(faults, [], `readers, SEED=${SEED}`);
  assert.ok(hasSeenEnough(), `${readers.progress[LOOKUPS]} look-ups, ${readers.progress[RRSETS_READ]} RRsets`);
  checkFigures(subject);
});

/** With the readers gone everything that was given up is free, and the figures are the model's. */
function checkFigures(subject: Subject): void {
  const { writer, staged } = subject;
  for (const { handle } of staged.values()) discardZone(writer, handle);
  while (collect(writer));
  auditArena(writer);
  const { names, rrsets, zones } = expectedFigures(subject);
  const { control } = writer.view;
  assert.equal(control[CONTROL.ZONES], zones, "zones");
  assert.equal(control[CONTROL.NAMES], names, "names");
  assert.equal(control[CONTROL.RRSETS], rrsets, "RRsets");
}
