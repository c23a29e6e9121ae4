/** The memory and the calls of a batch loop. */
import { type Address, isWildcard } from "../address.ts";
import { UDP_BATCH, UDP_SLOT_BYTES } from "../limits.ts";
import {
  CMSG_DATA,
  EAGAIN,
  EINTR,
  HEADER,
  HEADER_BYTES,
  IOV_BYTES,
  type Libc,
  SOCKADDR_IN,
  SOCKADDR_IN6,
  systemError,
} from "./libc.ts";

const MSG_DONTWAIT = 0x40;
const MSG_WAITFORONE = 0x10000;
const NAME_BYTES = 32;
/** Room for one packet-info control message: header 16, in6_pktinfo 20, padding 4, and up to a whole cache line. */
const CONTROL_BYTES = 64;
const CMSG_SPACE_V4 = 32;
const CMSG_SPACE_V6 = 40;
/** Where the interface index lies in struct in_pktinfo and struct in6_pktinfo. */
const IFINDEX_V4 = 0;
const IFINDEX_V6 = 16;
/** An IPv4 address in IPv6 form (RFC 4291 section 2.5.5.2) begins with 80 zero bits and 16 one bits. */
const MAPPED_PREFIX_BYTES = 12;
const MAPPED_WORD = 0xffff0000 | 0;
/** Slots lie 67 cache lines apart: at 4096 bytes exactly, every slot would compete for the same cache sets. */
const SLOT_STRIDE = UDP_SLOT_BYTES + 192;

/**
 * The fixed memory through which one UDP socket is served: UDP_BATCH slots, their addresses and the headers that
 * point to both. `bytes` holds all of it. A slot is used by one thread at a time and lives until the next receive.
 */
export type Batch = {
  readonly bytes: Uint8Array;
  /** Takes up to UDP_BATCH datagrams; 0 when there is none. Throws an Error with the errno's name as `code`. */
  readonly receive: (wait: boolean) => number;
  /** Where the slot begins in `bytes`. */
  readonly slotAt: (index: number) => number;
  /** Length of the datagram received into the slot. */
  readonly lengthOf: (index: number) => number;
  /** 4 or 16: bytes of the client's address; an IPv4 client of a dual-stack socket has 4. */
  readonly addressLengthOf: (index: number) => number;
  /** Where the client's address begins in `bytes`. */
  readonly addressAt: (index: number) => number;
  /** The client's socket name as the kernel gave it, of `nameBytes`. */
  readonly nameAt: (index: number) => number;
  readonly nameBytes: number;
  /** The control message that the answer takes along, of as many bytes, 0 for none. */
  readonly controlAt: (index: number) => number;
  readonly controlLengthOf: (index: number) => number;
  /** Queues the slot's first `length` bytes as the answer to its datagram. */
  readonly reply: (index: number, length: number) => void;
  /** Sends what is queued without waiting; the number of answers that the socket did not take. */
  readonly send: () => number;
};

type Layout = {
  readonly received: number;
  readonly sent: number;
  readonly receivedIov: number;
  readonly sentIov: number;
  readonly names: number;
  readonly controls: number;
  readonly slots: number;
  readonly end: number;
};

/** Byte offsets in a batch's memory; each part begins on a cache line when `start` does. */
function layoutFrom(start: number): Layout {
  const received = start;
  const sent = received + UDP_BATCH * HEADER_BYTES;
  const receivedIov = sent + UDP_BATCH * HEADER_BYTES;
  const sentIov = receivedIov + UDP_BATCH * IOV_BYTES;
  const names = sentIov + UDP_BATCH * IOV_BYTES;
  const controls = names + UDP_BATCH * NAME_BYTES;
  const slots = controls + UDP_BATCH * CONTROL_BYTES;
  return { received, sent, receivedIov, sentIov, names, controls, slots, end: slots + UDP_BATCH * SLOT_STRIDE };
}

/**
 * Fills the headers. What the kernel overwrites on receiving keeps its value on a socket of one family: the address
 * length is always the same, and the control length is renewed by the batch.
 */
function fillHeaders(view: DataView, base: number, at: Layout, nameBytes: number, controlBytes: number): void {
  const pointer = (offset: number, target: number) => view.setBigUint64(offset, BigInt(base + target), true);
  for (let index = 0; index < UDP_BATCH; index++) {
    for (const [header, iov] of [
      [at.received + index * HEADER_BYTES, at.receivedIov + index * IOV_BYTES],
      [at.sent + index * HEADER_BYTES, at.sentIov + index * IOV_BYTES],
    ] as const) {
      pointer(header + HEADER.name, at.names + index * NAME_BYTES);
      view.setUint32(header + HEADER.nameLength, nameBytes, true);
      pointer(header + HEADER.iov, iov);
      view.setUint32(header + HEADER.iovLength, 1, true);
      if (controlBytes > 0) pointer(header + HEADER.control, at.controls + index * CONTROL_BYTES);
      view.setUint32(header + HEADER.controlLength, controlBytes, true);
      pointer(iov, at.slots + index * SLOT_STRIDE);
      view.setUint32(iov + 8, UDP_SLOT_BYTES, true);
    }
  }
}

