import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { auditArena } from "../../tests/image/audit.ts";
import { nameOf, openLab, queryBytes, type ZoneLab } from "../../tests/support/zone-lab.ts";
import { rdataFromText } from "../dns/rdata.ts";
import { typeFromText } from "../dns/type-names.ts";
import { TRANSPORT } from "../image/counters.ts";
import {
  METHOD,
  NODE,
  POINTER,
  pointerCount,
  RRSET,
  SEGMENT_SLOTS,
  TAIL,
  UNIT_WORDS,
  ZONE,
  ZONE_ENTRY,
} from "../image/layout.ts";
import { activateZone, beginChange, collect, endChange, openImageWriter } from "../image/writer.ts";
import { POINTING_TO_ONE_MAX } from "./tail.ts";
import { changeRRset, finishZone, startZone, type ZonePublisher } from "./zone-publisher.ts";

type Zone = { readonly lab: ZoneLab; readonly publisher: ZonePublisher };

function wire(type: string, text: string): Uint8Array {
  const result = rdataFromText(typeFromText(type)!, text);
  return result.kind === "rdata" ? result.rdata : assert.fail(result.detail);
}

function change({ publisher }: Zone, owner: string, type: string, ...texts: readonly string[]): string | undefined {
  const rdatas = texts.map((text) => wire(type, text));
  const refusal = changeRRset(publisher, nameOf(owner), typeFromText(type)!, 30, rdatas);
  collect(publisher.writer);
  return refusal;
}

/** As `change`, of an RRset whose answers have the first of its values. */
function select({ publisher }: Zone, owner: string, type: string, ...texts: readonly string[]): string | undefined {
  const rdatas = texts.map((text) => wire(type, text));
  const choices = texts.map((_, index) => ({ index, health: 0, region: 0, weight: 0, hash: index }));
  const table = { method: METHOD.FAILOVER, flags: 0, affinitySeconds: 1, preferred: [], choices };
  const refusal = changeRRset(publisher, nameOf(owner), typeFromText(type)!, 30, rdatas, table);
  collect(publisher.writer);
  return refusal;
}

function openZone(apex: string): Zone {
  const lab = openLab([]);
  const publisher = startZone(lab.writer, nameOf(apex));
  const zone = { lab, publisher };
  change(zone, apex, "SOA", "h.elsewhere. h.elsewhere. 1 1 1 1 60");
  return zone;
}

function activate({ publisher }: Zone): void {
  assert.equal(finishZone(publisher).ok, true);
  activateZone(publisher.writer, publisher.zone, publisher.apex);
}

/** The words RRSET.TYPE of all RRsets that have a tail. */
function tails({ view, segments }: ZonePublisher["writer"]): readonly number[] {
  const found: number[] = [];
  for (const segment of segments.keys()) {
    for (let slot = 0; slot < SEGMENT_SLOTS; slot++) {
      const node = view.words[segment * UNIT_WORDS + slot * 2 + 1]! * UNIT_WORDS;
      if (node <= 0 || view.words[node + NODE.INCARNATION] === ZONE_ENTRY) continue;
      for (let at = view.words[node + NODE.RRSETS]! * UNIT_WORDS; at !== 0; ) {
        if ((view.words[at + RRSET.TYPE]! & TAIL.FLAG) !== 0) found.push(at + RRSET.TYPE);
        at = view.words[at + RRSET.NEXT]! * UNIT_WORDS;
      }
    }
  }
  return found;
}

function hasAddresses({ publisher: { writer } }: Zone, typeAt: number): boolean {
  const { words, data } = writer.view;
  const at = typeAt - RRSET.TYPE;
  const pointers = pointerCount(words[typeAt]!) * POINTER.BYTES;
  return data.getUint16(at * 4 + RRSET.WIRE_BYTE + (words[at + RRSET.SIZE]! >>> 16) + pointers) > 0;
}

