import assert from "node:assert/strict";
import { test } from "node:test";
import { openLab, testAnswers, zone } from "../../tests/support/zone-lab.ts";

const RECORDS = `
mx MX 10 both
mx MX 20 v6
both A 192.0.2.1
both A 192.0.2.2
both AAAA 2001:db8::1
v6 AAAA 2001:db8::6
_s._tcp SRV 1 1 80 both
_s._tcp SRV 2 1 81 both
_s._tcp SRV 3 1 82 v6
twice MX 10 both
twice MX 20 both
outside MX 10 mx.outside.net.
elsewhere MX 10 mail.other.test.
wild MX 10 x.wild
wild MX 20 y.wild
*.wild A 192.0.2.9
nothing MX 10 missing
null MX 0 .
alias MX 10 cname
cname CNAME both
itself MX 10 itself
itself A 192.0.2.7
ptr PTR both
apex-target MX 10 @
glued MX 10 ns.cut
cut NS ns.cut
ns.cut A 192.0.2.66
`;
const lab = openLab([zone("example.test.", RECORDS), zone("other.test.", "mail A 198.51.100.1\n")]);

const answer = (owner: string, rest: string) => `answer ${owner}.example.test. 300 IN ${rest}`;
const BOTH = [
  "additional both.example.test. 300 IN A 192.0.2.1",
  "additional both.example.test. 300 IN A 192.0.2.2",
  "additional both.example.test. 300 IN AAAA 2001:db8::1",
];
const V6 = "additional v6.example.test. 300 IN AAAA 2001:db8::6";

testAnswers(lab, [
  [
    "MX",
    "mx.example.test. MX",
    ["NOERROR aa", answer("mx", "MX 10 both.example.test."), answer("mx", "MX 20 v6.example.test."), ...BOTH, V6],
  ],
  [
    "SRV, each target once",
    "_s._tcp.example.test. SRV",
    [
      "NOERROR aa",
      answer("_s._tcp", "SRV 1 1 80 both.example.test."),
      answer("_s._tcp", "SRV 2 1 81 both.example.test."),
      answer("_s._tcp", "SRV 3 1 82 v6.example.test."),
      ...BOTH,
      V6,
    ],
  ],
  [
    "NS of the apex",
    "example.test. NS",
    [
      "NOERROR aa",
      "answer example.test. 300 IN NS ns1.example.test.",
      "additional ns1.example.test. 300 IN A 192.0.2.53",
    ],
  ],
  [
    "each target once",
    "twice.example.test. MX",
    ["NOERROR aa", answer("twice", "MX 10 both.example.test."), answer("twice", "MX 20 both.example.test."), ...BOTH],
  ],
  ["a target that is not ours", "outside.example.test. MX", ["NOERROR aa", answer("outside", "MX 10 mx.outside.net.")]],
  [
    "a target in another zone of ours comes without its address",
    "elsewhere.example.test. MX",
    ["NOERROR aa", answer("elsewhere", "MX 10 mail.other.test.")],
  ],
  [
    "two names from one wildcard",
    "wild.example.test. MX",
    [
      "NOERROR aa",
      answer("wild", "MX 10 x.wild.example.test."),
      answer("wild", "MX 20 y.wild.example.test."),
      "additional x.wild.example.test. 300 IN A 192.0.2.9",
      "additional y.wild.example.test. 300 IN A 192.0.2.9",
    ],
  ],
  [
    "a target that does not exist",
    "nothing.example.test. MX",
    ["NOERROR aa", answer("nothing", "MX 10 missing.example.test.")],
  ],
  ["the null MX (RFC 7505)", "null.example.test. MX", ["NOERROR aa", answer("null", "MX 0 .")]],
  ["a target that is a CNAME", "alias.example.test. MX", ["NOERROR aa", answer("alias", "MX 10 cname.example.test.")]],
  [
    "the owner itself",
    "itself.example.test. MX",
    [
      "NOERROR aa",
      answer("itself", "MX 10 itself.example.test."),
      "additional itself.example.test. 300 IN A 192.0.2.7",
    ],
  ],
  ["PTR has none", "ptr.example.test. PTR", ["NOERROR aa", answer("ptr", "PTR both.example.test.")]],
  [
    "the apex as target, without addresses",
    "apex-target.example.test. MX",
    ["NOERROR aa", answer("apex-target", "MX 10 example.test.")],
  ],
]);

test("glue is additional data as well (RFC 1034 section 4.3.2 step 6)", () => {
  const lines = lab.ask("glued.example.test. MX");
  assert.deepEqual(lines, [
    "NOERROR aa",
    answer("glued", "MX 10 ns.cut.example.test."),
    "additional ns.cut.example.test. 300 IN A 192.0.2.66",
  ]);
});

test("what does not fit is left off without TC", () => {
  const targets = Array.from({ length: 20 }, (_, index) => `m MX ${index} t${index}\nt${index} A 192.0.2.1\n`).join("");
  const { message } = openLab([zone("example.test.", targets)]);
  const { flags, answers, additionals } = message("m.example.test. MX", { edns: false });
  assert.equal(answers.length, 20);
  assert(additionals.length > 0 && additionals.length < 20);
  assert.equal(flags & 0x0200, 0);
});

test("at most 64 address RRsets are added", () => {
  const targets = Array.from({ length: 70 }, (_, index) => `m MX ${index} t${index}\nt${index} A 192.0.2.1\n`).join("");
  const { message } = openLab([zone("example.test.", targets)]);
  assert.equal(message("m.example.test. MX", { transport: 1 }).additionals.length, 64);
});
