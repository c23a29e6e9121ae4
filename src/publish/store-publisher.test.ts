import assert from "node:assert/strict";
import { test } from "node:test";
import { openStoreLab, type StoreLab } from "../../tests/support/store-lab.ts";
import type { RecordType } from "../model/objects.ts";

const T = { name: "t.", soa: { mname: "ns.t.", rname: "h.t.", minimum: 60 } };

async function openT(): Promise<StoreLab> {
  const world = await openStoreLab();
  await world.write((edit) => edit.zone(T));
  return world;
}

/** The lines of the answer without SOA records, whose serial is the time. */
function ask(world: StoreLab, question: string): readonly string[] {
  return world.lab.ask(question).filter((line) => !/ SOA /.test(line));
}

const NODATA = ["NOERROR aa"];
const NXDOMAIN = ["NXDOMAIN aa"];

test("a record is on the wire when its write is acknowledged", async () => {
  await using world = await openT();
  await world.write((edit) => edit.record("t.", { name: "a", type: "A", ttl: 7, values: [{ value: "192.0.2.1" }] }));
  assert.deepEqual(ask(world, "a.t. A"), ["NOERROR aa", "answer a.t. 7 IN A 192.0.2.1"]);
  await world.write((edit) => edit.record("t.", { name: "a", type: "A", values: [{ value: "192.0.2.2" }] }));
  assert.deepEqual(ask(world, "a.t. A"), ["NOERROR aa", "answer a.t. 3600 IN A 192.0.2.2"]);
  await world.write(({ tx }) => void tx.delete("record", ["t.", "a", "A"]));
  assert.deepEqual(ask(world, "a.t. A"), NXDOMAIN);
});

test("the SOA has the serial of the last change, in negative answers too", async () => {
  await using world = await openT();
  const serialIn = (question: string) =>
    world.lab.ask(question).map((line) => / SOA ns\.t\. h\.t\. (\d+) 7200 900 1209600 60$/.exec(line)?.[1]);
  for (const value of ["192.0.2.1", "192.0.2.2"]) {
    await world.write((edit) => edit.record("t.", { name: "a", type: "A", values: [{ value }] }));
    const serial = String(world.store.serialOf("t."));
    assert.deepEqual(serialIn("t. SOA"), [undefined, serial]);
    assert.deepEqual(serialIn("nothing.t. A"), [undefined, serial]);
  }
});

test("a zone without NS answers with its primary server, the new one after a change", async () => {
  await using world = await openT();
  const ns = (name: string) => ["NOERROR aa", `answer t. 3600 IN NS ${name}`];
  assert.deepEqual(ask(world, "t. NS"), ns("ns.t."));
  const { body } = world.store.get("zone", ["t."])!;
  await world.write(({ tx }) => void tx.put("zone", { ...body, soa: { ...body.soa, mname: "ns2.other." } }));
  assert.deepEqual(ask(world, "t. NS"), ns("ns2.other."));
  await world.write((edit) => edit.record("t.", { name: "@", type: "NS", values: [{ value: "real.other." }] }));
  assert.deepEqual(ask(world, "t. NS"), ns("real.other."));
  await world.write(({ tx }) => void tx.put("zone", body));
  assert.deepEqual(ask(world, "t. NS"), ns("real.other."));
  await world.write(({ tx }) => void tx.delete("record", ["t.", "@", "NS"]));
  assert.deepEqual(ask(world, "t. NS"), ns("ns.t."));
});

test("every type is answered with its own numbers", async () => {
  await using world = await openT();
  const records: readonly [RecordType, object, readonly string[]][] = [
    ["AAAA", { values: [{ value: "2001:db8::1" }] }, ["2001:db8::1"]],
    ["MX", { values: [{ value: "a." }, { value: "b.", priority: 20 }], priority: 10 }, ["10 a.", "20 b."]],
    [
      "SRV",
      {
        values: [
          { value: "s.", port: 1 },
          { value: "s.", port: 2 },
        ],
        weight: 5,
      },
      ["0 5 1 s.", "0 5 2 s."],
    ],
    ["TXT", { values: [{ value: "v=spf1 -all" }] }, ['"v=spf1 -all"']],
    ["CAA", { values: [{ value: "" }], tag: "issue" }, ['0 issue ""']],
    ["PTR", { values: [{ value: "p." }] }, ["p."]],
  ];
  for (const [type, fields, texts] of records) {
    await world.write((edit) => edit.record("t.", { name: "x", type, ...fields } as never));
    assert.deepEqual(ask(world, `x.t. ${type}`), [
      "NOERROR aa",
      ...texts.map((text) => `answer x.t. 3600 IN ${type} ${text}`),
    ]);
  }
});

