import assert from "node:assert/strict";
import { test } from "node:test";
import { negative, openLab, testAnswers, zone } from "../../tests/support/zone-lab.ts";
import { CLASS, FLAG } from "../dns/codes.ts";
import { TRANSPORT } from "../image/counters.ts";

const ZONE = zone(
  "example.test.",
  `
www A 192.0.2.1
www AAAA 2001:db8::1
to-www CNAME www
to-partner CNAME db.partner.example.
to-old CNAME old
old CNAME gone.far.example.
mail MX 10 mx
mail MX 20 mx2
mx A 192.0.2.3
mx2 A 192.0.2.4
mx2 AAAA 2001:db8::4
alias ALIAS db.partner.example.
alias-own ALIAS www
wild.alias ALIAS v6.partner.example.
*.w A 192.0.2.5
@ MX 10 mx.sub
sub NS ns.sub
ns.sub A 192.0.2.6
`,
);

const OVERRIDES = `
db.partner.example. 60 A 10.0.0.9
db.partner.example. 60 A 10.0.0.10
db.partner.example. 60 MX 5 mail.partner.example.
db.partner.example. 60 MX 7 mx.example.test.
mail.partner.example. 60 A 10.0.0.11
zero.partner.example. 0 TXT "not for caches"
v6.partner.example. AAAA 2001:db8::9
chain.partner.example. CNAME www.example.test.
out.partner.example. CNAME www.elsewhere.net.
loop1.partner.example. CNAME loop2.partner.example.
loop2.partner.example. CNAME loop1.partner.example.
alias.partner.example. 90 ALIAS db.partner.example.
alias-far.partner.example. ALIAS www.elsewhere.net.
alias-loop.partner.example. ALIAS alias-loop.partner.example.
*.star.partner.example. A 10.0.0.12
www.example.test. 60 A 10.0.0.1
old.example.test. 60 A 10.0.0.2
mx.example.test. 60 A 10.0.0.3
new.example.test. 60 A 10.0.0.4
x.sub.example.test. 60 A 10.0.0.5
ns.sub.example.test. 60 A 10.0.0.6
x.w.example.test. 60 TXT "only this"
. 60 TXT "root"
`;

const lab = openLab([ZONE]);
lab.override(OVERRIDES);

const made = (name: string) => `authority ${name} 30 IN SOA . nobody.invalid. 1 3600 600 86400 30`;
const DB = ["10.0.0.9", "10.0.0.10"].map((address) => `answer db.partner.example. 60 IN A ${address}`);
const SOA = negative("example.test.");
const WWW = "answer www.example.test. 60 IN A 10.0.0.1";
const own = (owner: string, target: string) => `answer ${owner}.example.test. 300 IN CNAME ${target}`;
const partner = (owner: string, target: string) => `answer ${owner}.partner.example. 300 IN CNAME ${target}`;

