import assert from "node:assert/strict";
import { test } from "node:test";
import { auditOf, everythingIn } from "../support/commands.ts";
import { CSV, DNS, formOf, importWorld, zoneText } from "../support/import-world.ts";

const A = { name: "www", type: "A", values: [{ value: "192.0.2.1" }] };
const bundle = (...records: unknown[]) => ({ zones: [{ name: "c.test.", records }] });

test("missing is created, equal is unchanged, different is replaced with its id, nothing is deleted", async () => {
  await using api = await importWorld();
  const text = zoneText("c.test.", "@ NS ns1\nns1 A 192.0.2.53\nwww A 192.0.2.1\nold A 192.0.2.3\n");
  const first = await api.ask("POST", "/zones/import", { headers: DNS, body: text, as: "editor" });
  assert.deepEqual(
    [first.status, first.body.created, first.body.updated, first.body.unchanged, first.body.zones_created],
    [200, 4, 0, 0, 1],
    first.text,
  );
  assert.equal(api.store.serialOf("c.test."), 2_026_010_100);
  assert.equal(api.store.stateOf("c.test."), "active");
  const id = api.store.get("record", ["c.test.", "www", "A"])?.body.id;
  const before = everythingIn(api.store);
  const same = await api.ask("POST", "/zones/import", { headers: DNS, body: text });
  assert.deepEqual([same.body.created, same.body.updated, same.body.unchanged], [0, 0, 4]);
  assert.equal(api.store.serialOf("c.test."), 2_026_010_100);
  const next = zoneText("c.test.", "www A 192.0.2.2\nnew A 192.0.2.4\n");
  const dry = await api.ask("POST", "/zones/import?dry_run=true", { headers: DNS, body: next });
  assert.deepEqual([dry.body.dry_run, dry.body.created, dry.body.updated], [true, 1, 1]);
  assert.equal(api.store.count("record", "c.test."), 4);
  const changed = await api.ask("POST", "/zones/import", { headers: DNS, body: next });
  assert.deepEqual({ ...changed.body, dry_run: true }, dry.body);
  assert.equal(api.store.count("record", "c.test."), 5);
  assert.deepEqual(api.store.get("record", ["c.test.", "www", "A"])?.body.values, [{ value: "192.0.2.2" }]);
  assert.equal(api.store.get("record", ["c.test.", "www", "A"])?.body.id, id);
  assert.notDeepEqual(everythingIn(api.store), before);
  const entries = auditOf(api.store, { action: "import" });
  assert.deepEqual(
    entries.map(({ resource_name, result }) => [resource_name, result]),
    [
      ["c.test.", "success"],
      ["c.test.", "unchanged"],
      ["c.test.", "success"],
    ],
  );
});

test("a protected record is skipped and listed", async () => {
  await using api = await importWorld();
  await api.ask("POST", "/zones/import", { json: bundle({ ...A, protected: true }) });
  const record = api.store.get("record", ["c.test.", "www", "A"])?.body;
  const reply = await api.ask("POST", "/zones/import", {
    json: bundle({ ...A, values: [{ value: "192.0.2.9" }] }, { ...A, name: "other" }),
  });
  assert.deepEqual(reply.body.protected_skipped, [{ zone: "c.test.", record_id: record?.id, name: "www", type: "A" }]);
  assert.deepEqual([reply.body.created, reply.body.updated], [1, 0]);
  assert.deepEqual(api.store.get("record", ["c.test.", "www", "A"])?.body, record);
});

