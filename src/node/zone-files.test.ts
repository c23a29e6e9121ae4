import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CONTROL, createSharedImage } from "../image/shared.ts";
import { collect, openImageWriter } from "../image/writer.ts";
import { createZoneFiles } from "./zone-files.ts";

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

function start(...files: readonly string[]) {
  const shared = createSharedImage(1);
  const load = createZoneFiles(
    openImageWriter(shared),
    files.map((path) => ({ name: undefined, file: path })),
  );
  return { load, zones: () => new Int32Array(shared.control)[CONTROL.ZONES] };
}

test("every good file is served, whatever the others hold", () => {
  const good = file("good", zoneText("good.test", 5));
  const bad = file("bad", zoneText("bad.test", 1, "x A 1\n"));
  const { load, zones } = start(good, bad, join(directory, "missing"));
  const report = load();
  assert.deepEqual(report.served, [{ name: "good.test.", file: good, records: 3, serial: 5 }]);
  assert.deepEqual(
    report.faults.map((line) => line.split(": ", 1)[0]),
    [`${bad}:6:5`],
  );
  assert.deepEqual(report.refused, [
    `zone file ${bad} has 1 error`,
    `cannot read zone file ${join(directory, "missing")}: there is no such file`,
  ]);
  assert.equal(zones(), 1);
});

test("a file that becomes bad or vanishes stays served as it was", () => {
  const path = file("changing", zoneText("changing.test", 1));
  const { load, zones } = start(path);
  load();
  file("changing", zoneText("changing.test", 2, "x A 1\n"));
  assert.equal(load().served[0]?.serial, 1);
  rmSync(path);
  assert.equal(load().served[0]?.serial, 1);
  file("changing", zoneText("changing.test", 3));
  assert.equal(load().served[0]?.serial, 3);
  assert.equal(zones(), 1);
});

test("a file that now holds another zone takes the old one away", () => {
  const path = file("moving", zoneText("before.test", 1));
  const { load, zones } = start(path);
  load();
  file("moving", zoneText("after.test", 1));
  assert.deepEqual(
    load().served.map(({ name }) => name),
    ["after.test."],
  );
  assert.equal(zones(), 1);
});

test("a zone in two files is refused", () => {
  const [one, other] = [file("one", zoneText("same.test", 1)), file("other", zoneText("same.test", 2))];
  assert.deepEqual(start(one, other).load().refused, [`zone files ${one} and ${other} both hold zone same.test.`]);
});

test("a file that now holds another file's zone changes nothing of it", () => {
  const first = file("first", zoneText("first.test", 1));
  const second = file("second", zoneText("second.test", 1));
  const shared = createSharedImage(1);
  const writer = openImageWriter(shared);
  const load = createZoneFiles(
    writer,
    [first, second].map((path) => ({ name: undefined, file: path })),
  );
  load();
  file("second", zoneText("first.test", 9, "more A 192.0.2.2\n"));
  assert.deepEqual(load().refused, [`zone files ${first} and ${second} both hold zone first.test.`]);
  while (collect(writer));
  const control = new Int32Array(shared.control);
  assert.deepEqual([control[CONTROL.ZONES], control[CONTROL.NAMES]], [2, 4]);
});

test("a file that comes first cannot take the zone of one that comes later", () => {
  const first = file("takes", zoneText("its-own.test", 1));
  const second = file("holds", zoneText("wanted.test", 1));
  const { load, zones } = start(first, second);
  load();
  file("takes", zoneText("wanted.test", 2));
  const report = load();
  assert.deepEqual(report.refused, [`zone files ${second} and ${first} both hold zone wanted.test.`]);
  assert.deepEqual(
    report.served.map(({ name, serial }) => [name, serial]),
    [
      ["its-own.test.", 1],
      ["wanted.test.", 1],
    ],
  );
  assert.equal(zones(), 2);
});

test("one file under two names is two zones, after a reload too", () => {
  const path = file("template", "@ 60 SOA ns1 host 1 2 3 4 5\n@ 60 NS ns1\nns1 60 A 192.0.2.1\n");
  const writer = openImageWriter(createSharedImage(1));
  const load = createZoneFiles(
    writer,
    ["x.test.", "y.test."].map((name) => ({ name, file: path })),
  );
  for (let round = 0; round < 2; round++) {
    assert.deepEqual(
      load().served.map(({ name }) => name),
      ["x.test.", "y.test."],
    );
  }
});
