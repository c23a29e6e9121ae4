import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { arbitraryTypeAndRdata, QUESTION_TYPES, soaOfZone } from "../../tests/support/arbitrary-zones.ts";
import { nameOf, openLab } from "../../tests/support/zone-lab.ts";
import { rdataFromText } from "../dns/rdata.ts";
import { typeFromText } from "../dns/type-names.ts";
import { TRANSPORT } from "../image/counters.ts";
import { activateZone, collect } from "../image/writer.ts";
import { addRecord, changeRRset, finishZone, startZone, type ZonePublisher } from "./zone-publisher.ts";

const APEX = "t.";

type Change = {
  readonly owner: string;
  readonly type: string;
  readonly ttl: number;
  readonly rdatas: readonly string[];
};

const arbitraryOwner = fc
  .array(fc.constantFrom("a", "b", "*"), { maxLength: 4 })
  .map((labels) => [...labels, APEX].join("."));

/** One in three, without rdata, takes away the RRset of an earlier one. */
const arbitraryChange: fc.Arbitrary<Change> = fc.oneof(
  fc
    .tuple(arbitraryOwner, arbitraryTypeAndRdata, arbitraryTypeAndRdata, fc.integer({ min: 1, max: 9 }), fc.nat(2))
    .map(([owner, [type, rdata], [otherType, otherRdata], ttl, kind]) => {
      const several = otherType === type && otherRdata !== rdata ? [rdata, otherRdata] : [rdata];
      return { owner, type, ttl, rdatas: kind === 0 ? [] : several };
    }),
  fc.integer({ min: 1, max: 9 }).map((minimum) => {
    const { owner, type, ttl, rdata } = soaOfZone(APEX, 5, minimum);
    return { owner, type, ttl, rdatas: [rdata] };
  }),
);

function wire(type: string, text: string): Uint8Array {
  const result = rdataFromText(typeFromText(type)!, text);
  return result.kind === "rdata" ? result.rdata : assert.fail(result.detail);
}

/** The records of the zone after the changes that were accepted, by owner and type. */
function apply(publisher: ZonePublisher, changes: readonly Change[]): ReadonlyMap<string, Change> {
  const soa = soaOfZone(APEX, 5, 5);
  const kept = new Map<string, Change>([[`${APEX} SOA`, { ...soa, rdatas: [soa.rdata] }]]);
  for (const [index, change] of changes.entries()) {
    const { ttl, rdatas } = change;
    const { owner, type } = rdatas.length > 0 ? change : changes[Math.max(0, index - ttl)]!;
    const rdata = rdatas.map((text) => wire(type, text));
    const refusal = changeRRset(publisher, nameOf(owner), typeFromText(type)!, ttl, rdata);
    collect(publisher.writer);
    if (refusal !== undefined) continue;
    kept.delete(`${owner} ${type}`);
    if (rdatas.length > 0) kept.set(`${owner} ${type}`, change);
  }
  return kept;
}

function textOf(kept: ReadonlyMap<string, Change>): string {
  const lines = [...kept.values()].flatMap(({ owner, type, ttl, rdatas }) =>
    rdatas.map((rdata) => `${owner} ${ttl} ${type} ${rdata}\n`),
  );
  return lines.join("");
}

test("a zone that was changed RRset by RRset answers like one that was loaded whole", () => {
  const labels = ["a", "b", "*"];
  const below = (names: readonly string[]) => names.flatMap((name) => labels.map((label) => `${label}.${name}`));
  const names = [[APEX], below([APEX]), below(below([APEX])), below(below(below([APEX]))).slice(0, 12)].flat();
  fc.assert(
    fc.property(fc.array(arbitraryChange, { maxLength: 60 }), (changes) => {
      const changed = openLab([]);
      const publisher = startZone(changed.writer, nameOf(APEX));
      const { type, ttl, rdata } = soaOfZone(APEX, 5, 5);
      const soa = wire(type, rdata);
      addRecord(publisher, nameOf(APEX), nameOf(APEX).length, typeFromText(type)!, ttl, soa, soa.length, 1, 1);
      assert.equal(finishZone(publisher).ok, true);
      activateZone(changed.writer, publisher.zone, publisher.apex);
      const text = textOf(apply(publisher, changes));
      const loaded = openLab([text]);
      for (const name of names) {
        for (const asked of QUESTION_TYPES) {
          const question = `${name} ${asked}`;
          const options = { transport: TRANSPORT.TCP };
          assert.deepEqual(changed.ask(question, options), loaded.ask(question, options), `${question}\n${text}`);
        }
      }
    }),
    { numRuns: 60 },
  );
});
