/**
 * The messages of a zone transfer (RFC 5936 section 2.2): the zone's SOA, its RRs, the SOA again, many to a message, names
 * compressed. They are the same for every client: what belongs to one (id, spelling of the question, OPT, TSIG) is put
 * in when a message is sent.
 */
import { CLASS, FLAG, RRTYPE } from "../dns/codes.ts";
import { HEADER_BYTES } from "../dns/message.ts";
import { LOWER } from "../dns/name.ts";
import { TRANSFER_MESSAGE_BYTES } from "./limits.ts";

/** An ALIAS, whose addresses are known only when it is asked. Names are uncompressed wire names. */
export type TransferAlias = { readonly owner: Uint8Array; readonly target: Uint8Array; readonly ttl: number };

/** Of the zone: its SOA, and what every message of it needs. */
export type TransferHead = {
  /** Lower-case wire name. */
  readonly apex: Uint8Array;
  /** Seconds, of the SOA. */
  readonly ttl: number;
  /** Uncompressed rdata of the SOA. */
  readonly soa: Uint8Array;
};

export type EncodedTransfer = TransferHead & {
  readonly serial: number;
  /**
   * Id 0, no OPT, no TSIG, TRANSFER_MESSAGE_BYTES at most; the first has the question. They begin with the SOA, and end
   * with it only where there are no `aliases`: else `encodeRest` makes what is missing.
   */
  readonly messages: readonly Uint8Array[];
  readonly aliases: readonly TransferAlias[];
};

/** Uncompressed. */
export type TransferRecord = {
  readonly owner: Uint8Array;
  readonly type: number;
  /** Seconds. */
  readonly ttl: number;
  readonly rdata: Uint8Array;
};

export type TransferEncoder = {
  /** Adds an RR of class IN. `ownerLength` is for names at the start of a larger buffer. Throws RangeError where it fits into no message. */
  readonly add: (owner: Uint8Array, ownerLength: number, type: number, ttl: number, rdata: Uint8Array) => void;
  /** Ends the last message, with the SOA where `isWhole`. Nothing can be added afterwards. */
  readonly finish: (isWhole: boolean) => readonly Uint8Array[];
};

const POINTER = 0xc000;
const POINTER_OFFSET_MAX = 0x3fff;
const RR_HEAD_BYTES = 10;
/** Places of names in the message, by hash. Beyond NAMES_MAX no more are noted; more than that are seldom in 16 KB. */
const SLOTS = 8_192;
const NAMES_MAX = 4_096;
const LABELS_MAX = 128;
/** Bytes before the first name of rdata that may be compressed (RFC 3597 section 4), and the number of names. */
const COMPRESSIBLE: ReadonlyMap<number, readonly [before: number, names: number]> = new Map([
  [RRTYPE.NS, [0, 1] as const],
  [RRTYPE.CNAME, [0, 1] as const],
  [RRTYPE.PTR, [0, 1] as const],
  [RRTYPE.MX, [2, 1] as const],
  [RRTYPE.SOA, [0, 2] as const],
]);

type State = {
  /** Of the first message. */
  readonly questions: number;
  readonly bytes: Uint8Array;
  at: number;
  records: number;
  /** Offset of a name in the message; 0: nothing. */
  readonly slots: Uint16Array;
  names: number;
  readonly labels: Uint8Array;
  readonly hashes: Int32Array;
  readonly done: Uint8Array[];
};

/** Begins the messages of a transfer: the question, and the SOA. */
export function createTransferEncoder(head: TransferHead): TransferEncoder {
  const state = createState(1);
  beginMessage(state);
  putName(state, head.apex, 0, head.apex.length);
  putUint16(state, RRTYPE.AXFR);
  putUint16(state, CLASS.IN);
  const add: TransferEncoder["add"] = (owner, ownerLength, type, ttl, rdata) =>
    addRecord(state, owner, ownerLength, type, ttl, rdata);
  const addSoa = () => add(head.apex, head.apex.length, RRTYPE.SOA, head.ttl, head.soa);
  addSoa();
  return { add, finish: (isWhole) => finish(state, isWhole ? addSoa : undefined) };
}

/**
 * Messages of RRs alone, of the middle of a transfer: each begins with the whole name of its first RR. Without an RR there
 * is none.
 */
export function createMiddleEncoder(): Pick<TransferEncoder, "add"> & { readonly finish: () => readonly Uint8Array[] } {
  const state = createState(0);
  beginMessage(state);
  return {
    add: (owner, ownerLength, type, ttl, rdata) => addRecord(state, owner, ownerLength, type, ttl, rdata),
    finish: () => (state.records === 0 ? state.done : finish(state, undefined)),
  };
}

/** The messages that end a transfer whose addresses behind ALIAS were still to be found: those, and the SOA. */
export function encodeRest(head: TransferHead, records: readonly TransferRecord[]): readonly Uint8Array[] {
  const state = createState(0);
  beginMessage(state);
  for (const { owner, type, ttl, rdata } of records) addRecord(state, owner, owner.length, type, ttl, rdata);
  return finish(state, () => addRecord(state, head.apex, head.apex.length, RRTYPE.SOA, head.ttl, head.soa));
}

