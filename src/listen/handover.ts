/**
 * Both ends of the way from a thread that takes queries to the one that resolves: who pushes writes HEAD, who takes writes
 * TAIL, and neither waits for the other. Pushing allocates nothing.
 */
import type { Transport } from "../image/counters.ts";
import { HANDOVER, HANDOVER_KIND, HANDOVER_RING, type HandoverRing, handoverRing } from "../image/handover.ts";
import { CONTROL, HANDOVER_DATA_BYTES, ROUTE, type SharedImage } from "../image/shared.ts";
import { PRIMARY_HANDED_OVER_MAX } from "./limits.ts";

const OFFSET_MASK = HANDOVER_DATA_BYTES - 1;
/** Where the port stands in a socket name of either family. */
const NAME_PORT = 2;
const MESSAGE_NAME_BYTES = 4;

/** The end of the thread that takes queries; it is the only one that pushes into its ring. */
export type Handover = {
  /**
   * To be asked before each push of a query, with the route of its need. False: so many of ROUTE.PRIMARY are in the ring that
   * this one is to be told that there is no room. Anybody may send them, and each takes time: others are not to wait behind
   * a ring full of them.
   */
  readonly admits: (route: number) => boolean;
  /**
   * A query whose answer leaves on the thread's socket number `socket`. Address, socket name, control message and query lie
   * in `bytes`, each at its offset. False: the ring is full.
   */
  readonly pushDatagram: (
    bytes: Uint8Array,
    socket: number,
    addressAt: number,
    addressLength: number,
    nameAt: number,
    nameLength: number,
    controlAt: number,
    controlLength: number,
    queryAt: number,
    queryLength: number,
  ) => boolean;
  /** A query whose answer comes back with `token`. False: the ring is full. */
  readonly pushMessage: (
    token: number,
    transport: Transport,
    address: Uint8Array,
    port: number,
    bytes: Uint8Array,
    queryAt: number,
    queryLength: number,
  ) => boolean;
  /** An entry of the cache to be refreshed; forgotten where the ring is full. */
  readonly pushRefresh: (entry: number) => void;
  /** Wakes the other end where it sleeps; to be called once something was pushed. */
  readonly wake: () => void;
};

export function createHandover(shared: SharedImage, thread: number): Handover {
  const ring = handoverRing(shared, thread);
  const { words, data, bytes: target } = ring;
  const control = new Int32Array(shared.control);

  const admits = createAdmission(ring);

  const copy = (source: Uint8Array, from: number, to: number, length: number) => {
    for (let at = 0; at < length; at++) target[to + at] = source[from + at]!;
  };
  const putHead = (at: number, length: number, kind: number, token: number) => {
    data.setInt32(at + HANDOVER.LENGTH, length, true);
    data.setUint8(at + HANDOVER.KIND, kind);
    data.setUint8(at + HANDOVER.TRANSPORT, 0);
    data.setUint8(at + HANDOVER.ADDRESS_BYTES, 0);
    data.setUint8(at + HANDOVER.NAME_BYTES, 0);
    data.setInt32(at + HANDOVER.TOKEN, token, true);
    data.setUint16(at + HANDOVER.QUERY_BYTES, 0, true);
    data.setUint16(at + HANDOVER.CONTROL_BYTES, 0, true);
  };
  return {
    admits,
    pushDatagram: (
      bytes,
      socket,
      addressAt,
      addressLength,
      nameAt,
      nameLength,
      controlAt,
      controlLength,
      queryAt,
      queryLength,
    ) => {
      const length = recordLength(queryLength);
      const at = beginRecord(ring, length);
      if (at < 0) return false;
      putHead(at, length, HANDOVER_KIND.DATAGRAM, socket);
      data.setUint8(at + HANDOVER.ADDRESS_BYTES, addressLength);
      data.setUint8(at + HANDOVER.NAME_BYTES, nameLength);
      data.setUint16(at + HANDOVER.QUERY_BYTES, queryLength, true);
      data.setUint16(at + HANDOVER.CONTROL_BYTES, controlLength, true);
      copy(bytes, addressAt, at + HANDOVER.ADDRESS, addressLength);
      copy(bytes, nameAt, at + HANDOVER.NAME, nameLength);
      copy(bytes, controlAt, at + HANDOVER.CONTROL, controlLength);
      copy(bytes, queryAt, at + HANDOVER.QUERY, queryLength);
      endRecord(words, length);
      return true;
    },
    pushMessage: (token, transport, address, port, bytes, queryAt, queryLength) => {
      const length = recordLength(queryLength);
      const at = beginRecord(ring, length);
      if (at < 0) return false;
      putHead(at, length, HANDOVER_KIND.MESSAGE, token);
      data.setUint8(at + HANDOVER.TRANSPORT, transport);
      data.setUint8(at + HANDOVER.ADDRESS_BYTES, address.length);
      data.setUint8(at + HANDOVER.NAME_BYTES, MESSAGE_NAME_BYTES);
      data.setUint16(at + HANDOVER.QUERY_BYTES, queryLength, true);
      data.setUint16(at + HANDOVER.NAME + NAME_PORT, port);
      copy(address, 0, at + HANDOVER.ADDRESS, address.length);
      copy(bytes, queryAt, at + HANDOVER.QUERY, queryLength);
      endRecord(words, length);
      return true;
    },
    pushRefresh: (entry) => {
      const at = beginRecord(ring, HANDOVER.QUERY);
      if (at < 0) return;
      putHead(at, HANDOVER.QUERY, HANDOVER_KIND.REFRESH, entry);
      endRecord(words, HANDOVER.QUERY);
    },
    wake: () => {
      // HEAD was stored before this is read, and the other end looks at HEAD after it has set it: one of both sees the other.
      if (Atomics.load(control, CONTROL.RESOLVE_SLEEPS) === 0) return;
      if (Atomics.compareExchange(control, CONTROL.RESOLVE_SLEEPS, 1, 0) === 1) wakeResolve(control);
    },
  };
}

