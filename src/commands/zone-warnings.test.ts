import assert from "node:assert/strict";
import { test } from "node:test";
import { ALONE, givenZone, testCaller } from "../../tests/support/commands.ts";
import type { RecordType } from "../model/objects.ts";
import { createRecord } from "./records.ts";
import { createZone, updateZone } from "./zones.ts";

/** Warnings of the zone corp. with that mname and one record. */
async function warningsWith(mname: string, owner?: string, type: RecordType = "A"): Promise<readonly string[]> {
  await using world = await givenZone("corp.");
  if (owner !== undefined) {
    const value = { A: "192.0.2.1", AAAA: "2001:db8::1", TXT: "text" }[String(type)] ?? "x.example.";
    await createRecord(world.context, testCaller(), world.zoneId, { name: owner, type, ttl: 0, values: [{ value }] });
  }
  return (await updateZone(world.context, testCaller(), world.zoneId, { soa: { mname } })).warnings;
}

test("a name server of the zone needs an address, a wildcard's will do", async () => {
  assert.equal((await warningsWith("ns.corp.")).length, 1);
  assert.equal((await warningsWith("ns.corp.", "ns", "TXT")).length, 1);
  assert.equal((await warningsWith("ns.corp.", "other")).length, 1);
  assert.deepEqual(await warningsWith("NS.corp.", "ns"), []);
  assert.deepEqual(await warningsWith("ns.corp.", "ns", "AAAA"), []);
  assert.deepEqual(await warningsWith("ns.a.corp.", "*.a"), []);
  assert.deepEqual(await warningsWith("ns.a.corp.", "*"), []);
  assert.deepEqual(await warningsWith("corp.", "@"), []);
  assert.equal((await warningsWith("corp.", "*")).length, 1);
  assert.deepEqual(await warningsWith("ns.corp.corp.", "*.corp"), []);
});

test("a name server elsewhere is nobody's business, one in another hosted zone is", async () => {
  assert.deepEqual(await warningsWith("ns.example."), []);
  assert.deepEqual(await warningsWith("ns.xcorp."), []);
  await using world = await givenZone("corp.");
  const lab = { name: "lab.", soa: { mname: "ns.corp.", rname: "hostmaster.lab." } };
  assert.match((await createZone(world.context, testCaller(), ALONE, lab)).warnings.join(), /zone corp\./);
});
