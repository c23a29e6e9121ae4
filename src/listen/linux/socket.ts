/** Sockets, as the supervisor opens them and the threads take them over. */
import { type Address, isWildcard } from "../address.ts";
import { TCP_BACKLOG, UDP_SOCKET_BUFFER_BYTES, UDP_WAIT_MS } from "../limits.ts";
import { type Libc, SOCKADDR_IN, SOCKADDR_IN6, systemError } from "./libc.ts";

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

/** The socket address structure of an address. */
export function socketName(address: Address): Uint8Array<ArrayBuffer> {
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
