/**
 * The C library through koffi. This folder is the only place that knows pointers, structure layouts and option numbers.
 *
 * Addresses are passed as plain numbers: of the ways koffi 3.3.4 takes a pointer that is the cheapest (about 130 ns of
 * user time for a recvmmsg that fails at once, 185 ns with a Buffer) and it allocates nothing. The memory behind them
 * belongs to ArrayBuffers, whose backing stores never move; whoever holds an address holds the buffer too.
 */
import { createRequire } from "node:module";
import { getSystemErrorMessage, getSystemErrorName } from "node:util";
import { codedError } from "../../base/errors.ts";

/** The functions of the C library that are used, with addresses as numbers, and errno after a call that gave -1. */
export type Libc = {
  readonly socket: (family: number, kind: number, protocol: number) => number;
  readonly bind: (descriptor: number, name: number, nameLength: number) => number;
  readonly listen: (descriptor: number, backlog: number) => number;
  readonly close: (descriptor: number) => number;
  readonly duplicate: (descriptor: number, command: number, least: number) => number;
  /** Makes a descriptor another one of an open file. */
  readonly replace: (descriptor: number, replaced: number) => number;
  readonly fcntl: (descriptor: number, command: number, value: number) => number;
  readonly flock: (descriptor: number, operation: number) => number;
  readonly getsockname: (descriptor: number, name: number, nameLength: number) => number;
  readonly setsockopt: (descriptor: number, level: number, option: number, value: number, length: number) => number;
  readonly getsockopt: (descriptor: number, level: number, option: number, value: number, length: number) => number;
  readonly recvmmsg: (descriptor: number, headers: number, count: number, flags: number, timeout: number) => number;
  readonly sendmmsg: (descriptor: number, headers: number, count: number, flags: number) => number;
  readonly poll: (set: number, count: number, timeoutMs: number) => number;
  readonly clockGettime: (clock: number, time: number) => number;
  readonly connect: (descriptor: number, name: number, nameLength: number) => number;
  readonly send: (descriptor: number, bytes: number, length: number, flags: number) => number;
  readonly recv: (descriptor: number, bytes: number, length: number, flags: number) => number;
  readonly epollCreate: (flags: number) => number;
  readonly epollControl: (epoll: number, operation: number, descriptor: number, event: number) => number;
  readonly epollWait: (epoll: number, events: number, count: number, timeoutMs: number) => number;
  /** For what has no function of its own. */
  readonly systemCall: (number: number, first: number, second: number, third: number, fourth: number) => number;
  readonly errno: () => number;
  readonly addressOf: (buffer: ArrayBuffer) => number;
};

type Koffi = typeof import("koffi");

/** Byte offsets in struct mmsghdr, struct iovec and the socket addresses; `assertLayouts` proves them. */
export const HEADER_BYTES = 64;
export const HEADER = {
  name: 0,
  nameLength: 8,
  iov: 16,
  iovLength: 24,
  control: 32,
  controlLength: 40,
  length: 56,
} as const;
export const IOV_BYTES = 16;
export const SOCKADDR_IN = { bytes: 16, port: 2, address: 4 } as const;
export const SOCKADDR_IN6 = { bytes: 28, port: 2, address: 8 } as const;
/** Where the data of a control message begins. */
export const CMSG_DATA = 16;

export const TIMESPEC_BYTES = 16;

/** Only on x64 the structure has no gap behind its first member. */
export const EPOLL_EVENT =
  process.arch === "x64" ? ({ bytes: 12, data: 4 } as const) : ({ bytes: 16, data: 8 } as const);

export const EINTR = 4;
export const EAGAIN = 11;

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
    replace: call("dup2", "int", "int"),
    fcntl: call("fcntl", "int", "int", "int"),
    flock: call("flock", "int", "int"),
    getsockname: call("getsockname", "int", "uint64_t", "uint64_t"),
    setsockopt: call("setsockopt", "int", "int", "int", "uint64_t", "uint"),
    getsockopt: call("getsockopt", "int", "int", "int", "uint64_t", "uint64_t"),
    recvmmsg: call("recvmmsg", "int", "uint64_t", "uint", "int", "uint64_t"),
    sendmmsg: call("sendmmsg", "int", "uint64_t", "uint", "int"),
    poll: call("poll", "uint64_t", "ulong", "int"),
    clockGettime: call("clock_gettime", "int", "uint64_t"),
    connect: call("connect", "int", "uint64_t", "uint"),
    send: call("send", "int", "uint64_t", "size_t", "int"),
    recv: call("recv", "int", "uint64_t", "size_t", "int"),
    epollCreate: call("epoll_create1", "int"),
    epollControl: call("epoll_ctl", "int", "int", "int", "uint64_t"),
    epollWait: call("epoll_wait", "int", "uint64_t", "int", "int"),
    systemCall: call("syscall", "long", "long", "uint64_t", "ulong", "ulong"),
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
  const members = { events: "uint32_t", data: "uint64_t" };
  const event = process.arch === "x64" ? koffi.pack(members) : koffi.struct(members);
  const expected: readonly (readonly [string, number, number])[] = [
    ["epoll_event", koffi.sizeof(event), EPOLL_EVENT.bytes],
    ["epoll_data", koffi.offsetof(event, "data"), EPOLL_EVENT.data],
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
    ["timespec", koffi.sizeof(koffi.struct({ seconds: "long", nanoseconds: "long" })), TIMESPEC_BYTES],
    ["cmsghdr", koffi.sizeof(koffi.struct({ length: "size_t", level: "int", type: "int" })), CMSG_DATA],
    ["little endian", new Uint8Array(new Uint16Array([1]).buffer)[0] ?? 0, 1],
  ];
  for (const [what, found, wanted] of expected) {
    if (found !== wanted) throw new Error(`memory layout of ${what}: ${found}, not ${wanted}`);
  }
}

/** An Error whose `code` is the errno's name, for example EADDRINUSE. */
export function systemError(errno: number, call: string): Error {
  return codedError(getSystemErrorName(-errno), `${call}: ${getSystemErrorMessage(-errno)}`);
}
