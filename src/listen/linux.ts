/**
 * Linux system calls through koffi: the one file that knows pointers, structure layouts and option numbers.
 *
 * Addresses are passed as plain numbers: of the ways koffi 3.3.4 takes a pointer that is the cheapest (about 130 ns of
 * user time for a recvmmsg that fails at once, 185 ns with a Buffer) and it allocates nothing. The memory behind them
 * belongs to ArrayBuffers, whose backing stores never move; whoever holds an address holds the buffer too.
 */
import { createRequire } from "node:module";
import { getSystemErrorMessage, getSystemErrorName } from "node:util";
import { codedError } from "../base/errors.ts";
import { type Address, isWildcard } from "./address.ts";
import { TCP_BACKLOG, UDP_BATCH, UDP_SLOT_BYTES, UDP_SOCKET_BUFFER_BYTES, UDP_WAIT_MS } from "./limits.ts";

/** The functions of the C library that are used, with addresses as numbers, and errno after a call that gave -1. */
export type Libc = {
  readonly socket: (family: number, kind: number, protocol: number) => number;
  readonly bind: (descriptor: number, name: number, nameLength: number) => number;
  readonly listen: (descriptor: number, backlog: number) => number;
  readonly close: (descriptor: number) => number;
  readonly duplicate: (descriptor: number, command: number, least: number) => number;
  readonly fcntl: (descriptor: number, command: number, value: number) => number;
  readonly flock: (descriptor: number, operation: number) => number;
  readonly getsockname: (descriptor: number, name: number, nameLength: number) => number;
  readonly setsockopt: (descriptor: number, level: number, option: number, value: number, length: number) => number;
  readonly getsockopt: (descriptor: number, level: number, option: number, value: number, length: number) => number;
  readonly recvmmsg: (descriptor: number, headers: number, count: number, flags: number, timeout: number) => number;
  readonly sendmmsg: (descriptor: number, headers: number, count: number, flags: number) => number;
  readonly poll: (set: number, count: number, timeoutMs: number) => number;
  readonly errno: () => number;
  readonly addressOf: (buffer: ArrayBuffer) => number;
};

type Koffi = typeof import("koffi");

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_STREAM = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const O_NONBLOCK = 0o4000;
const F_GETFL = 3;
const F_SETFL = 4;
const F_DUPFD_CLOEXEC = 1030;
const LOCK_EX = 2;
const LOCK_NB = 4;
const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const SO_TYPE = 3;
const SO_SNDBUF = 7;
const SO_RCVBUF = 8;
const SO_REUSEPORT = 15;
const SO_RCVTIMEO = 20;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;
const SO_ACCEPTCONN = 30;
const IPPROTO_IP = 0;
const IP_PKTINFO = 8;
const IP_MTU_DISCOVER = 10;
const IPPROTO_IPV6 = 41;
const IPV6_MTU_DISCOVER = 23;
const IPV6_V6ONLY = 26;
const IPV6_RECVPKTINFO = 49;
/** Answers leave whole and unmarked: a forged "fragmentation needed" cannot shrink them (as NSD, Knot and BIND do). */
const PMTUDISC_OMIT = 5;
const MSG_DONTWAIT = 0x40;
const MSG_WAITFORONE = 0x10000;
const POLLIN = 1;

const EINTR = 4;
const EAGAIN = 11;

/** Byte offsets in struct mmsghdr, struct iovec and the socket addresses; `assertLayouts` proves them. */
const HEADER_BYTES = 64;
const HEADER = { name: 0, nameLength: 8, iov: 16, iovLength: 24, control: 32, controlLength: 40, length: 56 } as const;
const IOV_BYTES = 16;
const NAME_BYTES = 32;
const SOCKADDR_IN = { bytes: 16, port: 2, address: 4 } as const;
const SOCKADDR_IN6 = { bytes: 28, port: 2, address: 8 } as const;
/** Room for one packet-info control message: header 16, in6_pktinfo 20, padding 4, and up to a whole cache line. */
const CONTROL_BYTES = 64;
const CMSG_SPACE_V4 = 32;
const CMSG_SPACE_V6 = 40;
const CMSG_DATA = 16;
/** Where the interface index lies in struct in_pktinfo and struct in6_pktinfo. */
const IFINDEX_V4 = 0;
const IFINDEX_V6 = 16;
/** An IPv4 address in IPv6 form (RFC 4291 section 2.5.5.2) begins with 80 zero bits and 16 one bits. */
const MAPPED_PREFIX_BYTES = 12;
const MAPPED_WORD = 0xffff0000 | 0;
/** Slots lie 67 cache lines apart: at 4096 bytes exactly, every slot would compete for the same cache sets. */
const SLOT_STRIDE = UDP_SLOT_BYTES + 192;

