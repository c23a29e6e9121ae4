/**
 * What programs that manage zones send, message by message, as their public documentation and RFC 2136 have it: names
 * written out in full, an RR deleted by class NONE, an RRset by class ANY.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CommandWorld } from "../../tests/support/commands.ts";
import { givenUpdateZone, zoneLines } from "../../tests/support/update-text.ts";
import { CLASS, OPCODE, RCODE, RRTYPE } from "../dns/codes.ts";
import { nameFromText } from "../dns/name.ts";
import { rdataFromText } from "../dns/rdata.ts";
import { parseUpdate } from "../dns/update.ts";
import { applyUpdate } from "./dynamic-update.ts";

type Line = readonly [
  what: "insert" | "remove" | "remove-rrset",
  name: string,
  ttl: number,
  type: "A" | "TXT" | "CNAME",
  rdata: string,
];

const CLASSES = { insert: CLASS.IN, remove: CLASS.NONE, "remove-rrset": CLASS.ANY };

function wireName(text: string): Buffer {
  const name = nameFromText(text);
  assert.ok(name.kind === "name");
  return Buffer.from(name.name);
}

function numbers(...words: readonly number[]): Buffer {
  const bytes = Buffer.alloc(words.length * 2);
  for (const [index, word] of words.entries()) bytes.writeUInt16BE(word, index * 2);
  return bytes;
}

/** A message without compression. TTL and rdata are there for what is inserted, rdata for what is removed. */
function messageOf(lines: readonly Line[]): Uint8Array {
  const records = lines.flatMap(([what, name, ttl, type, text]) => {
    const rdata = rdataFromText(RRTYPE[type], text);
    assert.ok(rdata.kind === "rdata");
    const bytes = what === "remove-rrset" ? Buffer.alloc(0) : Buffer.from(rdata.rdata);
    const seconds = what === "insert" ? ttl : 0;
    return [wireName(name), numbers(RRTYPE[type], CLASSES[what], 0, seconds, bytes.length), bytes];
  });
  const header = numbers(7, OPCODE.UPDATE << 11, 1, 0, lines.length, 0);
  return Buffer.concat([header, wireName("corp."), numbers(RRTYPE.SOA, CLASS.IN), ...records]);
}

async function send(world: CommandWorld, ...lines: readonly Line[]): Promise<number> {
  const update = parseUpdate(messageOf(lines));
  assert.ok(update.kind === "update");
  const { rcode } = await applyUpdate(world.context, { address: "192.0.2.1" }, update);
  return rcode;
}

const OWNER = '"heritage=external-dns,external-dns/owner=default,external-dns/resource=service/default/web"';

test("a controller of services makes, changes and removes an address with its text of ownership", async () => {
  await using world = await givenUpdateZone("");
  const web = "web.corp.";
  const text = "a-web.corp.";
  const made: readonly Line[] = [
    ["insert", web, 300, "A", "192.0.2.1"],
    ["insert", text, 300, "TXT", OWNER],
  ];
  assert.equal(await send(world, ...made), RCODE.NOERROR);
  assert.deepEqual(zoneLines(world.store), [`a-web 300 TXT ${OWNER}`, "web 300 A 192.0.2.1"]);
  const id = world.store.get("record", ["corp.", "web", "A"])?.body.id;
  const changed: readonly Line[] = [
    ["remove", web, 0, "A", "192.0.2.1"],
    ["insert", web, 300, "A", "192.0.2.2"],
    ["insert", web, 300, "A", "192.0.2.3"],
    ["remove", text, 0, "TXT", OWNER],
    ["insert", text, 300, "TXT", OWNER],
  ];
  assert.equal(await send(world, ...changed), RCODE.NOERROR);
  assert.deepEqual(zoneLines(world.store), [`a-web 300 TXT ${OWNER}`, "web 300 A 192.0.2.2", "web 300 A 192.0.2.3"]);
  assert.equal(world.store.get("record", ["corp.", "web", "A"])?.body.id, id);
  const removed: readonly Line[] = [
    ["remove", web, 0, "A", "192.0.2.2"],
    ["remove", web, 0, "A", "192.0.2.3"],
    ["remove", text, 0, "TXT", OWNER],
  ];
  assert.equal(await send(world, ...removed), RCODE.NOERROR);
  assert.deepEqual(zoneLines(world.store), []);
});

const CHALLENGE = "_acme-challenge.www.corp.";

test("an ACME client replaces a challenge that is left over, and removes its own", async () => {
  await using world = await givenUpdateZone('_acme-challenge.www 60 TXT "left over"');
  const shown: readonly Line[] = [
    ["remove-rrset", CHALLENGE, 0, "TXT", '"first"'],
    ["insert", CHALLENGE, 120, "TXT", '"first"'],
  ];
  assert.equal(await send(world, ...shown), RCODE.NOERROR);
  assert.deepEqual(zoneLines(world.store), ['_acme-challenge.www 120 TXT "first"']);
  assert.equal(await send(world, ["remove", CHALLENGE, 0, "TXT", '"first"']), RCODE.NOERROR);
  assert.deepEqual(zoneLines(world.store), []);
});

test("challenges for a name and its wildcard stand beside each other, and each goes by itself", async () => {
  await using world = await givenUpdateZone("");
  assert.equal(await send(world, ["insert", CHALLENGE, 120, "TXT", '"first"']), RCODE.NOERROR);
  assert.equal(await send(world, ["insert", CHALLENGE, 120, "TXT", '"second"']), RCODE.NOERROR);
  assert.deepEqual(zoneLines(world.store), [
    '_acme-challenge.www 120 TXT "first"',
    '_acme-challenge.www 120 TXT "second"',
  ]);
  assert.equal(await send(world, ["remove", CHALLENGE, 0, "TXT", '"first"']), RCODE.NOERROR);
  assert.equal(await send(world, ["remove", CHALLENGE, 0, "TXT", '"first"']), RCODE.NOERROR);
  assert.deepEqual(zoneLines(world.store), ['_acme-challenge.www 120 TXT "second"']);
});

test("a challenge that a CNAME delegates elsewhere is ignored, not refused (RFC 2136 section 3.4.2.2)", async () => {
  await using world = await givenUpdateZone("_acme-challenge.www 60 CNAME www.acme.example.");
  assert.equal(await send(world, ["insert", CHALLENGE, 120, "TXT", '"first"']), RCODE.NOERROR);
  assert.deepEqual(zoneLines(world.store), ["_acme-challenge.www 60 CNAME www.acme.example."]);
});