/** Knows where the latest of ROUTE.PRIMARY were put: the oldest of them has been taken once the tail has passed it. */
function createAdmission({ words }: HandoverRing): (route: number) => boolean {
  const places = new Int32Array(PRIMARY_HANDED_OVER_MAX).fill(words[HANDOVER_RING.HEAD]! - HANDOVER_DATA_BYTES - 1);
  let next = 0;
  return (route) => {
    if (route !== ROUTE.PRIMARY) return true;
    const head = words[HANDOVER_RING.HEAD]!;
    const tail = Atomics.load(words, HANDOVER_RING.TAIL);
    const place = places[next]!;
    // Positions wrap: what lies further back than the ring is long was taken long ago.
    const isInReach = (head - place) >>> 0 <= HANDOVER_DATA_BYTES;
    if (head !== tail && isInReach && ((tail - place) | 0) <= 0) return false;
    places[next] = head;
    next = (next + 1) % PRIMARY_HANDED_OVER_MAX;
    return true;
  };
}

function wakeResolve(control: Int32Array): void {
  Atomics.add(control, CONTROL.RESOLVE_WAKE, 1);
  Atomics.notify(control, CONTROL.RESOLVE_WAKE);
}

function recordLength(queryLength: number): number {
  return (HANDOVER.QUERY + queryLength + 3) & ~3;
}

/** Where a record of `length` bytes may be written, -1 where there is no room for it. */
function beginRecord({ words, data }: HandoverRing, length: number): number {
  const head = words[HANDOVER_RING.HEAD]!;
  const used = (head - Atomics.load(words, HANDOVER_RING.TAIL)) | 0;
  const at = head & OFFSET_MASK;
  const untilEnd = HANDOVER_DATA_BYTES - at;
  if (length <= untilEnd) return used + length <= HANDOVER_DATA_BYTES ? at : -1;
  if (used + untilEnd + length > HANDOVER_DATA_BYTES) return -1;
  data.setInt32(at + HANDOVER.LENGTH, 0, true);
  Atomics.store(words, HANDOVER_RING.HEAD, (head + untilEnd) | 0);
  return 0;
}

function endRecord(words: Int32Array, length: number): void {
  Atomics.store(words, HANDOVER_RING.HEAD, (words[HANDOVER_RING.HEAD]! + length) | 0);
}

/** The end of the thread that resolves, of all rings together. */
export type HandoverInbox = {
  /**
   * Gives copies of records to `take`, at most `most` of them, from all rings in turn; how many there were. The ring has a
   * record no more when it is given, so that none can be the end of two threads.
   */
  readonly drain: (most: number, take: (thread: number, record: Uint8Array) => void) => number;
  /** Calls `onWake` once as soon as there is something to drain: at once, or when it is pushed. */
  readonly sleep: (onWake: () => void) => void;
};

/** Records that are taken of one ring before the next has its turn. */
const TURN_RECORDS = 16;

/** `threads` are those that push. */
export function openHandoverInbox(shared: SharedImage, threads: readonly number[]): HandoverInbox {
  const control = new Int32Array(shared.control);
  const rings = threads.map((thread) => ({ thread, ...handoverRing(shared, thread) }));
  let next = 0;
  const isEmpty = () =>
    rings.every(({ words }) => Atomics.load(words, HANDOVER_RING.HEAD) === Atomics.load(words, HANDOVER_RING.TAIL));
  const sleep = (onWake: () => void) => {
    const seen = Atomics.load(control, CONTROL.RESOLVE_WAKE);
    Atomics.store(control, CONTROL.RESOLVE_SLEEPS, 1);
    if (!isEmpty()) {
      Atomics.store(control, CONTROL.RESOLVE_SLEEPS, 0);
      return onWake();
    }
    const waiting = Atomics.waitAsync(control, CONTROL.RESOLVE_WAKE, seen);
    if (waiting.async) void waiting.value.then(onWake);
    else onWake();
  };
  return {
    drain: (most, take) => {
      let taken = 0;
      let idle = 0;
      while (taken < most && idle < rings.length) {
        const ring = rings[next]!;
        next = (next + 1) % rings.length;
        let ofRing = 0;
        while (ofRing < TURN_RECORDS && taken + ofRing < most) {
          const record = takeRecord(ring);
          if (record === undefined) break;
          ofRing += 1;
          take(ring.thread, record);
        }
        taken += ofRing;
        idle = ofRing === 0 ? idle + 1 : 0;
      }
      return taken;
    },
    sleep,
  };
}

/** A copy of the oldest record, which the ring has no more; undefined where it is empty. */
function takeRecord({ words, data, bytes }: HandoverRing): Uint8Array | undefined {
  for (;;) {
    const tail = words[HANDOVER_RING.TAIL]!;
    if (Atomics.load(words, HANDOVER_RING.HEAD) === tail) return undefined;
    const at = tail & OFFSET_MASK;
    const length = data.getInt32(at + HANDOVER.LENGTH, true);
    if (length === 0) {
      Atomics.store(words, HANDOVER_RING.TAIL, (tail + HANDOVER_DATA_BYTES - at) | 0);
      continue;
    }
    const record = Buffer.allocUnsafe(length);
    record.set(bytes.subarray(at, at + length));
    Atomics.store(words, HANDOVER_RING.TAIL, (tail + length) | 0);
    return record;
  }
}
