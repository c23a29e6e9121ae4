import assert from "node:assert/strict";
import { test } from "node:test";
import { openLab, queryBytes, type ZoneLab, zone } from "../../tests/support/zone-lab.ts";

const RECORDS = `
www A 192.0.2.1
out CNAME www.outside.net.
out2 CNAME out
wild CNAME x.cut
cut NS ns.elsewhere.net.
alias ALIAS www.outside.net.
alias-cname ALIAS out
to-alias CNAME alias
below-cut ALIAS x.cut
mx MX 10 mail.outside.net.
loop CNAME loop
`;

/** A server that forwards, or leaves alone, and what it was asked to forward: name and CNAMEs before it. */
function forwardingLab(takes: boolean): { lab: ZoneLab; asked: (readonly [string, number])[] } {
  const asked: (readonly [string, number])[] = [];
  const lab = openLab([zone("example.test.", RECORDS)], {
    forward: (_query, name, chain) => {
      asked.push([
        Buffer.from(name.lower.subarray(1, name.length))
          .toString("latin1")
          .replaceAll(/[\0-\x3f]/g, "."),
        chain,
      ]);
      return takes;
    },
  });
  return { lab, asked };
}

const FORWARDED = [
  ["a question in none of our zones", "www.outside.net. A", "www.outside.net", 0],
  ["a CNAME's target", "out.example.test. A", "www.outside.net", 1],
  ["the target of a chain", "out2.example.test. A", "www.outside.net", 2],
  ["a name below a cut", "x.cut.example.test. A", "x.cut.example.test", 0],
  ["the cut itself", "cut.example.test. NS", "cut.example.test", 0],
  ["a CNAME's target below a cut", "wild.example.test. A", "x.cut.example.test", 1],
  ["an ALIAS's target", "alias.example.test. A", "www.outside.net", 0],
  ["an ALIAS's target behind a CNAME of it", "alias-cname.example.test. AAAA", "www.outside.net", 0],
  ["an ALIAS's target at the end of a CNAME", "to-alias.example.test. A", "www.outside.net", 1],
  ["an ALIAS's target below a cut", "below-cut.example.test. A", "x.cut.example.test", 0],
] as const;

for (const [why, question, name, chain] of FORWARDED) {
  test(`the hook takes ${why}: ${question}`, () => {
    const { lab, asked } = forwardingLab(true);
    assert.equal(lab.send(queryBytes(question)), undefined);
    assert.deepEqual(asked, [[name, chain]]);
  });

  test(`the hook may leave ${why}: ${question}`, () => {
    const { lab, asked } = forwardingLab(false);
    assert.deepEqual(lab.ask(question), openLab([zone("example.test.", RECORDS)]).ask(question));
    assert.deepEqual(asked, [[name, chain]]);
  });
}

for (const question of [
  "www.example.test. A",
  "www.example.test. TXT",
  "nope.example.test. A",
  "cut.example.test. DS",
  "mx.example.test. MX",
  "loop.example.test. A",
  "out.example.test. CNAME",
  "alias.example.test. TXT",
]) {
  test(`the hook is not asked about what is ours: ${question}`, () => {
    const { lab, asked } = forwardingLab(true);
    assert.notEqual(lab.send(queryBytes(question)), undefined);
    assert.deepEqual(asked, []);
  });
}

test("nor about what is refused before its name is looked at", () => {
  const { lab, asked } = forwardingLab(true);
  for (const question of ["x.outside.net. AXFR", "x.outside.net. TKEY", "x.outside.net. OPT"]) lab.ask(question);
  lab.ask("x.outside.net. A", { class: 3 });
  lab.ask("x.outside.net. A", { edns: { version: 1 } });
  assert.deepEqual(asked, []);
});
