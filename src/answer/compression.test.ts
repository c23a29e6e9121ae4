import assert from "node:assert/strict";
import { test } from "node:test";
import { answerLines, decode, nameOf, openLab, queryBytes, zone } from "../../tests/support/zone-lab.ts";
import { RRTYPE } from "../dns/codes.ts";
import { typeFromText } from "../dns/type-names.ts";
import { TRANSPORT } from "../image/counters.ts";
import { readNameKey } from "../image/name-key.ts";
import { CONTROL } from "../image/shared.ts";
import { rrsetOf } from "../image/writer.ts";
import { createLookup, findZone, lookUpName } from "./lookup.ts";
import { createQuery, setMemory } from "./query.ts";
import { PUT, type Put, putRRset, recordCount } from "./records.ts";
import { createSpelled, spelledAt } from "./spelled.ts";

const TCP = { transport: TRANSPORT.TCP };

test("owner and apex are pointers to the question", () => {
  const lab = openLab([zone("example.test.", "mx MX 10 mail\nmail A 192.0.2.1\n")]);
  const bytes = lab.send(queryBytes("mx.example.test. MX", { edns: false })) ?? new Uint8Array(0);
  const records = Buffer.from(bytes.subarray(12 + 17 + 4)).toString("hex");
  assert.equal(
    records,
    "c00c000f00010000012c0009000a046d61696cc00f" + // mx: 10 mail, with the rest at the question's second label
      "c02f000100010000012c0004c0000201", // mail: where the MX spells it
  );
});

test("chains between zones that lie in each other spell every name right", () => {
  const { ask } = openLab([
    zone("t.", "one CNAME two.b.a\nend A 192.0.2.1\nlast MX 1 m.c.b.a\nlast MX 2 b.a\n"),
    zone("a.t.", "five CNAME six.c.b\n"),
    zone("b.a.t.", "two CNAME three.c\nfour CNAME five.a.t.\n@ A 192.0.2.2\n"),
    zone("c.b.a.t.", "three CNAME four.b.a.t.\nsix CNAME last.t.\nm A 192.0.2.3\n"),
  ]);
  const link = (owner: string, target: string) => `answer ${owner}.t. 300 IN CNAME ${target}.t.`;
  assert.deepEqual(ask("one.t. MX"), [
    "NOERROR aa",
    link("one", "two.b.a"),
    link("two.b.a", "three.c.b.a"),
    link("three.c.b.a", "four.b.a"),
    link("four.b.a", "five.a"),
    link("five.a", "six.c.b.a"),
    link("six.c.b.a", "last"),
    "answer last.t. 300 IN MX 1 m.c.b.a.t.",
    "answer last.t. 300 IN MX 2 b.a.t.",
  ]);
});

test("names that lie behind what 14 bits can point to are written out", () => {
  const count = 1500;
  const plain = Array.from({ length: count }, (_, index) => `many MX ${index} target-${index}\n`).join("");
  const last = `target-${count - 1}`;
  const { message } = openLab([zone("example.test.", `${plain}${last} A 192.0.2.1\n${last} AAAA 2001:db8::1\n`)]);
  const answer = message("many.example.test. MX", TCP);
  const lines = answerLines(answer);
  assert.equal(lines.length, 1 + count + 2);
  assert.equal(lines[count], `answer many.example.test. 300 IN MX ${count - 1} ${last}.example.test.`);
  assert.deepEqual(lines.slice(count + 1), [
    `additional ${last}.example.test. 300 IN A 192.0.2.1`,
    `additional ${last}.example.test. 300 IN AAAA 2001:db8::1`,
  ]);
});

test("referrals too, from a message past 16 KiB", () => {
  const servers = Array.from(
    { length: 90 },
    (_, index) => `cut NS ${`n${index}.`.padEnd(200, "label-of-16-byte.")}far.\n`,
  );
  const own = Array.from({ length: 20 }, (_, index) => `cut NS ns${index}.cut\nns${index}.cut A 192.0.2.${index}\n`);
  const { message, send } = openLab([zone("t.", `${servers.join("").replaceAll(/\.+far/g, ".far")}${own.join("")}`)]);
  assert((send(queryBytes("x.cut.t. A"), TCP)?.length ?? 0) > 0x4000 + 2000);
  const { authorities, additionals, flags } = message("x.cut.t. A", TCP);
  assert.deepEqual([authorities.length, additionals.length, flags & 0x0200], [110, 20, 0]);
});

/** Puts the RRset of a name into an answer whose names nobody can point to, with `room` bytes for it. */
function putExpanded(body: string, question: string, room: number): { put: Put; lines: readonly string[] } {
  const { writer } = openLab([zone("example.test.", body)]);
  const { view } = writer;
  const [owner = "", type = ""] = question.split(" ");
  const query = createQuery();
  const bytes = new Uint8Array(2000);
  const asked = queryBytes(question, { edns: false });
  bytes.set(asked);
  setMemory(query, bytes);
  query.at = asked.length;
  query.limit = asked.length + room;
  const name = createSpelled();
  const wire = nameOf(owner);
  readNameKey(name.key, wire, 0, wire.length, view.control[CONTROL.HASH_SEED]!);
  spelledAt(name, -1);
  const lookup = createLookup();
  findZone(view, lookup, name.key, 0);
  lookUpName(view, lookup, name.key);
  const rrset = rrsetOf(writer, lookup.node, typeFromText(type) ?? RRTYPE.A);
  const put = putRRset(view, query, rrset, name, 0, lookup.apexLabel, false);
  bytes[7] = put === PUT.NO_ROOM ? 0 : recordCount(view, rrset);
  return { put, lines: answerLines(decode(bytes.subarray(0, query.at))).slice(1) };
}

const EXPANDED = [
  ["a A 192.0.2.1\na A 192.0.2.2", "a.example.test. A", 2 * (16 + 10 + 4)],
  ["a MX 10 b\na MX 20 @\na MX 30 c.far.", "a.example.test. MX", 3 * (16 + 10 + 2) + 16 + 14 + 7],
  ["a CNAME b.c", "a.example.test. CNAME", 16 + 10 + 18],
  ["* NS ns\n@ PTR x", "example.test. SOA", 14 + 10 + 18 + 25 + 20],
  ["a SRV 1 2 3 b", "a.example.test. SRV", 16 + 10 + 6 + 16],
] as const;

for (const [body, question, bytes] of EXPANDED) {
  test(`written out, ${question} takes ${bytes} bytes`, () => {
    const whole = putExpanded(body, question, bytes);
    assert.equal(whole.put, PUT.EXPANDED);
    const { ask } = openLab([zone("example.test.", body)]);
    assert.deepEqual(
      whole.lines,
      ask(question).filter((line) => line.startsWith("answer")),
    );
    assert.deepEqual(putExpanded(body, question, bytes - 1), { put: PUT.NO_ROOM, lines: [] });
  });
}
