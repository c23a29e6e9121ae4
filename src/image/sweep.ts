/** Frees the nodes of incarnations that have ended: those of all of them in one pass over the name table, a part of it at a time. */
import { release } from "./arena.ts";
import { NODE, nodeUnits, RRSET, SEGMENT_SLOTS, SLOT_REMOVED, UNIT_WORDS, ZONE_ENTRY } from "./layout.ts";
import { advanceEpoch, epochIsOver } from "./reclaim.ts";
import { CONTROL } from "./shared.ts";
import { type ImageWriter, unitsOfRRset } from "./writer-state.ts";

/**
 * Sweeps once every reader of the ended incarnations has left, at most `segmentsMax` segments of the name table in one
 * call: a million names take a third of a second in all. Returns true where more is left to do, or a reader to wait for.
 */
export function collectDead(writer: ImageWriter, segmentsMax: number): boolean {
  if (writer.sweep.incarnations.size === 0 && !beginSweep(writer)) return writer.dead.size > 0;
  const { number, incarnations } = writer.sweep;
  let left = segmentsMax;
  for (const [segment, info] of writer.segments) {
    if (info.swept === number) continue;
    if (left === 0) return true;
    left--;
    sweepSegment(writer, segment, incarnations);
    info.swept = number;
  }
  writer.sweep = { number, incarnations: new Set() };
  return writer.dead.size > 0;
}

/** Takes all ended incarnations into a sweep; those that end meanwhile are for the next one. */
function beginSweep(writer: ImageWriter): boolean {
  if (writer.dead.size === 0) return false;
  const { control } = writer.view;
  const now = Atomics.load(control, CONTROL.EPOCH);
  for (const epoch of writer.dead.values()) {
    if (epoch === now) {
      advanceEpoch(control);
      break;
    }
  }
  for (const epoch of writer.dead.values()) if (!epochIsOver(control, epoch)) return false;
  writer.sweep = { number: writer.sweep.number + 1, incarnations: new Set(writer.dead.keys()) };
  writer.dead.clear();
  return true;
}

function sweepSegment(writer: ImageWriter, segment: number, ended: ReadonlySet<number>): void {
  const { words } = writer.view;
  const base = segment * UNIT_WORDS;
  const info = writer.segments.get(segment)!;
  for (let slot = 0; slot < SEGMENT_SLOTS; slot++) {
    const at = base + slot * 2 + 1;
    const node = words[at]!;
    if (node <= 0) continue;
    const incarnation = words[node * UNIT_WORDS + NODE.INCARNATION]!;
    if (incarnation === ZONE_ENTRY || !ended.has(incarnation)) continue;
    Atomics.store(words, at, SLOT_REMOVED);
    info.live--;
    freeNode(writer, node);
  }
}

function freeNode(writer: ImageWriter, node: number): void {
  const { words, control } = writer.view;
  let rrset = words[node * UNIT_WORDS + NODE.RRSETS]!;
  while (rrset !== 0) {
    const next = words[rrset * UNIT_WORDS + RRSET.NEXT]!;
    release(writer.arena, rrset, unitsOfRRset(writer.view, rrset));
    control[CONTROL.RRSETS]! -= 1;
    rrset = next;
  }
  release(writer.arena, node, nodeUnits(words[node * UNIT_WORDS + NODE.META]! & 0xff));
  control[CONTROL.NAMES]! -= 1;
}
