/** Accounts for every unit of an arena: each belongs to one reachable, waiting or free block, and to one only. */
import { forEachBlocklistBlock } from "../../src/image/blocklist.ts";
import {
  NODE,
  nodeUnits,
  RRSET,
  SEGMENT_SLOTS,
  SEGMENT_UNITS,
  UNIT_WORDS,
  ZONE,
  ZONE_ENTRY,
  ZONE_UNITS,
} from "../../src/image/layout.ts";
import { PREFIX_TABLES, prefixTableUnits } from "../../src/image/prefix-table.ts";
import { CONTROL } from "../../src/image/shared.ts";
import { directoryInUse } from "../../src/image/view.ts";
import type { ZoneHandle } from "../../src/image/writer.ts";
import { type ImageWriter, unitsOfRRset } from "../../src/image/writer-state.ts";

type Block = { readonly reference: number; readonly units: number; readonly what: string };

/** Throws an Error that names the first gap or overlap. `staged` are zones that are made and not active yet. */
export function auditArena(writer: ImageWriter, staged: Iterable<ZoneHandle> = []): void {
  const blocks = [...reachable(writer), ...own(writer)];
  for (const { body } of staged) blocks.push(...bodyBlocks(writer, body, "staged body"));
  blocks.sort((a, b) => a.reference - b.reference || a.units - b.units);
  let end = 1;
  let before = "the start";
  for (const { reference, units, what } of blocks) {
    if (units === 0) continue;
    if (reference !== end) {
      const fault = reference > end ? "units belong to nobody between" : "units belong to two:";
      throw new Error(`${Math.abs(reference - end)} ${fault} ${before} and ${what} at ${reference}`);
    }
    end = reference + units;
    before = `${what} at ${reference}`;
  }
  if (end !== writer.view.limit) throw new Error(`the arena ends at ${writer.view.limit}, its blocks at ${end}`);
}

/** What the writer holds back from use, or has for it. */
function own({ arena, retired }: ImageWriter): Block[] {
  const blocks: Block[] = [{ reference: arena.next, units: arena.end - arena.next, what: "window" }];
  for (const [units, references] of arena.free) {
    for (const reference of references) blocks.push({ reference, units, what: "free block" });
  }
  for (const [index, reference] of retired.references.entries()) {
    blocks.push({ reference, units: retired.units[index]!, what: "retired block" });
  }
  return blocks;
}

function reachable(writer: ImageWriter): Block[] {
  const { view } = writer;
  const blocks: Block[] = [];
  for (const segment of new Set(directoryInUse(view))) {
    if (segment === 0) continue;
    blocks.push({ reference: segment, units: SEGMENT_UNITS, what: "segment" });
    for (let slot = 0; slot < SEGMENT_SLOTS; slot++) {
      const node = view.words[segment * UNIT_WORDS + slot * 2 + 1]!;
      if (node > 0) blocks.push(...nodeBlocks(writer, node));
    }
  }
  for (const word of PREFIX_TABLES) {
    const table = view.control[word]!;
    if (table !== 0) {
      blocks.push({ reference: table, units: prefixTableUnits(view, table), what: "table of networks" });
    }
  }
  forEachBlocklistBlock(view, (reference, units) => blocks.push({ reference, units, what: "block of the blocklist" }));
  return [...blocks, ...bodyBlocks(writer, view.control[CONTROL.OVERRIDES]!, "body of the overrides")];
}

function nodeBlocks(writer: ImageWriter, node: number): Block[] {
  const { words } = writer.view;
  const at = node * UNIT_WORDS;
  const blocks: Block[] = [{ reference: node, units: nodeUnits(words[at + NODE.META]! & 0xff), what: "node" }];
  const first = words[at + NODE.RRSETS]!;
  if (words[at + NODE.INCARNATION] === ZONE_ENTRY) return [...blocks, ...bodyBlocks(writer, first, "body")];
  for (let rrset = first; rrset !== 0; rrset = words[rrset * UNIT_WORDS + RRSET.NEXT]!) {
    blocks.push({ reference: rrset, units: unitsOfRRset(writer.view, rrset), what: "RRset" });
  }
  return blocks;
}

function bodyBlocks(writer: ImageWriter, body: number, what: string): Block[] {
  if (body === 0) return [];
  const soa = writer.view.words[body * UNIT_WORDS + ZONE.NEGATIVE_SOA]!;
  const blocks: Block[] = [{ reference: body, units: ZONE_UNITS, what }];
  if (soa !== 0)
    blocks.push({ reference: soa, units: unitsOfRRset(writer.view, soa), what: `negative SOA of ${what}` });
  return blocks;
}