/** Opens the C library; undefined where this is no Linux on x64 or arm64, or koffi cannot be loaded. */
export function openLibc(): Libc | undefined {
  if (process.platform !== "linux" || (process.arch !== "x64" && process.arch !== "arm64")) return undefined;
  let koffi: Koffi;
  try {
    koffi = createRequire(import.meta.url)("koffi");
  } catch {
    return undefined;
  }
  assertLayouts(koffi);
  const library = koffi.load(null);
  const call = (name: string, ...parameters: string[]) => library.func(name, "int", parameters);
  return {
    socket: call("socket", "int", "int", "int"),
    bind: call("bind", "int", "uint64_t", "uint"),
    listen: call("listen", "int", "int"),
    close: call("close", "int"),
    duplicate: call("fcntl", "int", "int", "int"),
    fcntl: call("fcntl", "int", "int", "int"),
    flock: call("flock", "int", "int"),
    getsockname: call("getsockname", "int", "uint64_t", "uint64_t"),
    setsockopt: call("setsockopt", "int", "int", "int", "uint64_t", "uint"),
    getsockopt: call("getsockopt", "int", "int", "int", "uint64_t", "uint64_t"),
    recvmmsg: call("recvmmsg", "int", "uint64_t", "uint", "int", "uint64_t"),
    sendmmsg: call("sendmmsg", "int", "uint64_t", "uint", "int"),
    poll: call("poll", "uint64_t", "ulong", "int"),
    errno: koffi.errno,
    addressOf: (buffer) => {
      const address = Number(koffi.address(buffer));
      if (!Number.isSafeInteger(address) || address === 0) throw new Error(`unusable buffer address ${address}`);
      return address;
    },
  };
}

function assertLayouts(koffi: Koffi): void {
  const header = koffi.struct({
    name: "void *",
    nameLength: "uint32_t",
    iov: "void *",
    iovLength: "size_t",
    control: "void *",
    controlLength: "size_t",
    flags: "int",
  });
  const message = koffi.struct({ header, length: "uint32_t" });
  const address4 = koffi.struct({ family: "uint16_t", port: "uint16_t", address: "uint32_t", zero: "uint64_t" });
  const address6 = koffi.struct({
    family: "uint16_t",
    port: "uint16_t",
    flow: "uint32_t",
    address: koffi.array("uint8_t", 16),
    scope: "uint32_t",
  });
  const expected: readonly (readonly [string, number, number])[] = [
    ["mmsghdr", koffi.sizeof(message), HEADER_BYTES],
    ["msg_len", koffi.offsetof(message, "length"), HEADER.length],
    ["msg_name", koffi.offsetof(header, "name"), HEADER.name],
    ["msg_namelen", koffi.offsetof(header, "nameLength"), HEADER.nameLength],
    ["msg_iov", koffi.offsetof(header, "iov"), HEADER.iov],
    ["msg_iovlen", koffi.offsetof(header, "iovLength"), HEADER.iovLength],
    ["msg_control", koffi.offsetof(header, "control"), HEADER.control],
    ["msg_controllen", koffi.offsetof(header, "controlLength"), HEADER.controlLength],
    ["iovec", koffi.sizeof(koffi.struct({ base: "void *", length: "size_t" })), IOV_BYTES],
    ["sockaddr_in", koffi.sizeof(address4), SOCKADDR_IN.bytes],
    ["sin_addr", koffi.offsetof(address4, "address"), SOCKADDR_IN.address],
    ["sockaddr_in6", koffi.sizeof(address6), SOCKADDR_IN6.bytes],
    ["sin6_addr", koffi.offsetof(address6, "address"), SOCKADDR_IN6.address],
    ["cmsghdr", koffi.sizeof(koffi.struct({ length: "size_t", level: "int", type: "int" })), CMSG_DATA],
    ["little endian", new Uint8Array(new Uint16Array([1]).buffer)[0] ?? 0, 1],
  ];
  for (const [what, found, wanted] of expected) {
    if (found !== wanted) throw new Error(`memory layout of ${what}: ${found}, not ${wanted}`);
  }
}

