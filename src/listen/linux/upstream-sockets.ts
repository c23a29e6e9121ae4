/**
 * Sockets for exchanges with upstreams: non-blocking ones in one epoll instance, whose own readiness reaches this thread's
 * event loop. Seven system calls an exchange, as other resolvers need, and nothing of Node's for each socket.
 */
import { BIND_ATTEMPTS, type UdpSockets, type UdpSocketsOptions } from "../../base/udp-sockets.ts";
import { EAGAIN, EINTR, EPOLL_EVENT, type Libc, SOCKADDR_IN, SOCKADDR_IN6, systemError } from "./libc.ts";
import { socketName } from "./socket.ts";
import { watchDescriptor } from "./watched.ts";

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_DGRAM = 2;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;
const IPPROTO_IPV6 = 41;
const IPV6_V6ONLY = 26;
const EPOLL_CLOEXEC = 0o2000000;
const EPOLL_CTL_ADD = 1;
const EPOLLIN = 1;
const EADDRINUSE = 98;
const EACCES = 13;
/** One look at the epoll instance gives so many sockets; then timers and others have their turn. */
const EVENTS_MAX = 256;
const DATAGRAM_BYTES_MAX = 65_535;
const PORTS = 65_536;
const CAPACITY_MAX = PORTS - 1;

/** Bytes that the system reads or writes, and where they lie. */
type Room = { readonly bytes: Uint8Array<ArrayBuffer>; readonly at: number };

type Memory = {
  readonly datagram: Room;
  /** Bytes to send, and values of options. */
  readonly out: Room;
  readonly events: Int32Array<ArrayBuffer>;
  readonly eventsAt: number;
  /** The event that a socket is entered with: apart from those that are being looked at. */
  readonly entered: Int32Array<ArrayBuffer>;
  readonly enteredAt: number;
  readonly v4: Names;
  readonly v6: Names;
};

/** Socket addresses of a family: any address of this machine, and the server's. */
type Names = { readonly local: Room; readonly remote: Room; readonly layout: typeof SOCKADDR_IN | typeof SOCKADDR_IN6 };

const OUT_BYTES = 4_096;

function openRoom(libc: Libc, bytes: Uint8Array<ArrayBuffer>): Room {
  return { bytes, at: libc.addressOf(bytes.buffer) };
}

function openNames(libc: Libc, layout: Names["layout"], addressBytes: number): Names {
  const make = (): Room => openRoom(libc, socketName({ bytes: new Uint8Array(addressBytes), port: 0 }));
  return { local: make(), remote: make(), layout };
}

function openMemory(libc: Libc): Memory {
  const events = new Int32Array((EVENTS_MAX * EPOLL_EVENT.bytes) / 4);
  const entered = new Int32Array(4);
  return {
    datagram: openRoom(libc, new Uint8Array(DATAGRAM_BYTES_MAX)),
    out: openRoom(libc, new Uint8Array(OUT_BYTES)),
    events,
    eventsAt: libc.addressOf(events.buffer),
    entered,
    enteredAt: libc.addressOf(entered.buffer),
    v4: openNames(libc, SOCKADDR_IN, 4),
    v6: openNames(libc, SOCKADDR_IN6, 16),
  };
}

