import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nameFromText } from "../dns/name.ts";
import {
  absoluteName,
  anyFullName,
  canonicalName,
  fullName,
  hostName,
  isHostSpelling,
  isWildcard,
  type NameOutcome,
  relativeName,
  relativeTo,
} from "./names.ts";

function textOf(outcome: NameOutcome): string {
  return outcome.kind === "name" ? outcome.text : `fault: ${outcome.detail}`;
}

const LABEL_63 = "a".repeat(63);
const NAME_255 = `${LABEL_63}.${LABEL_63}.${LABEL_63}.${"b".repeat(61)}.`;

const FULL: readonly (readonly [text: string, outcome: string])[] = [
  ["corp.example.", "corp.example."],
  ["Corp.EXAMPLE.", "corp.example."],
  [".", "."],
  ["_tcp.x_y.example.", "_tcp.x_y.example."],
  ["0-25.2.0.192.in-addr.arpa.", "0-25.2.0.192.in-addr.arpa."],
  ["0/25.2.0.192.in-addr.arpa.", "0/25.2.0.192.in-addr.arpa."],
  ["a\\.b.example.", "a\\.b.example."],
  ["a\\032b.example.", "a\\032b.example."],
  ["\\065.example.", "a.example."],
  [NAME_255, NAME_255],
  ["corp.example", 'fault: must be a full name that ends in a dot: "corp.example."'],
  ["corp\\.", 'fault: must be a full name that ends in a dot: "corp\\\\.."'],
  ["", "fault: must not be empty"],
  ["a..example.", "fault: is not a valid name: empty label"],
  [".example.", "fault: is not a valid name: empty label"],
  ["..", "fault: is not a valid name: empty label"],
  [`a${LABEL_63}.example.`, "fault: is not a valid name: label longer than 63 bytes"],
  [`x${NAME_255}`.replace("bb.", "bbb."), "fault: is not a valid name: label longer than 63 bytes"],
  [`c.${NAME_255}`, "fault: is not a valid name: name longer than 255 bytes"],
  ["a b.example.", 'fault: must not hold " " without a backslash'],
  ["a\u0000b.", 'fault: must not hold "\\u0000" without a backslash'],
  ["a\nb.", 'fault: must not hold "\\n" without a backslash'],
  ["a;b.", 'fault: must not hold ";" without a backslash'],
  ["a@b.example.", 'fault: must not hold "@" without a backslash'],
  [
    "a\\999.",
    "fault: is not a valid name: bad escape: a backslash takes three digits up to 255, or one other character",
  ],
  ["münchen.example.", "fault: must be ASCII: write an internationalised name in punycode (xn--...)"],
  ["@", 'fault: must be a name; "@" is understood in the name of a record only'],
];

for (const [text, outcome] of FULL) {
  test(`the full name ${JSON.stringify(text).slice(0, 60)}`, () => assert.equal(textOf(fullName(text)), outcome));
}

const RELATIVE: readonly (readonly [text: string, outcome: string])[] = [
  ["www", "www"],
  ["WWW.Sub", "www.sub"],
  ["@", "@"],
  ["*", "*"],
  ["*.sub", "*.sub"],
  ["a.*.b", "a.*.b"],
  ["a*b", "a*b"],
  ["_sip._tcp", "_sip._tcp"],
  ["www.corp.example", "www.corp.example"],
  ["", 'fault: must not be empty; the zone\'s own name is "@"'],
  ["www.corp.example.", 'fault: must be relative to the zone: "www"'],
  ["corp.example.", 'fault: must be relative to the zone: "@"'],
  ["www.other.", 'fault: must be relative to the zone, and "www.other." lies outside "corp.example."'],
  ["a\\.corp.example.", 'fault: must be relative to the zone, and "a\\\\.corp.example." lies outside "corp.example."'],
  ["a..b", "fault: is not a valid name: empty label"],
  [".", 'fault: must be relative to the zone, and "." lies outside "corp.example."'],
  [NAME_255.slice(0, -1), "fault: is longer than 255 bytes together with the zone's name"],
];

