import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ALONE } from "../../tests/support/commands.ts";
import { type TemporaryStore, temporaryStore } from "../../tests/support/store.ts";
import { importZoneFiles } from "./zone-files.ts";

const directory = mkdtempSync(join(tmpdir(), "signpost-zones-"));
after(() => rmSync(directory, { recursive: true, force: true }));

function zoneText(name: string, serial: number, more = ""): string {
  return `$ORIGIN ${name}.\n$TTL 60\n@ SOA ns1 host ${serial} 1 2 3 4\n@ NS ns1\nns1 A 192.0.2.1\n${more}`;
}

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

function load({ context }: TemporaryStore, ...files: readonly string[]) {
  return importZoneFiles(
    context,
    ALONE,
    files.map((path) => ({ name: undefined, file: path })),
  );
}

test("a file is imported once, with its serial and an entry in the audit log; then its zone is the store's", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  const path = file("once", zoneText("once.test", 5));
  const { imported, left, refused } = await load(temporary, path);
  assert.deepEqual([imported, left, refused], [[{ name: "once.test.", file: path, records: 2 }], [], []]);
  assert.equal(store.serialOf("once.test."), 5);
  assert.equal(store.stateOf("once.test."), "active");
  const [entry] = store.auditPage({ resource: "zone", action: "import" }, { limit: 2 }).entries;
  assert.equal(entry?.user_name, "system");

  // Not even its faults matter now.
  file("once", zoneText("once.test", 6, "new A 192.0.2.6\nbad A 1\n"));
  const again = await load(temporary, path);
  assert.deepEqual([again.imported, again.left], [[], [{ name: "once.test.", file: path }]]);
  assert.equal(store.serialOf("once.test."), 5);
  assert.equal(store.get("record", ["once.test.", "new", "A"]), undefined);
});

test("a fault in one file leaves all of them out", async () => {
  await using temporary = await temporaryStore();
  const good = file("good", zoneText("good.test", 5));
  const bad = file("bad", zoneText("bad.test", 1, "x A 1\ny CNAME a\ny A 192.0.2.2\n"));
  const report = await load(temporary, good, bad, join(directory, "missing"));
  assert.deepEqual(
    report.faults.map((line) => line.split(": ", 1)[0]),
    [`${bad}:6:5`, `${bad}:8:1`],
  );
  assert.deepEqual(report.refused, [
    `zone file ${bad} has 2 errors`,
    `cannot read zone file ${join(directory, "missing")}: there is no such file`,
  ]);
  assert.deepEqual([report.imported, temporary.store.count("zone")], [[], 0]);
});

test("records of types that zones do not hold are left out with a warning", async () => {
  await using temporary = await temporaryStore();
  const path = file("types", zoneText("types.test", 1, "x DS 1 8 2 00\n"));
  const { imported, warnings } = await load(temporary, path);
  assert.equal(imported.length, 1);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /line 6: x\.types\.test\. DS: zones here hold no records of this type/);
});

test("two files of one zone are refused, stored or not", async () => {
  await using temporary = await temporaryStore();
  const [one, other] = [file("one", zoneText("same.test", 1)), file("other", zoneText("same.test", 2))];
  const refused = [`zone files ${one} and ${other} both hold zone same.test.`];
  assert.deepEqual((await load(temporary, one, other)).refused, refused);
  await load(temporary, one);
  assert.deepEqual((await load(temporary, one, other)).refused, refused);
});

test("a file may hold more records than an import of the API, within bounds", async () => {
  await using temporary = await temporaryStore();
  const hosts = Array.from({ length: 60_000 }, (_, index) => `h${index} A 192.0.2.1\n`).join("");
  const { imported } = await load(temporary, file("large", zoneText("large.test", 1, hosts)));
  assert.equal(imported[0]?.records, 60_002);
  assert.equal(temporary.store.count("record", "large.test."), 60_002);
  const many = Array.from({ length: 250_001 }, (_, index) => `h${index} A 192.0.2.1\n`).join("");
  const [refused = ""] = (await load(temporary, file("larger", zoneText("larger.test", 1, many)))).refused;
  assert.match(refused, /larger:\d+:\d+: more than 250000 records$/);
  assert.equal(temporary.store.get("zone", ["larger.test."]), undefined);
});

test("a file of relative names takes the zone's name from the argument", async () => {
  await using temporary = await temporaryStore();
  const path = file("relative", "@ 300 SOA ns1 host 7 2 3 4 5\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n");
  const zones = [{ name: "given.test.", file: path }];
  assert.equal((await importZoneFiles(temporary.context, ALONE, zones)).imported[0]?.name, "given.test.");
  assert.equal((await importZoneFiles(temporary.context, ALONE, zones)).left[0]?.name, "given.test.");
  const [refused = ""] = (await load(temporary, path)).refused;
  assert.match(refused, /is no zone file: /);
});
