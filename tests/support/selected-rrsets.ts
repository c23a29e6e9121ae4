/** The selected RRsets of an image, read as docs/image.md describes them. */
import { nameToText } from "../../src/dns/name.ts";
import { rdataToText } from "../../src/dns/rdata.ts";
import {
  affinityIn,
  evenBytes,
  METHOD,
  METHOD_MASK,
  methodColumnIn,
  NODE,
  placesIn,
  preferredIn,
  RRSET,
  SEGMENT_SLOTS,
  SELECTED_FLAG,
  SELECTION,
  SELECTION_FLAG,
  selectionAt,
  UNIT_BYTES,
  UNIT_WORDS,
  ZONE,
  ZONE_ENTRY,
} from "../../src/image/layout.ts";
import { CONTROL } from "../../src/image/shared.ts";
import { directoryInUse } from "../../src/image/view.ts";
import type { ImageWriter } from "../../src/image/writer-state.ts";

export type SelectedRRset = {
  /** "" for the overrides. */
  readonly zone: string;
  readonly owner: string;
  readonly type: number;
  readonly ttl: number;
  readonly method: string;
  readonly isSingle: boolean;
  readonly hasAffinity: boolean;
  /** Undefined without affinity, as the hashes are. */
  readonly affinitySeconds: number | undefined;
  readonly preferred: readonly number[];
  readonly candidates: readonly SelectedCandidate[];
};

export type SelectedCandidate = {
  /** The rdata as text. */
  readonly value: string;
  readonly health: number;
  readonly region: number;
  readonly weight: number;
  readonly hash: number | undefined;
};

/** Those that answers are made of, in an order of their own. */
export function selectedRRsets(writer: ImageWriter): readonly SelectedRRset[] {
  const { words, control } = writer.view;
  const nodes = nodesOf(writer);
  const zones = new Map<number, { readonly name: string; readonly apex: Uint8Array }>();
  for (const node of nodes) {
    const body = words[node * UNIT_WORDS + NODE.RRSETS]!;
    if (words[node * UNIT_WORDS + NODE.INCARNATION] !== ZONE_ENTRY || body === 0) continue;
    const apex = labelsOf(writer, node);
    zones.set(words[body * UNIT_WORDS + ZONE.INCARNATION]!, { name: nameToText(Uint8Array.of(...apex, 0)), apex });
  }
  const overrides = control[CONTROL.OVERRIDES]!;
  if (overrides !== 0) {
    zones.set(words[overrides * UNIT_WORDS + ZONE.INCARNATION]!, { name: "", apex: new Uint8Array(0) });
  }
  const found: SelectedRRset[] = [];
  for (const node of nodes) {
    const zone = zones.get(words[node * UNIT_WORDS + NODE.INCARNATION]!);
    if (zone === undefined) continue;
    const owner = nameToText(Uint8Array.of(...labelsOf(writer, node), ...zone.apex, 0));
    let rrset = words[node * UNIT_WORDS + NODE.RRSETS]!;
    for (; rrset !== 0; rrset = words[rrset * UNIT_WORDS + RRSET.NEXT]!) {
      const isSelected = (words[rrset * UNIT_WORDS + RRSET.TYPE]! & SELECTED_FLAG) !== 0;
      if (isSelected) found.push({ zone: zone.name, owner, ...readRRset(writer, rrset) });
    }
  }
  const key = ({ zone, owner, type }: SelectedRRset) => JSON.stringify([zone, owner, type]);
  return found.sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

function nodesOf({ view }: ImageWriter): readonly number[] {
  const nodes: number[] = [];
  for (const segment of new Set(directoryInUse(view))) {
    for (let slot = 0; segment !== 0 && slot < SEGMENT_SLOTS; slot++) {
      const node = view.words[segment * UNIT_WORDS + slot * 2 + 1]!;
      if (node > 0) nodes.push(node);
    }
  }
  return nodes;
}

function labelsOf({ view }: ImageWriter, node: number): Uint8Array {
  const from = node * UNIT_BYTES + NODE.NAME_BYTE;
  return view.bytes.slice(from, from + (view.words[node * UNIT_WORDS + NODE.META]! & 0xff));
}

function readRRset({ view }: ImageWriter, rrset: number): Omit<SelectedRRset, "zone" | "owner"> {
  const { words, bytes } = view;
  const at = rrset * UNIT_WORDS;
  const size = words[at + RRSET.SIZE]!;
  const type = words[at + RRSET.TYPE]! & 0xffff;
  const count = size & 0xffff;
  const table = selectionAt(rrset, size);
  const meta = words[table + SELECTION.META]!;
  const method = meta & METHOD_MASK;
  const hasAffinity = (meta & SELECTION_FLAG.AFFINITY) !== 0;
  const affinity = table + affinityIn(meta, count);
  const candidates = Array.from({ length: count }, (_, index): SelectedCandidate => {
    const bytesEach = evenBytes(meta);
    const place = bytesEach === 0 ? words[table + placesIn(count) + index]! : (bytesEach << 16) | (index * bytesEach);
    const from = rrset * UNIT_BYTES + RRSET.WIRE_BYTE + (place & 0xffff);
    const own = method < METHOD.REGION ? 0 : words[table + methodColumnIn(meta, count) + index]!;
    return {
      value: rdataToText(type, bytes.slice(from + 12, from + (place >>> 16))),
      health: words[table + SELECTION.HEALTH + index]!,
      region: method === METHOD.WEIGHTED ? 0 : own,
      weight: method === METHOD.WEIGHTED ? own : 0,
      hash: hasAffinity ? words[affinity + 1 + index]! : undefined,
    };
  });
  const preferred = table + preferredIn(meta, count);
  return {
    type,
    ttl: words[at + RRSET.TTL]!,
    method: Object.entries(METHOD).find(([, number]) => number === method)?.[0] ?? "unknown",
    isSingle: (meta & SELECTION_FLAG.SINGLE) !== 0,
    hasAffinity,
    affinitySeconds: hasAffinity ? words[affinity]! : undefined,
    preferred: [...words.subarray(preferred, preferred + (meta >>> 16))],
    candidates,
  };
}
