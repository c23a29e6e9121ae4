import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CSV, DNS, importWorld, vector, zoneText } from "../support/import-world.ts";
import { requireProgram } from "../support/peers.ts";
import { runToEnd } from "../support/process.ts";

const ZONE_FILES = ["example.test.zone", "diff-corp.zone", "diff-child.zone", "dig-axfr.zone", "windows-export.zone"];

/** Windows DNS writes its exports without the zone's name. */
function zoneFile(file: string): string {
  return `${file.startsWith("windows") ? "$ORIGIN corp.example.test.\n" : ""}${vector(file)}`;
}

test("real zone files: import, export, import again with no difference", async () => {
  await using api = await importWorld();
  for (const file of ZONE_FILES) {
    const text = zoneFile(file);
    const first = await api.ask("POST", "/zones/import", { headers: DNS, body: text });
    assert.equal(first.status, 200, `${file}: ${first.text}`);
    const { zone_id: id, zone } = first.body.zones[0];
    const exported = await api.ask("GET", `/zones/${id}/export`);
    assert.equal(exported.status, 200);
    assert.match(String(exported.headers["content-type"]), /^text\/dns/);
    const again = await api.ask("POST", "/zones/import", { headers: DNS, body: exported.text });
    assert.deepEqual([again.status, again.body.created, again.body.updated, again.body.parse_errors], [200, 0, 0, []]);
    assert.equal(again.body.unchanged, api.store.count("record", zone));
  }
});

for (const program of ["named-checkzone", "nsd-checkzone"]) {
  test(`${program} reads every export`, async (t) => {
    const command = requireProgram(t, program);
    if (command === undefined) return;
    const directory = mkdtempSync(join(tmpdir(), "signpost-export-"));
    t.after(() => rmSync(directory, { recursive: true }));
    await using api = await importWorld();
    for (const file of ZONE_FILES) {
      const { body } = await api.ask("POST", "/zones/import", { headers: DNS, body: zoneFile(file) });
      const { zone_id: id, zone } = body.zones[0];
      const { text } = await api.ask("GET", `/zones/${id}/export`);
      const path = join(directory, file);
      // ALIAS is a type of our own, and no other server knows it.
      writeFileSync(path, text.replaceAll(/^.* IN ALIAS .*\n/gm, ""));
      const lenient = program === "named-checkzone" ? ["-i", "none", "-k", "ignore"] : [];
      await runToEnd(command, [...lenient, zone, path], 120_000);
    }
  });
}

test("an exported zone makes the same zone on another node, its serial too", async () => {
  await using one = await importWorld();
  await using other = await importWorld();
  const { body } = await one.ask("POST", "/zones/import", { headers: DNS, body: vector("example.test.zone") });
  const exported = await one.ask("GET", `/zones/${body.zones[0].zone_id}/export`);
  await other.ask("POST", "/zones/import", { headers: DNS, body: exported.text });
  const [there] = other.store.list("zone", { limit: 1 });
  const copy = await other.ask("GET", `/zones/${there?.body.id}/export`);
  assert.equal(copy.text, exported.text);
  assert.equal(other.store.serialOf("example.test."), 2_026_010_100);
});

