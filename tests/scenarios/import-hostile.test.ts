import assert from "node:assert/strict";
import { test } from "node:test";
import { IMPORT_BYTES_MAX, ZONE_IMPORT_BYTES_MAX } from "../../src/model/limits.ts";
import { seededChance } from "../support/chance.ts";
import { everythingIn } from "../support/commands.ts";
import { CSV, DNS, formOf, importWorld, vector, zoneText } from "../support/import-world.ts";

const JSON_TYPE = { "content-type": "application/json" };
const FORM = { "content-type": "multipart/form-data; boundary=b" };
const TYPES = [JSON_TYPE, CSV, DNS, FORM];

test("bodies over their limits are 413, and nothing is written", async () => {
  await using api = await importWorld();
  const { body: zone } = await api.ask("POST", "/zones", { json: { name: "c.test." } });
  const before = everythingIn(api.store);
  for (const [path, limit] of [
    ["/zones/import", IMPORT_BYTES_MAX],
    [`/zones/${zone.id}/import`, ZONE_IMPORT_BYTES_MAX],
  ] as const) {
    const text = zoneText("c.test.", "www A 192.0.2.1\n");
    const over = await api.ask("POST", path, { headers: DNS, body: text + ";".repeat(limit + 1 - text.length) });
    assert.deepEqual([over.status, over.body.code], [413, "body_too_large"]);
    const full = await api.ask("POST", `${path}?dry_run=true`, {
      headers: DNS,
      body: text + ";".repeat(limit - text.length),
    });
    assert.deepEqual([full.status, full.body.created], [200, 1], full.text);
  }
  assert.deepEqual(everythingIn(api.store), before);
});

test("odd bodies of every type are refused with a code, and nothing is written", async () => {
  await using api = await importWorld();
  const before = everythingIn(api.store);
  const bodies: readonly (string | Uint8Array)[] = [
    "",
    "\0".repeat(1000),
    Buffer.from([0xff, 0xfe, 0x00, 0xd8]),
    Buffer.from("\u00e9", "latin1"),
    "[".repeat(1_000_000),
    "x".repeat(19_000_000),
    `"${"x".repeat(19_000_000)}`,
    "\n".repeat(1_000_000),
    '{"zones":[{"__proto__":{"name":"p.test."}}]}',
    '{"zones":[{"name":"p.test.","constructor":{"prototype":{}}}]}',
    '{"zones":[{"name":"p.test.","records":[{"name":"www","type":"A","values":[{"value":"192.0.2.1","__proto__":1}]}]}]}',
    "--b\r\n".repeat(100_000),
    `${'--b\r\nContent-Disposition: form-data; name="f"\r\n\r\nx\r\n'.repeat(1000)}--b--`,
  ];
  for (const headers of TYPES) {
    for (const body of bodies) {
      const reply = await api.ask("POST", "/zones/import", { headers, body });
      const title = `${headers["content-type"]} ${JSON.stringify(body.slice(0, 40))}: ${reply.status} ${reply.text.slice(0, 300)}`;
      assert.equal(reply.status, 400, title);
      assert.equal(reply.body.code, "invalid_request", title);
    }
  }
  for (const type of [
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/mixed; boundary=b",
    "text/csv; charset=utf-16",
  ]) {
    const reply = await api.ask("POST", "/zones/import", { headers: { "content-type": type }, body: "x" });
    assert.deepEqual([reply.status, reply.body.code], [415, "media_type_unsupported"], type);
  }
  assert.equal(
    (await api.ask("POST", "/zones/import", { headers: { "content-type": "multipart/form-data" }, body: "x" })).status,
    400,
  );
  assert.deepEqual(everythingIn(api.store), before);
});

