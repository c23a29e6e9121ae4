/**
 * The filter of system calls that bubblewrap puts on a script: a classic BPF program (seccomp(2)), 8 bytes an instruction.
 * The rules that keep addresses away see IP sockets of this process's user; so other families of sockets, which would go
 * past them (to a hypervisor: AF_VSOCK), and io_uring, which makes sockets past this filter, are refused. So is memory that a
 * script could hold without any of its processes having it mapped, where nobody that counts (process-tree.ts) finds it.
 */

type Machine = { readonly audit: number; readonly calls: Readonly<Record<Call, number>> };
type Call =
  | "socket"
  | "socketpair"
  | "setsockopt"
  | "ioctl"
  | "io_uring_setup"
  | "bpf"
  | "keyctl"
  | "add_key"
  | "request_key"
  | "userfaultfd"
  | "perf_event_open"
  | "mmap"
  | "memfd_create"
  | "memfd_secret"
  | "shmget";

/** AUDIT_ARCH_* of linux/audit.h and the numbers of asm/unistd.h. */
const MACHINES: Readonly<Record<string, Machine>> = {
  x64: {
    audit: 0xc000003e,
    calls: {
      socket: 41,
      socketpair: 53,
      setsockopt: 54,
      ioctl: 16,
      io_uring_setup: 425,
      bpf: 321,
      keyctl: 250,
      add_key: 248,
      request_key: 249,
      userfaultfd: 323,
      perf_event_open: 298,
      mmap: 9,
      memfd_create: 319,
      memfd_secret: 447,
      shmget: 29,
    },
  },
  arm64: {
    audit: 0xc00000b7,
    calls: {
      socket: 198,
      socketpair: 199,
      setsockopt: 208,
      ioctl: 29,
      io_uring_setup: 425,
      bpf: 280,
      keyctl: 219,
      add_key: 217,
      request_key: 218,
      userfaultfd: 282,
      perf_event_open: 241,
      mmap: 222,
      memfd_create: 279,
      memfd_secret: 447,
      shmget: 194,
    },
  },
};

const INSTRUCTION_BYTES = 8;
const LOAD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const AND = 0x54;
const RETURN = 0x06;

const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const FAIL_WITH = 0x00050000;
const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;

/** Offsets in struct seccomp_data; of the 64-bit arguments the lower half, little-endian. */
const CALL_AT = 0;
const ARCHITECTURE_AT = 4;
const ARGUMENT_AT = [16, 24, 32, 40] as const;

const FAMILIES = { unix: 1, ipv4: 2, ipv6: 10, netlink: 16 } as const;
/** x32 calls on x64 have numbers of their own, from here on. */
const X32_CALLS = 0x40000000;
const SOL_IP = 0;
const IP_OPTIONS = 4;
/** Puts characters into a terminal's input. */
const TIOCSTI = 0x5412;
/** Of mmap(2): MAP_SHARED, which has this bit of the kinds of mapping alone with one that has no anonymous form. */
const MAP_SHARED_ANONYMOUS = 0x01 | 0x20;

type Instruction = readonly [code: number, jumpTrue: number, jumpFalse: number, value: number];

const load = (at: number): Instruction => [LOAD, 0, 0, at];
const finish = (value: number): Instruction => [RETURN, 0, 0, value];
const fail = (errno: number): Instruction => finish(FAIL_WITH | errno);

/** What follows is done for this call only; it must end in a return. */
function onCall(call: number, then: readonly Instruction[]): Instruction[] {
  return [load(CALL_AT), [JUMP_IF_EQUAL, 0, then.length, call], ...then];
}

/** Refuses all but the four families of sockets. */
function familiesOnly(): Instruction[] {
  const families = Object.values(FAMILIES);
  const tests = families.map((family, index): Instruction => [JUMP_IF_EQUAL, families.length - index, 0, family]);
  return [load(ARGUMENT_AT[0]), ...tests, fail(EAFNOSUPPORT), finish(ALLOW)];
}

function program({ audit, calls }: Machine): Instruction[] {
  const forbidden: readonly Call[] = ["bpf", "keyctl", "add_key", "request_key", "userfaultfd", "perf_event_open"];
  return [
    load(ARCHITECTURE_AT),
    [JUMP_IF_EQUAL, 1, 0, audit],
    finish(KILL_PROCESS),
    load(CALL_AT),
    [JUMP_IF_AT_LEAST, 0, 1, X32_CALLS],
    finish(KILL_PROCESS),
    ...onCall(calls.socket, familiesOnly()),
    ...onCall(calls.socketpair, familiesOnly()),
    // An IP option of a source route (RFC 791 section 3.1) names another address than the rules see.
    ...onCall(calls.setsockopt, [
      load(ARGUMENT_AT[1]),
      [JUMP_IF_EQUAL, 0, 3, SOL_IP],
      load(ARGUMENT_AT[2]),
      [JUMP_IF_EQUAL, 0, 1, IP_OPTIONS],
      fail(EPERM),
      finish(ALLOW),
    ]),
    ...onCall(calls.ioctl, [load(ARGUMENT_AT[1]), [JUMP_IF_EQUAL, 0, 1, TIOCSTI], fail(EPERM), finish(ALLOW)]),
    // Its pages stay where the process lets go of them, and then are nobody's that is counted.
    ...onCall(calls.mmap, [
      load(ARGUMENT_AT[3]),
      [AND, 0, 0, MAP_SHARED_ANONYMOUS],
      [JUMP_IF_EQUAL, 0, 1, MAP_SHARED_ANONYMOUS],
      fail(EPERM),
      finish(ALLOW),
    ]),
    ...(["memfd_create", "memfd_secret", "shmget"] as const).flatMap((call) => onCall(calls[call], [fail(ENOSYS)])),
    ...onCall(calls.io_uring_setup, [fail(ENOSYS)]),
    ...forbidden.flatMap((call) => onCall(calls[call], [fail(EPERM)])),
    finish(ALLOW),
  ];
}

/** The filter's bytes for a processor as `process.arch` names it; undefined for one that it knows no calls of. */
export function filterBytes(arch: string): Uint8Array | undefined {
  const machine = MACHINES[arch];
  if (machine === undefined) return undefined;
  const instructions = program(machine);
  const bytes = Buffer.alloc(instructions.length * INSTRUCTION_BYTES);
  for (const [index, [code, jumpTrue, jumpFalse, value]] of instructions.entries()) {
    const at = index * INSTRUCTION_BYTES;
    bytes.writeUInt16LE(code, at);
    bytes.writeUInt8(jumpTrue, at + 2);
    bytes.writeUInt8(jumpFalse, at + 3);
    bytes.writeUInt32LE(value >>> 0, at + 4);
  }
  return bytes;
}
