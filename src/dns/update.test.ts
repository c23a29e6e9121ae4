import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { updateBytes } from "../../tests/support/update-text.ts";
import { CLASS, RCODE, RRTYPE } from "./codes.ts";
import { nameToText } from "./name.ts";
import { rdataToText } from "./rdata.ts";
import { parseUpdate, type UpdateMessage } from "./update.ts";

function parsed(text: string): UpdateMessage {
  const update = parseUpdate(updateBytes(text));
  assert.ok(update.kind === "update");
  return update;
}

function shown(items: UpdateMessage["prerequisites"] | UpdateMessage["updates"]): readonly string[] {
  return items.map((item) => {
    if (item.kind === "fault") return `fault ${item.rcode}`;
    const type = "type" in item ? ` ${item.type}` : "";
    const ttl = "ttl" in item ? ` ${item.ttl}` : "";
    const rdata = "rdata" in item ? ` ${rdataToText(item.type, item.rdata)}` : "";
    return `${item.kind} ${nameToText(item.name)}${type}${ttl}${rdata}`;
  });
}

test("prerequisites of every form (RFC 2136 section 2.4)", () => {
  const { prerequisites, updates, id, zone } = parsed(`
    prereq yxdomain www
    prereq nxdomain API
    prereq yxrrset www A
    prereq nxrrset www MX
    prereq yxrrset www A 192.0.2.1
  `);
  assert.deepEqual(shown(prerequisites), [
    "name-in-use www.corp.",
    "name-not-in-use API.corp.",
    "rrset-exists www.corp. 1",
    "rrset-absent www.corp. 15",
    "rr www.corp. 1 192.0.2.1",
  ]);
  assert.deepEqual(updates, []);
  assert.equal(id, 4711);
  assert.equal(nameToText(zone), "corp.");
});

test("updates of every form (RFC 2136 section 2.5)", () => {
  const { updates } = parsed(`
    add www 300 A 192.0.2.1
    delete www A
    delete www
    delete www A 192.0.2.1
    delete @ MX 10 mail
  `);
  assert.deepEqual(shown(updates), [
    "add www.corp. 1 300 192.0.2.1",
    "delete-rrset www.corp. 1",
    "delete-name www.corp.",
    "delete-rr www.corp. 1 192.0.2.1",
    "delete-rr corp. 15 10 mail.corp.",
  ]);
});

/** Lines with one RR that breaks a rule in each section, and the rcode that stands in its place. */
const FAULTS: readonly (readonly [what: string, line: string, rcode: number])[] = [
  ["a prerequisite with a TTL", "raw-prereq www 255 255 1", RCODE.FORMERR],
  ["a prerequisite of class ANY with rdata", "raw-prereq www 255 1 0 c0000201", RCODE.FORMERR],
  ["a prerequisite of class NONE with rdata", "raw-prereq www 254 1 0 c0000201", RCODE.FORMERR],
  ["a prerequisite of class CH", "raw-prereq www 3 16 0 00", RCODE.FORMERR],
  ["a prerequisite outside the zone", "raw-prereq www.other. 255 255 0", RCODE.NOTZONE],
  ["an update outside the zone", "add www.other. 300 A 192.0.2.1", RCODE.NOTZONE],
  ["an update of a name that only ends like the zone", "add xcorp. 300 A 192.0.2.1", RCODE.NOTZONE],
  ["an add of type ANY", "raw-update www 1 255 300 00", RCODE.FORMERR],
  ["an add of type AXFR", "raw-update www 1 252 300 00", RCODE.FORMERR],
  ["an add of type MAILA", "raw-update www 1 254 300 00", RCODE.FORMERR],
  ["an add of type MAILB", "raw-update www 1 253 300 00", RCODE.FORMERR],
  ["an add of type TSIG", "raw-update www 1 250 300 00", RCODE.FORMERR],
  ["a deletion of an RRset with a TTL", "raw-update www 255 1 300", RCODE.FORMERR],
  ["a deletion of an RRset with rdata", "raw-update www 255 1 0 c0000201", RCODE.FORMERR],
  ["a deletion of an RRset of type AXFR", "raw-update www 255 252 0", RCODE.FORMERR],
  ["a deletion of an RR with a TTL", "raw-update www 254 1 300 c0000201", RCODE.FORMERR],
  ["a deletion of an RR of type ANY", "raw-update www 254 255 0", RCODE.FORMERR],
  ["an update of class CH", "raw-update www 3 16 300 00", RCODE.FORMERR],
  ["an update of class 0", "raw-update www 0 1 300 c0000201", RCODE.FORMERR],
];