/** An Error whose `code` is the errno's name, for example EADDRINUSE. */
function systemError(errno: number, call: string): Error {
  return codedError(getSystemErrorName(-errno), `${call}: ${getSystemErrorMessage(-errno)}`);
}

function checked(libc: Libc, call: string, result: number): number {
  if (result < 0) throw systemError(libc.errno(), call);
  return result;
}

function setOption(libc: Libc, descriptor: number, level: number, option: number, ...values: number[]): boolean {
  const bytes = Int32Array.from(values).buffer;
  return libc.setsockopt(descriptor, level, option, libc.addressOf(bytes), bytes.byteLength) === 0;
}

function requireOption(libc: Libc, descriptor: number, level: number, option: number, ...values: number[]): void {
  if (!setOption(libc, descriptor, level, option, ...values))
    throw systemError(libc.errno(), `setsockopt ${level} ${option}`);
}

function socketName(address: Address): Uint8Array<ArrayBuffer> {
  const isV4 = address.bytes.length === 4;
  const layout = isV4 ? SOCKADDR_IN : SOCKADDR_IN6;
  const name = new Uint8Array(layout.bytes);
  name[0] = isV4 ? AF_INET : AF_INET6;
  name[layout.port] = address.port >> 8;
  name[layout.port + 1] = address.port & 255;
  name.set(address.bytes, layout.address);
  return name;
}

