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