test("a JSON bundle keeps everything but the secrets", async () => {
  await using one = await importWorld();
  await using other = await importWorld();
  const zone = await one.ask("POST", "/zones", {
    json: { name: "full.test.", default_ttl: 60, deletion_lock: true, lb_policy: { method: "round-robin" } },
  });
  const records = [
    {
      name: "lb",
      type: "A",
      ttl: 30,
      values: [{ value: "192.0.2.1", region: "west" }, { value: "192.0.2.2" }],
      lb_policy: { method: "weighted", value_weights: { "192.0.2.1": 70 } },
      health_check_template: {
        protocol: "https",
        http_config: {
          headers: { "X-Key": "hunter2" },
          oauth2: { token_url: "https://id.test/t", client_id: "c", client_secret: "hunter3" },
        },
      },
      comment: "kept",
      protected: true,
    },
    { name: "later", type: "AAAA", values: [], auto_populate: true },
    { name: "@", type: "CAA", values: [{ value: "", tag: "issue", priority: 128 }] },
    {
      name: "@",
      type: "MX",
      values: [
        { value: "a.test.", priority: 10 },
        { value: "b.test.", priority: 20 },
      ],
    },
    { name: "bytes", type: "TXT", values: [{ value: '"a\\000b" "c"' }, { value: "plain ; text \u00e4" }] },
    { name: "alias", type: "ALIAS", values: [{ value: "lb.full.test." }] },
    { name: "*.wild", type: "CNAME", values: [{ value: "lb.full.test." }] },
  ];
  for (const json of records) {
    const made = await one.ask("POST", `/zones/${zone.body.id}/records`, { json });
    assert.equal(made.status, 200, made.text);
  }
  const bundle = await one.ask("GET", "/zones/export");
  assert.equal(bundle.status, 200);
  assert.ok(!bundle.text.includes("hunter"));
  const same = await one.ask("POST", "/zones/import", { json: bundle.body });
  assert.deepEqual([same.body.created, same.body.updated, same.body.unchanged], [0, 0, records.length], same.text);
  assert.deepEqual(same.body.secrets_missing, []);

  const copied = await other.ask("POST", "/zones/import", { json: bundle.body });
  assert.deepEqual([copied.body.created, copied.body.zones_created], [records.length, 1], copied.text);
  assert.deepEqual(
    copied.body.secrets_missing.map(({ field }: { field: string }) => field),
    ["/health_check_template/http_config/headers/X-Key", "/health_check_template/http_config/oauth2/client_secret"],
  );
  const copy = (await other.ask("GET", "/zones/export")).body;
  const { zones } = bundle.body;
  delete zones[0].records.find(({ name }: { name: string }) => name === "lb").health_check_template.http_config;
  const { http_config } = copy.zones[0].records.find(
    ({ name }: { name: string }) => name === "lb",
  ).health_check_template;
  assert.ok(http_config === undefined || Object.keys(http_config.headers ?? {}).length === 0);
  delete copy.zones[0].records.find(({ name }: { name: string }) => name === "lb").health_check_template.http_config;
  assert.deepEqual(copy.zones, zones);
});

test("a zone file cannot say everything: what it leaves unsaid is no difference, and stands in comments", async () => {
  await using api = await importWorld();
  const { body: zone } = await api.ask("POST", "/zones", { json: { name: "c.test." } });
  await api.ask("POST", `/zones/${zone.id}/records`, {
    json: {
      name: "lb",
      type: "A",
      values: [{ value: "192.0.2.1", region: "west" }],
      lb_policy: { method: "region" },
      comment: "x\ny",
    },
  });
  await api.ask("POST", `/zones/${zone.id}/records`, {
    json: { name: "later", type: "A", values: [], auto_populate: true },
  });
  const exported = await api.ask("GET", `/zones/${zone.id}/export`);
  for (const line of [
    "; synthesised @ NS",
    "; auto_populate later A",
    '; lb_policy lb A {"method":"region"}',
    "; regions lb A 192.0.2.1=west",
  ]) {
    assert.ok(exported.text.split("\n").includes(line), `${line}\n${exported.text}`);
  }
  const again = await api.ask("POST", `/zones/${zone.id}/import`, { headers: DNS, body: exported.text });
  assert.deepEqual([again.body.created, again.body.updated, again.body.unchanged], [0, 0, 2], again.text);
  const changed = await api.ask("POST", `/zones/${zone.id}/import`, {
    headers: DNS,
    body: exported.text.replace("192.0.2.1\n", "192.0.2.9\n"),
  });
  assert.equal(changed.body.updated, 1);
  assert.match(changed.body.warnings[0], /lb\.c\.test\. A: replaced, and its lb_policy, comment went with it/);
  const table = "zone,name,type,ttl,value,region\nc.test.,lb,A,3600,192.0.2.9,\n";
  const csv = await api.ask("POST", "/zones/import", { headers: CSV, body: table });
  assert.deepEqual([csv.body.unchanged, csv.body.format], [1, "csv"], csv.text);
  const region = await api.ask("POST", "/zones/import", {
    headers: CSV,
    body: table.replace("192.0.2.9,", "192.0.2.9,east"),
  });
  assert.equal(region.body.updated, 1);
});

test("exports need the CSRF header and a token, and any role reads them", async () => {
  await using api = await importWorld();
  const { body: zone } = await api.ask("POST", "/zones", { json: { name: "c.test." } });
  for (const path of ["/zones/export", `/zones/${zone.id}/export`]) {
    assert.equal((await api.ask("GET", path, { noCsrf: true })).body.code, "csrf_header_missing");
    assert.equal((await api.ask("GET", path, { as: null })).status, 401);
    assert.equal((await api.ask("GET", path, { as: "readonly" })).status, 200);
  }
  assert.equal((await api.ask("GET", "/zones/zon_none/export")).status, 404);
  await api.ask("POST", "/zones/import", { headers: DNS, body: zoneText("other.test.") });
  assert.equal((await api.ask("GET", "/zones/export")).body.zones.length, 2);
});