test("of several targets of a CNAME or ALIAS the first is answered", async () => {
  await using world = await openT();
  await world.write((edit) => {
    edit.record("t.", { name: "c", type: "CNAME", values: [{ value: "a.other." }, { value: "b.other." }] });
    edit.record("t.", { name: "@", type: "ALIAS", values: [{ value: "one.t." }, { value: "two.t." }] });
    edit.record("t.", { name: "one", type: "A", values: [{ value: "192.0.2.1" }] });
    edit.record("t.", { name: "two", type: "A", values: [{ value: "192.0.2.2" }] });
  });
  assert.deepEqual(ask(world, "c.t. A"), ["NOERROR aa", "answer c.t. 3600 IN CNAME a.other."]);
  assert.deepEqual(ask(world, "t. A"), ["NOERROR aa", "answer t. 3600 IN A 192.0.2.1"]);
});

test("a record without values holds its name, against a wildcard too", async () => {
  await using world = await openT();
  await world.write((edit) => {
    edit.record("t.", { name: "*", type: "A", values: [{ value: "192.0.2.9" }] });
    edit.record("t.", { name: "empty", type: "A", auto_populate: true });
  });
  assert.deepEqual(ask(world, "empty.t. A"), NODATA);
  await world.write((edit) => edit.record("t.", { name: "empty", type: "TXT", values: [{ value: "x" }] }));
  await world.write(({ tx }) => void tx.delete("record", ["t.", "empty", "TXT"]));
  assert.deepEqual(ask(world, "empty.t. A"), NODATA, "another type has come and gone");
  await world.write((edit) => edit.record("t.", { name: "deep.empty", type: "A", values: [{ value: "192.0.2.1" }] }));
  await world.write(({ tx }) => void tx.delete("record", ["t.", "deep.empty", "A"]));
  assert.deepEqual(ask(world, "empty.t. A"), NODATA, "a name below it has come and gone");
  await world.write((edit) =>
    edit.record("t.", { name: "empty", type: "A", auto_populate: true, values: [{ value: "192.0.2.1" }] }),
  );
  assert.deepEqual(ask(world, "empty.t. A"), ["NOERROR aa", "answer empty.t. 3600 IN A 192.0.2.1"]);
  await world.write((edit) => edit.record("t.", { name: "empty", type: "A", auto_populate: true }));
  assert.deepEqual(ask(world, "empty.t. A"), NODATA);
  await world.write(({ tx }) => void tx.delete("record", ["t.", "empty", "A"]));
  assert.deepEqual(ask(world, "empty.t. A"), ["NOERROR aa", "answer empty.t. 3600 IN A 192.0.2.9"]);
});

test("a rename and a change of type are one change", async () => {
  await using world = await openT();
  await world.write((edit) => edit.record("t.", { name: "a", type: "A", values: [{ value: "192.0.2.1" }] }));
  const { body } = world.store.get("record", ["t.", "a", "A"])!;
  await world.write(({ tx }) => void tx.move("record", ["t.", "a", "A"], { ...body, name: "b" }));
  assert.deepEqual(ask(world, "a.t. A"), NXDOMAIN);
  assert.deepEqual(ask(world, "b.t. A"), ["NOERROR aa", "answer b.t. 3600 IN A 192.0.2.1"]);
  await world.write((edit) => {
    edit.tx.delete("record", ["t.", "b", "A"]);
    edit.record("t.", { name: "b", type: "CNAME", values: [{ value: "c.other." }] });
  });
  assert.deepEqual(ask(world, "b.t. A"), ["NOERROR aa", "answer b.t. 3600 IN CNAME c.other."]);
});

test("what a rival hides is not answered, and comes back when the rival goes", async () => {
  await using world = await openT();
  await world.write((edit) => edit.record("t.", { name: "x", type: "A", values: [{ value: "192.0.2.1" }] }));
  await world.write((edit) => edit.record("t.", { name: "x", type: "CNAME", values: [{ value: "c.other." }] }));
  assert.deepEqual(ask(world, "x.t. A"), ["NOERROR aa", "answer x.t. 3600 IN A 192.0.2.1"]);
  await world.write(({ tx }) => void tx.delete("record", ["t.", "x", "A"]));
  assert.deepEqual(ask(world, "x.t. A"), ["NOERROR aa", "answer x.t. 3600 IN CNAME c.other."]);
});

test("a pending zone does not answer; active, it does", async () => {
  await using world = await openStoreLab();
  await world.write((edit) => {
    edit.zone(T, "pending");
    edit.record("t.", { name: "a", type: "A", values: [{ value: "192.0.2.1" }] });
  });
  assert.equal(ask(world, "a.t. A")[0], "REFUSED ede=20");
  await world.write(({ tx }) => tx.setState("t.", "active"));
  assert.deepEqual(ask(world, "a.t. A"), ["NOERROR aa", "answer a.t. 3600 IN A 192.0.2.1"]);
});

