import assert from "node:assert/strict";
import { test } from "node:test";
import { nameOf, negative, openLab, zone } from "../../tests/support/zone-lab.ts";

/** A name of 255 bytes below `t.`: labels of 63, 63, 63, 59 bytes and `t`. */
const LONGEST = `${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(59)}.t.`;
/** A name of 127 labels, the most that there are. */
const MOST_LABELS = `${"x.".repeat(126)}t.`;

test("the names are as long as names can be", () => {
  assert.equal(nameOf(LONGEST).length, 255);
  assert.equal(nameOf(MOST_LABELS).length, 255);
});

for (const [why, name] of [
  ["the longest labels", LONGEST],
  ["the most labels", MOST_LABELS],
] as const) {
  const parent = name.slice(name.indexOf(".") + 1);

  test(`${why}: owner, and the empty non-terminals above it`, () => {
    const { ask } = openLab([zone("t.", `${name} A 192.0.2.1\n`)]);
    assert.deepEqual(ask(`${name} A`), ["NOERROR aa", `answer ${name} 300 IN A 192.0.2.1`]);
    assert.deepEqual(ask(`${parent} A`), ["NOERROR aa", negative("t.")]);
  });

  test(`${why}: no such name`, () => {
    assert.deepEqual(openLab([zone("t.")]).ask(`${name} A`), ["NXDOMAIN aa", negative("t.")]);
  });

  test(`${why}: a wildcard far above`, () => {
    const { ask } = openLab([zone("t.", "* A 192.0.2.1\n")]);
    assert.deepEqual(ask(`${name} A`), ["NOERROR aa", `answer ${name} 300 IN A 192.0.2.1`]);
  });

  test(`${why}: a target, over a CNAME and back`, () => {
    const { ask } = openLab([zone("t.", `c CNAME ${name}\n${name} CNAME www\nwww A 192.0.2.1\n`)]);
    assert.deepEqual(ask("c.t. A"), [
      "NOERROR aa",
      `answer c.t. 300 IN CNAME ${name}`,
      `answer ${name} 300 IN CNAME www.t.`,
      "answer www.t. 300 IN A 192.0.2.1",
    ]);
  });

  test(`${why}: an apex`, () => {
    const soa = `ns1.t. h.t. 1 1 1 1 60`;
    const { ask } = openLab([zone("t."), `${name} 60 SOA ${soa}\n${name} 60 MX 10 ${name}\n${name} 60 A 192.0.2.1\n`]);
    assert.deepEqual(ask(`${name} MX`), [
      "NOERROR aa",
      `answer ${name} 60 IN MX 10 ${name}`,
      `additional ${name} 60 IN A 192.0.2.1`,
    ]);
    assert.deepEqual(ask(`${name} TXT`), ["NOERROR aa", `authority ${name} 60 IN SOA ${soa}`]);
    assert.deepEqual(ask(`${parent} TXT`), ["NXDOMAIN aa", negative("t.")]);
  });

  test(`${why}: below a cut far above`, () => {
    const cut = name.split(".").slice(-3).join(".");
    const { ask } = openLab([zone("t.", `${cut} NS ${name}\n${name} A 192.0.2.1\n`)]);
    assert.deepEqual(ask(`${parent} A`), [
      "NOERROR",
      `authority ${cut} 300 IN NS ${name}`,
      `additional ${name} 300 IN A 192.0.2.1`,
    ]);
  });
}
