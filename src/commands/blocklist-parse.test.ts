import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { nameToText } from "../dns/name.ts";
import { nameHash } from "../dns/name-hash.ts";
import { partsOf, partsOfShard, unpackPart } from "../model/blocklist.ts";
import { BLOCKLIST_DOMAINS_MAX, BLOCKLIST_PART_BYTES_MAX, FAULTS_MAX } from "../model/limits.ts";
import { anyFullName } from "../model/names.ts";
import { Refusal } from "../model/refusal.ts";
import { type ParsedBlocklist, parseBlocklist } from "./blocklist-parse.ts";

function parse(text: string): ParsedBlocklist {
  return parseBlocklist(Uint8Array.from(Buffer.from(text)));
}

function namesOf(wire: Uint8Array): string[] {
  const names: string[] = [];
  for (let at = 0; at < wire.length; at++) {
    names.push(nameToText(wire, at));
    while (wire[at] !== 0) at += wire[at]! + 1;
  }
  return names;
}

/** All names of a list, with the shard that each is in. */
function listed({ list, part }: ParsedBlocklist): (readonly [name: string, shard: number])[] {
  return list.shards.flatMap((shard, index) =>
    partsOfShard(shard).flatMap((key) => {
      const body = part(key);
      assert.ok(body !== undefined);
      const names = unpackPart(body);
      assert.ok(names !== undefined);
      assert.ok(names.length <= BLOCKLIST_PART_BYTES_MAX);
      return namesOf(names).map((name) => [name, index] as const);
    }),
  );
}

function sortedNames(parsed: ParsedBlocklist): string[] {
  return listed(parsed)
    .map(([name]) => name)
    .sort();
}

function refusalOf(text: string | Uint8Array): Refusal {
  try {
    parseBlocklist(Uint8Array.from(Buffer.from(text)));
  } catch (error) {
    assert.ok(error instanceof Refusal, String(error));
    return error;
  }
  return assert.fail(`${Buffer.from(text).toString().slice(0, 100)} was taken`);
}

function pointersOf(text: string): string[] {
  return refusalOf(text).faults.map(({ pointer }) => pointer);
}

const label = fc.oneof(
  fc.constantFrom("a", "B", "www", "x-1", "_dmarc", "xn--bcher-kva", "z".repeat(63)),
  fc.constantFrom("a\\.b", "\\065", "a\\032b", "\\042", "c\\@d"),
);
const domain = fc
  .tuple(fc.array(label, { minLength: 1, maxLength: 3 }), fc.boolean())
  .map(([labels, dot]) => labels.join(".") + (dot ? "." : ""));
const blank = fc.constantFrom("", " ", "\n\t", "\r\n");

/** A string as JSON in one of its spellings. */
const spelled = fc.tuple(domain, fc.array(fc.nat(60), { maxLength: 3 })).map(([text, escaped]) => {
  const characters = [...text].map((character, index) => {
    if (escaped.includes(index)) return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
    return JSON.stringify(character).slice(1, -1);
  });
  return { text, json: `"${characters.join("")}"` };
});

test("what the scanner reads is what JSON and the rules of names say, each name once", () => {
  fc.assert(
    fc.property(fc.array(spelled, { maxLength: 40 }), blank, fc.boolean(), (strings, space, hasCount) => {
      const items = strings.map(({ json }) => `${space}${json}${space}`).join(",");
      const count = hasCount ? `${space}"count"${space}:${space}7${space},` : "";
      const text = `${space}{${count}${space}"domains"${space}:${space}[${items}${space}]${space}}${space}`;
      const expected = new Set<string>();
      for (const { text: name } of strings) {
        const outcome = anyFullName(name);
        assert.ok(outcome.kind === "name", name);
        expected.add(outcome.text);
      }
      const parsed = parse(text);
      assert.deepEqual(sortedNames(parsed), [...expected].sort());
      assert.equal(parsed.list.count, expected.size);
      for (const [name, shard] of listed(parsed)) {
        const outcome = anyFullName(name);
        assert.ok(outcome.kind === "name");
        assert.equal(nameHash(outcome.wire, 0, outcome.wire.length - 1) >>> 24, shard);
      }
    }),
    { numRuns: 500 },
  );
});

test("any bytes end in a list or in a refusal, and a text that JSON does not take in a refusal", () => {
  const piece = fc.constantFrom(
    '{"domains":[',
    '"a.b"',
    ",",
    "]",
    "}",
    "{",
    '"',
    "\\",
    '"count":',
    "1",
    "null",
    " ",
    "\u00e9",
    "[",
  );
  const texts = fc.oneof(
    fc.array(piece, { maxLength: 12 }).map((pieces) => Buffer.from(pieces.join(""))),
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
  );
  fc.assert(
    fc.property(texts, (bytes) => {
      let isTaken = true;
      try {
        parseBlocklist(Uint8Array.from(bytes));
      } catch (error) {
        assert.ok(error instanceof Refusal, String(error));
        assert.equal(error.code, "invalid_request");
        isTaken = false;
      }
      if (isTaken) assert.ok(Array.isArray(JSON.parse(bytes.toString()).domains));
    }),
    { numRuns: 2_000 },
  );
});

