/** Tells of names, zones and RRsets. Nothing here runs but for an explanation. */
import { NODE, RRSET, UNIT_BYTES, UNIT_WORDS } from "../image/layout.ts";
import type { NameKey } from "../image/name-key.ts";
import { isSelected } from "./chosen.ts";
import { FOUND } from "./lookup.ts";
import type { Spelled } from "./spelled.ts";
import { type AnswerState, reach } from "./state.ts";
import type { TraceEvent } from "./trace.ts";

type Kind<Name extends TraceEvent["kind"]> = Extract<TraceEvent, { kind: Name }>;

/** The wire form of the key's suffix from a label on. */
function suffixOf(key: NameKey, label: number): Uint8Array {
  return Uint8Array.from([...key.lower.subarray(key.offsets[label]!, key.length), 0]);
}

export function traceName(state: AnswerState, name: Spelled, hops: number): void {
  state.trace?.({ kind: "name", name: suffixOf(name.key, 0), hops });
}

export function traceRoute(state: AnswerState, name: Spelled, stage: Kind<"route">["stage"]): void {
  const zone = stage === "own" ? suffixOf(name.key, state.lookup.apexLabel) : undefined;
  state.trace?.({ kind: "route", stage, zone });
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

export function traceRRset(state: AnswerState, rrset: number, section: Kind<"rrset">["section"]): void {
  const { words } = state.view;
  const at = rrset * UNIT_WORDS;
  state.trace?.({
    kind: "rrset",
    section,
    type: words[at + RRSET.TYPE]! & 0xffff,
    ttl: words[at + RRSET.TTL]!,
    isSelected: isSelected(state.view, rrset),
  });
}

export function traceFollow(state: AnswerState, by: Kind<"follow">["by"], target: Spelled): void {
  state.trace?.({ kind: "follow", by, target: suffixOf(target.key, 0) });
}