test("a deleted zone answers no more, and what was below it may; made again it is empty", async () => {
  await using world = await openT();
  await world.write((edit) => {
    edit.zone({ ...T, name: "sub.t." });
    edit.record("sub.t.", { name: "a", type: "A", values: [{ value: "192.0.2.1" }] });
    edit.record("t.", { name: "a.sub", type: "A", values: [{ value: "192.0.2.2" }] });
  });
  assert.deepEqual(ask(world, "a.sub.t. A"), ["NOERROR aa", "answer a.sub.t. 3600 IN A 192.0.2.1"]);
  await world.write(({ tx }) => void tx.deleteZone("sub.t."));
  assert.deepEqual(ask(world, "a.sub.t. A"), ["NOERROR aa", "answer a.sub.t. 3600 IN A 192.0.2.2"]);
  await world.write((edit) => edit.zone({ ...T, name: "sub.t." }));
  assert.deepEqual(ask(world, "a.sub.t. A"), NXDOMAIN);
  await world.write((edit) => {
    edit.tx.deleteZone("sub.t.");
    edit.zone({ ...T, name: "sub.t." });
    edit.record("sub.t.", { name: "b", type: "A", values: [{ value: "192.0.2.3" }] });
  });
  assert.deepEqual(ask(world, "b.sub.t. A"), ["NOERROR aa", "answer b.sub.t. 3600 IN A 192.0.2.3"]);
});

test("the default TTL of a zone reaches every record that inherits it", async () => {
  await using world = await openT();
  await world.write((edit) => {
    edit.record("t.", { name: "a", type: "A", values: [{ value: "192.0.2.1" }] });
    edit.record("t.", { name: "b", type: "A", ttl: 5, values: [{ value: "192.0.2.1" }] });
  });
  const { body } = world.store.get("zone", ["t."])!;
  await world.write(({ tx }) => void tx.put("zone", { ...body, default_ttl: 9 }));
  assert.deepEqual(ask(world, "a.t. A"), ["NOERROR aa", "answer a.t. 9 IN A 192.0.2.1"]);
  assert.deepEqual(ask(world, "b.t. A"), ["NOERROR aa", "answer b.t. 5 IN A 192.0.2.1"]);
  assert.deepEqual(ask(world, "t. NS"), ["NOERROR aa", "answer t. 9 IN NS ns.t."]);
});

test("a large new zone answers as a whole, once all of it is there", async () => {
  await using world = await openStoreLab();
  const names = 5000;
  await world.write((edit) => {
    edit.zone(T);
    for (let index = 0; index < names; index++) {
      edit.record("t.", { name: `n${index}`, type: "A", values: [{ value: "192.0.2.1" }] });
    }
  });
  assert.equal(ask(world, "n0.t. A")[0], "REFUSED ede=20", "nothing of it yet");
  assert.equal(world.publisher.stats().waitingZones, 1);
  const late = world.write((edit) => edit.record("t.", { name: "late", type: "A", values: [{ value: "192.0.2.2" }] }));
  await late;
  await world.publisher.settled();
  assert.equal(world.publisher.stats().waitingZones, 0);
  for (const name of ["n0", `n${names - 1}`, "late"]) assert.equal(ask(world, `${name}.t. A`).length, 2, name);
});

test("a small write is on the wire at once, also while its zone is being built anew", async () => {
  await using world = await openT();
  await world.write((edit) => {
    for (let index = 0; index < 3000; index++) {
      edit.record("t.", { name: `n${index}`, type: "A", values: [{ value: "192.0.2.1" }] });
    }
  });
  await world.publisher.settled();
  const { body } = world.store.get("zone", ["t."])!;
  await world.write(({ tx }) => void tx.put("zone", { ...body, soa: { ...body.soa, minimum: 61 } }));
  const wide = world.write((edit) => {
    for (let index = 0; index < 2000; index++) {
      edit.record("t.", { name: `n${index}`, type: "A", values: [{ value: "192.0.2.2" }] });
    }
  });
  await wide;
  assert.equal(world.publisher.stats().waitingZones, 1);
  await world.write((edit) => edit.record("t.", { name: "n2999", type: "A", values: [{ value: "192.0.2.3" }] }));
  assert.deepEqual(ask(world, "n2999.t. A"), ["NOERROR aa", "answer n2999.t. 3600 IN A 192.0.2.3"]);
  await world.publisher.settled();
  assert.deepEqual(ask(world, "n0.t. A"), ["NOERROR aa", "answer n0.t. 3600 IN A 192.0.2.2"]);
  assert.deepEqual(ask(world, "n2999.t. A"), ["NOERROR aa", "answer n2999.t. 3600 IN A 192.0.2.3"]);
});

test("a zone that is deleted while it is being built does not come", async () => {
  await using world = await openStoreLab();
  await world.write((edit) => {
    edit.zone(T);
    for (let index = 0; index < 2000; index++) {
      edit.record("t.", { name: `n${index}`, type: "A", values: [{ value: "192.0.2.1" }] });
    }
  });
  await world.write(({ tx }) => void tx.deleteZone("t."));
  await world.publisher.settled();
  assert.equal(ask(world, "n0.t. A")[0], "REFUSED ede=20");
});