/** Runs `run` while no RRset shows its tail, so that every address is looked up. */
function withoutTails<T>({ publisher: { writer } }: Zone, run: () => T): T {
  const { words } = writer.view;
  const hidden = tails(writer);
  for (const at of hidden) words[at]! &= ~TAIL.FLAG;
  try {
    return run();
  } finally {
    for (const at of hidden) words[at]! |= TAIL.FLAG;
  }
}

const TRANSPORTS = [
  { transport: TRANSPORT.TCP },
  { edns: false },
  { edns: { udpSize: 512 } },
  { edns: { udpSize: 700 } },
] as const;

function answers({ lab }: Zone, questions: readonly string[]): readonly string[] {
  return questions.flatMap((question) =>
    TRANSPORTS.map((options) => {
      const bytes = lab.send(queryBytes(question, options), options);
      return `${question} ${bytes === undefined ? "silence" : Buffer.from(bytes).toString("hex")}`;
    }),
  );
}

/** So few names that most targets have addresses. */
const arbitraryLabels = fc.constantFrom([], ["a"], ["b"], ["a", "b"], ["*"], ["*", "b"], ["b", "Long-Label", "a"]);
const nameIn = (apex: string) =>
  arbitraryLabels.map((labels) => [...labels, apex === "." ? "" : apex].join(".") || ".");
const nameAnywhere = (apex: string) =>
  fc.oneof({ weight: 5, arbitrary: nameIn(apex) }, { weight: 1, arbitrary: fc.constantFrom("a.elsewhere.", ".") });
/** Mostly few, sometimes none or many. */
const addresses = (prefix: string) =>
  fc
    .oneof({ weight: 5, arbitrary: fc.integer({ min: 1, max: 3 }) }, fc.integer({ min: 0, max: 30 }))
    .map((count) => Array.from({ length: count }, (_, index) => `${prefix}${index + count}`));

type Change = readonly [owner: string, type: string, texts: readonly string[], isSelected: boolean];

function make(zone: Zone, [owner, type, texts, isSelected]: Change): void {
  if (isSelected) select(zone, owner, type, ...texts);
  else change(zone, owner, type, ...texts);
}

/** One in five of the types that take a policy is selected. */
function arbitraryChange(apex: string): fc.Arbitrary<Change> {
  return fc
    .tuple(arbitraryContent(apex), fc.nat(4))
    .map(([[owner, type, texts], draw]) => [owner, type, texts, draw === 0 && type !== "NS" && type !== "CNAME"]);
}

function arbitraryContent(
  apex: string,
): fc.Arbitrary<readonly [owner: string, type: string, texts: readonly string[]]> {
  const targets = fc.uniqueArray(nameAnywhere(apex), { maxLength: 4 });
  const pointing = (type: string, before: string) =>
    fc.tuple(
      nameIn(apex),
      fc.constant(type),
      targets.map((names) => names.map((name, index) => `${before.replace("N", `${index}`)}${name}`)),
    );
  return fc.oneof(
    { weight: 3, arbitrary: fc.tuple(nameIn(apex), fc.constant("A"), addresses("192.0.2.")) },
    { weight: 3, arbitrary: fc.tuple(nameIn(apex), fc.constant("AAAA"), addresses("2001:db8::")) },
    { weight: 3, arbitrary: pointing("MX", "N ") },
    { weight: 2, arbitrary: pointing("SRV", "N 1 1 ") },
    { weight: 2, arbitrary: pointing("NS", "") },
    {
      weight: 1,
      arbitrary: fc.tuple(
        nameIn(apex),
        fc.constant("CNAME"),
        nameAnywhere(apex).map((name) => [name]),
      ),
    },
  );
}

const arbitraryHistory = fc.constantFrom("t.", "sub.zone.t.", ".").chain((apex) =>
  fc.record({
    apex: fc.constant(apex),
    before: fc.array(arbitraryChange(apex), { maxLength: 25, size: "max" }),
    after: fc.array(arbitraryChange(apex), { maxLength: 25, size: "max" }),
  }),
);