test("what is cut, doubled or changed in a good body gets a 200 or a 400 or a 409, and never anything else", async () => {
  await using api = await importWorld();
  const json = JSON.stringify({
    version: 1,
    zones: [
      {
        name: "c.test.",
        soa: { mname: "ns.c.test.", serial: 1 },
        records: [
          {
            name: "www",
            type: "A",
            ttl: 5,
            values: [{ value: "192.0.2.1", region: "w" }],
            lb_policy: { method: "weighted", value_weights: { "192.0.2.1": 5 } },
          },
          {
            name: "@",
            type: "SRV",
            priority: 1,
            weight: 2,
            port: 3,
            values: [{ value: "x." }],
            health_check_template: { protocol: "tcp", port: 5 },
          },
        ],
      },
    ],
  });
  const form = formOf([["a", zoneText("f.test.", "www A 192.0.2.1\n")]]);
  const good = [
    { headers: JSON_TYPE, body: json },
    { headers: CSV, body: 'zone,name,type,ttl,value,priority\nc.test.,@,MX,5,m.test.,10\nc.test.,t,TXT,,"a ""b""",\n' },
    { headers: DNS, body: vector("example.test.zone") },
    form,
  ];
  const { below: pick } = seededChance(20_260_101);
  for (let round = 0; round < 400; round++) {
    const { headers, body } = good[round % good.length]!;
    let bytes = Buffer.from(body);
    for (let change = pick(4); change >= 0; change--) {
      const at = pick(bytes.length);
      const length = pick(20);
      const kind = pick(4);
      if (kind === 0) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]);
      else if (kind === 1)
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at, at + length), bytes.subarray(at)]);
      else if (kind === 2)
        bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from([pick(256)]), bytes.subarray(at + 1)]);
      else bytes = bytes.subarray(0, Math.max(1, at));
    }
    const reply = await api.ask("POST", `/zones/import${round % 3 === 0 ? "" : "?dry_run=true"}`, {
      headers,
      body: bytes,
    });
    assert.ok([200, 400, 409].includes(reply.status), `${reply.status} ${reply.text}\n${bytes.toString("latin1")}`);
  }
});

test("an import that takes too much memory or time is refused, and the next one is read", async () => {
  const lines = Array.from(
    { length: 400_000 },
    (_, index) => `h${index % 40_000} A 10.0.${index % 250}.${index % 7}\n`,
  ).join("");
  const good = { headers: DNS, body: zoneText("good.test.", "www A 192.0.2.1\n") };
  {
    await using api = await importWorld({ heapMb: 24 });
    const reply = await api.ask("POST", "/zones/import", { headers: DNS, body: zoneText("big.test.", lines) });
    assert.deepEqual([reply.status, reply.body.code], [413, "body_too_large"], reply.text);
    assert.equal((await api.ask("POST", "/zones/import", good)).status, 200);
    assert.equal(api.store.count("zone"), 1);
  }
  await using api = await importWorld({ readMs: 1 });
  const reply = await api.ask("POST", "/zones/import", { headers: DNS, body: zoneText("big.test.", lines) });
  assert.deepEqual([reply.status, reply.body.code], [400, "invalid_request"], reply.text);
  assert.match(reply.body.detail, /took longer than/);
  assert.equal(api.store.count("zone"), 0);
});

test("many imports at once are read one after the other, and what is too many is told to come again", async () => {
  await using api = await importWorld();
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      api.ask("POST", "/zones/import", {
        headers: DNS,
        body: zoneText(`z${index}.test.`, "www A 192.0.2.1\n"),
        http2: true,
      }),
    ),
  );
  const taken = replies.filter(({ status }) => status === 200).length;
  assert.ok(taken >= 8, `${taken}`);
  assert.ok(replies.every(({ status, body }) => status === 200 || (status === 503 && body.code === "not_ready")));
  assert.equal(api.store.count("zone"), taken);
});

test("the same zone imported by many at once is made once, and holds the union", async () => {
  await using api = await importWorld();
  const replies = await Promise.all(
    Array.from({ length: 6 }, (_, index) =>
      api.ask("POST", "/zones/import", {
        headers: DNS,
        body: zoneText("same.test.", `h${index} A 192.0.2.1\n`),
        http2: true,
      }),
    ),
  );
  assert.deepEqual(
    replies.map(({ status }) => status),
    replies.map(() => 200),
  );
  assert.equal(replies.filter(({ body }) => body.zones_created === 1).length, 1);
  assert.equal(api.store.count("record", "same.test."), 6);
});
