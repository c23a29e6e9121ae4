import assert from "node:assert/strict";
import { test } from "node:test";
import { filterBytes } from "./seccomp-filter.ts";

const ALLOWED = "allowed";
const X64 = 0xc000003e;
const ARM64 = 0xc00000b7;

/** What the kernel would make of a call: runs the program as seccomp(2) describes it. */
function verdict(arch: "x64" | "arm64", audit: number, call: number, ...args: readonly number[]): string {
  const program = filterBytes(arch);
  assert.ok(program);
  const view = Buffer.from(program);
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call, 0);
  data.writeUInt32LE(audit, 4);
  for (const [index, value] of args.entries()) data.writeUInt32LE(value, 16 + index * 8);
  let accumulator = 0;
  for (let at = 0; at < view.length / 8; at++) {
    const value = view.readUInt32LE(at * 8 + 4);
    const [onTrue, onFalse] = [view.readUInt8(at * 8 + 2), view.readUInt8(at * 8 + 3)];
    const code = view.readUInt16LE(at * 8);
    if (code === 0x20) accumulator = data.readUInt32LE(value);
    else if (code === 0x54) accumulator &= value;
    else if (code === 0x15) at += accumulator === value ? onTrue : onFalse;
    else if (code === 0x35) at += accumulator >= value ? onTrue : onFalse;
    else if (code === 0x06) {
      if (value === 0x7fff0000) return ALLOWED;
      if (value === 0x80000000) return "killed";
      assert.equal((value & 0xffff0000) >>> 0, 0x00050000);
      return `errno ${value & 0xffff}`;
    } else assert.fail(`code ${code}`);
  }
  return assert.fail("the program ends without a return");
}

for (const [what, call, args, expected] of [
  ["read", 0, [], ALLOWED],
  ["socket of IPv4", 41, [2, 1, 0], ALLOWED],
  ["socket of IPv6", 41, [10, 2, 0], ALLOWED],
  ["socket of the file system", 41, [1, 1, 0], ALLOWED],
  ["netlink, which lists addresses", 41, [16, 3, 0], ALLOWED],
  ["socket of packets", 41, [17, 3, 0], "errno 97"],
  ["socket to a hypervisor", 41, [40, 1, 0], "errno 97"],
  ["socket of Bluetooth", 41, [31, 1, 0], "errno 97"],
  ["pair of sockets", 53, [1, 1, 0], ALLOWED],
  ["pair of odd sockets", 53, [40, 1, 0], "errno 97"],
  ["source route", 54, [5, 0, 4], "errno 1"],
  ["other option of IP", 54, [5, 0, 2], ALLOWED],
  ["option 4 of sockets", 54, [5, 1, 4], ALLOWED],
  ["input for a terminal", 16, [0, 0x5412], "errno 1"],
  ["size of a terminal", 16, [0, 0x5413], ALLOWED],
  ["ring of calls", 425, [], "errno 38"],
  ["program for the kernel", 321, [], "errno 1"],
  ["keys", 250, [], "errno 1"],
  ["memory of one's own", 9, [0, 4096, 3, 0x22], ALLOWED],
  ["a file mapped as shared", 9, [0, 4096, 3, 0x01], ALLOWED],
  ["shared memory without a file", 9, [0, 4096, 3, 0x21], "errno 1"],
  ["shared memory without a file and swap", 9, [0, 4096, 3, 0x4021], "errno 1"],
  ["a file of memory", 319, [], "errno 38"],
  ["a secret file of memory", 447, [], "errno 38"],
  ["a System V segment", 29, [], "errno 38"],
  ["x32 read", 0x40000000, [], "killed"],
] as const) {
  test(`${what} on x64: ${expected}`, () => assert.equal(verdict("x64", X64, call, ...args), expected));
}

test("calls of the 32-bit interface, which have other numbers, end the process", () => {
  assert.equal(verdict("x64", 0x40000003, 102), "killed");
  assert.equal(verdict("arm64", 0x40000028, 281), "killed");
});

test("arm64 has numbers of its own", () => {
  assert.equal(verdict("arm64", ARM64, 198, 2), ALLOWED);
  assert.equal(verdict("arm64", ARM64, 198, 40), "errno 97");
  assert.equal(verdict("arm64", ARM64, 41, 40), ALLOWED);
});

test("there is no filter for a processor that it does not know", () => {
  assert.equal(filterBytes("riscv64"), undefined);
});