testAnswers(lab, [
  ["all values, with AA", "db.partner.example. A", ["NOERROR aa", ...DB]],
  [
    "any case of letters",
    "DB.Partner.Example. A",
    ["NOERROR aa", ...DB.map((line) => line.replace("db.partner.example", "DB.Partner.Example"))],
  ],
  ["another type", "db.partner.example. AAAA", ["NOERROR aa", made("db.partner.example.")]],
  ["DS", "db.partner.example. DS", ["NOERROR aa", made("db.partner.example.")]],
  [
    "a TTL of 0 stays",
    "zero.partner.example. TXT",
    ["NOERROR aa", 'answer zero.partner.example. 0 IN TXT "not for caches"'],
  ],
  ["a name below", "x.db.partner.example. A", ["REFUSED ede=20"]],
  ["a name above", "partner.example. A", ["REFUSED ede=20"]],
  ["the root", ". TXT", ["NOERROR aa", 'answer . 60 IN TXT "root"']],
  ["the root, another type", ". NS", ["NOERROR aa", made(".")]],
  [
    "an asterisk stands for itself",
    "*.star.partner.example. A",
    ["NOERROR aa", "answer *.star.partner.example. 60 IN A 10.0.0.12".replace(" 60 ", " 300 ")],
  ],
  ["an asterisk stands for no other name", "x.star.partner.example. A", ["REFUSED ede=20"]],
  [
    "additional addresses are those of overrides only",
    "db.partner.example. MX",
    [
      "NOERROR aa",
      "answer db.partner.example. 60 IN MX 5 mail.partner.example.",
      "answer db.partner.example. 60 IN MX 7 mx.example.test.",
      "additional mail.partner.example. 60 IN A 10.0.0.11",
      "additional mx.example.test. 60 IN A 10.0.0.3",
    ],
  ],

  ["over a record of a zone", "www.example.test. A", ["NOERROR aa", WWW]],
  ["the zone's other types are hidden, its SOA is told", "www.example.test. AAAA", ["NOERROR aa", SOA]],
  [
    "a name that the zone does not have",
    "new.example.test. A",
    ["NOERROR aa", "answer new.example.test. 60 IN A 10.0.0.4"],
  ],
  ["below a cut", "x.sub.example.test. A", ["NOERROR aa", "answer x.sub.example.test. 60 IN A 10.0.0.5"]],
  [
    "beside it below the cut",
    "y.sub.example.test. A",
    [
      "NOERROR",
      "authority sub.example.test. 300 IN NS ns.sub.example.test.",
      "additional ns.sub.example.test. 60 IN A 10.0.0.6",
    ],
  ],
  ["in place of a wildcard", "x.w.example.test. A", ["NOERROR aa", SOA]],
  ["beside it the wildcard", "y.w.example.test. A", ["NOERROR aa", "answer y.w.example.test. 300 IN A 192.0.2.5"]],
  ["over a CNAME", "old.example.test. A", ["NOERROR aa", "answer old.example.test. 60 IN A 10.0.0.2"]],
  ["over a CNAME, which is hidden", "old.example.test. CNAME", ["NOERROR aa", SOA]],

  [
    "a CNAME of a zone to an override",
    "to-partner.example.test. A",
    ["NOERROR aa", own("to-partner", "db.partner.example."), ...DB],
  ],
  [
    "and another type there",
    "to-partner.example.test. AAAA",
    ["NOERROR aa", own("to-partner", "db.partner.example."), made("db.partner.example.")],
  ],
  [
    "a CNAME to an overridden name of the zone",
    "to-www.example.test. A",
    ["NOERROR aa", own("to-www", "www.example.test."), WWW],
  ],
  [
    "a CNAME to an overridden CNAME",
    "to-old.example.test. A",
    ["NOERROR aa", own("to-old", "old.example.test."), "answer old.example.test. 60 IN A 10.0.0.2"],
  ],
  [
    "an override's CNAME into a zone",
    "chain.partner.example. A",
    ["NOERROR aa", partner("chain", "www.example.test."), WWW],
  ],
  [
    "an override's CNAME asked for",
    "chain.partner.example. CNAME",
    ["NOERROR aa", partner("chain", "www.example.test.")],
  ],
  [
    "an override's CNAME out of our zones",
    "out.partner.example. A",
    ["NOERROR aa", partner("out", "www.elsewhere.net.")],
  ],
  [
    "overrides in a circle",
    "loop1.partner.example. A",
    ["NOERROR aa", partner("loop1", "loop2.partner.example."), partner("loop2", "loop1.partner.example.")],
  ],

  [
    "an ALIAS of a zone to an override",
    "alias.example.test. A",
    ["NOERROR aa", "answer alias.example.test. 60 IN A 10.0.0.9", "answer alias.example.test. 60 IN A 10.0.0.10"],
  ],
  ["an ALIAS to an override without such addresses", "alias.example.test. AAAA", ["NOERROR aa", SOA]],
  [
    "an ALIAS to an overridden name of its zone",
    "alias-own.example.test. A",
    ["NOERROR aa", "answer alias-own.example.test. 60 IN A 10.0.0.1"],
  ],
  [
    "an ALIAS to IPv6 addresses",
    "wild.alias.example.test. AAAA",
    ["NOERROR aa", "answer wild.alias.example.test. 300 IN AAAA 2001:db8::9"],
  ],
  [
    "an override's ALIAS",
    "alias.partner.example. A",
    ["NOERROR aa", "answer alias.partner.example. 60 IN A 10.0.0.9", "answer alias.partner.example. 60 IN A 10.0.0.10"],
  ],
  [
    "an override's ALIAS without such addresses",
    "alias.partner.example. AAAA",
    ["NOERROR aa", made("alias.partner.example.")],
  ],
  [
    "an override's ALIAS has no other types",
    "alias.partner.example. TXT",
    ["NOERROR aa", made("alias.partner.example.")],
  ],
  ["an override's ALIAS out of our zones", "alias-far.partner.example. A", ["SERVFAIL ede=22"]],
  ["an override's ALIAS to itself", "alias-loop.partner.example. A", ["SERVFAIL ede=22"]],

  [
    "additional addresses of a zone's records",
    "mail.example.test. MX",
    [
      "NOERROR aa",
      "answer mail.example.test. 300 IN MX 10 mx.example.test.",
      "answer mail.example.test. 300 IN MX 20 mx2.example.test.",
      "additional mx.example.test. 60 IN A 10.0.0.3",
      "additional mx2.example.test. 300 IN A 192.0.2.4",
      "additional mx2.example.test. 300 IN AAAA 2001:db8::4",
    ],
  ],
]);

