/**
 * Builds a zone's incarnation in the image from its records, in any order, and holds the rules that need more than one
 * record: CNAME and ALIAS own their name, an RRset has one TTL, an apex has SOA and NS.
 */
import { RRTYPE } from "../dns/codes.ts";
import { LOWER } from "../dns/name.ts";
import { RRSET, UNIT_BYTES, UNIT_WORDS } from "../image/layout.ts";
import { createNameKey, type NameKey, readNameKey } from "../image/name-key.ts";
import { CONTROL } from "../image/shared.ts";
import {
  addNode,
  createZone,
  discardZone,
  ensureNode,
  nodeOf,
  rrsetOf,
  setNegativeSoa,
  type ZoneHandle,
} from "../image/writer.ts";
import type { ImageWriter } from "../image/writer-state.ts";
import {
  addRdata,
  createRRsetBuffer,
  fillRRset,
  loadRRset,
  type RRsetBuffer,
  type RRsetOwner,
  startRRset,
} from "./rrset-wire.ts";
import { nodeConflict } from "./rules.ts";
import type { SelectionTable } from "./selection-table.ts";
import { placeRRset, takeRRset } from "./tail.ts";

export type Problem = { readonly line: number; readonly column: number; readonly detail: string };

/** The most problems, and the most warnings, that are kept of one zone. */
const MOST_PROBLEMS = 100;

export type ZonePublisher = {
  readonly writer: ImageWriter;
  readonly zone: ZoneHandle;
  readonly incarnation: number;
  readonly apex: NameKey;
  readonly owner: NameKey;
  readonly buffer: RRsetBuffer;
  /** Records of `buffer` belong to this node; 0 while there are none. */
  node: number;
  line: number;
  column: number;
  records: number;
  readonly problems: Problem[];
  problemsOmitted: number;
  readonly warnings: Problem[];
};

/** Begins a zone. `apex` is its name in wire form. */
export function startZone(writer: ImageWriter, apex: Uint8Array): ZonePublisher {
  const key = createNameKey();
  const seed = writer.view.control[CONTROL.HASH_SEED]!;
  readNameKey(key, apex, 0, apex.length, seed);
  const zone = createZone(writer, key);
  return {
    writer,
    zone,
    incarnation: zone.incarnation,
    apex: key,
    owner: createNameKey(),
    buffer: createRRsetBuffer(),
    node: 0,
    line: 0,
    column: 0,
    records: 0,
    problems: [],
    problemsOmitted: 0,
    warnings: [],
  };
}

function note(list: Problem[], line: number, column: number, detail: string): void {
  if (list.length < MOST_PROBLEMS) list.push({ line, column, detail });
}

function addProblem(publisher: ZonePublisher, line: number, column: number, detail: string): void {
  if (publisher.problems.length === MOST_PROBLEMS) publisher.problemsOmitted++;
  else publisher.problems.push({ line, column, detail });
}

/**
 * Adds one record: owner and rdata in uncompressed wire form, `line` and `column` for what is wrong with it. Records of
 * one RRset that follow each other cost least.
 */
export function addRecord(
  publisher: ZonePublisher,
  owner: Uint8Array,
  ownerLength: number,
  type: number,
  ttl: number,
  rdata: Uint8Array,
  rdataLength: number,
  line: number,
  column: number,
): void {
  const { writer, zone, buffer } = publisher;
  if (publisher.node === 0 || buffer.type !== type || !isOwner(publisher.owner, owner, ownerLength)) {
    flush(publisher);
    readNameKey(publisher.owner, owner, 0, ownerLength, writer.view.control[CONTROL.HASH_SEED]!);
    publisher.node = ensureNode(writer, zone, publisher.owner);
    startRRset(buffer, type, ttl);
    publisher.line = line;
    publisher.column = column;
    // The image may have records of this RRset already.
    const rrset = rrsetOf(writer, publisher.node, type);
    if (rrset !== 0) loadRRset(buffer, writer.view, rrset);
  }
  if (buffer.ttl !== ttl) {
    note(publisher.warnings, line, column, `TTL ${ttl} differs from ${buffer.ttl} of the same RRset, which is used`);
  }
  const outcome = addRdata(buffer, rdata, rdataLength, publisher);
  if (outcome === "full") addProblem(publisher, line, column, "the RRset is too large for a DNS message");
  if (outcome === "added") publisher.records++;
}

/** True where `owner` spells the name in `key`, letter case aside. */
function isOwner(key: NameKey, owner: Uint8Array, length: number): boolean {
  if (length !== key.length + 1) return false;
  for (let index = 0; index < length - 1; index++) {
    if (LOWER[owner[index]!] !== key.lower[index]) return false;
  }
  return true;
}

function flush(publisher: ZonePublisher): void {
  const { writer, zone, node, buffer } = publisher;
  if (node === 0 || buffer.count === 0) return;
  const isApex = publisher.owner.labels === zone.labels;
  const conflict = nodeConflict(writer, node, buffer.type, buffer.count, isApex);
  if (conflict !== undefined) addProblem(publisher, publisher.line, publisher.column, conflict);
  else placeRRset(publisher, publisher.owner, node, buffer.type === RRTYPE.NS && !isApex);
}

/**
 * Ends the zone's records: the apex gets what it lacks. Where there were problems the incarnation is given up and nothing
 * changes; else it is ready for `activateZone`. `serial` is the SOA's.
 */
