import assert from "node:assert/strict";
import { test } from "node:test";
import { type CommandWorld, testCaller } from "../../tests/support/commands.ts";
import { enableUpdates, givenUpdateZone, sortedLines, updateOf, zoneLines } from "../../tests/support/update-text.ts";
import { RCODE } from "../dns/codes.ts";
import type { TsigGrant } from "../model/objects.ts";
import type { ChangeBatch } from "../store/store.ts";
import { applyUpdate, type UpdateSender } from "./dynamic-update.ts";
import { createRecord } from "./records.ts";
import { createTsigKey } from "./tsig-keys.ts";
import { createZone, updateZone } from "./zones.ts";

const UNSIGNED: UpdateSender = { address: "192.0.2.53" };
const KEY = "updater.";
const SIGNED: UpdateSender = { keyName: KEY, address: "198.51.100.7" };

async function rcodeOf(world: CommandWorld, text: string, sender = UNSIGNED): Promise<string> {
  const { rcode } = await applyUpdate(world.context, sender, updateOf(text));
  return Object.entries(RCODE).find(([, number]) => number === rcode)?.[0] ?? "";
}

async function givenKey(world: CommandWorld, grants?: TsigGrant[]): Promise<string> {
  const given = { name: KEY, ...(grants === undefined ? {} : { grants }) } as Parameters<typeof createTsigKey>[2];
  await createTsigKey(world.context, testCaller({ role: "admin" }), given);
  return world.store.get("tsig-key", [KEY])?.body.id ?? "";
}

function recordOf(world: CommandWorld, name: string, type = "A") {
  return world.store.get("record", ["corp.", name, type])?.body;
}

const WEIGHTED = {
  name: "www",
  type: "A" as const,
  ttl: 300,
  values: [{ value: "192.0.2.1", region: "north" }, { value: "192.0.2.2" }, { value: "192.0.2.3", region: "south" }],
  lb_policy: {
    method: "weighted" as const,
    value_weights: { "192.0.2.1": 70, "192.0.2.2": 20, "192.0.2.3": 10 },
  },
  health_check_template: {
    protocol: "http" as const,
    port: 80,
    http_config: { headers: { authorization: "secret" } },
  },
  comment: "the web",
};

test("an update of values keeps policy, template, regions, comment and id; what named a value that went goes", async () => {
  await using world = await givenUpdateZone("");
  const { stored } = await createRecord(world.context, testCaller(), world.zoneId, WEIGHTED);
  const update = "delete www A 192.0.2.2\nadd www 60 A 192.0.2.4";
  assert.equal(await rcodeOf(world, update), "NOERROR");
  assert.deepEqual(recordOf(world, "www"), {
    ...stored.body,
    ttl: 60,
    values: [{ value: "192.0.2.1", region: "north" }, { value: "192.0.2.3", region: "south" }, { value: "192.0.2.4" }],
    lb_policy: { method: "weighted", value_weights: { "192.0.2.1": 70, "192.0.2.3": 10 } },
  });
});

test("a whole RRset that is deleted and added again in one update keeps all that does not name values", async () => {
  await using world = await givenUpdateZone("");
  const { stored } = await createRecord(world.context, testCaller(), world.zoneId, WEIGHTED);
  assert.equal(await rcodeOf(world, "delete www A\nadd www 300 A 192.0.2.9\nadd www 300 A 192.0.2.3"), "NOERROR");
  assert.deepEqual(recordOf(world, "www"), {
    ...stored.body,
    values: [{ value: "192.0.2.3", region: "south" }, { value: "192.0.2.9" }],
    lb_policy: { method: "weighted", value_weights: { "192.0.2.3": 10 } },
  });
});

test("entries of failover_order go with their values, and the list with its last", async () => {
  await using world = await givenUpdateZone("");
  const lb_policy = { method: "failover" as const, failover_order: ["192.0.2.2", "192.0.2.1"] };
  await createRecord(world.context, testCaller(), world.zoneId, { ...WEIGHTED, lb_policy });
  assert.equal(await rcodeOf(world, "delete www A 192.0.2.2"), "NOERROR");
  assert.deepEqual(recordOf(world, "www")?.lb_policy, { method: "failover", failover_order: ["192.0.2.1"] });
  assert.equal(await rcodeOf(world, "delete www A 192.0.2.1"), "NOERROR");
  assert.deepEqual(recordOf(world, "www")?.lb_policy, { method: "failover" });
});

