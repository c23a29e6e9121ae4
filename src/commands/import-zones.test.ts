import assert from "node:assert/strict";
import { test } from "node:test";
import { ALONE, testCaller } from "../../tests/support/commands.ts";
import { temporaryStore } from "../../tests/support/store.ts";
import { IMPORTED_SERIAL_MAX } from "../model/limits.ts";
import { parseHere } from "./import-slices.ts";
import { importZones } from "./import-zones.ts";

const TOOLS = { parse: parseHere, peers: ALONE };

function zoneFile(name: string, serial: number, more = ""): string {
  return `$ORIGIN ${name}\n$TTL 300\n@ SOA ns1 hostmaster ${serial} 7200 900 1209600 300\n${more}`;
}

test("a serial that leaves no room for later changes is replaced, and a warning says so", async () => {
  await using world = await temporaryStore();
  const { context, store } = world;
  const importing = (contentType: string, text: string, dryRun = false) =>
    importZones(context, { ...testCaller(), dryRun }, TOOLS, { contentType, body: Buffer.from(text) });
  const tooGreat = IMPORTED_SERIAL_MAX + 1;
  const bundle = JSON.stringify({ zones: [{ name: "json.test.", soa: { serial: tooGreat } }] });
  const given = { "text/dns": zoneFile("file.test.", tooGreat), "application/json": bundle };
  for (const [type, text] of Object.entries(given)) {
    const name = type === "text/dns" ? "file.test." : "json.test.";
    for (const dryRun of [true, false]) {
      const { warnings, zones } = await importing(type, text, dryRun);
      const [warning, ...more] = warnings;
      assert.match(warning ?? "", new RegExp(`^${name} SOA: its serial 4000000001 is above 4000000000`));
      assert.deepEqual(more, []);
      assert.deepEqual(zones[0]?.warnings, warnings);
    }
    assert.ok((store.serialOf(name) ?? Number.NaN) <= IMPORTED_SERIAL_MAX);
    // The zone that is there keeps the serial that it has, whatever the file says.
    assert.deepEqual((await importing(type, text)).warnings, []);
  }
  const greatest = await importing("text/dns", zoneFile("greatest.test.", IMPORTED_SERIAL_MAX));
  assert.deepEqual(greatest.warnings, []);
  assert.equal(store.serialOf("greatest.test."), IMPORTED_SERIAL_MAX);
});

test("what is not taken is listed by file, line and column, whatever found it", async () => {
  await using world = await temporaryStore();
  const { context } = world;
  const importing = (contentType: string, body: Buffer) =>
    importZones(context, testCaller(), TOOLS, { contentType, body });
  await importing("text/dns", Buffer.from(zoneFile("b.test.", 1, "web A 192.0.2.1\n")));
  const files = {
    // The rules between records, those of values, those of the stored zone and the syntax each find their own.
    "b.zone": zoneFile(
      "b.test.",
      1,
      'x A 192.0.2.1\nx CNAME y\nweb CNAME y\nz A nonsense\nh CAA 0 tbs "a"\nk DS 1 8 2 00\n',
    ),
    "a.zone": zoneFile("a.test.", 1, "x A 192.0.2\nx DS 1 8 2 00\n"),
  };
  const parts = Object.entries(files).map(
    ([name, text]) => `--x\r\nContent-Disposition: form-data; name="f"; filename="${name}"\r\n\r\n${text}\r\n`,
  );
  const { parse_errors, zones } = await importing(
    "multipart/form-data; boundary=x",
    Buffer.from(`${parts.join("")}--x--\r\n`),
  );
  const places = parse_errors.map(({ file, line }) => `${file} ${line}`);
  assert.deepEqual(places, ["a.zone 4", "a.zone 5", "b.zone 5", "b.zone 6", "b.zone 7", "b.zone 8", "b.zone 9"]);
  assert.deepEqual(
    zones.map((zone) => zone.parse_errors.map(({ line }) => line)),
    [
      [5, 6, 7, 8, 9],
      [4, 5],
    ],
  );
});