/** Points the sending header `place` at the slot `index`. */
function retarget(words: Int32Array, at: Layout, place: number, index: number): void {
  const from = (at.received + index * HEADER_BYTES) >> 2;
  const to = (at.sent + place * HEADER_BYTES) >> 2;
  for (const offset of [HEADER.name, HEADER.name + 4, HEADER.control, HEADER.control + 4]) {
    words[to + (offset >> 2)] = words[from + (offset >> 2)]!;
  }
  const fromIov = (at.receivedIov + index * IOV_BYTES) >> 2;
  const toIov = (at.sentIov + place * IOV_BYTES) >> 2;
  words[toIov] = words[fromIov]!;
  words[toIov + 1] = words[fromIov + 1]!;
}

/** Sends `total` messages; the number of those that the socket refused. The kernel stops at each of them. */
function sendAll(libc: Libc, descriptor: number, headers: number, total: number): number {
  let dropped = 0;
  let next = 0;
  while (next < total) {
    const from = next === 0 ? headers : headers + next * HEADER_BYTES;
    const sent = libc.sendmmsg(descriptor, from, total - next, MSG_DONTWAIT);
    if (sent > 0) {
      next += sent;
    } else if (libc.errno() !== EINTR) {
      next += 1;
      dropped += 1;
    }
  }
  return dropped;
}

/** Makes the memory and the calls for one bound UDP socket that `prepareUdpSocket` has prepared. */
export function createBatch(libc: Libc, descriptor: number, address: Address): Batch {
  const isV4 = address.bytes.length === 4;
  const controlBytes = isWildcard(address.bytes) ? (isV4 ? CMSG_SPACE_V4 : CMSG_SPACE_V6) : 0;
  const memory = new ArrayBuffer(layoutFrom(0).end + 64);
  const base = libc.addressOf(memory);
  const at = layoutFrom((64 - (base % 64)) % 64);
  // Kept as they are: a number of this size that is computed anew for a call is a new object on the heap.
  const receivedHeaders = base + at.received;
  const sentHeaders = base + at.sent;
  const nameBytes = isV4 ? SOCKADDR_IN.bytes : SOCKADDR_IN6.bytes;
  fillHeaders(new DataView(memory), base, at, nameBytes, controlBytes);

  const words = new Int32Array(memory);
  const headerWords = HEADER_BYTES >> 2;
  const receivedLength = (at.received + HEADER.length) >> 2;
  const receivedControl = (at.received + HEADER.controlLength) >> 2;
  const sentControl = (at.sent + HEADER.controlLength) >> 2;
  const sentLength = (at.sentIov >> 2) + 2;
  const interfaceIndex = (at.controls + CMSG_DATA + (isV4 ? IFINDEX_V4 : IFINDEX_V6)) >> 2;
  const firstAddress = at.names + (isV4 ? SOCKADDR_IN.address : SOCKADDR_IN6.address);
  /** Which slot each sending header points to: rewritten only behind a datagram that got no answer. */
  const slotOf = Int32Array.from({ length: UDP_BATCH }, (_, index) => index);
  const isMapped = (index: number) => {
    const word = (firstAddress + index * NAME_BYTES) >> 2;
    return words[word + 2] === MAPPED_WORD && words[word] === 0 && words[word + 1] === 0;
  };
  let received = 0;
  let queued = 0;
  return {
    bytes: new Uint8Array(memory),
    receive: (wait) => {
      for (let index = 0; controlBytes > 0 && index < received; index++) {
        words[receivedControl + index * headerWords] = controlBytes;
      }
      received = libc.recvmmsg(descriptor, receivedHeaders, UDP_BATCH, wait ? MSG_WAITFORONE : MSG_DONTWAIT, 0);
      if (received >= 0) return received;
      received = 0;
      const errno = libc.errno();
      if (errno === EAGAIN || errno === EINTR) return 0;
      throw systemError(errno, "recvmmsg");
    },
    slotAt: (index) => at.slots + index * SLOT_STRIDE,
    lengthOf: (index) => words[receivedLength + index * headerWords]!,
    addressLengthOf: (index) => (isV4 || isMapped(index) ? 4 : 16),
    addressAt: (index) => firstAddress + index * NAME_BYTES + (!isV4 && isMapped(index) ? MAPPED_PREFIX_BYTES : 0),
    nameAt: (index) => at.names + index * NAME_BYTES,
    nameBytes,
    controlAt: (index) => at.controls + index * CONTROL_BYTES,
    controlLengthOf: (index) => {
      if (controlBytes === 0) return 0;
      words[interfaceIndex + index * (CONTROL_BYTES >> 2)] = 0;
      return words[receivedControl + index * headerWords]!;
    },
    reply: (index, length) => {
      const place = queued++;
      if (slotOf[place] !== index) {
        slotOf[place] = index;
        retarget(words, at, place, index);
      }
      words[sentLength + place * (IOV_BYTES >> 2)] = length;
      if (controlBytes === 0) return;
      // The answer leaves from the address that was asked, by whatever interface the route says.
      words[sentControl + place * headerWords] = words[receivedControl + index * headerWords]!;
      words[interfaceIndex + index * (CONTROL_BYTES >> 2)] = 0;
    },
    send: () => {
      const total = queued;
      queued = 0;
      return total === 0 ? 0 : sendAll(libc, descriptor, sentHeaders, total);
    },
  };
}
