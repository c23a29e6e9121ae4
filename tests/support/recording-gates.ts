/** Gates that probe nothing: they write down what is gated, and never give one slot to two RRsets. */
import assert from "node:assert/strict";
import { typeToText } from "../../src/dns/type-names.ts";
import type { ImageWriter } from "../../src/image/writer-state.ts";
import type { GatedRRset, Gates } from "../../src/model/gates.ts";
import { type SelectedRRset, selectedRRsets } from "./selected-rrsets.ts";

type Entry = { readonly rrset: GatedRRset; readonly slots: readonly number[] };

export type RecordingGates = Gates & {
  /** What is gated, in an order of its own, without the slots. */
  readonly book: () => readonly GatedRRset[];
  /** Slots that were handed out and not given back. */
  readonly held: ReadonlySet<number>;
  /** The slot of a value as it is gated now. Throws where it is not. */
  readonly slotOf: (zone: string, name: string, type: string, value: string) => number;
  /** How often the RRset was gated. */
  readonly gatedTimes: (zone: string, name: string, type: string) => number;
};

export function recordingGates(): RecordingGates {
  const zones = new Map<string, Map<string, Entry>>();
  const builds = new Map<string, Set<string>>();
  const held = new Set<number>();
  const released: number[] = [];
  const times = new Map<string, number>();
  let next = 1;
  const entriesOf = (zone: string) => {
    const known = zones.get(zone) ?? new Map<string, Entry>();
    zones.set(zone, known);
    return known;
  };
  const drop = (zone: string, key: string) => {
    const entries = entriesOf(zone);
    released.push(...(entries.get(key)?.slots ?? []));
    entries.delete(key);
  };
  return {
    gate(rrset) {
      const { zone, name, type, values } = rrset;
      const key = `${name} ${type}`;
      drop(zone, key);
      const slots = values.map(() => next++);
      for (const slot of slots) held.add(slot);
      entriesOf(zone).set(key, { rrset, slots });
      builds.get(zone)?.add(key);
      times.set(`${zone} ${key}`, (times.get(`${zone} ${key}`) ?? 0) + 1);
      return slots;
    },
    ungate: (zone, name, type) => drop(zone, `${name} ${type}`),
    beginZone: (zone) => void builds.set(zone, new Set()),
    endZone(zone) {
      const gated = builds.get(zone);
      assert(gated !== undefined, `the build of ${zone} ends and has not begun`);
      builds.delete(zone);
      for (const key of [...entriesOf(zone).keys()]) if (!gated.has(key)) drop(zone, key);
    },
    ungateZone(zone) {
      builds.delete(zone);
      for (const key of [...entriesOf(zone).keys()]) drop(zone, key);
    },
    settle() {
      assert.equal(builds.size, 0, "settled in the middle of a build");
      for (const slot of released.splice(0)) held.delete(slot);
    },
    held,
    book: () =>
      [...zones.values()]
        .flatMap((entries) => [...entries.values()].map(({ rrset }) => rrset))
        .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)),
    slotOf(zone, name, type, value) {
      const entry = entriesOf(zone).get(`${name} ${type}`);
      const slot = entry?.slots[entry.rrset.values.findIndex((each) => each.value === value)];
      assert(slot !== undefined, `${name} ${type} ${value} of ${zone} is not gated`);
      return slot;
    },
    gatedTimes: (zone, name, type) => times.get(`${zone} ${name} ${type}`) ?? 0,
  };
}

function keyOf({ zone, name, type }: GatedRRset): string {
  return JSON.stringify([zone, name, type]);
}

/**
 * The selected RRsets of an image, after a look at their slots: each is handed out and of the value that names it, and what is
 * gated has one. A slot reads as 1, so that two images can be compared.
 */
export function checkedTables(writer: ImageWriter, gates: RecordingGates): readonly SelectedRRset[] {
  const tables = selectedRRsets(writer);
  const gated = new Set(gates.book().map(keyOf));
  for (const { zone, owner, type, candidates } of tables) {
    const name = zone === "" ? owner : owner === zone ? "@" : owner.slice(0, -zone.length - 1);
    const typeName = typeToText(type);
    const isGated = gated.delete(JSON.stringify([zone, name, typeName]));
    for (const { value, health } of candidates) {
      const expected = isGated ? gates.slotOf(zone, name, typeName, value) : 0;
      assert.equal(health, expected, `the slot of ${value} at ${owner} ${typeName}`);
      assert(health === 0 || gates.held.has(health), `the slot of ${value} at ${owner} ${typeName} was given back`);
    }
  }
  assert.deepEqual([...gated], [], "gated, and not in the image");
  return tables.map((table) => ({
    ...table,
    candidates: table.candidates.map((candidate) => ({ ...candidate, health: Math.min(1, candidate.health) })),
  }));
}