for (const [what, line, rcode] of FAULTS) {
  test(`${what} stands as a fault, and nothing behind it is read`, () => {
    const good = line.startsWith("raw-prereq") ? "prereq nxdomain new" : "add new 300 A 192.0.2.9";
    const { prerequisites, updates } = parsed(`${good}\n${line}\n${good}`);
    const items = line.startsWith("raw-prereq") ? prerequisites : updates;
    assert.equal(items.length, 2);
    assert.deepEqual(shown(items)[1], `fault ${rcode}`);
  });
}

const MALFORMED: readonly (readonly [what: string, line: string])[] = [
  ["an OPT among the prerequisites", "raw-prereq www 255 41 0"],
  ["an A of three bytes", "raw-update www 1 1 300 c00002"],
  ["an A without rdata to be added", "raw-update www 1 1 300"],
  ["an RR without rdata to be deleted where that is none of its type", "raw-update www 254 1 0 c0"],
  ["an MX without a name", "raw-update www 1 15 300 000a"],
  ["a TXT whose string ends outside", "raw-update www 1 16 300 05616263"],
];

for (const [what, line] of MALFORMED) {
  test(`${what} makes the message malformed`, () => {
    const update = parseUpdate(updateBytes(line));
    assert.ok(update.kind === "refused");
    assert.equal(update.rcode, RCODE.FORMERR);
  });
}

test("the zone section has one zone, of type SOA and class IN (RFC 2136 section 3.1)", () => {
  const rcodeOf = (bytes: Uint8Array) => {
    const update = parseUpdate(bytes);
    assert.ok(update.kind === "refused");
    return update.rcode;
  };
  assert.equal(rcodeOf(updateBytes("", { zoneType: RRTYPE.A })), RCODE.FORMERR);
  assert.equal(rcodeOf(updateBytes("", { zoneClass: CLASS.CH })), RCODE.NOTAUTH);
  const none = updateBytes("").slice(0, 12);
  none[5] = 0;
  assert.equal(rcodeOf(none), RCODE.FORMERR);
  const whole = Buffer.from(updateBytes(""));
  const two = Buffer.concat([whole, whole.subarray(12)]);
  two[5] = 2;
  assert.equal(rcodeOf(two), RCODE.FORMERR);
  assert.equal(rcodeOf(Buffer.concat([whole, Buffer.of(0)])), RCODE.FORMERR);
  const query = Buffer.from(whole);
  query[2] = 0;
  assert.equal(rcodeOf(query), RCODE.FORMERR);
});

test("arbitrary bytes, and updates with bytes changed, never throw and give rcodes of the RFC", () => {
  const good = updateBytes(`
    prereq yxrrset www A 192.0.2.1
    add www 300 MX 10 mail
    delete www
    add @ 300 TXT "text"
  `);
  const known = new Set<number>([RCODE.FORMERR, RCODE.NOTAUTH]);
  const changes = fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { maxLength: 8 });
  fc.assert(
    fc.property(changes, fc.uint8Array({ maxLength: 100 }), fc.boolean(), (places, noise, isNoise) => {
      const bytes = isNoise ? noise : Uint8Array.from(good);
      if (!isNoise) for (const [at, byte] of places) bytes[at] = byte;
      const update = parseUpdate(bytes);
      if (update.kind === "refused") assert.ok(known.has(update.rcode));
    }),
    { numRuns: 5_000 },
  );
});