export function finishZone(publisher: ZonePublisher): { readonly ok: boolean; readonly serial: number } {
  const { writer, zone, problems } = publisher;
  flush(publisher);
  publisher.node = 0;
  const serial = completeApex(publisher, publisher.warnings);
  if (serial === undefined) addProblem(publisher, 1, 1, "the zone has no SOA record");
  if (problems.length > 0) discardZone(writer, zone);
  return { ok: problems.length === 0, serial: serial ?? 0 };
}

/** Sets the SOA of negative answers and an NS where the apex has none. Returns the serial, undefined without a SOA. */
function completeApex(publisher: ZonePublisher, warnings: Problem[]): number | undefined {
  const { writer, zone, apex, buffer } = publisher;
  const soa = rrsetOf(writer, zone.apex, RRTYPE.SOA);
  if (soa === 0) return undefined;
  const ttl = writer.view.words[soa * UNIT_WORDS + RRSET.TTL]!;
  const { rdata, mnameLength, serial, minimum } = readSoa(writer, soa, apex);
  const owner: RRsetOwner = { owner: apex, apex, incarnation: zone.incarnation };
  startRRset(buffer, RRTYPE.SOA, Math.min(ttl, minimum));
  addRdata(buffer, rdata, rdata.length, owner);
  setNegativeSoa(writer, zone, buffer);
  if (rrsetOf(writer, zone.apex, RRTYPE.NS) === 0) zone.nsIsFromSoa = true;
  if (zone.nsIsFromSoa) {
    startRRset(buffer, RRTYPE.NS, ttl);
    addRdata(buffer, rdata, mnameLength, owner);
    placeRRset(publisher, apex, zone.apex, false);
    note(warnings, 1, 1, "the zone has no NS records: its NS is the SOA's primary server");
  }
  warnAboutMname(writer, zone, apex, rdata.subarray(0, mnameLength), warnings);
  return serial;
}

function warnAboutMname(
  writer: ImageWriter,
  zone: ZoneHandle,
  apex: NameKey,
  mname: Uint8Array,
  warnings: Problem[],
): void {
  const key = createNameKey();
  readNameKey(key, mname, 0, mname.length, writer.view.control[CONTROL.HASH_SEED]!);
  const above = key.labels - apex.labels;
  if (above < 0 || key.hashes[above] !== apex.hashes[0]) return;
  const node = nodeOf(writer, zone, key);
  if (node !== 0 && (rrsetOf(writer, node, RRTYPE.A) !== 0 || rrsetOf(writer, node, RRTYPE.AAAA) !== 0)) return;
  note(warnings, 1, 1, "the SOA's primary server lies in the zone and has no address there");
}

/** The SOA's rdata, uncompressed again, and the numbers that publishing needs of it. */
function readSoa(
  writer: ImageWriter,
  soa: number,
  apex: NameKey,
): { rdata: Uint8Array; mnameLength: number; serial: number; minimum: number } {
  const { words, bytes } = writer.view;
  const from = soa * UNIT_BYTES + RRSET.WIRE_BYTE;
  const end = from + (words[soa * UNIT_WORDS + RRSET.SIZE]! >>> 16);
  const rdata: number[] = [];
  let at = from + 12;
  const names: number[] = [];
  for (let name = 0; name < 2; name++) {
    while (bytes[at]! > 0 && bytes[at]! < 64) {
      const stop = at + bytes[at]! + 1;
      while (at < stop) rdata.push(bytes[at++]!);
    }
    if (bytes[at] === 0) at++;
    else {
      rdata.push(...apex.lower.subarray(0, apex.length));
      at += 2;
    }
    rdata.push(0);
    names.push(rdata.length);
  }
  while (at < end) rdata.push(bytes[at++]!);
  const view = new DataView(Uint8Array.from(rdata).buffer);
  const numbers = names[1]!;
  return {
    rdata: new Uint8Array(view.buffer),
    mnameLength: names[0]!,
    serial: view.getUint32(numbers),
    minimum: view.getUint32(numbers + 16),
  };
}

/**
 * Changes one RRset of a zone, active or not, and nothing else: `rdatas` are uncompressed wire forms, none of them takes
 * the RRset away; `table`, where it is selected, has a choice for each. Returns what speaks against it, undefined where it is
 * done.
 */
export function changeRRset(
  publisher: ZonePublisher,
  owner: Uint8Array,
  type: number,
  ttl: number,
  rdatas: readonly Uint8Array[],
  table?: SelectionTable,
): string | undefined {
  const { writer, zone, buffer } = publisher;
  const key = publisher.owner;
  readNameKey(key, owner, 0, owner.length, writer.view.control[CONTROL.HASH_SEED]!);
  const isApex = key.labels === zone.labels;
  const cut = type === RRTYPE.NS && !isApex;
  if (rdatas.length === 0) {
    if (isApex && type === RRTYPE.SOA) return "a zone keeps its SOA record";
    takeRRset(publisher, key, type, cut);
    if (isApex && type === RRTYPE.NS) completeApex(publisher, []);
    return undefined;
  }
  if (!fillRRset(buffer, type, ttl, { rdatas, table }, publisher)) return "the RRset is too large for a DNS message";
  const node = nodeOf(writer, zone, key);
  // Of several that are selected an answer has one.
  const count = buffer.selection === undefined ? buffer.count : 1;
  const conflict = nodeConflict(writer, node, type, count, isApex);
  if (conflict !== undefined) return conflict;
  placeRRset(publisher, key, node === 0 ? addNode(writer, zone, key) : node, cut);
  if (isApex && type === RRTYPE.NS) zone.nsIsFromSoa = false;
  if (type === RRTYPE.SOA) completeApex(publisher, []);
  return undefined;
}
