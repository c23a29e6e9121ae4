import assert from "node:assert/strict";
import { test } from "node:test";
import { addArguments, BLOCKING_RULES, missingRules, ownBlockedAddress } from "./blocked-addresses.ts";

/** As `ip -json rule show` of iproute2 6.1 tells them. */
const SHOWN = [
  { priority: 0, src: "all", table: "local" },
  {
    priority: 1,
    src: "all",
    dst: "169.254.0.0",
    dstlen: 16,
    uid_start: 900,
    uid_end: 900,
    action: "prohibit",
    protocol: "83",
  },
  ...["tcp", "udp"].flatMap((ipproto) =>
    [80, 32526].map((dport) => ({
      ...{ priority: 1, src: "all", dst: "168.63.129.16", uid_start: 900, uid_end: 900 },
      ...{ ipproto, dport, action: "prohibit", protocol: "83" },
    })),
  ),
  {
    priority: 1,
    src: "all",
    dst: "fe80::",
    dstlen: 10,
    uid_start: 900,
    uid_end: 900,
    action: "prohibit",
    protocol: "83",
  },
  { priority: 1, src: "all", dst: "fd00:ec2::254", uid_start: 900, uid_end: 900, action: "prohibit", protocol: "83" },
  { priority: 32766, src: "all", table: "main" },
];

test("all rules are found in a listing that has them", () => {
  assert.deepEqual(missingRules(BLOCKING_RULES, SHOWN, 900), []);
});

test("rules of another user block nothing", () => {
  assert.deepEqual(missingRules(BLOCKING_RULES, SHOWN, 901), BLOCKING_RULES);
});

test("each rule is missed by itself", () => {
  for (const [index, shown] of SHOWN.entries()) {
    if (shown.priority !== 1) continue;
    const rest = SHOWN.filter((_, other) => other !== index);
    assert.equal(missingRules(BLOCKING_RULES, rest, 900).length, 1);
  }
});

for (const [what, change] of [
  ["asks for a source", { src: "10.0.0.0", srclen: 8 }],
  ["asks for a mark", { fwmark: "0x1" }],
  ["asks for an interface", { iif: "lo" }],
  ["is turned around", { not: null }],
  ["comes too late", { priority: 40_000 }],
  ["leads somewhere", { action: "goto", goto: 9 }],
  ["is of more users", { uid_end: 901 }],
  ["has a narrower network", { dstlen: 24 }],
] as const) {
  test(`a rule that ${what} does not count`, () => {
    const shown = SHOWN.map((one) => (one.dst === "169.254.0.0" ? { ...one, ...change } : one));
    assert.deepEqual(missingRules(BLOCKING_RULES, shown, 900), [{ family: "ipv4", network: "169.254.0.0/16" }]);
  });
}

test("rules are added for one user, one protocol and one port", () => {
  const rule = { family: "ipv4", network: "168.63.129.16/32", protocol: "udp", port: 80 } as const;
  assert.equal(
    addArguments(rule, 900).join(" "),
    "-4 rule add pref 1 uidrange 900-900 to 168.63.129.16/32 ipproto udp dport 80 protocol 83 prohibit",
  );
});

for (const [address, isBlocked] of [
  ["169.254.20.10", true],
  ["168.63.129.16", true],
  ["fd00:ec2::254", true],
  ["fe80::1", false],
  ["fe80::1%eth0", false],
  ["169.253.255.255", false],
  ["168.63.129.17", false],
  ["fd00:ec2::253", false],
  ["127.0.0.1", false],
] as const) {
  test(`${address} as an address of this machine ${isBlocked ? "stops" : "does not stop"} scripts`, () => {
    assert.equal(ownBlockedAddress(["10.0.0.1", address]), isBlocked ? address : undefined);
  });
}