test("ANY gets one RRset", () => {
  const lines = lab.ask("db.partner.example. ANY");
  assert.equal(lines[0], "NOERROR aa");
  assert.match(lines[1]!, /^answer db\.partner\.example\. 60 IN /);
  assert.deepEqual(lab.ask("alias.partner.example. ANY").length, 3);
});

test("class ANY is not answered with AA, other classes not at all", () => {
  assert.deepEqual(lab.ask("db.partner.example. A", { class: CLASS.ANY }), ["NOERROR", ...DB]);
  assert.deepEqual(lab.ask("db.partner.example. A", { class: 4 }), ["REFUSED"]);
});

test("an override comes before whoever forwards", () => {
  const forwarding = openLab([ZONE], { answerer: { forwards: true } });
  forwarding.route(".", 77);
  forwarding.override(OVERRIDES);
  for (const name of [
    "db.partner.example.",
    "to-partner.example.test.",
    "x.sub.example.test.",
    "alias.example.test.",
  ]) {
    forwarding.ask(`${name} A`, { flags: FLAG.RD });
    forwarding.ask(`${name} AAAA`, { flags: FLAG.RD });
  }
  assert.equal(forwarding.lack("x.db.partner.example. A", { flags: FLAG.RD }), "77 x.db.partner.example. A 0");
});

test("what does not fit is truncated", () => {
  const many = openLab([]);
  many.override(Array.from({ length: 200 }, (_, index) => `many.example. A 10.0.1.${index}`).join("\n"));
  assert.deepEqual(many.ask("many.example. A"), ["NOERROR aa tc"]);
  assert.equal(many.ask("many.example. A", { transport: TRANSPORT.TCP }).length, 201);
});

test("without its override a name is what it was, with its additional addresses", () => {
  const one = openLab([ZONE]);
  const questions = [
    "www.example.test. A",
    "mail.example.test. MX",
    "db.partner.example. A",
    "to-partner.example.test. A",
  ];
  const ask = () => questions.map((question) => one.ask(question));
  const before = ask();
  one.override(OVERRIDES);
  assert.notDeepEqual(ask(), before);
  one.override("");
  assert.deepEqual(ask(), before);
});

test("a name server below a cut gets no wildcard's address, whatever the one override is for", () => {
  const { ask, override } = openLab(["t. 5 SOA a.t. h.elsewhere. 1 2 3 4 1\na.t. 1 NS a.b.a.t.\n*.t. 1 A 192.0.2.1\n"]);
  override("t. 1 A 192.0.2.1\n");
  const referral = ["NOERROR", "authority a.t. 1 IN NS a.b.a.t."];
  assert.deepEqual(ask("a.t. A", { transport: TRANSPORT.TCP }), referral);
  // The labels that the answer before left behind are those of a longer name.
  ask("t. A", { transport: TRANSPORT.TCP });
  assert.deepEqual(ask("a.t. A", { transport: TRANSPORT.TCP }), referral);
});

test("an override at the apex of a zone leaves SOA to the zone, and NS where it has none of its own", () => {
  const { ask, override } = openLab([
    "t. 5 SOA a.t. h.t. 1 2 3 4 1\nt. 1 NS a.t.\nt. 1 MX 1 a.t.\nto.t. 1 CNAME t.\n",
    "sub.t. 5 SOA a.t. h.t. 1 2 3 4 1\n",
  ]);
  const soa = "SOA a.t. h.t. 1 2 3 4 1";
  const none = ["NOERROR aa", `authority t. 1 IN ${soa}`];
  override("t. 1 A 10.0.0.1\nsub.t. 1 CNAME t.\nwww.t. 1 A 10.0.0.2\n");
  assert.deepEqual(ask("t. A"), ["NOERROR aa", "answer t. 1 IN A 10.0.0.1"]);
  assert.deepEqual(ask("t. MX"), none);
  assert.deepEqual(ask("t. SOA"), ["NOERROR aa", `answer t. 5 IN ${soa}`]);
  assert.deepEqual(ask("t. NS"), ["NOERROR aa", "answer t. 1 IN NS a.t."]);
  assert.deepEqual(ask("to.t. SOA"), ["NOERROR aa", "answer to.t. 1 IN CNAME t.", `answer t. 5 IN ${soa}`]);
  assert.deepEqual(ask("sub.t. SOA"), ["NOERROR aa", `answer sub.t. 5 IN ${soa}`]);
  assert.deepEqual(ask("sub.t. NS"), ["NOERROR aa", "answer sub.t. 5 IN NS a.t."]);
  assert.deepEqual(ask("sub.t. A"), ["NOERROR aa", "answer sub.t. 1 IN CNAME t.", "answer t. 1 IN A 10.0.0.1"]);
  assert.deepEqual(ask("www.t. SOA"), none);
  override("t. 1 NS b.t.\n");
  assert.deepEqual(ask("t. NS"), ["NOERROR aa", "answer t. 1 IN NS b.t."]);
});