/** The first thing in `open` that throws closes the descriptor again. */
function openSocket(libc: Libc, address: Address, kind: number, open: (descriptor: number) => void): number {
  const isV4 = address.bytes.length === 4;
  const descriptor = checked(libc, "socket", libc.socket(isV4 ? AF_INET : AF_INET6, kind | SOCK_CLOEXEC, 0));
  try {
    if (!isV4) requireOption(libc, descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    open(descriptor);
    return descriptor;
  } catch (error) {
    libc.close(descriptor);
    throw error;
  }
}

function bindSocket(libc: Libc, descriptor: number, address: Address): void {
  const name = socketName(address);
  checked(libc, "bind", libc.bind(descriptor, libc.addressOf(name.buffer), name.length));
}

/**
 * A bound UDP socket. `shared`: with SO_REUSEPORT, one of several on its address; without it, binding fails with
 * EADDRINUSE when anyone has the address. Throws an Error with the errno's name as `code`.
 */
export function openUdpSocket(libc: Libc, address: Address, shared: boolean): number {
  return openSocket(libc, address, SOCK_DGRAM, (descriptor) => {
    if (shared) requireOption(libc, descriptor, SOL_SOCKET, SO_REUSEPORT, 1);
    bindSocket(libc, descriptor, address);
  });
}

/** A TCP socket that listens. Throws an Error with the errno's name as `code`. */
export function openTcpListener(libc: Libc, address: Address): number {
  return openSocket(libc, address, SOCK_STREAM, (descriptor) => {
    requireOption(libc, descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
    bindSocket(libc, descriptor, address);
    checked(libc, "listen", libc.listen(descriptor, TCP_BACKLOG));
  });
}

/** Closes a descriptor. */
export function closeDescriptor(libc: Libc, descriptor: number): void {
  libc.close(descriptor);
}

/** A second descriptor of the same socket, closed on exec; what closes one leaves the other open. */
export function duplicateDescriptor(libc: Libc, descriptor: number): number {
  return checked(libc, "fcntl", libc.duplicate(descriptor, F_DUPFD_CLOEXEC, 3));
}

/** Takes the exclusive lock of an open file; the kernel gives it back when the process ends, however it ends. */
export function lockFile(libc: Libc, descriptor: number): boolean {
  return libc.flock(descriptor, LOCK_EX | LOCK_NB) === 0;
}

function readOption(libc: Libc, descriptor: number, option: number): number | undefined {
  const words = new Int32Array(2);
  words[1] = 4;
  const address = libc.addressOf(words.buffer);
  return libc.getsockopt(descriptor, SOL_SOCKET, option, address, address + 4) === 0 ? words[0] : undefined;
}

export type SocketKind = "udp" | "tcp";

/** What an open descriptor is bound to; undefined where it is no UDP socket and no listening TCP socket over IP. */
export function describeSocket(
  libc: Libc,
  descriptor: number,
): { readonly kind: SocketKind; readonly address: Address } | undefined {
  const type = readOption(libc, descriptor, SO_TYPE);
  const kind = type === SOCK_DGRAM ? "udp" : type === SOCK_STREAM ? "tcp" : undefined;
  if (kind === undefined || (kind === "tcp" && readOption(libc, descriptor, SO_ACCEPTCONN) !== 1)) return undefined;
  const name = new Uint8Array(36);
  name[32] = 32;
  const nameAt = libc.addressOf(name.buffer);
  if (libc.getsockname(descriptor, nameAt, nameAt + 32) !== 0) return undefined;
  const family = name[0];
  if (family !== AF_INET && family !== AF_INET6) return undefined;
  const layout = family === AF_INET ? SOCKADDR_IN : SOCKADDR_IN6;
  const end = layout.address + (family === AF_INET ? 4 : 16);
  const port = (name[layout.port]! << 8) | name[layout.port + 1]!;
  return { kind, address: { bytes: name.slice(layout.address, end), port } };
}

/**
 * Prepares a UDP socket for a batch loop: blocking with a bounded wait, large queues, and the destination address of
 * each datagram where the socket is bound to the wildcard.
 */
export function prepareUdpSocket(libc: Libc, descriptor: number, address: Address): void {
  const isV4 = address.bytes.length === 4;
  const flags = checked(libc, "fcntl", libc.fcntl(descriptor, F_GETFL, 0));
  checked(libc, "fcntl", libc.fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK));
  requireOption(libc, descriptor, SOL_SOCKET, SO_RCVTIMEO, 0, 0, UDP_WAIT_MS * 1000, 0);
  for (const [forced, plain] of [
    [SO_RCVBUFFORCE, SO_RCVBUF],
    [SO_SNDBUFFORCE, SO_SNDBUF],
  ] as const) {
    // The forced form passes the system's limit and needs privileges; the plain one takes as much as is allowed.
    if (!setOption(libc, descriptor, SOL_SOCKET, forced, UDP_SOCKET_BUFFER_BYTES)) {
      setOption(libc, descriptor, SOL_SOCKET, plain, UDP_SOCKET_BUFFER_BYTES);
    }
  }
  if (isV4) setOption(libc, descriptor, IPPROTO_IP, IP_MTU_DISCOVER, PMTUDISC_OMIT);
  else setOption(libc, descriptor, IPPROTO_IPV6, IPV6_MTU_DISCOVER, PMTUDISC_OMIT);
  if (!isWildcard(address.bytes)) return;
  if (isV4) requireOption(libc, descriptor, IPPROTO_IP, IP_PKTINFO, 1);
  else requireOption(libc, descriptor, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
}

/** Waits until one of several sockets can be read. */
export type PollSet = {
  /** The number of readable sockets after at most `timeoutMs`. */
  readonly wait: (timeoutMs: number) => number;
  readonly isReadable: (index: number) => boolean;
};

export function createPollSet(libc: Libc, descriptors: readonly number[]): PollSet {
  const words = new Int32Array(descriptors.length * 2);
  for (const [index, descriptor] of descriptors.entries()) {
    words[index * 2] = descriptor;
    words[index * 2 + 1] = POLLIN;
  }
  const address = libc.addressOf(words.buffer);
  return {
    wait: (timeoutMs) => libc.poll(address, descriptors.length, timeoutMs),
    // revents is the upper half of the second word; an error of the socket must be read too, so any bit counts.
    isReadable: (index) => words[index * 2 + 1]! >>> 16 !== 0,
  };
}

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
    const sent = libc.sendmmsg(descriptor, headers + next * HEADER_BYTES, total - next, MSG_DONTWAIT);
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
      received = libc.recvmmsg(descriptor, base + at.received, UDP_BATCH, wait ? MSG_WAITFORONE : MSG_DONTWAIT, 0);
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
      return total === 0 ? 0 : sendAll(libc, descriptor, base + at.sent, total);
    },
  };
}
