/**
 * The digest of everything as a tree of exclusive ors, kept from what comes and what goes. What stops counting all at once
 * is kept in groups, each with what it adds to the leaves, so that a deletion of a million records and the end of a day's
 * tombstones cost one pass over the group's leaves: the records of a zone's present life, and of them and of all else what
 * leaves at one moment. Of earlier lives nothing counts, whether or not it was removed already.
 */
import { absorbText, beginHash, endHash, type Lanes, leafOf } from "./digest-hash.ts";
import { type LeafSet, makeLeafSet } from "./leaf-set.ts";
import type { KeyText } from "./overlay.ts";
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

/** What tells where a version counts. */
export type Place = Omit<Counted, "version">;

/**
 * Versions that come or go, each its own opposite, all at one place: for each its leaf and the two halves of its hash. Numbers
 * in a row, for an import has a hundred thousand.
 */
export type DeltaRun = Place & { readonly words: number[]; readonly refs: ItemRef[] };
export const DELTA_WORDS = 3;

export type Mix = (leaf: number, high: number, low: number) => void;

export type DigestTree = {
  /** Takes in and out what is at that place; undefined where nothing counts any more. */
  readonly mixAt: (place: Place, nowMs: number) => Mix | undefined;
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

type Group = { readonly dueMs: number; readonly set: LeafSet; isCounted: boolean; readonly mix: Mix };
type Life = { floor: Stamp; order: number; readonly groups: Map<number, Group> };

export function leafCount(): number {
  return LEAVES;
}

/** The numbers of one version of what `ref` names: leaf, high and low. */
export function hashVersion(lanes: HashedVersion, ref: ItemRef, version: string): void {
  beginHash(lanes);
  absorbText(lanes, ref);
  endVersion(lanes, version);
}

/** The same for an object whose reference is made of its key, without making it. */
export function hashObjectVersion(lanes: HashedVersion, key: KeyText, version: string): void {
  beginHash(lanes);
  absorbText(lanes, OBJECT_HEAD);
  absorbText(lanes, key);
  endVersion(lanes, version);
}

export type HashedVersion = Lanes & { leaf: number };

function endVersion(lanes: HashedVersion, version: string): void {
  lanes.leaf = leafOf(lanes);
  absorbText(lanes, "\n");
  absorbText(lanes, version);
  endHash(lanes);
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

function makeGroup(dueMs: number, isCounted: boolean, mix: Mix): Group {
  const set = makeLeafSet();
  const group: Group = {
    dueMs,
    set,
    isCounted,
    mix: (leaf, high, low) => {
      set.mix(leaf, high, low);
      if (group.isCounted) mix(leaf, high, low);
    },
  };
  return group;
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
      group = makeGroup(dueMs, dueMs === 0 || dueMs > nowMs, mix);
      groups.set(dueMs, group);
      if (dueMs !== 0) dues.set(dueMs, (dues.get(dueMs) ?? new Set()).add(group));
    }
    return group;
  };
  return {
    mixAt: ({ zone, life, dueMs }, nowMs) => {
      if (zone === "" && dueMs === 0) return mix;
      const present = lifeOf(zone);
      if (life !== present.floor || (dueMs !== 0 && dueMs + DUE_KEPT_MS <= nowMs)) return undefined;
      return groupOf(present, dueMs, nowMs).mix;
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