test("a name that is owned: whole or nothing for JSON and CSV, the record alone for a zone file; dry runs say the same", async () => {
  await using api = await importWorld();
  await api.ask("POST", "/zones/import", {
    json: bundle({ name: "www", type: "CNAME", values: [{ value: "x.test." }] }),
  });
  const before = everythingIn(api.store);
  const table = "zone,name,type,value\nc.test.,fine,A,192.0.2.1\nc.test.,www,A,192.0.2.1\n";
  for (const query of ["", "?dry_run=true"]) {
    const json = await api.ask("POST", `/zones/import${query}`, { json: bundle({ ...A, name: "fine" }, A) });
    assert.deepEqual([json.status, json.body.code], [409, "name_owned"]);
    assert.match(json.body.detail, /zone c\.test\., record www A: .*record of type CNAME \(rec_/);
    const csv = await api.ask("POST", `/zones/import${query}`, { headers: CSV, body: table });
    assert.deepEqual([csv.status, csv.body.code], [409, "name_owned"]);
  }
  assert.deepEqual(everythingIn(api.store), before);
  const text = zoneText("c.test.", "www A 192.0.2.1\nfine A 192.0.2.1\n");
  const dry = await api.ask("POST", "/zones/import?dry_run=true", { headers: DNS, body: text });
  const real = await api.ask("POST", "/zones/import", { headers: DNS, body: text });
  assert.deepEqual({ ...real.body, dry_run: true }, dry.body);
  assert.equal(real.body.created, 1);
  assert.deepEqual(
    real.body.parse_errors.map(({ file, line, column }: Record<string, unknown>) => [file, line, column]),
    [["body", 4, 1]],
  );
});

test("forms hold one zone a file; what is wrong with a file names it", async () => {
  await using api = await importWorld();
  const good = formOf([
    ["one.zone", zoneText("one.test.", "www A 192.0.2.1\nbad A x\n")],
    ["two.zone", zoneText("two.test.", "www A 192.0.2.1\n")],
  ]);
  const reply = await api.ask("POST", "/zones/import", good);
  assert.deepEqual([reply.status, reply.body.created, reply.body.zones_created], [200, 2, 2], reply.text);
  assert.deepEqual(
    reply.body.parse_errors.map(({ file, line }: Record<string, unknown>) => [file, line]),
    [["one.zone", 5]],
  );
  const before = everythingIn(api.store);
  const broken = formOf([
    ["three.zone", zoneText("three.test.", "www A 192.0.2.1\n")],
    ["soa-less.zone", "$ORIGIN four.test.\n@ 300 A 192.0.2.1\n"],
  ]);
  const refused = await api.ask("POST", "/zones/import", broken);
  assert.deepEqual([refused.status, refused.body.code], [400, "invalid_request"]);
  assert.match(refused.body.detail, /soa-less\.zone/);
  const twice = formOf([
    ["a", zoneText("same.test.")],
    ["b", zoneText("same.test.")],
  ]);
  assert.match(
    (await api.ask("POST", "/zones/import", twice)).body.detail,
    /"a" and "b" both hold the zone same\.test\./,
  );
  const many = formOf(Array.from({ length: 51 }, (_, index) => [`${index}`, zoneText(`z${index}.test.`)] as const));
  assert.equal((await api.ask("POST", "/zones/import", many)).status, 400);
  assert.deepEqual(everythingIn(api.store), before);
});

test("an import into one zone takes that zone only", async () => {
  await using api = await importWorld();
  const { body: zone } = await api.ask("POST", "/zones", { json: { name: "c.test." } });
  const path = `/zones/${zone.id}/import`;
  const bodies = [
    { json: { records: [A] } },
    { json: bundle(A) },
    { headers: CSV, body: "name,type,value\nwww,A,192.0.2.1\n" },
    { headers: DNS, body: zoneText("c.test.", "www 0 A 192.0.2.1\n") },
    formOf([["c.zone", zoneText("c.test.", "www 3600 A 192.0.2.1\n")]]),
  ];
  const counts: unknown[] = [];
  for (const body of bodies) {
    const reply = await api.ask("POST", path, body);
    assert.equal(reply.status, 200, reply.text);
    counts.push([reply.body.created, reply.body.updated, reply.body.unchanged]);
  }
  assert.deepEqual(counts, [
    [1, 0, 0],
    [0, 0, 1],
    [0, 0, 1],
    [0, 0, 1],
    [0, 0, 1],
  ]);
  for (const body of [
    { json: { zones: [{ name: "other.test.", records: [A] }] } },
    { headers: CSV, body: "zone,name,type,value\nother.test.,www,A,192.0.2.1\n" },
    { headers: DNS, body: zoneText("other.test.") },
    formOf([
      ["a", zoneText("c.test.")],
      ["b", zoneText("d.test.")],
    ]),
  ]) {
    assert.equal((await api.ask("POST", path, body)).status, 400);
  }
  assert.equal((await api.ask("POST", "/zones/zon_none/import", { json: { records: [A] } })).status, 404);
  assert.equal(api.store.count("zone"), 1);
});

test("tokens confined to zones import into these, and nowhere else, whole or not at all", async () => {
  await using api = await importWorld();
  const { body: mine } = await api.ask("POST", "/zones", { json: { name: "mine.test." } });
  await api.ask("POST", "/zones", { json: { name: "other.test." } });
  const as = api.tokenFor({ kind: "service-account", id: "sva_1", name: "robot", role: "editor", zoneIds: [mine.id] });
  const zones = (...names: string[]) => ({ zones: names.map((name) => ({ name, records: [A] })) });
  const before = everythingIn(api.store);
  for (const names of [["mine.test.", "other.test."], ["mine.test.", "new.test."], ["other.test."], ["new.test."]]) {
    for (const query of ["", "?dry_run=true"]) {
      const reply = await api.ask("POST", `/zones/import${query}`, { as, json: zones(...names) });
      assert.deepEqual([reply.status, reply.body.code], [403, "zone_not_permitted"], reply.text);
    }
  }
  assert.deepEqual(everythingIn(api.store), before);
  assert.equal((await api.ask("POST", "/zones/import", { as, json: zones("mine.test.") })).body.created, 1);
  assert.equal((await api.ask("POST", `/zones/${mine.id}/import`, { as, json: { records: [A] } })).body.unchanged, 1);
  assert.equal((await api.ask("POST", "/zones/import", { as: "readonly", json: zones("mine.test.") })).status, 403);
  assert.equal((await api.ask("POST", "/zones/import", { noCsrf: true, json: zones("mine.test.") })).status, 403);
  assert.equal((await api.ask("POST", "/zones/import", { as: null, json: zones("mine.test.") })).status, 401);
});

test("a secret that reads *** is the incumbent's", async () => {
  await using api = await importWorld();
  const withSecret = (secret: string, value: string) =>
    bundle({
      ...A,
      values: [{ value }],
      health_check_template: { protocol: "http", http_config: { headers: { "X-Key": secret } } },
    });
  await api.ask("POST", "/zones/import", { json: withSecret("hunter2", "192.0.2.1") });
  const kept = await api.ask("POST", "/zones/import", { json: withSecret("***", "192.0.2.2") });
  assert.deepEqual([kept.body.updated, kept.body.secrets_missing], [1, []], kept.text);
  const stored = () => api.store.get("record", ["c.test.", "www", "A"])?.body;
  assert.equal(stored()?.health_check_template?.http_config?.headers?.["X-Key"], "hunter2");
  assert.ok(!JSON.stringify(auditOf(api.store, {})).includes("hunter2"));
});
