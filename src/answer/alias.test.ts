import assert from "node:assert/strict";
import { test } from "node:test";
import { negative, openLab, testAnswers, zone } from "../../tests/support/zone-lab.ts";
import { TRANSPORT } from "../image/counters.ts";

const RECORDS = `
www 120 A 192.0.2.1
www 120 A 192.0.2.2
www 400 AAAA 2001:db8::1
v4 A 192.0.2.3
in-zone ALIAS www
short 50 ALIAS www
to-v4 ALIAS v4
other ALIAS www.other.test.
via-cname ALIAS cname
cname 80 CNAME www
via-alias ALIAS short
three ALIAS via-alias
loop1 ALIAS loop2
loop2 ALIAS loop1
self ALIAS self
cname-loop ALIAS cl
cl CNAME cl
cname-to-alias CNAME in-zone
nothing ALIAS missing
no-data ALIAS mail
mail MX 10 www
outside ALIAS www.outside.net.
outside-later ALIAS outside-cname
outside-cname CNAME www.outside.net.
below-cut ALIAS x.cut
cut NS ns.elsewhere.net.
*.wild ALIAS www
to-wild ALIAS x.wild
cross ALIAS hop.other.test.
`;
const OTHER = zone(
  "other.test.",
  "@ ALIAS www.example.test.\nwww 7 A 198.51.100.1\nhop CNAME sub.hop2\nsub.hop2 ALIAS www\n",
);
const lab = openLab([zone("example.test.", RECORDS), OTHER]);

const a = (owner: string, ttl: number) => [
  `answer ${owner} ${ttl} IN A 192.0.2.1`,
  `answer ${owner} ${ttl} IN A 192.0.2.2`,
];
const NODATA = ["NOERROR aa", negative("example.test.")];
const FAILED = ["SERVFAIL ede=22"];

testAnswers(lab, [
  ["in the zone, with the smaller TTL", "in-zone.example.test. A", ["NOERROR aa", ...a("in-zone.example.test.", 120)]],
  ["AAAA", "in-zone.example.test. AAAA", ["NOERROR aa", "answer in-zone.example.test. 300 IN AAAA 2001:db8::1"]],
  ["the ALIAS' own TTL is smaller", "short.example.test. A", ["NOERROR aa", ...a("short.example.test.", 50)]],
  ["in another zone", "other.example.test. A", ["NOERROR aa", "answer other.example.test. 7 IN A 198.51.100.1"]],
  [
    "over names of another zone that end in its apex",
    "cross.example.test. A",
    ["NOERROR aa", "answer cross.example.test. 7 IN A 198.51.100.1"],
  ],
  ["at an apex", "other.test. A", ["NOERROR aa", ...a("other.test.", 120)]],
  [
    "over a CNAME, whose TTL is the smallest",
    "via-cname.example.test. A",
    ["NOERROR aa", ...a("via-cname.example.test.", 80)],
  ],
  [
    "over an ALIAS, whose TTL is the smallest",
    "via-alias.example.test. A",
    ["NOERROR aa", ...a("via-alias.example.test.", 50)],
  ],
  ["over two", "three.example.test. A", ["NOERROR aa", ...a("three.example.test.", 50)]],
  ["a type other than addresses", "in-zone.example.test. MX", NODATA],
  ["ALIAS is no type that can be asked for", "in-zone.example.test. TYPE65401", NODATA],
  ["the target has the other address type only", "to-v4.example.test. AAAA", NODATA],
  ["the target has no addresses", "no-data.example.test. A", NODATA],
  ["the target does not exist", "nothing.example.test. A", NODATA],
  ["a circle of two", "loop1.example.test. A", FAILED],
  ["a circle of one", "self.example.test. A", FAILED],
  ["into a circle of CNAMEs", "cname-loop.example.test. A", FAILED],
  ["the target is not ours", "outside.example.test. A", FAILED],
  ["the target's target is not ours", "outside-later.example.test. A", FAILED],
  ["the target lies below a cut", "below-cut.example.test. A", FAILED],
  ["synthesised from a wildcard", "x.y.wild.example.test. A", ["NOERROR aa", ...a("x.y.wild.example.test.", 120)]],
  ["to a name that is synthesised", "to-wild.example.test. A", ["NOERROR aa", ...a("to-wild.example.test.", 120)]],
  [
    "at the end of a CNAME",
    "cname-to-alias.example.test. A",
    [
      "NOERROR aa",
      "answer cname-to-alias.example.test. 300 IN CNAME in-zone.example.test.",
      ...a("in-zone.example.test.", 120),
    ],
  ],
  [
    "the apex with an ALIAS still has its SOA",
    "other.test. SOA",
    ["NOERROR aa", "answer other.test. 300 IN SOA ns1.other.test. hostmaster.other.test. 1 7200 900 1209600 60"],
  ],
  [
    "ANY at an apex with an ALIAS shows one of its other RRsets",
    "other.test. ANY",
    ["NOERROR aa", "answer other.test. 300 IN NS ns1.other.test.", "additional ns1.other.test. 300 IN A 192.0.2.53"],
  ],
]);

test("ANY where there is nothing but an ALIAS gets the addresses that A gets", () => {
  const answer = lab.ask("in-zone.example.test. ANY");
  assert(answer.length > 1);
  assert.deepEqual(answer, lab.ask("in-zone.example.test. A"));
});

test("NODATA of an ALIAS into another zone has the SOA of the zone that was asked", () => {
  assert.deepEqual(lab.ask("other.example.test. AAAA"), NODATA);
});

test("an ALIAS whose addresses do not fit is truncated", () => {
  const addresses = Array.from({ length: 40 }, (_, index) => `many A 192.0.2.${index}\n`).join("");
  const { ask } = openLab([zone("example.test.", `${addresses}alias 9 ALIAS many\n`)]);
  assert.deepEqual(ask("alias.example.test. A", { edns: false }), ["NOERROR aa tc"]);
  const whole = ask("alias.example.test. A", { transport: TRANSPORT.TCP });
  assert.deepEqual(
    whole.slice(1),
    Array.from({ length: 40 }, (_, index) => `answer alias.example.test. 9 IN A 192.0.2.${index}`),
  );
});