test("one of several targets of a CNAME that is sent again leaves the others, a new one takes their place", async () => {
  await using world = await givenUpdateZone("");
  const values = [{ value: "a.corp." }, { value: "b.corp." }];
  await createRecord(world.context, testCaller(), world.zoneId, { name: "www", type: "CNAME", ttl: 300, values });
  assert.equal(await rcodeOf(world, "add www 300 CNAME b"), "NOERROR");
  assert.deepEqual(recordOf(world, "www", "CNAME")?.values, values);
  assert.equal(await rcodeOf(world, "add www 300 CNAME c"), "NOERROR");
  assert.deepEqual(recordOf(world, "www", "CNAME")?.values, [{ value: "c.corp." }]);
});

test("a value beside others has its numbers only where they differ from the record's", async () => {
  await using world = await givenUpdateZone("@ 300 MX 10 a\n@ 300 MX 10 b");
  assert.equal(await rcodeOf(world, "add @ 300 MX 10 c\nadd @ 300 MX 20 d"), "NOERROR");
  const { priority, values } = recordOf(world, "@", "MX")!;
  assert.equal(priority, 10);
  assert.deepEqual(values.slice(2), [{ value: "c.corp." }, { value: "d.corp.", priority: 20 }]);
});

const TOUCHES: readonly (readonly [update: string, rcode: string])[] = [
  ["add www 300 A 192.0.2.9", "REFUSED"],
  ["add www 60 A 192.0.2.1", "REFUSED"],
  ["delete www", "REFUSED"],
  ["delete www A", "REFUSED"],
  ["delete www A 192.0.2.1", "REFUSED"],
  ["delete www A 192.0.2.9", "NOERROR"],
  ["add www 300 A 192.0.2.1", "NOERROR"],
  ["delete www A\nadd www 300 A 192.0.2.1", "NOERROR"],
  ["add www 300 CNAME target", "NOERROR"],
];

for (const [update, rcode] of TOUCHES) {
  test(`beside a protected record: ${update.replace("\n", ", ")} is ${rcode}`, async () => {
    await using world = await givenUpdateZone("");
    const given = { name: "www", type: "A" as const, ttl: 300, values: [{ value: "192.0.2.1" }], protected: true };
    await createRecord(world.context, testCaller(), world.zoneId, given);
    const before = zoneLines(world.store);
    assert.equal(await rcodeOf(world, `add new 300 TXT "a"\n${update}`), rcode);
    assert.deepEqual(zoneLines(world.store), rcode === "REFUSED" ? before : ['new 300 TXT "a"', ...before].sort());
  });
}

test("a record that is filled automatically stays when its last value goes, and no CNAME comes to its name", async () => {
  await using world = await givenUpdateZone("");
  const given = { name: "www", type: "A" as const, ttl: 300, values: [{ value: "192.0.2.1" }], auto_populate: true };
  const { stored } = await createRecord(world.context, testCaller(), world.zoneId, given);
  assert.equal(await rcodeOf(world, "delete www"), "NOERROR");
  assert.deepEqual(recordOf(world, "www"), { ...stored.body, values: [] });
  assert.equal(await rcodeOf(world, "prereq nxdomain www"), "NOERROR");
  assert.equal(await rcodeOf(world, "add www 300 CNAME target"), "REFUSED");
  assert.equal(await rcodeOf(world, "add www 300 A 192.0.2.2"), "NOERROR");
  assert.deepEqual(recordOf(world, "www")?.values, [{ value: "192.0.2.2" }]);
});

test("an SOA with a greater serial gives the zone its names and timers; the serial stays the server's", async () => {
  await using world = await givenUpdateZone("");
  const serial = world.store.serialOf("corp.")!;
  const given = `add @ 300 SOA ns9 admin ${serial + 100} 1000 200 30000 40`;
  assert.equal(await rcodeOf(world, given), "NOERROR");
  const zone = world.store.get("zone", ["corp."])!.body;
  const soa = { mname: "ns9.corp.", rname: "admin.corp.", refresh: 1000, retry: 200, expire: 30_000, minimum: 40 };
  assert.deepEqual(zone.soa, soa);
  assert.ok(world.store.serialOf("corp.")! > serial);
  assert.ok(world.store.serialOf("corp.")! < serial + 100);
  const [entry] = world.audit({ resource: "zone" });
  assert.deepEqual([entry?.action, entry?.detail, entry?.user_name], ["update", "dynamic update", "unsigned"]);
  const tooLong = `add @ 300 SOA ns9 admin ${serial + 200} 4000000000 200 30000 40\nadd new 300 A 192.0.2.9`;
  assert.equal(await rcodeOf(world, tooLong), "REFUSED");
  assert.deepEqual(zoneLines(world.store), []);
});

