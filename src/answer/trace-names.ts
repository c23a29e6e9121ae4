/** Tells of names, zones and RRsets. Nothing here runs but for an explanation. */
import { LOWER } from "../dns/name.ts";
import { NODE, RRSET, UNIT_BYTES, UNIT_WORDS } from "../image/layout.ts";
import type { NameKey } from "../image/name-key.ts";
import type { ImageView } from "../image/view.ts";
import { isSelected } from "./chosen.ts";
import { FOUND } from "./lookup.ts";
import type { Spelled } from "./spelled.ts";
import { type AnswerState, reach } from "./state.ts";
import type { TraceEvent } from "./trace.ts";

/** Bytes of an RR ahead of its rdata: the owner's pointer, type, class, TTL and length. */
const OWNER_AND_FIELDS = 12;
/** A length from here on is a pointer (RFC 1035 section 4.1.4). */
const POINTER_BITS = 0xc0;

type Kind<Name extends TraceEvent["kind"]> = Extract<TraceEvent, { kind: Name }>;

/** The wire form of the key's suffix from a label on. */
function suffixOf(key: NameKey, label: number): Uint8Array {
  return Uint8Array.from([...key.lower.subarray(key.offsets[label]!, key.length), 0]);
}

export function traceName(state: AnswerState, name: Spelled, hops: number): void {
  state.trace?.({ kind: "name", name: suffixOf(name.key, 0), hops });
}

/** `label` is where the name of what the stage is about begins. */
export function traceRoute(state: AnswerState, name: Spelled, stage: Kind<"route">["stage"], label: number): void {
  const isNamed = stage === "own" || stage === "blocklist" || stage === "route" || stage === "delegation";
  state.trace?.({ kind: "route", stage, zone: isNamed ? suffixOf(name.key, label) : undefined });
}

/** The cache has `state.hit` for a name. */
export function traceCache({ hit, trace }: AnswerState): void {
  const { isStale, ageSeconds } = hit;
  trace?.({ kind: "cache", isStale, ageSeconds });
}

export function traceFound(state: AnswerState, name: Spelled): void {
  const { view, lookup } = state;
  switch (lookup.found) {
    case FOUND.NODE:
      state.trace?.({ kind: "found", found: "node", owner: suffixOf(name.key, 0) });
      return;
    case FOUND.NOTHING:
      state.trace?.({ kind: "found", found: "nothing", owner: suffixOf(name.key, 0) });
      return;
    default: {
      reach(view, lookup.node);
      const from = lookup.node * UNIT_BYTES + NODE.NAME_BYTE;
      const relative = view.bytes.subarray(from, from + (view.words[lookup.node * UNIT_WORDS + NODE.META]! & 0xff));
      const owner = Uint8Array.from([...relative, ...suffixOf(name.key, lookup.apexLabel)]);
      state.trace?.({ kind: "found", found: lookup.found === FOUND.CUT ? "cut" : "wildcard", owner });
    }
  }
}

/** Records of the answer section, or those that an ALIAS leads to; `name` is what they were looked for by. */
export function traceRRset(state: AnswerState, rrset: number, name: Spelled): void {
  traceRecords(state, rrset, "answer", suffixOf(name.key, 0));
}

/** Records of the name that the message has at `owner`, or of state.target where that is -1. */
export function traceAdditional(state: AnswerState, rrset: number, owner: number): void {
  const name = owner < 0 ? suffixOf(state.target.key, 0) : nameInMessage(state, owner);
  traceRecords(state, rrset, "additional", name);
}

function traceRecords(state: AnswerState, rrset: number, section: Kind<"rrset">["section"], owner: Uint8Array): void {
  const { words } = state.view;
  const at = rrset * UNIT_WORDS;
  const selected = isSelected(state.view, rrset);
  state.trace?.({
    kind: "rrset",
    section,
    owner,
    type: words[at + RRSET.TYPE]! & 0xffff,
    ttl: words[at + RRSET.TTL]!,
    isSelected: selected,
    rdata: selected ? rdataOf(state.view, rrset) : [],
  });
}

function rdataOf({ words, bytes, data }: ImageView, rrset: number): Uint8Array[] {
  const from = rrset * UNIT_BYTES + RRSET.WIRE_BYTE;
  const end = from + (words[rrset * UNIT_WORDS + RRSET.SIZE]! >>> 16);
  const found: Uint8Array[] = [];
  for (let at = from; at < end; ) {
    const next = at + OWNER_AND_FIELDS + data.getUint16(at + OWNER_AND_FIELDS - 2);
    found.push(bytes.slice(at + OWNER_AND_FIELDS, next));
    at = next;
  }
  return found;
}

/** In lower case, pointers followed. */
function nameInMessage({ query }: AnswerState, offset: number): Uint8Array {
  const { data, start } = query;
  const name: number[] = [];
  let at = start + offset;
  for (let length = data.getUint8(at); length !== 0; length = data.getUint8(at)) {
    if (length >= POINTER_BITS) {
      at = start + (data.getUint16(at) & 0x3fff);
      continue;
    }
    name.push(length);
    for (let index = 1; index <= length; index++) name.push(LOWER[data.getUint8(at + index)]!);
    at += length + 1;
  }
  return Uint8Array.from([...name, 0]);
}

export function traceStopped(state: AnswerState, why: Kind<"stopped">["why"]): void {
  state.trace?.({ kind: "stopped", why });
}

export function traceFollow(state: AnswerState, by: Kind<"follow">["by"], target: Spelled): void {
  state.trace?.({ kind: "follow", by, target: suffixOf(target.key, 0) });
}