test("whatever changes, an answer with a tail is, byte by byte, the one that is put together from the targets", () => {
  let seen = 0;
  fc.assert(
    fc.property(arbitraryHistory, ({ apex, before, after }) => {
      const zone = openZone(apex);
      for (const each of before) make(zone, each);
      activate(zone);
      const owners = new Set([apex, ...[...before, ...after].map(([owner]) => owner)]);
      const questions = [...owners].flatMap((owner) => ["MX", "SRV", "NS", "ANY"].map((type) => `${owner} ${type}`));
      const compare = () => {
        const expected = withoutTails(zone, () => answers(zone, questions));
        assert.deepEqual(answers(zone, questions), expected);
        seen += tails(zone.publisher.writer).filter((at) => hasAddresses(zone, at)).length;
      };
      compare();
      for (const each of after) {
        make(zone, each);
        compare();
      }
      auditArena(zone.publisher.writer);
    }),
    { numRuns: 150 },
  );
  assert(seen > 1000, `only ${seen} tails were looked at`);
});

const MX = "mx.t. MX";

function mailZone(): Zone {
  const zone = openZone("t.");
  activate(zone);
  change(zone, "mx.t.", "MX", "10 a.t.", "20 b.t.", "30 mail.elsewhere.");
  change(zone, "a.t.", "A", "192.0.2.1");
  change(zone, "b.t.", "AAAA", "2001:db8::1");
  return zone;
}

function tailCount({ publisher: { writer } }: Zone, type = "MX"): number {
  return tails(writer).filter((at) => (writer.view.words[at]! & 0xffff) === typeFromText(type)).length;
}
const additionals = ({ lab }: Zone, question = MX): readonly string[] =>
  lab.ask(question).filter((line) => line.startsWith("additional"));

test("a tail comes when the last target has an address, follows it, and goes with it", () => {
  const zone = mailZone();
  assert.equal(tailCount(zone), 1);
  const b = "additional b.t. 30 IN AAAA 2001:db8::1";
  assert.deepEqual(additionals(zone), ["additional a.t. 30 IN A 192.0.2.1", b]);
  change(zone, "a.t.", "A", "192.0.2.2");
  assert.deepEqual(additionals(zone), ["additional a.t. 30 IN A 192.0.2.2", b]);
  change(zone, "a.t.", "A");
  assert.equal(tailCount(zone), 0);
  assert.deepEqual(additionals(zone), [b]);
  change(zone, "*.t.", "A", "192.0.2.9");
  assert.deepEqual(additionals(zone), ["additional a.t. 30 IN A 192.0.2.9", b]);
  change(zone, "a.t.", "AAAA", "2001:db8::2");
  assert.deepEqual(additionals(zone), ["additional a.t. 30 IN AAAA 2001:db8::2", b]);
  assert.equal(tailCount(zone), 1);
});

test("a target that exists without an address keeps the tail away, because its going may uncover a wildcard", () => {
  const zone = mailZone();
  change(zone, "*.t.", "A", "192.0.2.9");
  change(zone, "b.t.", "TXT", '"x"');
  change(zone, "b.t.", "AAAA");
  assert.equal(tailCount(zone), 0);
  assert.deepEqual(additionals(zone), ["additional a.t. 30 IN A 192.0.2.1"]);
  change(zone, "b.t.", "TXT");
  const uncovered = "additional b.t. 30 IN A 192.0.2.9";
  assert.deepEqual(additionals(zone), ["additional a.t. 30 IN A 192.0.2.1", uncovered]);
  change(zone, "below.a.t.", "A", "192.0.2.8");
  change(zone, "a.t.", "A");
  assert.deepEqual(additionals(zone), [uncovered]);
  change(zone, "below.a.t.", "A");
  assert.deepEqual(additionals(zone), ["additional a.t. 30 IN A 192.0.2.9", uncovered]);
});

