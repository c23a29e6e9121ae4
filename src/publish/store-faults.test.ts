/** What no command would have let in, as another node may send it: it is left out, and nothing else suffers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openStoreLab, type StoreLab } from "../../tests/support/store-lab.ts";

type Item = Parameters<StoreLab["store"]["applyRemote"]>[0][number];

let counter = 0;

/** Records of another node in zone t., of which `fields` differ from an A record. */
async function arrive(world: StoreLab, records: readonly object[]): Promise<void> {
  const zone = world.store
    .rawItems({ limit: 100 })
    .items.find((item) => item.item === "object" && item.kind === "zone");
  assert.ok(zone?.item === "object");
  const items = records.map((fields): Item => {
    counter += 1;
    const stamp = `${Date.now().toString(16).padStart(12, "0")}${counter.toString(16).padStart(4, "0")}-other`;
    const usual = { id: `rec_${counter}`, zone: "t.", name: "a", type: "A", ttl: 60, values: [{ value: "192.0.2.1" }] };
    const body = { ...usual, protected: false, auto_populate: false, ...fields };
    const envelope = { ...zone.envelope, stamp, born: stamp, id: body.id, content: { kind: "body", body } } as const;
    return { item: "object", kind: "record", key: ["t.", body.name, body.type], envelope };
  });
  assert.deepEqual(await world.store.applyRemote(items), []);
  await world.publisher.settled();
}

function ask(world: StoreLab, question: string): readonly string[] {
  return world.lab.ask(question).filter((line) => !/ SOA /.test(line));
}

const BAD: readonly object[] = [
  { name: "bad1", values: [{ value: "not an address" }] },
  { name: "bad2", type: "MX", values: [{ value: "no host", priority: 1 }] },
  { name: "bad3", type: "CAA", values: [{ value: "ca.test", tag: "x".repeat(300) }] },
  { name: "bad4", type: "CAA", values: [{ value: "ca.test", tag: "issue", priority: 256 }] },
  { name: "bad5", type: "HTTPS", values: [{ value: "1 . alpn=h2" }] },
  { name: "bad6", type: "ANY", values: [{ value: "x." }] },
  { name: "@", type: "CNAME", values: [{ value: "x." }] },
  { name: "@", type: "SOA", values: [{ value: "x." }] },
  { name: "bad7", values: [{ value: "x" }], lb_policy: { method: "of a later version" } },
];

for (const isLive of [true, false]) {
  test(`records that cannot be answered are left out ${isLive ? "as they come" : "of a zone that is built"}`, async () => {
    await using world = await openStoreLab();
    await world.write((edit) => edit.zone({ name: "t.", soa: { mname: "ns.t.", rname: "h.t.", minimum: 60 } }));
    await arrive(world, [...BAD, { name: "good" }]);
    if (!isLive) {
      // Another default TTL of the zone has all of it made anew.
      const { body } = world.store.get("zone", ["t."]) ?? {};
      assert.ok(body);
      await world.write(({ tx }) => void tx.put("zone", { ...body, default_ttl: 7 }));
    }
    assert.deepEqual(ask(world, "good.t. A"), ["NOERROR aa", "answer good.t. 60 IN A 192.0.2.1"]);
    for (const name of [
      "bad1.t. A",
      "bad2.t. MX",
      "bad3.t. CAA",
      "bad4.t. CAA",
      "bad5.t. A",
      "bad6.t. A",
      "bad7.t. A",
    ]) {
      assert.deepEqual(ask(world, name), ["NXDOMAIN aa"], name);
    }
    assert.deepEqual(ask(world, "t. CNAME"), ["NOERROR aa"]);
    assert.match(world.lab.ask("t. SOA")[1] ?? "", / SOA ns\.t\. h\.t\. /);
    assert.equal(world.publisher.stats().failedZones, 0);
    assert.ok(world.faults.splice(0).every((line) => /not answered as it is stored/.test(line)));
    // A good value takes the place of a bad one.
    await arrive(world, [{ name: "bad1" }]);
    assert.deepEqual(ask(world, "bad1.t. A"), ["NOERROR aa", "answer bad1.t. 60 IN A 192.0.2.1"]);
  });
}

test("what is said of records that cannot be answered is bounded", async () => {
  await using world = await openStoreLab();
  await world.write((edit) => edit.zone({ name: "t." }));
  await arrive(
    world,
    Array.from({ length: 200 }, (_, index) => ({ name: `bad${index}`, values: [{ value: "?" }] })),
  );
  assert.equal(world.faults.splice(0).length, 20);
});

test("a name that is too long in its zone stops nothing", async () => {
  await using world = await openStoreLab();
  await world.write((edit) => edit.zone({ name: "t.", soa: { mname: "ns.t." } }));
  await arrive(world, [{ name: `${"x".repeat(62)}.`.repeat(4).slice(0, -1) }, { name: "good" }]);
  assert.deepEqual(ask(world, "good.t. A"), ["NOERROR aa", "answer good.t. 60 IN A 192.0.2.1"]);
  world.faults.splice(0);
});
