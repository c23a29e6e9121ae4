/**
 * Overrides in the image. They are one incarnation at the root, which no zone entry names, with names in full. Answers find
 * exact names there and nothing else: no cut, no wildcard, and nothing at the names above and below.
 */
import { RRTYPE } from "../dns/codes.ts";
import { type NameKey, readNameKey } from "../image/name-key.ts";
import { CONTROL } from "../image/shared.ts";
import {
  createZone,
  ensureNode,
  nodeOf,
  putRRset,
  removeRRset,
  setNegativeSoa,
  typesAt,
  type ZoneHandle,
} from "../image/writer.ts";
import type { ImageWriter } from "../image/writer-state.ts";
import type { Soa } from "../model/objects.ts";
import { soaRdata } from "../model/soa.ts";
import { addRdata, fillRRset, type RRsetBuffer, type RRsetContent, type RRsetOwner, startRRset } from "./rrset-wire.ts";

/** A writer and room to work in; ZoneTools are such tools too. */
export type OverrideTools = {
  readonly writer: ImageWriter;
  readonly apex: NameKey;
  readonly owner: NameKey;
  readonly buffer: RRsetBuffer;
};

/** It has one RR at least. */
export type OverrideRRset = RRsetContent & { readonly type: number; readonly ttl: number };

const ROOT = Uint8Array.of(0);

/** How long resolvers may remember that a name has no other types: short, because an override may end at any moment. */
export const OVERRIDE_NEGATIVE_TTL = 30;

/**
 * The SOA of NODATA at an override's name that lies in no zone of ours; the name itself becomes its owner. No server takes
 * updates for it.
 */
const SOA: Soa = {
  mname: ".",
  rname: "nobody.invalid.",
  refresh: 3600,
  retry: 600,
  expire: 86_400,
  minimum: OVERRIDE_NEGATIVE_TTL,
};

/** Begins an incarnation of the overrides. Nothing is answered from it before `showOverrides`. */
export function beginOverrides(tools: OverrideTools): ZoneHandle {
  const { writer, apex, buffer } = tools;
  readKey(writer, apex, ROOT);
  const handle = createZone(writer, apex);
  startRRset(buffer, RRTYPE.SOA, OVERRIDE_NEGATIVE_TTL);
  const rdata = soaRdata(SOA, 1);
  addRdata(buffer, rdata, rdata.length, { owner: apex, apex, incarnation: handle.incarnation });
  setNegativeSoa(writer, handle, buffer);
  return handle;
}

/**
 * Brings one name, in wire form, to these RRsets and no others; several changes belong into one bracket of the handle.
 * Returns the types that are too large for a DNS message, which the name then does not have.
 */
export function putOverride(
  tools: OverrideTools,
  handle: ZoneHandle,
  name: Uint8Array,
  rrsets: readonly OverrideRRset[],
): readonly number[] {
  const { writer, apex, owner, buffer } = tools;
  readKey(writer, apex, ROOT);
  readKey(writer, owner, name);
  const whose: RRsetOwner = { owner, apex, incarnation: handle.incarnation };
  const wanted = new Set<number>();
  const tooLarge: number[] = [];
  // What comes is put before what goes is taken: the name is there all the time.
  for (const rrset of rrsets) {
    const { type, ttl } = rrset;
    if (!fillRRset(buffer, type, ttl, rrset, whose)) {
      tooLarge.push(type);
      continue;
    }
    putRRset(writer, handle, ensureNode(writer, handle, owner), buffer, false);
    wanted.add(type);
  }
  for (const type of typesAt(writer, nodeOf(writer, handle, owner))) {
    if (!wanted.has(type)) removeRRset(writer, handle, owner, type, false);
  }
  return tooLarge;
}

function readKey(writer: ImageWriter, key: NameKey, wire: Uint8Array): void {
  readNameKey(key, wire, 0, wire.length, writer.view.control[CONTROL.HASH_SEED]!);
}
