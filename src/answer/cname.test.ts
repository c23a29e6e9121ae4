import assert from "node:assert/strict";
import { test } from "node:test";
import { negative, openLab, testAnswers, zone } from "../../tests/support/zone-lab.ts";

const RECORDS = `
www A 192.0.2.1
www TXT "text"
a 100 CNAME b
b 200 CNAME www
to-other CNAME www.other.test.
to-other-alias CNAME back.other.test.
to-nothing CNAME nothing
to-nothing-there CNAME nothing.other.test.
to-no-data CNAME mail
mail MX 10 www
to-outside CNAME www.outside.net.
to-cut CNAME x.cut
cut NS ns.elsewhere.net.
to-wild CNAME x.wild
*.wild CNAME y.wild2
*.wild2 A 192.0.2.2
to-ent CNAME ent
x.ent A 192.0.2.3
to-root CNAME .
to-apex CNAME @
@ A 192.0.2.4
one CNAME one
two1 CNAME two2
two2 CNAME two1
three1 CNAME three2
three2 CNAME three3
three3 CNAME three1
into-loop CNAME two1
*.growing CNAME x.y.growing
*.loop CNAME z.loop
to-upper CNAME WWW.EXAMPLE.TEST.
`;
const OTHER = zone("other.test.", "www A 198.51.100.1\nback CNAME www.example.test.\n");
const lab = openLab([zone("example.test.", RECORDS), OTHER]);

const alias = (owner: string, target: string, ttl = 300) => `answer ${owner} ${ttl} IN CNAME ${target}`;
const own = (owner: string, target: string, ttl = 300) =>
  alias(`${owner}.example.test.`, `${target}.example.test.`, ttl);
const WWW = "answer www.example.test. 300 IN A 192.0.2.1";
const SOA = negative("example.test.");

testAnswers(lab, [
  ["two links", "a.example.test. A", ["NOERROR aa", own("a", "b", 100), own("b", "www", 200), WWW]],
  [
    "another type at its end",
    "b.example.test. TXT",
    ["NOERROR aa", own("b", "www", 200), 'answer www.example.test. 300 IN TXT "text"'],
  ],
  [
    "a type that its end has not",
    "a.example.test. AAAA",
    ["NOERROR aa", own("a", "b", 100), own("b", "www", 200), SOA],
  ],
  ["CNAME asked for", "a.example.test. CNAME", ["NOERROR aa", own("a", "b", 100)]],
  ["ANY", "a.example.test. ANY", ["NOERROR aa", own("a", "b", 100)]],
  [
    "to another zone",
    "to-other.example.test. A",
    ["NOERROR aa", alias("to-other.example.test.", "www.other.test."), "answer www.other.test. 300 IN A 198.51.100.1"],
  ],
  [
    "to another zone and back",
    "to-other-alias.example.test. A",
    [
      "NOERROR aa",
      alias("to-other-alias.example.test.", "back.other.test."),
      alias("back.other.test.", "www.example.test."),
      WWW,
    ],
  ],
  [
    "to nothing: the last name's rcode (RFC 6604 section 3)",
    "to-nothing.example.test. A",
    ["NXDOMAIN aa", own("to-nothing", "nothing"), SOA],
  ],
  [
    "to nothing in another zone: that zone's SOA",
    "to-nothing-there.example.test. A",
    ["NXDOMAIN aa", alias("to-nothing-there.example.test.", "nothing.other.test."), negative("other.test.")],
  ],
  ["to NODATA", "to-no-data.example.test. A", ["NOERROR aa", own("to-no-data", "mail"), SOA]],
  ["to an empty non-terminal", "to-ent.example.test. A", ["NOERROR aa", own("to-ent", "ent"), SOA]],
  [
    "additional addresses at its end",
    "to-no-data.example.test. MX",
    [
      "NOERROR aa",
      own("to-no-data", "mail"),
      "answer mail.example.test. 300 IN MX 10 www.example.test.",
      "additional www.example.test. 300 IN A 192.0.2.1",
    ],
  ],
  [
    "out of our zones",
    "to-outside.example.test. A",
    ["NOERROR aa", alias("to-outside.example.test.", "www.outside.net.")],
  ],
  ["to the root, which is not ours", "to-root.example.test. A", ["NOERROR aa", alias("to-root.example.test.", ".")]],
  [
    "to the apex",
    "to-apex.example.test. A",
    ["NOERROR aa", alias("to-apex.example.test.", "example.test."), "answer example.test. 300 IN A 192.0.2.4"],
  ],
  [
    "to below a cut",
    "to-cut.example.test. A",
    ["NOERROR aa", own("to-cut", "x.cut"), "authority cut.example.test. 300 IN NS ns.elsewhere.net."],
  ],
  [
    "through wildcards",
    "to-wild.example.test. A",
    [
      "NOERROR aa",
      own("to-wild", "x.wild"),
      own("x.wild", "y.wild2"),
      "answer y.wild2.example.test. 300 IN A 192.0.2.2",
    ],
  ],
  ["a loop of one", "one.example.test. A", ["NOERROR aa", own("one", "one")]],
  ["a loop of two", "two1.example.test. A", ["NOERROR aa", own("two1", "two2"), own("two2", "two1")]],
  [
    "a loop of three",
    "three2.example.test. A",
    ["NOERROR aa", own("three2", "three3"), own("three3", "three1"), own("three1", "three2")],
  ],
  [
    "into a loop",
    "into-loop.example.test. A",
    ["NOERROR aa", own("into-loop", "two1"), own("two1", "two2"), own("two2", "two1")],
  ],
  [
    "a loop through a wildcard",
    "q.loop.example.test. A",
    ["NOERROR aa", own("q.loop", "z.loop"), own("z.loop", "z.loop")],
  ],
  [
    "a wildcard that leads to itself by another name",
    "q.growing.example.test. A",
    ["NOERROR aa", own("q.growing", "x.y.growing"), own("x.y.growing", "x.y.growing")],
  ],
]);

test("a target is found whatever its case", () => {
  const lines = lab.ask("to-upper.example.test. A");
  assert.equal(lines[0], "NOERROR aa");
  assert.match(lines[2] ?? "", /^answer www\.example\.test\. 300 IN A 192\.0\.2\.1$/i);
});

/** `length` links from `c0` on, then an address. */
function chain(length: number): string {
  const links = Array.from({ length }, (_, index) => `c${index} CNAME c${index + 1}\n`);
  return `${links.join("")}c${length} A 192.0.2.1\n`;
}

test("a chain of 16 links is followed to its end", () => {
  const lines = openLab([zone("example.test.", chain(16))]).ask("c0.example.test. A");
  assert.equal(lines.length, 1 + 16 + 1);
  assert.equal(lines.at(-1), "answer c16.example.test. 300 IN A 192.0.2.1");
});

test("a longer chain ends after 16 links", () => {
  const lines = openLab([zone("example.test.", chain(20))]).ask("c0.example.test. A");
  assert.equal(lines[0], "NOERROR aa");
  assert.equal(lines.length, 1 + 16);
  assert.equal(lines.at(-1), own("c15", "c16"));
});

test("AA speaks of the first owner, RD is copied, RA is not offered", () => {
  assert.equal(lab.ask("to-outside.example.test. A", { flags: 0x0100 })[0], "NOERROR aa rd");
  assert.equal(lab.ask("to-cut.example.test. A", { flags: 0x0100 })[0], "NOERROR aa rd");
});