function createState(questions: number): State {
  return {
    questions,
    bytes: new Uint8Array(TRANSFER_MESSAGE_BYTES),
    at: 0,
    records: 0,
    slots: new Uint16Array(SLOTS),
    names: 0,
    labels: new Uint8Array(LABELS_MAX),
    hashes: new Int32Array(LABELS_MAX),
    done: [],
  };
}

function finish(state: State, addSoa: (() => void) | undefined): readonly Uint8Array[] {
  addSoa?.();
  endMessage(state);
  return state.done;
}

function beginMessage(state: State): void {
  state.at = HEADER_BYTES;
  state.records = 0;
  state.names = 0;
  state.slots.fill(0);
}

function endMessage(state: State): void {
  const message = state.bytes.slice(0, state.at);
  message.fill(0, 0, HEADER_BYTES);
  const view = new DataView(message.buffer);
  view.setUint16(2, FLAG.QR | FLAG.AA);
  view.setUint16(4, state.done.length === 0 ? state.questions : 0);
  view.setUint16(6, state.records);
  state.done.push(message);
}

function addRecord(
  state: State,
  owner: Uint8Array,
  ownerLength: number,
  type: number,
  ttl: number,
  rdata: Uint8Array,
): void {
  // Uncompressed it may take more room than it will; the difference is not worth a second attempt.
  const bytesMax = ownerLength + RR_HEAD_BYTES + rdata.length;
  if (state.at + bytesMax > TRANSFER_MESSAGE_BYTES) {
    endMessage(state);
    beginMessage(state);
    if (HEADER_BYTES + bytesMax > TRANSFER_MESSAGE_BYTES) throw new RangeError("an RR that fits into no message");
  }
  putName(state, owner, 0, ownerLength);
  putUint16(state, type);
  putUint16(state, CLASS.IN);
  putUint16(state, ttl >>> 16);
  putUint16(state, ttl & 0xffff);
  const lengthAt = state.at;
  state.at += 2;
  putRdata(state, type, rdata);
  const length = state.at - lengthAt - 2;
  state.bytes[lengthAt] = length >>> 8;
  state.bytes[lengthAt + 1] = length & 0xff;
  state.records += 1;
}

function putRdata(state: State, type: number, rdata: Uint8Array): void {
  const [before, names] = COMPRESSIBLE.get(type) ?? [rdata.length, 0];
  let from = before;
  putBytes(state, rdata, 0, before);
  for (let name = 0; name < names; name++) from = putName(state, rdata, from, rdata.length);
  putBytes(state, rdata, from, rdata.length);
}

/** Writes the name at `start`, ended by a pointer where the rest of it stands in the message; gives where it ends. */
function putName(state: State, name: Uint8Array, start: number, limit: number): number {
  const { labels, hashes, slots } = state;
  let count = 0;
  let end = start;
  while (end < limit && name[end] !== 0) {
    labels[count++] = end - start;
    end += name[end]! + 1;
  }
  let hash = 0;
  for (let label = count - 1, stop = end; label >= 0; label--) {
    const from = start + labels[label]!;
    for (let at = from; at < stop; at++) hash = Math.imul(hash ^ LOWER[name[at]!]!, 0x0100_0193);
    hash ^= hash >>> 15;
    hashes[label] = hash;
    stop = from;
  }
  for (let label = 0; label < count; label++) {
    const suffix = start + labels[label]!;
    let slot = hashes[label]! & (SLOTS - 1);
    for (; slots[slot]! !== 0; slot = (slot + 1) & (SLOTS - 1)) {
      if (!standsAt(state.bytes, slots[slot]!, name, suffix)) continue;
      const target = slots[slot]!;
      noteNames(state, label);
      putBytes(state, name, start, suffix);
      putUint16(state, POINTER | target);
      return end + 1;
    }
  }
  noteNames(state, count);
  putBytes(state, name, start, end + 1);
  return end + 1;
}

/** Notes the first `count` suffixes of the name that is written next. */
function noteNames(state: State, count: number): void {
  const { labels, hashes, slots, at } = state;
  for (let label = 0; label < count; label++) {
    const offset = at + labels[label]!;
    if (offset > POINTER_OFFSET_MAX || state.names === NAMES_MAX) return;
    let slot = hashes[label]! & (SLOTS - 1);
    while (slots[slot] !== 0) slot = (slot + 1) & (SLOTS - 1);
    slots[slot] = offset;
    state.names += 1;
  }
}

/** Whether the name at `from` is the one that the message has at `offset`, without regard to case (RFC 4343). */
function standsAt(bytes: Uint8Array, offset: number, name: Uint8Array, from: number): boolean {
  let at = offset;
  let other = from;
  for (;;) {
    while (bytes[at]! >= 0xc0) at = ((bytes[at]! & 0x3f) << 8) | bytes[at + 1]!;
    const length = bytes[at]!;
    if (length !== name[other]) return false;
    if (length === 0) return true;
    for (let step = 1; step <= length; step++) {
      if (LOWER[bytes[at + step]!] !== LOWER[name[other + step]!]) return false;
    }
    at += length + 1;
    other += length + 1;
  }
}

function putBytes(state: State, bytes: Uint8Array, start: number, end: number): void {
  const { bytes: target } = state;
  for (let at = start; at < end; at++) target[state.at++] = bytes[at]!;
}

function putUint16(state: State, value: number): void {
  state.bytes[state.at] = value >>> 8;
  state.bytes[state.at + 1] = value & 0xff;
  state.at += 2;
}
