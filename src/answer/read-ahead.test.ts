import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { arbitraryName, arbitraryZones, QUESTION_TYPES, zoneText } from "../../tests/support/arbitrary-zones.ts";
import { openSelectionLab } from "../../tests/support/selection-lab.ts";
import { nameOf, openLab, queryBytes, type ZoneLab, zone } from "../../tests/support/zone-lab.ts";
import { TRANSPORT } from "../image/counters.ts";
import { mixHash, ZONE_ENTRY } from "../image/layout.ts";
import { createNameKey, readNameKey } from "../image/name-key.ts";
import { CONTROL } from "../image/shared.ts";
import { openView, slotOf } from "../image/view.ts";
import { READ_AHEAD_MAX } from "./read-ahead.ts";

const SLOT_BYTES = 4096;
const CLIENT = Uint8Array.of(127, 0, 0, 1);

/** Answers a batch as the listeners do: all are read ahead, then answered but for those at `passedOver`. */
function answerBatch(
  lab: ZoneLab,
  packets: readonly Uint8Array[],
  passedOver: readonly number[] = [],
): readonly string[] {
  const bytes = new Uint8Array(packets.length * SLOT_BYTES);
  const { answerer } = lab;
  for (const [index, packet] of packets.entries()) bytes.set(packet, index * SLOT_BYTES);
  answerer.enter();
  for (const [index, packet] of packets.entries()) answerer.readAhead(bytes, index * SLOT_BYTES, packet.length);
  answerer.prefetch();
  const answers: string[] = [];
  for (const [index, packet] of packets.entries()) {
    if (passedOver.includes(index)) continue;
    const at = index * SLOT_BYTES;
    const length = answerer.answer(bytes, at, packet.length, SLOT_BYTES, CLIENT, 0, CLIENT.length, TRANSPORT.UDP);
    answers.push(Buffer.from(bytes.subarray(at, at + length)).toString("hex"));
  }
  answerer.leave();
  return answers;
}

function answerAlone(lab: ZoneLab, packet: Uint8Array): string {
  return Buffer.from(lab.send(packet) ?? []).toString("hex");
}

test("queries of a batch get the answers that they get alone", () => {
  const arbitraryQuestions = fc.array(fc.tuple(arbitraryName, fc.constantFrom(...QUESTION_TYPES)), { maxLength: 30 });
  fc.assert(
    fc.property(arbitraryZones, arbitraryQuestions, (zones, questions) => {
      const lab = openLab(zones.map(zoneText));
      const packets = questions.map(([name, type]) => queryBytes(`${name} ${type}`));
      assert.deepEqual(
        answerBatch(lab, packets),
        packets.map((packet) => answerAlone(lab, packet)),
      );
    }),
  );
});

test("names that are not ours too, among our own, with the cache and without", () => {
  const lab = openLab([zone("example.test.", "www A 192.0.2.1\nout CNAME n1.far.\n")], {
    answerer: { forwards: true },
  });
  lab.route(".", 99);
  lab.route("corp.", 50);
  lab.block("ads.");
  for (let index = 0; index < 5; index++) {
    lab.cached(`n${index}.far. A`, { route: 99, answers: `n${index}.far. 300 A 10.0.0.${index}` });
    lab.cached(`n${index}.corp. A`, { route: 50, answers: `n${index}.corp. 300 A 10.0.1.${index}` });
  }
  const names = ["www.example.test.", "out.example.test.", "nope.example.test.", "x.ads.", "n9.far.", "n9.corp."];
  for (let index = 0; index < 5; index++) names.push(`n${index}.far.`, `n${index}.corp.`);
  const packets = names.map((name) => queryBytes(`${name} A`));
  const together = answerBatch(lab, packets);
  assert.deepEqual(
    together,
    packets.map((packet) => answerAlone(lab, packet)),
  );
  assert.equal(new Set(together).size, names.length);
});

const RECORDS = Array.from({ length: 100 }, (_, index) => `n${index} A 192.0.2.${index}\n`).join("");
const PACKETS = Array.from({ length: READ_AHEAD_MAX + 20 }, (_, index) => queryBytes(`n${index}.example.test. A`));

test("a batch larger than what is read ahead is answered whole", () => {
  const lab = openLab([zone("example.test.", RECORDS)]);
  assert.deepEqual(
    answerBatch(lab, PACKETS),
    PACKETS.map((packet) => answerAlone(lab, packet)),
  );
});

test("selected answers are read ahead among others, with one value and with more than are touched", () => {
  const lab = openSelectionLab([zone("example.test.", `${RECORDS}mail MX 10 n1\n`)]);
  const packets: Uint8Array[] = [queryBytes("mail.example.test. MX"), PACKETS[0]!];
  for (let count = 1; count <= 9; count++) {
    const values = Array.from({ length: count }, (_, index) => ({
      value: `10.0.${count}.${index}`,
      probe: `${count}-${index}`,
    }));
    lab.select(`s${count}.example.test. A`, { method: "FAILOVER" }, values);
    lab.health(`${count}-0`, "UNHEALTHY");
    packets.push(queryBytes(`s${count}.example.test. A`));
  }
  packets.push(queryBytes("mail.example.test. MX"));
  assert.deepEqual(
    answerBatch(lab, packets),
    packets.map((packet) => answerAlone(lab, packet)),
  );
});

test("a query of the batch that is never answered does not disturb those behind it", () => {
  const lab = openLab([zone("example.test.", RECORDS)]);
  const passedOver = [0, 5, 6];
  const expected = PACKETS.filter((_, index) => !passedOver.includes(index)).map((packet) => answerAlone(lab, packet));
  assert.deepEqual(answerBatch(lab, PACKETS, passedOver), expected);
});

test("a batch leaves nothing to the next", () => {
  const lab = openLab([zone("example.test.", RECORDS)]);
  answerBatch(lab, PACKETS.slice(0, 10), [8, 9]);
  const others = PACKETS.slice(20, 30);
  assert.deepEqual(
    answerBatch(lab, others),
    others.map((packet) => answerAlone(lab, packet)),
  );
});

test("broken messages and silence have their place in a batch", () => {
  const lab = openLab([zone("example.test.", RECORDS)]);
  const good = PACKETS[0]!;
  const response = Uint8Array.from(good);
  response[2]! |= 0x80;
  const packets = [good, new Uint8Array(3), good.subarray(0, 20), response, queryBytes(". A"), good];
  assert.deepEqual(
    answerBatch(lab, packets),
    packets.map((packet) => answerAlone(lab, packet)),
  );
});

test("a name whose search begins at a zone's entry is read ahead like any other", () => {
  const lab = openLab([zone("example.test.", "www A 192.0.2.1\n")]);
  const view = openView(lab.shared);
  const key = createNameKey();
  const slotOfName = (name: string, incarnation: number): number => {
    const wire = nameOf(name);
    readNameKey(key, wire, 0, wire.length, view.control[CONTROL.HASH_SEED]!);
    return slotOf(view, mixHash(key.hashes[0]!, incarnation));
  };
  const entry = slotOfName("example.test.", ZONE_ENTRY);
  let tried = 0;
  while (slotOfName(`n${tried}.example.test.`, 1) !== entry) tried++;
  const packet = Buffer.from(queryBytes(`n${tried}.example.test. MX`));
  lab.answerer.enter();
  lab.answerer.readAhead(packet, 0, packet.length);
  lab.answerer.prefetch();
  lab.answerer.leave();
  assert.equal(lab.message(`n${tried}.example.test. MX`).rcode, 3);
});
