/**
 * The digest of everything as a tree of exclusive ors, kept from what comes and what goes. What stops counting all at once
 * is kept in groups, each with what it adds to the leaves, so that a deletion of a million records and the end of a day's
 * tombstones cost one pass over the group's leaves: the records of a zone's present life, and of them and of all else what
 * leaves at one moment. Of earlier lives nothing counts, whether or not it was removed already.
 */
import { absorbBytes, absorbText, beginHash, endHash, type Lanes, leafOf } from "./digest-hash.ts";
import { type LeafSet, makeLeafSet } from "./leaf-set.ts";
import { OBJECT_HEAD } from "./refs.ts";
import { DIGEST_CHILDREN, DIGEST_LEVELS, type ItemRef } from "./replica.ts";
import { STAMP_ZERO } from "./stamp.ts";
import type { Stamp } from "./store.ts";

/** What of a row counts. `zone` is "" for what belongs to no life; `dueMs` is when it leaves, 0: never. */
export type Counted = {
  readonly zone: string;
  readonly life: Stamp;
  readonly dueMs: number;
  readonly version: string;
};

/** One version that comes or goes: it is its own opposite. */
export type Delta = Omit<Counted, "version"> & {
  readonly ref: ItemRef;
  readonly leaf: number;
  readonly high: number;
  readonly low: number;
};

export type DigestTree = {
  readonly apply: (delta: Delta, nowMs: number) => void;
  /** The zone's present life; `order` tells later from earlier news of it. */
  readonly setFloor: (zone: string, floor: Stamp, order: number) => void;
  /** Takes out what is due by now. */
  readonly advance: (nowMs: number) => void;
  readonly root: () => string;
  readonly children: (level: number, nodes: readonly number[]) => readonly (readonly string[])[];
};

/** What was due is kept so long, for a clock that is set back. */
const DUE_KEPT_MS = 86_400_000;
const LEAVES = DIGEST_CHILDREN ** DIGEST_LEVELS;
/** Where each level begins: 1, 16, 256, 4,096 and 65,536 nodes. */
const STARTS = [0, 1, 17, 273, 4369] as const;

type Group = { readonly dueMs: number; readonly set: LeafSet; isCounted: boolean };
type Life = { floor: Stamp; order: number; readonly groups: Map<number, Group> };

export function leafCount(): number {
  return LEAVES;
}

const lanes: Lanes = { high: 0, low: 0 };

export function deltaOf(ref: ItemRef, counted: Counted): Delta {
  beginHash(lanes);
  absorbText(lanes, ref);
  return endDelta(ref, counted);
}

/** The same for an object whose reference is made of its key, several times as fast. */
export function deltaOfObject(ref: ItemRef, key: Uint8Array, counted: Counted): Delta {
  beginHash(lanes);
  absorbText(lanes, OBJECT_HEAD);
  absorbBytes(lanes, key);
  return endDelta(ref, counted);
}

function endDelta(ref: ItemRef, { zone, life, dueMs, version }: Counted): Delta {
  const leaf = leafOf(lanes);
  absorbText(lanes, "\n");
  absorbText(lanes, version);
  endHash(lanes);
  return { ref, zone, life, dueMs, leaf, high: lanes.high, low: lanes.low };
}

/** The digests of all nodes, level by level. */
function makeNodes() {
  const words = new Int32Array((STARTS[4] + LEAVES) * 2);
  const mix = (leaf: number, high: number, low: number) => {
    for (let level = 0; level <= DIGEST_LEVELS; level++) {
      const at = (STARTS[level]! + (leaf >>> (4 * (DIGEST_LEVELS - level)))) * 2;
      words[at]! ^= high;
      words[at + 1]! ^= low;
    }
  };
  const hex = (node: number) => {
    const half = (at: number) => (words[at]! >>> 0).toString(16).padStart(8, "0");
    return half(node * 2) + half(node * 2 + 1);
  };
  return { mix, hex };
}

export function makeDigestTree(): DigestTree {
  const { mix, hex } = makeNodes();
  const zones = new Map<string, Life>();
  const dues = new Map<number, Set<Group>>();
  const count = (group: Group, isCounted: boolean) => {
    if (group.isCounted === isCounted) return;
    group.isCounted = isCounted;
    group.set.forEach(mix);
  };
  const lifeOf = (zone: string): Life => {
    let life = zones.get(zone);
    if (life === undefined) {
      life = { floor: STAMP_ZERO, order: 0, groups: new Map() };
      zones.set(zone, life);
    }
    return life;
  };
  const groupOf = ({ groups }: Life, dueMs: number, nowMs: number): Group => {
    let group = groups.get(dueMs);
    if (group === undefined) {
      group = { dueMs, set: makeLeafSet(), isCounted: dueMs === 0 || dueMs > nowMs };
      groups.set(dueMs, group);
      if (dueMs !== 0) dues.set(dueMs, (dues.get(dueMs) ?? new Set()).add(group));
    }
    return group;
  };
  return {
    apply: ({ zone, life, dueMs, leaf, high, low }, nowMs) => {
      if (zone === "" && dueMs === 0) {
        mix(leaf, high, low);
        return;
      }
      const present = lifeOf(zone);
      if (life !== present.floor || (dueMs !== 0 && dueMs + DUE_KEPT_MS <= nowMs)) return;
      const group = groupOf(present, dueMs, nowMs);
      group.set.mix(leaf, high, low);
      if (group.isCounted) mix(leaf, high, low);
    },
    setFloor: (zone, floor, order) => {
      const life = lifeOf(zone);
      if (order < life.order) return;
      life.order = order;
      if (life.floor === floor) return;
      life.floor = floor;
      for (const group of life.groups.values()) {
        count(group, false);
        dues.get(group.dueMs)?.delete(group);
      }
      life.groups.clear();
    },
    advance: (nowMs) => {
      for (const [dueMs, groups] of dues) {
        for (const group of groups) count(group, dueMs > nowMs);
        if (groups.size > 0 && dueMs + DUE_KEPT_MS > nowMs) continue;
        dues.delete(dueMs);
        for (const { groups: ofZone } of zones.values()) ofZone.delete(dueMs);
      }
    },
    root: () => hex(0),
    children: (level, nodes) => {
      if (!Number.isInteger(level) || level < 0 || level >= DIGEST_LEVELS) throw new RangeError(`no level ${level}`);
      return nodes.map((node) => {
        if (!(Number.isInteger(node) && node >= 0 && node < DIGEST_CHILDREN ** level)) {
          throw new RangeError(`no node ${node} on level ${level}`);
        }
        const first = STARTS[level + 1]! + node * DIGEST_CHILDREN;
        return Array.from({ length: DIGEST_CHILDREN }, (_, index) => hex(first + index));
      });
    },
  };
}
