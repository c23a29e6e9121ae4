import assert from "node:assert/strict";
import test from "node:test";
import {
  addressesOf,
  bundleOf,
  DOWN,
  NAMES,
  partlyDownAddresses,
  placeOf,
  probesOf,
  queryLines,
  SELECTED_ZONES,
} from "./selected-zones.ts";

test("the last byte of every address tells its place", () => {
  for (const zone of SELECTED_ZONES) {
    for (let index = 0; index < NAMES; index += 37) {
      const places = addressesOf(zone, index).map((address) => placeOf(Number(address.split(".")[3])));
      assert.deepEqual(places, [...places.keys()]);
    }
  }
});

test("where values are down the backend listens for all others and for none that is down", () => {
  const listening = new Set(partlyDownAddresses());
  const zones = SELECTED_ZONES.filter(({ hasDown }) => hasDown);
  assert.ok(zones.length > 0);
  for (const zone of zones) {
    for (let index = 0; index < NAMES; index++) {
      for (const [place, address] of addressesOf(zone, index).entries()) {
        assert.equal(listening.has(address), place !== DOWN, address);
      }
    }
  }
  assert.deepEqual(probesOf(zones), { healthy: listening.size, unhealthy: listening.size / 3 });
});

test("a zone of an import has every name once, and every query asks for one of them", () => {
  for (const zone of SELECTED_ZONES) {
    const [imported] = JSON.parse(bundleOf(zone, { up: 1, partlyDown: 2 })).zones;
    const names = new Set<string>(imported.records.map(({ name }: { readonly name: string }) => name));
    assert.equal(names.size, NAMES);
    const [first = ""] = queryLines(zone).split("\n");
    assert.equal(first.slice(first.indexOf(".") + 1), `${imported.name.slice(0, -1)} A`);
    assert.ok(names.has(first.slice(0, first.indexOf("."))));
  }
});