test("a target whose addresses are selected keeps the tail away, and a selected RRset has none", () => {
  const zone = mailZone();
  select(zone, "a.t.", "A", "192.0.2.7", "192.0.2.8");
  assert.equal(tailCount(zone), 0);
  const b = "additional b.t. 30 IN AAAA 2001:db8::1";
  assert.deepEqual(additionals(zone), ["additional a.t. 30 IN A 192.0.2.7", b]);
  change(zone, "b.t.", "AAAA", "2001:db8::1");
  assert.equal(tailCount(zone), 0, "another target changes");
  change(zone, "a.t.", "A", "192.0.2.9");
  assert.equal(tailCount(zone), 1);
  assert.deepEqual(additionals(zone), ["additional a.t. 30 IN A 192.0.2.9", b]);
  select(zone, "mx.t.", "MX", "10 a.t.", "20 b.t.");
  assert.equal(tailCount(zone), 0);
  change(zone, "a.t.", "A", "192.0.2.10");
  assert.equal(tailCount(zone), 0, "nothing renews it");
  assert.deepEqual(additionals(zone), ["additional a.t. 30 IN A 192.0.2.10"]);
  change(zone, "mx.t.", "MX", "10 a.t.", "20 b.t.");
  assert.equal(tailCount(zone), 1);
});

test("a tail that would be too long is none", () => {
  const zone = mailZone();
  change(zone, "a.t.", "A", ...Array.from({ length: 40 }, (_, index) => `192.0.2.${index}`));
  assert.equal(tailCount(zone), 0);
  assert.equal(additionals(zone).length, 41);
  change(zone, "a.t.", "A", "192.0.2.1");
  assert.equal(tailCount(zone), 1);
});

test("a name that many point to is written into the tails of so many and no more", () => {
  const zone = openZone("t.");
  activate(zone);
  change(zone, "a.t.", "A", "192.0.2.1");
  const names = Array.from({ length: POINTING_TO_ONE_MAX + 3 }, (_, index) => `mx${index}.t.`);
  for (const name of names) change(zone, name, "MX", "10 a.t.");
  assert.equal(tailCount(zone), POINTING_TO_ONE_MAX);
  change(zone, "a.t.", "A", "192.0.2.2");
  for (const name of names) {
    assert.deepEqual(additionals(zone, `${name} MX`), ["additional a.t. 30 IN A 192.0.2.2"]);
  }
  for (const name of names) change(zone, name, "MX");
  assert.equal(zone.publisher.zone.pointing.names.size, 0);
  assert.equal(zone.publisher.zone.pointing.rrsets.size, 0);
  change(zone, "late.t.", "MX", "10 a.t.");
  assert.equal(tailCount(zone), 1);
});

test("the zone's sequence brackets a change with its tails, within a larger change and alone", () => {
  const zone = mailZone();
  const { writer, zone: handle } = zone.publisher;
  const sequence = () => writer.view.words[handle.body * UNIT_WORDS + ZONE.SEQUENCE]!;
  const before = sequence();
  change(zone, "a.t.", "A", "192.0.2.3");
  assert.equal(sequence(), before + 2);
  beginChange(writer, handle);
  change(zone, "a.t.", "A", "192.0.2.4");
  assert.equal(sequence(), before + 3);
  endChange(writer, handle);
  change(zone, "unrelated.t.", "A", "192.0.2.4");
  assert.equal(sequence(), before + 4);
});

test("a successor of the writer takes over blocks with tails whole", () => {
  const zone = mailZone();
  const before = zone.lab.ask(MX);
  const successor = openImageWriter(zone.lab.shared);
  auditArena(successor);
  assert.deepEqual(tails(successor), tails(zone.publisher.writer));
  assert.deepEqual(zone.lab.ask(MX), before);
});

test("the apex's NS has a tail, the one that the SOA stands in for too", () => {
  const zone = openZone("t.");
  change(zone, "ns.t.", "A", "192.0.2.1");
  change(zone, "t.", "SOA", "ns.t. h.t. 1 1 1 1 60");
  activate(zone);
  assert.equal(tailCount(zone, "NS"), 1);
  assert.deepEqual(additionals(zone, "t. NS"), ["additional ns.t. 30 IN A 192.0.2.1"]);
  change(zone, "t.", "SOA", "ns2.t. h.t. 1 1 1 1 60");
  change(zone, "ns2.t.", "A", "192.0.2.2");
  assert.deepEqual(additionals(zone, "t. NS"), ["additional ns2.t. 30 IN A 192.0.2.2"]);
});
