import assert from "node:assert/strict";
import { test } from "node:test";
import { negative, openLab, testAnswers, zone } from "../../tests/support/zone-lab.ts";
import { removeZone } from "../publish/zone-file-source.ts";

const CORP = `
www A 192.0.2.1
www.sub A 192.0.2.2
only-here.sub A 192.0.2.3
*.sub A 192.0.2.4
to-sub CNAME www.sub
delegated NS ns.elsewhere.net.
`;
const SUB = "www A 198.51.100.1\nback CNAME www.corp.\nmail MX 10 www.corp.\n";
const DELEGATED = "www A 203.0.113.1\n";
const lab = openLab([
  zone("corp.", CORP),
  zone("sub.corp.", SUB),
  zone("delegated.corp.", DELEGATED),
  zone("deep.er.corp.", "www A 203.0.113.2\n"),
]);

testAnswers(lab, [
  ["the longest zone answers", "www.sub.corp. A", ["NOERROR aa", "answer www.sub.corp. 300 IN A 198.51.100.1"]],
  ["what its parent holds below it is hidden", "only-here.sub.corp. A", ["NXDOMAIN aa", negative("sub.corp.")]],
  ["and so is the parent's wildcard", "x.sub.corp. A", ["NXDOMAIN aa", negative("sub.corp.")]],
  ["the child's apex is the child's", "sub.corp. TXT", ["NOERROR aa", negative("sub.corp.")]],
  ["DS of the child's apex is the parent's", "sub.corp. DS", ["NOERROR aa", negative("corp.")]],
  ["names beside it are the parent's", "www.corp. A", ["NOERROR aa", "answer www.corp. 300 IN A 192.0.2.1"]],
  [
    "an alias from the parent into the child",
    "to-sub.corp. A",
    ["NOERROR aa", "answer to-sub.corp. 300 IN CNAME www.sub.corp.", "answer www.sub.corp. 300 IN A 198.51.100.1"],
  ],
  [
    "an alias from the child into the parent",
    "back.sub.corp. A",
    ["NOERROR aa", "answer back.sub.corp. 300 IN CNAME www.corp.", "answer www.corp. 300 IN A 192.0.2.1"],
  ],
  [
    "no additional addresses from the parent",
    "mail.sub.corp. MX",
    ["NOERROR aa", "answer mail.sub.corp. 300 IN MX 10 www.corp."],
  ],
  [
    "a child that is delegated and held is answered",
    "www.delegated.corp. A",
    ["NOERROR aa", "answer www.delegated.corp. 300 IN A 203.0.113.1"],
  ],
  ["two labels below", "www.deep.er.corp. A", ["NOERROR aa", "answer www.deep.er.corp. 300 IN A 203.0.113.2"]],
  ["between them the parent answers", "er.corp. A", ["NXDOMAIN aa", negative("corp.")]],
]);

test("a child comes and goes while its parent stays", () => {
  const { ask, publish, writer } = openLab([zone("corp.", CORP)]);
  const own = ["NOERROR aa", "answer www.sub.corp. 300 IN A 192.0.2.2"];
  assert.deepEqual(ask("www.sub.corp. A"), own);
  publish(zone("sub.corp.", SUB));
  assert.deepEqual(ask("www.sub.corp. A"), ["NOERROR aa", "answer www.sub.corp. 300 IN A 198.51.100.1"]);
  removeZone(writer, "sub.corp.");
  assert.deepEqual(ask("www.sub.corp. A"), own);
});

test("a parent comes and goes while its child stays", () => {
  const { ask, publish, writer } = openLab([zone("sub.corp.", SUB)]);
  assert.deepEqual(ask("back.sub.corp. A"), ["NOERROR aa", "answer back.sub.corp. 300 IN CNAME www.corp."]);
  publish(zone("corp.", CORP));
  assert.equal(ask("back.sub.corp. A").length, 3);
  removeZone(writer, "corp.");
  assert.equal(ask("back.sub.corp. A").length, 2);
  assert.deepEqual(ask("www.corp. A"), ["REFUSED ede=20"]);
});

test("zones of every depth up to 40 labels are told apart", () => {
  const depths = Array.from({ length: 40 }, (_, index) => index + 1);
  const apexes = depths.map((depth) => "z.".repeat(depth));
  const { ask } = openLab(apexes.map((apex, index) => zone(apex, `x A 192.0.2.${index}\n`)));
  for (const [index, apex] of apexes.entries()) {
    assert.deepEqual(ask(`x.${apex} A`), ["NOERROR aa", `answer x.${apex} 300 IN A 192.0.2.${index}`]);
    assert.deepEqual(ask(`y.${apex} A`), ["NXDOMAIN aa", negative(apex)]);
  }
});
