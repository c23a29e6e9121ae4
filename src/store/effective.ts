/**
 * The rules across objects, as pure functions over what was merged: which records of a name are in effect, and at which
 * key an id lives. What loses is hidden, not removed, and returns when its rival goes.
 */
import type { RecordType } from "../model/objects.ts";
import { excludes, ownsName } from "../model/ownership.ts";
import { compareText } from "./envelope.ts";
import type { Stamp } from "./store.ts";

export type NameMember = {
  readonly id: string;
  readonly type: RecordType;
  readonly born: Stamp;
  /** The zone's floor when it was created. */
  readonly life: Stamp;
};

/** `floor` is undefined where there is no such zone. */
export type ZoneState = { readonly floor: Stamp | undefined };

/**
 * For each of the records of one name, relative to its zone, the id of the rival that hides it, or undefined where it is in effect; and
 * "zone" where its zone is dead. Of records that cannot be together the one that was born first stays, by ids where
 * that is equal.
 */
export function effective(
  name: string,
  members: readonly NameMember[],
  zone: ZoneState,
): readonly (string | undefined)[] {
  if (members.length === 1 || !members.some(({ type }) => ownsName(type))) {
    return members.map(({ life }) => (life === zone.floor ? undefined : "zone"));
  }
  const inOrder = [...members].sort(
    (left, right) => compareText(left.born, right.born) || compareText(left.id, right.id),
  );
  const staying: NameMember[] = [];
  const rivals = new Map<NameMember, string>();
  for (const member of inOrder) {
    if (member.life !== zone.floor) {
      rivals.set(member, "zone");
      continue;
    }
    const rival = staying.find(({ type }) => excludes(type, member.type, name));
    if (rival === undefined) staying.push(member);
    else rivals.set(member, rival.id);
  }
  return members.map((member) => rivals.get(member));
}

/** A version of an id, at whatever key. */
export type IdMember = {
  readonly key: string;
  readonly life: Stamp;
  readonly renames: number;
  readonly stamp: Stamp;
  readonly state: "alive" | "deleted" | "moved";
};

/**
 * The key at which an id lives, or undefined where it is dead. The version with more renames knows best, then the later
 * one; a tombstone counts too, so that an edit that never heard of a rename does not bring back what was deleted since.
 */
export function homeOfId(members: readonly IdMember[]): string | undefined {
  const best = bestOfId(members);
  return best?.state === "alive" ? best.key : undefined;
}

/** The version that knows most of where the id lives. */
export function bestOfId<Member extends IdMember>(members: readonly Member[]): Member | undefined {
  let best: Member | undefined;
  for (const member of members) if (best === undefined || compareRank(member, best) > 0) best = member;
  return best;
}

/** What was moved away gives way to what arrived, which carries the same stamp. */
const STATE_RANK = { moved: 0, alive: 1, deleted: 2 } as const;

/** Below 0 where `left` knows less of where the id lives than `right`. */
export function compareRank(left: IdMember, right: IdMember): number {
  return (
    compareText(left.life, right.life) ||
    left.renames - right.renames ||
    compareText(left.stamp, right.stamp) ||
    STATE_RANK[left.state] - STATE_RANK[right.state] ||
    compareText(left.key, right.key)
  );
}
