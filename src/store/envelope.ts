/**
 * One version of one object, and which of two versions of a key wins. Merging is choosing: a version is never changed by
 * it, so any order and any number of merges end in the same one.
 */
import { hash } from "node:crypto";
import type { NaturalKey } from "../model/objects.ts";
import { STAMP_ZERO, stampNode } from "./stamp.ts";
import type { Stamp } from "./store.ts";

/** Short names, for there are as many of these as objects. */
export type Envelope = {
  readonly stamp: Stamp;
  /** Of the creation; edits keep it. */
  readonly born: Stamp;
  /** Of zones and records: the zone's floor when it was created. It lives while that is still the floor. */
  readonly life: Stamp;
  /** How often the object was moved to another key. */
  readonly renames: number;
  /** For each other node the last stamp of its versions of this key that this one was based on. */
  readonly seen: Readonly<Record<string, Stamp>>;
  /** Of a tombstone too: the id that the object had; "" of a kind without ids. */
  readonly id: string;
  readonly content:
    | { readonly kind: "body"; readonly body: unknown }
    | { readonly kind: "tombstone"; readonly movedTo?: NaturalKey };
};

/**
 * Below 0 where `left` loses, above where it wins, 0 where both are the same. A later life of the zone wins over an
 * earlier one, then the greater stamp; of two with stamp zero the one that was born first; then the bodies' hashes.
 */
export function compareVersions(left: Envelope, right: Envelope): number {
  return (
    compareText(left.life, right.life) ||
    compareText(left.stamp, right.stamp) ||
    (left.stamp === STAMP_ZERO ? compareText(right.born, left.born) : 0) ||
    compareText(contentHash(left), contentHash(right))
  );
}

/** Whether `later` was made by someone who knew `earlier`. A node knows its own versions. */
export function hasSeen(later: Envelope, earlier: Envelope): boolean {
  if (later.stamp === STAMP_ZERO || earlier.stamp > later.stamp) return false;
  // Stamp zero names no node: it is what each node makes by itself, equal in purpose everywhere.
  if (earlier.stamp === STAMP_ZERO) return true;
  const node = stampNode(earlier.stamp);
  if (node === stampNode(later.stamp)) return true;
  return (later.seen[node] ?? STAMP_ZERO) >= earlier.stamp;
}

/** What a version of `nodeId` says to have seen that is based on `bases`. */
export function seenOf(nodeId: string, bases: readonly (Envelope | undefined)[]): Readonly<Record<string, Stamp>> {
  const seen = new Map<string, Stamp>();
  const note = (node: string, stamp: Stamp) => {
    if (node !== nodeId && stamp > (seen.get(node) ?? STAMP_ZERO)) seen.set(node, stamp);
  };
  for (const base of bases) {
    if (base === undefined) continue;
    for (const [node, stamp] of Object.entries(base.seen)) note(node, stamp);
    if (base.stamp !== STAMP_ZERO) note(stampNode(base.stamp), base.stamp);
  }
  return Object.fromEntries(seen);
}

export function compareText(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Equal for equal versions, their secrets opened. */
export function contentHash(envelope: Envelope): string {
  const { content } = envelope;
  const what = content.kind === "body" ? content.body : [content.movedTo ?? null];
  return hash("sha256", canonicalJson([what, envelope.id, envelope.born, envelope.renames, envelope.seen]));
}

/** JSON with the members of objects in one order, so that equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).filter(([, each]) => each !== undefined);
  members.sort(([left], [right]) => compareText(left, right));
  return `{${members.map(([name, each]) => `${JSON.stringify(name)}:${canonicalJson(each)}`).join(",")}}`;
}

/**
 * What hides an alive object here: its id lives at another key, or a rival owns its name. Worked out, never merged. Where
 * the id is dead, `untilMs` is when its tombstone leaves, and the object with it.
 */
export type Hidden = { readonly by: "id" | "name"; readonly rival: string; readonly untilMs?: number };

/** An envelope as it lies in the store, with what was worked out about it. */
export type StoredEnvelope = {
  readonly key: NaturalKey;
  readonly envelope: Envelope;
  /** The body's secrets are sealed. */
  readonly sealed: boolean;
  readonly hidden: Hidden | undefined;
};

/** What a body may have that need not be written a second time. */
type PackedBody = { readonly id?: string; readonly zone?: string; readonly name?: string; readonly type?: string };

type Packed = {
  k?: NaturalKey;
  s: Stamp;
  b?: Stamp;
  l?: Stamp;
  r?: number;
  n?: Readonly<Record<string, Stamp>>;
  i?: string;
  v?: PackedBody;
  m?: NaturalKey;
  x?: 1;
  h?: Hidden;
};

/** The text that lies in the store. What has its usual value is left out. */
export function packEnvelope({ key, envelope, sealed, hidden }: StoredEnvelope): string {
  const { stamp, born, life, renames, seen, id, content } = envelope;
  // Every kind's body is an object.
  const body = content.kind === "body" ? (content.body as PackedBody) : undefined;
  const packed: Packed = { s: stamp };
  if (!isRecordKey(key, body)) packed.k = key;
  if (born !== stamp) packed.b = born;
  if (life !== STAMP_ZERO) packed.l = life;
  if (renames !== 0) packed.r = renames;
  if (Object.keys(seen).length > 0) packed.n = seen;
  if (id !== (body?.id ?? "")) packed.i = id;
  if (body !== undefined) packed.v = body;
  else if (content.kind === "tombstone" && content.movedTo !== undefined) packed.m = content.movedTo;
  if (sealed) packed.x = 1;
  if (hidden !== undefined) packed.h = hidden;
  return JSON.stringify(packed);
}

/** There are a million records where there are ten of anything else: their keys are read from their bodies. */
function isRecordKey(key: NaturalKey, body: PackedBody | undefined): boolean {
  if (body === undefined || key.length !== 3) return false;
  return body.zone === key[0] && body.name === key[1] && body.type === key[2];
}

const NOTHING_SEEN: Readonly<Record<string, Stamp>> = {};

export function unpackEnvelope(text: string): StoredEnvelope {
  const packed: Packed = JSON.parse(text);
  return {
    key: packed.k ?? [packed.v?.zone ?? "", packed.v?.name ?? "", packed.v?.type ?? ""],
    sealed: packed.x === 1,
    hidden: packed.h,
    envelope: {
      stamp: packed.s,
      born: packed.b ?? packed.s,
      life: packed.l ?? STAMP_ZERO,
      renames: packed.r ?? 0,
      seen: packed.n ?? NOTHING_SEEN,
      id: packed.i ?? packed.v?.id ?? "",
      content:
        packed.v !== undefined
          ? { kind: "body", body: packed.v }
          : packed.m !== undefined
            ? { kind: "tombstone", movedTo: packed.m }
            : { kind: "tombstone" },
    },
  };
}
