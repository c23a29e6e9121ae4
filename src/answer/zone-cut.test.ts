import assert from "node:assert/strict";
import { test } from "node:test";
import { negative, openLab, testAnswers, zone } from "../../tests/support/zone-lab.ts";
import { TRANSPORT } from "../image/counters.ts";

const RECORDS = `
in NS ns.in
in NS ns2.deeper.in
ns.in A 192.0.2.1
ns.in AAAA 2001:db8::1
ns2.deeper.in A 192.0.2.2
hidden.in A 192.0.2.99
below.in NS ns.below.in
ns.below.in A 192.0.2.98
alias.in CNAME www
sibling NS ns.in
sibling NS ns1
none NS ns.elsewhere.net.
self NS self
self A 192.0.2.3
self TXT "occluded"
*.wildbelow.none A 192.0.2.97
www A 192.0.2.4
to-cut CNAME x.none
held NS ns.elsewhere.net.
`;
const HELD = zone("held.example.test.", "www A 192.0.2.5\n");
const lab = openLab([zone("example.test.", RECORDS), HELD]);

const IN = [
  "NOERROR",
  "authority in.example.test. 300 IN NS ns.in.example.test.",
  "authority in.example.test. 300 IN NS ns2.deeper.in.example.test.",
  "additional ns.in.example.test. 300 IN A 192.0.2.1",
  "additional ns.in.example.test. 300 IN AAAA 2001:db8::1",
  "additional ns2.deeper.in.example.test. 300 IN A 192.0.2.2",
];
const SIBLING = [
  "NOERROR",
  "authority sibling.example.test. 300 IN NS ns.in.example.test.",
  "authority sibling.example.test. 300 IN NS ns1.example.test.",
  "additional ns.in.example.test. 300 IN A 192.0.2.1",
  "additional ns.in.example.test. 300 IN AAAA 2001:db8::1",
  "additional ns1.example.test. 300 IN A 192.0.2.53",
];
const NONE = ["NOERROR", "authority none.example.test. 300 IN NS ns.elsewhere.net."];
const SELF = [
  "NOERROR",
  "authority self.example.test. 300 IN NS self.example.test.",
  "additional self.example.test. 300 IN A 192.0.2.3",
];

testAnswers(lab, [
  ["in-domain glue", "www.in.example.test. A", IN],
  ["NS at the cut", "in.example.test. NS", IN],
  ["A at the cut", "in.example.test. A", IN],
  ["SOA at the cut", "in.example.test. SOA", IN],
  ["ANY at the cut", "in.example.test. ANY", IN],
  ["glue is no answer", "ns.in.example.test. A", IN],
  ["records below the cut are hidden", "hidden.in.example.test. A", IN],
  ["an alias below the cut is hidden", "alias.in.example.test. A", IN],
  ["a cut below the cut is hidden", "x.below.in.example.test. A", IN],
  ["DS below the cut is the child's", "x.in.example.test. DS", IN],
  ["glue from another cut and from the zone itself", "x.sibling.example.test. A", SIBLING],
  ["no glue", "a.b.c.none.example.test. A", NONE],
  ["no wildcard below the cut", "x.wildbelow.none.example.test. A", NONE],
  ["CNAME at the cut", "none.example.test. CNAME", NONE],
  ["the name server is the cut", "x.self.example.test. A", SELF],
  ["other records at the cut are hidden", "self.example.test. TXT", SELF],
  ["DS at the cut is the parent's", "in.example.test. DS", ["NOERROR aa", negative("example.test.")]],
  ["upper case", "WWW.NONE.example.test. A", ["NOERROR", "authority NONE.example.test. 300 IN NS ns.elsewhere.net."]],
  [
    "an alias that leads below the cut ends with the referral",
    "to-cut.example.test. A",
    ["NOERROR aa", "answer to-cut.example.test. 300 IN CNAME x.none.example.test.", ...NONE.slice(1)],
  ],
  [
    "the child is held here too",
    "www.held.example.test. A",
    ["NOERROR aa", "answer www.held.example.test. 300 IN A 192.0.2.5"],
  ],
  [
    "NS of a child that is held here too",
    "held.example.test. NS",
    [
      "NOERROR aa",
      "answer held.example.test. 300 IN NS ns1.held.example.test.",
      "additional ns1.held.example.test. 300 IN A 192.0.2.53",
    ],
  ],
  [
    "DS at the apex of a child that is held here too",
    "held.example.test. DS",
    ["NOERROR aa", negative("example.test.")],
  ],
  ["DS below that apex", "www.held.example.test. DS", ["NOERROR aa", negative("held.example.test.")]],
  ["DS at an apex whose parent is not held", "example.test. DS", ["NOERROR aa", negative("example.test.")]],
]);

/** `count` name servers with long names below the cut, each with two addresses. */
function bigCut(count: number): string {
  const names = Array.from({ length: count }, (_, index) => `${"n".repeat(40)}${index}.big`);
  return names.map((name) => `big NS ${name}\n${name} A 192.0.2.1\n${name} AAAA 2001:db8::1\n`).join("");
}

test("a referral whose in-domain glue does not fit has TC (RFC 9471 section 3.1)", () => {
  const { message } = openLab([zone("example.test.", bigCut(8))]);
  const udp = message("www.big.example.test. A", { edns: false });
  assert.equal(udp.flags & 0x0200, 0x0200);
  const tcp = message("www.big.example.test. A", { transport: TRANSPORT.TCP });
  assert.equal(tcp.flags & 0x0200, 0);
  assert.equal(tcp.authorities.length, 8);
  assert.equal(tcp.additionals.length, 16);
});

test("in-domain glue is complete, however many name servers there are", () => {
  const { message } = openLab([zone("example.test.", bigCut(40))]);
  assert.equal(message("www.big.example.test. A", { transport: TRANSPORT.TCP }).additionals.length, 80);
});

test("a referral whose sibling glue does not fit goes without it", () => {
  const text = bigCut(6).replaceAll(/^big NS/gm, "small NS");
  const { message } = openLab([zone("example.test.", text)]);
  const udp = message("www.small.example.test. A", { edns: false });
  assert.equal(udp.flags & 0x0200, 0);
  assert.equal(udp.authorities.length, 6);
  assert(udp.additionals.length > 0 && udp.additionals.length < 12);
});

test("what is needed of the glue comes before what only helps", () => {
  const names = Array.from({ length: 6 }, (_, index) => `${"n".repeat(40)}${index}`);
  const helpers = names.map((name) => `cut NS ${name}\n${name} A 192.0.2.1\n${name} AAAA 2001:db8::1\n`).join("");
  const { message } = openLab([zone("example.test.", `${helpers}cut NS ns.cut\nns.cut A 192.0.2.7\n`)]);
  const { flags, additionals } = message("cut.example.test. A", { edns: false });
  assert.equal(flags & 0x0200, 0);
  assert.deepEqual([...additionals[0]!.rdata], [192, 0, 2, 7]);
});