/** Throws an Error with the errno's name as `code` where there can be no epoll instance. */
export function openLinuxUdpSockets(libc: Libc, options: UdpSocketsOptions): UdpSockets {
  const { events, capacity } = options;
  if (capacity > CAPACITY_MAX) throw new Error(`${capacity} sockets: at most ${CAPACITY_MAX}`);
  const memory = openMemory(libc);
  const descriptors = takeOver(libc, options.descriptors ?? new Int32Array(capacity + 1), capacity);
  /** The place of each socket's port: those of IPv6 come behind those of IPv4. */
  const ports = new Int32Array(capacity);
  const free = Array.from({ length: capacity }, (_, index) => capacity - 1 - index);
  /** Socket plus one by place; a Map that changes this fast would keep the collector busy. */
  const byPort = new Uint16Array(2 * PORTS);
  const epoll = libc.epollCreate(EPOLL_CLOEXEC);
  if (epoll < 0) throw systemError(libc.errno(), "epoll_create1");
  descriptors[capacity] = epoll;

  const close = (index: number): void => {
    const descriptor = descriptors[index]!;
    if (descriptor === 0) return;
    // First it stands here no more: whoever comes after must not close what has become somebody else's.
    descriptors[index] = 0;
    // The epoll instance forgets a socket whose last descriptor is closed.
    libc.close(descriptor);
    byPort[ports[index]!] = 0;
    free.push(index);
  };
  const receive = (index: number): void => {
    const descriptor = descriptors[index]!;
    // Closed by what an earlier event of the same look made happen.
    if (descriptor === 0) return;
    const length = libc.recv(descriptor, memory.datagram.at, DATAGRAM_BYTES_MAX, 0);
    if (length >= 0) {
      events.onDatagram(index, memory.datagram.bytes.subarray(0, length));
      return;
    }
    const errno = libc.errno();
    if (errno !== EAGAIN && errno !== EINTR) events.onError(index);
  };
  const look = (): void => {
    const count = libc.epollWait(epoll, memory.eventsAt, EVENTS_MAX, 0);
    for (let each = 0; each < count; each++) {
      receive(memory.events[(each * EPOLL_EVENT.bytes + EPOLL_EVENT.data) >> 2]!);
    }
  };
  const watch = watchDescriptor(libc, epoll, look);
  return {
    capacity,
    open: (address, port, bytes) => {
      const index = free.pop();
      if (index === undefined) return -1;
      const isV4 = address.length === 4;
      const local = openSocket(libc, memory, isV4 ? memory.v4 : memory.v6, options.randomPort, address, port);
      if (local === undefined || !enter(libc, memory, epoll, local.descriptor, index, bytes)) {
        if (local !== undefined) libc.close(local.descriptor);
        free.push(index);
        return -1;
      }
      descriptors[index] = local.descriptor;
      ports[index] = isV4 ? local.port : PORTS + local.port;
      byPort[ports[index]] = index + 1;
      return index;
    },
    close,
    socketAt: (port, addressBytes) => byPort[addressBytes === 4 ? port : PORTS + port]! - 1,
    end: () => {
      watch.close();
      for (let index = 0; index < capacity; index++) close(index);
      descriptors[capacity] = 0;
      libc.close(epoll);
    },
  };
}

/** Closes what an earlier thread left open. A word of 0 is none: that is the process's standard input. */
function takeOver(libc: Libc, descriptors: Int32Array, capacity: number): Int32Array {
  if (descriptors.length !== capacity + 1) throw new Error(`${descriptors.length} words for ${capacity} sockets`);
  for (const [index, descriptor] of descriptors.entries()) {
    descriptors[index] = 0;
    if (descriptor > 0) libc.close(descriptor);
  }
  return descriptors;
}

type Local = { readonly descriptor: number; readonly port: number };

/** Bound and connected; undefined where anything of it fails. */
function openSocket(
  libc: Libc,
  memory: Memory,
  names: Names,
  randomPort: () => number,
  address: Uint8Array,
  port: number,
): Local | undefined {
  const isV4 = names === memory.v4;
  const { remote, layout } = names;
  const descriptor = libc.socket(isV4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return undefined;
  remote.bytes[layout.port] = port >> 8;
  remote.bytes[layout.port + 1] = port & 255;
  remote.bytes.set(address, layout.address);
  const localPort =
    isV4 || isOfOneFamily(libc, memory, descriptor) ? bindAnywhere(libc, names, descriptor, randomPort) : 0;
  if (localPort !== 0 && libc.connect(descriptor, remote.at, layout.bytes) === 0)
    return { descriptor, port: localPort };
  libc.close(descriptor);
  return undefined;
}

function isOfOneFamily(libc: Libc, { out }: Memory, descriptor: number): boolean {
  out.bytes.set([1, 0, 0, 0]);
  return libc.setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, out.at, 4) === 0;
}

/** The port, 0 for none. */
function bindAnywhere(libc: Libc, { local, layout }: Names, descriptor: number, randomPort: () => number): number {
  for (let attempt = 0; attempt < BIND_ATTEMPTS; attempt++) {
    const port = randomPort();
    local.bytes[layout.port] = port >> 8;
    local.bytes[layout.port + 1] = port & 255;
    if (libc.bind(descriptor, local.at, layout.bytes) === 0) return port;
    const errno = libc.errno();
    if (errno !== EADDRINUSE && errno !== EACCES) return 0;
  }
  return 0;
}

/** Watches the socket, and sends. */
function enter(
  libc: Libc,
  memory: Memory,
  epoll: number,
  descriptor: number,
  index: number,
  bytes: Uint8Array,
): boolean {
  const { entered, out } = memory;
  entered[0] = EPOLLIN;
  entered[EPOLL_EVENT.data >> 2] = index;
  entered[(EPOLL_EVENT.data >> 2) + 1] = 0;
  out.bytes.set(bytes);
  if (libc.send(descriptor, out.at, bytes.length, 0) < 0 && libc.errno() !== EAGAIN) return false;
  return libc.epollControl(epoll, EPOLL_CTL_ADD, descriptor, memory.enteredAt) === 0;
}