for (const [text, outcome] of RELATIVE) {
  test(`the relative name ${JSON.stringify(text).slice(0, 60)}`, () =>
    assert.equal(textOf(relativeName(text, "corp.example.")), outcome));
}

test("the wire form of a relative name is the whole name in lower case", () => {
  const outcome = relativeName("WWW", "corp.example.");
  const whole = nameFromText("www.corp.example.");
  assert(outcome.kind === "name" && whole.kind === "name");
  assert.deepEqual(outcome.wire, whole.name);
});

const HOSTS: readonly (readonly [text: string, outcome: string])[] = [
  ["Mail.Example", "Mail.Example."],
  ["mail.example.", "mail.example."],
  ["10.0.0.1", "fault: must be a host name, not an address"],
  ["::1", "fault: must be a host name, not an address"],
  [".", "fault: must be the name of a host"],
  ["@", 'fault: must be a name; "@" is understood in the name of a record only'],
  ["a b", 'fault: must not hold " " without a backslash'],
];

for (const [text, outcome] of HOSTS) {
  test(`the host ${JSON.stringify(text)}`, () => assert.equal(textOf(hostName(text)), outcome));
}

test("the root is a host where the type has a meaning for it", () => {
  assert.equal(textOf(hostName(".", { root: true })), ".");
});

test("names of hosts are letters, digits, hyphens and underscores, and no number at the end", () => {
  for (const good of ["a.b.", "a-b.c", "_x.y", "1a.b2"]) assert.equal(isHostSpelling(good), true, good);
  for (const bad of ["10.0.0.1.", "*.a.", "-a.b", "a-.b", "a\\.b.", "a/b."])
    assert.equal(isHostSpelling(bad), false, bad);
});

test("the asterisk makes a wildcard as the whole first label only", () => {
  assert.deepEqual(["*", "*.a", "a.*", "a*", "**", "*a.b"].map(isWildcard), [true, true, false, false, false, false]);
});

const labels = fc.array(fc.uint8Array({ minLength: 1, maxLength: 20 }), { minLength: 1, maxLength: 6 });

test("every name there can be has one canonical text, which gives the name again", () => {
  fc.assert(
    fc.property(labels, (parts) => {
      const wire = Uint8Array.from([...parts.flatMap((part) => [part.length, ...part]), 0]);
      const text = canonicalName(wire);
      assert.equal(textOf(fullName(text)), text);
      assert.equal(textOf(anyFullName(text.slice(0, -1))), text);
      const again = nameFromText(text);
      assert(again.kind === "name");
      assert.equal(canonicalName(again.name), text);
    }),
  );
});

test("relative and absolute are each other's way back", () => {
  fc.assert(
    fc.property(labels, fc.constantFrom(".", "corp.", "corp.example."), (parts, zone) => {
      const relative = canonicalName(Uint8Array.from([...parts.flatMap((part) => [part.length, ...part]), 0])).slice(
        0,
        -1,
      );
      const outcome = relativeName(relative, zone);
      assert.equal(textOf(outcome), relative);
      const absolute = absoluteName(relative, zone);
      assert.equal(relativeTo(absolute, zone), relative);
      const whole = nameFromText(absolute);
      assert(whole.kind === "name" && outcome.kind === "name");
      assert.deepEqual(outcome.wire, whole.name);
    }),
  );
  assert.equal(relativeTo("corp.", "corp."), "@");
  assert.equal(absoluteName("@", "corp."), "corp.");
});

test("no text throws", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
      for (const outcome of [fullName(text), anyFullName(text), relativeName(text, "corp."), hostName(text)]) {
        assert(outcome.kind === "fault" || outcome.text.length > 0);
      }
    }),
  );
});