test("the order, the case, the last dot and repeats make no other list", () => {
  const names = Array.from({ length: 3_000 }, (_, index) => `host-${index}.example`);
  const one = parse(JSON.stringify({ domains: names }));
  const other = parse(
    JSON.stringify({ domains: [...names.map((name) => `${name.toUpperCase()}.`).reverse(), ...names] }),
  );
  assert.deepEqual(other.list, one.list);
  assert.equal(one.list.count, 3_000);
});

test("a name more in a large list is one part more or less, and all others stay", () => {
  const names = Array.from(
    { length: 150_000 },
    (_, index) => `${(index * 7919).toString(36)}.${"x".repeat(60)}.example`,
  );
  const before = new Set(partsOf(parse(JSON.stringify({ domains: names })).list));
  assert.ok(before.size >= 256, String(before.size));
  const after = partsOf(parse(JSON.stringify({ domains: [...names, "one.more.example"] })).list);
  assert.equal(after.filter((key) => !before.has(key)).length, 1);
});

test("names of one shard are cut into parts", () => {
  const long = "y".repeat(63);
  const names: string[] = [];
  for (let index = 0; names.length < 1_000; index++) {
    const outcome = anyFullName(`${index}.${long}.${long}.${long}.`);
    assert.ok(outcome.kind === "name");
    if (nameHash(outcome.wire, 0, outcome.wire.length - 1) >>> 24 === 9) names.push(outcome.text);
  }
  const parsed = parse(JSON.stringify({ domains: names }));
  assert.ok(partsOfShard(parsed.list.shards[9]!).length > 4);
  assert.deepEqual(sortedNames(parsed), names.toSorted());
});

test("an empty list has no parts", () => {
  const { list } = parse('{"domains":[]}');
  assert.equal(list.count, 0);
  assert.deepEqual(partsOf(list), []);
});

test("each fault is named by its place, up to a number of them", () => {
  assert.deepEqual(pointersOf('{"domains":["a.b","","c..d","ok","b\u00fccher.example","*.ads.example",".","a b"]}'), [
    "/domains/1",
    "/domains/2",
    "/domains/4",
    "/domains/5",
    "/domains/6",
    "/domains/7",
  ]);
  assert.match(refusalOf('{"domains":["*.ads.example"]}').faults[0]!.detail, /asterisk/);
  assert.match(refusalOf('{"domains":["b\u00fccher.example"]}').faults[0]!.detail, /punycode/);
  assert.deepEqual(pointersOf(`{"domains":["${"a".repeat(64)}.b"]}`), ["/domains/0"]);
  assert.deepEqual(pointersOf(`{"domains":["${"abc.".repeat(64)}"]}`), ["/domains/0"]);
  const many = JSON.stringify({ domains: Array.from({ length: 200 }, () => "") });
  assert.equal(refusalOf(many).faults.length, FAULTS_MAX);
  assert.deepEqual(pointersOf('{"domains":["a",7]}'), ["/domains/1"]);
  assert.deepEqual(pointersOf('{"domains":"a"}'), ["/domains"]);
  assert.deepEqual(pointersOf("{}"), ["/domains"]);
  assert.deepEqual(pointersOf('{"domains":[],"domain/s":1}'), ["/domain~1s"]);
  assert.deepEqual(pointersOf('{"domains":[],"domains":[]}'), ["/domains"]);
  assert.deepEqual(pointersOf('{"domains":[],"count":1.5}'), ["/count"]);
  assert.deepEqual(pointersOf('{"domains":[],"count":"1"}'), ["/count"]);
  for (const text of ["", "[]", "null", '"x"']) assert.deepEqual(pointersOf(text), [""], text);
});

test("what is no JSON is refused", () => {
  const wrong = [
    '{"domains":["a",]}',
    '{"domains":["a"]',
    '{"domains":["a"]}x',
    '{"domains":["a" "b"]}',
    '{"domains":["a\n"]}',
  ];
  for (const text of [...wrong, '{"domains":["a\\x"]}', '{"domains":["a]}', "{domains:[]}", '{"domains":[],}']) {
    assert.throws(() => JSON.parse(text));
    assert.equal(refusalOf(text).code, "invalid_request", text);
  }
  assert.equal(
    refusalOf(Buffer.from([...Buffer.from('{"domains":["'), 0xff, ...Buffer.from('"]}')])).code,
    "invalid_request",
  );
});

test("as many names as there may be are taken, and one more is not", () => {
  const text = (count: number) => Buffer.from(`{"domains":[${'"a",'.repeat(count - 1)}"b"]}`);
  assert.equal(parseBlocklist(text(BLOCKLIST_DOMAINS_MAX)).list.count, 2);
  assert.match(refusalOf(text(BLOCKLIST_DOMAINS_MAX + 1)).message, /1500000/);
});
