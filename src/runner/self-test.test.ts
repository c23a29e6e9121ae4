import assert from "node:assert/strict";
import { test } from "node:test";
import { type Attempt, reportFault } from "./self-test.ts";

const TRIED: readonly Attempt[] = [
  { host: "169.254.169.254", port: 80, over: "tcp" },
  { host: "::ffff:169.254.169.254", port: 80, over: "udp" },
  { host: "fd00:ec2::254", port: 80, over: "tcp" },
];
const NONE = "0000000000000000";
const STATUS = { CapInh: NONE, CapPrm: NONE, CapEff: NONE, CapBnd: NONE, CapAmb: NONE, NoNewPrivs: "1", Seccomp: "2" };
const GOOD = {
  userId: 900,
  effectiveUserId: 900,
  groups: [900],
  status: STATUS,
  environment: ["PATH", "LANG", "PWD"],
  seen: [],
  writable: [],
  descriptors: [4],
  processes: 2,
  codes: ["EACCES", "EACCES", "EACCES"],
};

test("a report of a sandbox that holds has no fault", () => {
  assert.equal(reportFault(GOOD, 900, TRIED), undefined);
});

test("a machine without IPv6 reaches nothing over it", () => {
  assert.equal(reportFault({ ...GOOD, codes: ["EACCES", "EAFNOSUPPORT", "EAFNOSUPPORT"] }, 900, TRIED), undefined);
});

for (const [what, change, expected] of [
  ["root", { userId: 0, effectiveUserId: 0 }, /runs as user 0/],
  ["another effective user", { effectiveUserId: 0 }, /runs as user/],
  ["a capability", { status: { ...STATUS, CapEff: "0000000000002000" } }, /capabilities \(CapEff/],
  ["a capability to be had", { status: { ...STATUS, CapBnd: "000001ffffffffff" } }, /capabilities \(CapBnd/],
  ["no status", { status: {} }, /capabilities/],
  ["new privileges", { status: { ...STATUS, NoNewPrivs: "0" } }, /gain privileges/],
  ["all system calls", { status: { ...STATUS, Seccomp: "0" } }, /not filtered/],
  ["root's group", { groups: [900, 0] }, /group of root/],
  ["the service's variables", { environment: ["PATH", "SVC_REPLICATION_ENCRYPT_KEY"] }, /SVC_REPLICATION_ENCRYPT_KEY/],
  ["a view of the data", { seen: ["/srv/data"] }, /sees \/srv\/data/],
  ["a place to write", { writable: ["/usr/written"] }, /write to \/usr\/written/],
  ["somebody's open file", { descriptors: [4, 251] }, /open file 251/],
  ["other processes", { processes: 90 }, /sees 90 processes/],
  ["a way to the metadata", { codes: ["", "EACCES", "EACCES"] }, /169\.254\.169\.254 port 80 can be reached over TCP/],
  ["a time-out instead of a no", { codes: ["ETIMEDOUT", "EACCES", "EACCES"] }, /is not refused by this machine/],
  ["no server there today", { codes: ["ECONNREFUSED", "EACCES", "EACCES"] }, /is not refused by this machine/],
  ["no route today", { codes: ["ENETUNREACH", "EACCES", "EACCES"] }, /is not refused by this machine/],
  ["a way by a mapped address", { codes: ["EACCES", "", "EACCES"] }, /::ffff:169\.254\.169\.254 .* over UDP/],
  ["a way over IPv6", { codes: ["EACCES", "EACCES", "ECONNREFUSED"] }, /fd00:ec2::254/],
  ["attempts left out", { codes: ["EACCES"] }, /is not refused/],
  ["half a report", { seen: undefined }, /not whole/],
] as const) {
  test(`a sandbox with ${what} is not taken`, () => {
    assert.match(reportFault({ ...GOOD, ...change }, 900, TRIED) ?? "no fault", expected);
  });
}

test("what is no report is a fault", () => {
  for (const report of [null, 1, "", []]) assert.notEqual(reportFault(report, 900, TRIED), undefined);
});
