import assert from "node:assert/strict";
import { test } from "node:test";
import { negative, openLab, testAnswers, zone } from "../../tests/support/zone-lab.ts";

const lab = openLab([zone("example.test.", "www A 192.0.2.1\na.b.c A 192.0.2.2\n")]);

testAnswers(lab, [
  ["a type that the name has not", "www.example.test. AAAA", ["NOERROR aa", negative("example.test.")]],
  ["a type that no zone holds", "www.example.test. TYPE65400", ["NOERROR aa", negative("example.test.")]],
  ["DNSSEC's types are types like others", "www.example.test. DNSKEY", ["NOERROR aa", negative("example.test.")]],
  ["at the apex", "example.test. MX", ["NOERROR aa", negative("example.test.")]],
  ["QTYPE 0 is a type without data", "www.example.test. TYPE0", ["NOERROR aa", negative("example.test.")]],
  [
    "our own type of ALIAS is not seen outside",
    "www.example.test. TYPE65401",
    ["NOERROR aa", negative("example.test.")],
  ],
  ["no such name", "nope.example.test. A", ["NXDOMAIN aa", negative("example.test.")]],
  ["below a name with records", "x.www.example.test. A", ["NXDOMAIN aa", negative("example.test.")]],
  ["beside an empty non-terminal", "x.b.c.example.test. A", ["NXDOMAIN aa", negative("example.test.")]],
  ["the apex' first label is no name of its own", "test.example.test. A", ["NXDOMAIN aa", negative("example.test.")]],
]);

/** RFC 2308 section 3: the TTL of the SOA in a negative answer is the smaller of its own and its MINIMUM. */
const TTLS = [
  { soaTtl: 300, minimum: 60, expected: 60 },
  { soaTtl: 60, minimum: 300, expected: 60 },
  { soaTtl: 90, minimum: 90, expected: 90 },
  { soaTtl: 300, minimum: 0, expected: 0 },
  { soaTtl: 0, minimum: 300, expected: 0 },
  { soaTtl: 2147483647, minimum: 4294967295, expected: 2147483647 },
] as const;

for (const { soaTtl, minimum, expected } of TTLS) {
  test(`SOA with TTL ${soaTtl} and MINIMUM ${minimum}: a negative answer lives for ${expected} s, the SOA for its TTL`, () => {
    const soa = (ttl: number) => `t. ${ttl} IN SOA ns.t. h.t. 7 1 1 1 ${minimum}`;
    const { ask } = openLab([`${soa(soaTtl)}\nt. 5 NS ns.t.\n`]);
    assert.deepEqual(ask("x.t. A"), ["NXDOMAIN aa", `authority ${soa(expected)}`]);
    assert.deepEqual(ask("t. A"), ["NOERROR aa", `authority ${soa(expected)}`]);
    assert.deepEqual(ask("t. SOA"), ["NOERROR aa", `answer ${soa(soaTtl)}`]);
  });
}
