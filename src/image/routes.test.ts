import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { auditArena } from "../../tests/image/audit.ts";
import { nameOf, openLab } from "../../tests/support/zone-lab.ts";
import { createLookup, findZone } from "../answer/lookup.ts";
import { RRTYPE } from "../dns/codes.ts";
import { nameToText } from "../dns/name.ts";
import { rdataFromText } from "../dns/rdata.ts";
import { changeRRset, finishZone, startZone } from "../publish/zone-publisher.ts";
import { createNameKey, type NameKey, readNameKey } from "./name-key.ts";
import { CONTROL, createSharedImage, type SharedImage } from "./shared.ts";
import { openView } from "./view.ts";
import {
  activateZone,
  collect,
  createZone,
  deleteZone,
  namedRoutes,
  openImageWriter,
  setDefaultRoute,
  setRoute,
  zoneNames,
} from "./writer.ts";

function keyOf(shared: SharedImage, name: string): NameKey {
  const key = createNameKey();
  const wire = nameOf(name);
  readNameKey(key, wire, 0, wire.length, new Int32Array(shared.control)[CONTROL.HASH_SEED]!);
  return key;
}

const NAMES = [".", "a.", "b.a.", "c.b.a.", "d.", "x.d."] as const;

test("zones and routes of the same names come and go as a model has them, over the deaths of writers too", () => {
  const step = fc.tuple(
    fc.constantFrom("zone", "delete", "route", "route", "unroute", "die"),
    fc.constantFrom(...NAMES),
    fc.integer({ min: 16, max: 2 ** 31 - 1 }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const shared = createSharedImage(7);
      const control = new Int32Array(shared.control);
      const view = openView(shared);
      const zones = new Set<string>();
      const routes = new Map<string, number>();
      let writer = openImageWriter(shared);
      for (const [what, name, route] of steps) {
        const key = keyOf(shared, name);
        const before = control[CONTROL.ROUTING];
        if (what === "zone") activateZone(writer, createZone(writer, key), key);
        else if (what === "delete") assert.equal(deleteZone(writer, key), zones.has(name));
        else if (what === "die") writer = openImageWriter(shared);
        else setRoute(writer, key, what === "route" ? route : 0);
        const changes =
          (what === "zone" && !zones.has(name)) ||
          (what === "delete" && zones.has(name)) ||
          what === "route" ||
          (what === "unroute" && routes.has(name));
        if (changes) assert.notEqual(control[CONTROL.ROUTING], before, what);
        if (what === "zone") zones.add(name);
        if (what === "delete") zones.delete(name);
        if (what === "route") routes.set(name, route);
        if (what === "unroute") routes.delete(name);
        while (collect(writer));
        auditArena(writer, []);
        assert.equal(control[CONTROL.ZONES], zones.size);
        assert.deepEqual(new Set(zoneNames(writer).map((wire) => nameToText(wire))), zones);
        assert.deepEqual(new Map(namedRoutes(writer).map((each) => [nameToText(each.name), each.route])), routes);
        for (const sought of NAMES) {
          const lookup = createLookup();
          const found = findZone(view, lookup, keyOf(shared, sought), 0);
          const longest = suffixesOf(sought).find((suffix) => zones.has(suffix) || routes.has(suffix));
          const isOwn = longest !== undefined && zones.has(longest);
          assert.equal(found !== 0, isOwn, `${sought} is ours`);
          if (!isOwn) assert.equal(lookup.route, longest === undefined ? 0 : routes.get(longest), sought);
        }
      }
    }),
    { numRuns: 200 },
  );
});

function suffixesOf(name: string): readonly string[] {
  const labels = name
    .split(".")
    .slice(0, -1)
    .filter((label) => label !== "");
  return [...labels.map((_, index) => `${labels.slice(index).join(".")}.`), "."];
}

test("what changes where names are routed is told: overrides, cuts and the default forwarder; records are not", () => {
  const lab = openLab([]);
  const control = new Int32Array(lab.shared.control);
  let before = control[CONTROL.ROUTING]!;
  const rose = (): boolean => {
    const has = control[CONTROL.ROUTING] !== before;
    before = control[CONTROL.ROUTING]!;
    return has;
  };
  setDefaultRoute(lab.writer, 16, 1);
  assert.equal(rose(), true);
  assert.equal(control[CONTROL.DEFAULT_ROUTE], 16);
  assert.equal(control[CONTROL.FORWARDING], 1);
  lab.override("a.test. A 192.0.2.2");
  assert.equal(rose(), true);
  lab.override("");
  assert.equal(rose(), true);
  const publisher = startZone(lab.writer, nameOf("t."));
  const change = (owner: string, type: number, text?: string) =>
    changeRRset(publisher, nameOf(owner), type, 300, text === undefined ? [] : [rdata(type, text)]);
  change("t.", RRTYPE.SOA, "ns.t. h.t. 1 1 1 1 60");
  change("cut.t.", RRTYPE.NS, "ns.t.");
  assert.equal(finishZone(publisher).ok, true);
  assert.equal(rose(), false);
  activateZone(lab.writer, publisher.zone, publisher.apex);
  assert.equal(rose(), true);
  change("www.t.", RRTYPE.A, "192.0.2.1");
  change("www.t.", RRTYPE.A, "192.0.2.2");
  change("cut.t.", RRTYPE.NS, "ns2.t.");
  change("www.t.", RRTYPE.A);
  assert.equal(rose(), false);
  change("cut.t.", RRTYPE.NS);
  assert.equal(rose(), true);
  change("cut.t.", RRTYPE.NS, "ns.t.");
  assert.equal(rose(), true);
});

function rdata(type: number, text: string): Uint8Array {
  const result = rdataFromText(type, text);
  return result.kind === "rdata" ? result.rdata : assert.fail(result.detail);
}