test("where it is not enabled every update is refused", async () => {
  await using world = await givenUpdateZone("");
  await givenKey(world);
  await world.store.write((tx) => tx.put("config", { name: "dynamic-dns", settings: { enabled: false } }));
  assert.equal(await rcodeOf(world, "add new 300 A 192.0.2.9", SIGNED), "REFUSED");
  assert.equal(await rcodeOf(world, "add new 300 A 192.0.2.9"), "REFUSED");
});

test("unsigned updates are taken from the networks listed and from nowhere else", async () => {
  await using world = await givenUpdateZone("");
  await enableUpdates(world.store, ["192.0.2.0/25", "2001:db8::/32"]);
  const from = (address: string) => rcodeOf(world, "prereq yxdomain @", { address });
  assert.equal(await from("192.0.2.1"), "NOERROR");
  assert.equal(await from("::ffff:192.0.2.1"), "NOERROR");
  assert.equal(await from("192.0.2.200"), "REFUSED");
  assert.equal(await from("2001:db8::9"), "NOERROR");
  assert.equal(await from("2001:db9::9"), "REFUSED");
});

test("a signed update has the grants of its key, whatever network it came from; a key that is gone has none", async () => {
  await using world = await givenUpdateZone("");
  await givenKey(world, []);
  const sender = { keyName: KEY, address: "192.0.2.1" };
  assert.equal(await rcodeOf(world, "add new 300 A 192.0.2.9", sender), "REFUSED");
  assert.equal(await rcodeOf(world, "add new 300 A 192.0.2.9", { ...sender, keyName: "gone." }), "REFUSED");
});

const ACME: TsigGrant[] = [
  { zone: "corp.", names: ["_acme-challenge", "_acme-challenge.*"], types: ["TXT"], update: true },
];
const GRANTED: readonly (readonly [update: string, rcode: string])[] = [
  ['add _acme-challenge 60 TXT "a"', "NOERROR"],
  ['add _ACME-challenge.www 60 TXT "a"', "NOERROR"],
  ["delete _acme-challenge TXT", "NOERROR"],
  ["delete _acme-challenge", "NOERROR"],
  ["delete _acme-challenge.mixed", "REFUSED"],
  ["add _acme-challenge 60 A 192.0.2.1", "REFUSED"],
  ["delete _acme-challenge A", "REFUSED"],
  ['add www 60 TXT "a"', "REFUSED"],
  ["delete www", "REFUSED"],
  ['add @ 60 TXT "a"', "REFUSED"],
  ["add @ 60 SOA ns9 admin 4000000000 1 1 1 1", "REFUSED"],
  ['add _acme-challenge 60 TXT "a"\nadd www 60 TXT "b"', "REFUSED"],
  ["prereq nxdomain www\ndelete www", "YXDOMAIN"],
];

for (const [update, rcode] of GRANTED) {
  test(`a key for challenges only: ${update.replace("\n", ", ")} is ${rcode}`, async () => {
    const zone = 'www 300 A 192.0.2.1\n_acme-challenge.mixed 300 A 192.0.2.1\n_acme-challenge.mixed 300 TXT "a"';
    await using world = await givenUpdateZone(zone);
    await givenKey(world, ACME);
    assert.equal(await rcodeOf(world, update, SIGNED), rcode);
    if (rcode !== "NOERROR") assert.deepEqual(zoneLines(world.store), sortedLines(zone));
  });
}

test("a zone that is not active does not exist to updates", async () => {
  await using world = await givenUpdateZone("");
  await createZone(world.context, testCaller(), { peersAlive: () => 1 }, { name: "new.corp." });
  assert.equal(world.store.stateOf("new.corp."), "pending");
  const update = updateOf("add www.new 300 A 192.0.2.9", { zone: "new.corp." });
  assert.equal((await applyUpdate(world.context, UNSIGNED, update)).rcode, RCODE.NOTAUTH);
});

test("the audit log says which key changed what from where", async () => {
  await using world = await givenUpdateZone("old 300 A 192.0.2.1");
  const id = await givenKey(world);
  const seen = world.audit({}).length;
  await rcodeOf(world, "add new 300 A 192.0.2.9\ndelete old", SIGNED);
  await rcodeOf(world, "delete old", SIGNED);
  assert.equal(await rcodeOf(world, "delete old TYPE99", SIGNED), "REFUSED");
  const entries = world.audit({}).slice(0, world.audit({}).length - seen);
  assert.deepEqual(
    entries.map((entry) => [entry.action, entry.resource, entry.resource_name, entry.result]).reverse(),
    [
      ["delete", "record", "old.corp. A", "success"],
      ["create", "record", "new.corp. A", "success"],
      ["update", "zone", "corp.", "unchanged"],
    ],
  );
  for (const entry of entries) {
    assert.deepEqual([entry.user_id, entry.user_name, entry.source_address], [id, KEY, SIGNED.address]);
  }
});

test("thousands of records are one transaction with one entry in the audit log, and others have their turn meanwhile", async () => {
  await using world = await givenUpdateZone("");
  const batches: ChangeBatch[] = [];
  world.store.onChange((batch) => void batches.push(batch));
  const count = 2_500;
  const text = Array.from({ length: count }, (_, at) => `add h${at} 300 A 10.0.${at >> 8}.${at & 255}`).join("\n");
  const update = updateOf(text);
  let turns = 0;
  let isOver = false;
  const turn = () => {
    // What others read meanwhile is the zone as it was.
    if (world.store.count("record", "corp.") === 0) turns++;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const { rcode, recordsChanged } = await applyUpdate(world.context, UNSIGNED, update);
  isOver = true;
  assert.deepEqual([rcode, recordsChanged], [RCODE.NOERROR, count]);
  assert.ok(turns > 3, `${turns} turns`);
  assert.equal(world.store.count("record", "corp."), count);
  assert.equal(batches.length, 1);
  const [entry] = world.audit({ resource: "zone" });
  assert.match(JSON.stringify(entry?.after), /"created":2500,"updated":0,"deleted":0/);
  const refused = updateOf(`delete h0\n${text}\nadd x 300 DS hex 00010801`);
  assert.equal((await applyUpdate(world.context, UNSIGNED, refused)).rcode, RCODE.REFUSED);
  assert.equal(world.store.count("record", "corp."), count);
});

test("more values than a record holds are refused whole", async () => {
  await using world = await givenUpdateZone("");
  const text = Array.from({ length: 1_001 }, (_, at) => `add www 300 A 10.0.${at >> 8}.${at & 255}`).join("\n");
  assert.equal(await rcodeOf(world, text), "REFUSED");
  assert.deepEqual(zoneLines(world.store), []);
});

test("a zone's default TTL sent with a record that inherits it changes nothing, another is stored", async () => {
  await using world = await givenUpdateZone("www 0 A 192.0.2.1");
  await updateZone(world.context, testCaller(), world.zoneId, { default_ttl: 120 });
  assert.equal(await rcodeOf(world, "add www 120 A 192.0.2.1"), "NOERROR");
  assert.equal(recordOf(world, "www")?.ttl, 0);
  assert.equal(await rcodeOf(world, "add www 3600 A 192.0.2.1"), "NOERROR");
  assert.equal(recordOf(world, "www")?.ttl, 3600);
});

/** As the merge of two nodes leaves it: the CNAME came later and is hidden. */
async function hideCname(world: CommandWorld): Promise<void> {
  const { id: _, values: __, ...rest } = recordOf(world, "www")!;
  const body = { ...rest, id: "rec_hidden", type: "CNAME" as const, values: [{ value: "target.corp." }] };
  await world.store.write((tx) => tx.put("record", body));
  assert.ok(world.store.get("record", ["corp.", "www", "CNAME"])?.shadowedBy !== undefined);
}

test("a record that is hidden since a conflict of two nodes keeps nothing from its rival, and goes with the name", async () => {
  await using world = await givenUpdateZone("www 300 A 192.0.2.1");
  await hideCname(world);
  assert.equal(await rcodeOf(world, "prereq nxrrset www CNAME\nadd www 300 A 192.0.2.2"), "NOERROR");
  assert.equal(recordOf(world, "www")?.values.length, 2);
  assert.equal(await rcodeOf(world, "prereq yxrrset www CNAME"), "NXRRSET");
  assert.equal(await rcodeOf(world, 'add www 300 TXT "a"'), "REFUSED");
  assert.equal(await rcodeOf(world, "delete www"), "NOERROR");
  assert.deepEqual(zoneLines(world.store), []);
});
