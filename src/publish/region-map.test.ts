import assert from "node:assert/strict";
import { test } from "node:test";
import { auditArena } from "../../tests/image/audit.ts";
import { type TemporaryStore, temporaryStore } from "../../tests/support/store.ts";
import { openLab, type ZoneLab } from "../../tests/support/zone-lab.ts";
import { newId } from "../commands/run.ts";
import { regionNumber } from "../image/regions.ts";
import { CONTROL } from "../image/shared.ts";
import { collect } from "../image/writer.ts";
import { openRegionMap, type RegionMap } from "./region-map.ts";

type World = AsyncDisposable & {
  readonly lab: ZoneLab;
  readonly map: RegionMap;
  readonly trouble: { isThere: boolean };
  /** How often the table was replaced. */
  readonly changes: () => number;
  readonly put: (mappings: Readonly<Record<string, string>>) => Promise<void>;
  readonly remove: (...subnets: readonly string[]) => Promise<void>;
  readonly faults: readonly string[];
};

async function open({ store, ...temporary }: TemporaryStore, region = ""): Promise<World> {
  const lab = openLab([]);
  const faults: string[] = [];
  const trouble = { isThere: false };
  let changes = 0;
  const map = openRegionMap({
    store: {
      count: store.count,
      list: (kind, options) => {
        if (trouble.isThere) throw new Error("out of reach");
        return store.list(kind, options);
      },
    },
    writer: lab.writer,
    log: (_, message) => void faults.push(message),
    clock: () => performance.now(),
    region,
    onChanged: () => void changes++,
  });
  const end = store.onChange(map.hear);
  return {
    lab,
    map,
    trouble,
    changes: () => changes,
    put: (mappings) =>
      store.write((tx) => {
        for (const [subnet, region_id] of Object.entries(mappings)) {
          tx.put("subnet-mapping", { id: newId("subnet-mapping"), subnet, region_id, source: "manual" });
        }
      }),
    remove: (...subnets) =>
      store.write((tx) => {
        for (const subnet of subnets) tx.delete("subnet-mapping", [subnet]);
      }),
    faults,
    [Symbol.asyncDispose]: async () => {
      end();
      map[Symbol.dispose]();
      await temporary[Symbol.asyncDispose]();
    },
  };
}

const place = ({ map }: World, value: string, region?: string) =>
  map.placeOf(value.includes(":") ? "AAAA" : "A", { value, ...(region === undefined ? {} : { region }) }).name;

/** A thousand networks and more, each in a region of its own. */
function many(count: number, prefix = "r"): Record<string, string> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`10.${index >> 8}.${index & 255}.0/24`, `${prefix}${index}`]),
  );
}

test("few mappings are in the table when their write is acknowledged", async () => {
  await using world = await open(await temporaryStore());
  await world.map.start();
  assert.equal(place(world, "10.0.0.1"), undefined);
  await world.put({ "10.0.0.0/8": "eu", "10.1.0.0/16": "us", "2001:db8::/32": "asia" });
  assert.deepEqual(
    ["10.0.0.1", "10.1.0.1", "11.0.0.1", "2001:db8::1"].map((value) => place(world, value)),
    ["eu", "us", undefined, "asia"],
  );
  assert.equal(place(world, "10.0.0.1", "tagged"), "tagged");
  assert.equal(world.map.placeOf("CNAME", { value: "a." }).number, 0);
  assert.equal(world.map.placeOf("CNAME", { value: "a.", region: "eu" }).number, regionNumber("eu"));
  await world.remove("10.1.0.0/16");
  assert.equal(place(world, "10.1.0.1"), "eu");
  await world.remove("10.0.0.0/8", "2001:db8::/32");
  assert.equal(world.lab.writer.view.control[CONTROL.REGIONS], 0);
});

test("many are read in slices, replaced in one store, and made again no more often than their reading allows", async () => {
  await using world = await open(await temporaryStore());
  await world.map.start();
  await world.put(many(3000));
  await world.map.settled();
  assert.deepEqual(
    ["10.0.7.1", "10.11.0.1"].map((value) => place(world, value)),
    ["r7", "r2816"],
  );
  const before = world.changes();
  const writes = 60;
  for (let index = 0; index < writes; index++) await world.put({ "10.0.7.0/24": `x${index}` });
  await world.map.settled();
  assert.equal(place(world, "10.0.7.1"), `x${writes - 1}`);
  assert(world.changes() - before < writes, `${world.changes() - before} tables for ${writes} writes`);
  while (collect(world.lab.writer));
  auditArena(world.lab.writer);
});

test("what changes while the mappings are read comes too", async () => {
  await using world = await open(await temporaryStore());
  await world.put(many(2000, "old"));
  const started = world.map.start();
  await world.put({ "10.0.0.0/24": "new", "10.7.0.0/24": "new" });
  await world.remove("10.0.1.0/24");
  await started;
  await world.map.settled();
  const places = ["10.0.0.1", "10.7.0.1", "10.0.1.1", "10.0.2.1"].map((value) => place(world, value));
  assert.deepEqual(places, ["new", "new", undefined, "old2"]);
});

test("the node's own region is known by its number, without any mapping too", async () => {
  await using world = await open(await temporaryStore(), "home");
  await world.map.start();
  assert.equal(world.lab.writer.view.control[CONTROL.OWN_REGION], regionNumber("home"));
  assert.equal(world.map.nameOf(regionNumber("home")), "home");
  assert.equal(world.map.nameOf(regionNumber("eu")), undefined);
});

test("where mappings cannot be read the table stays, people hear of it, and the next change makes it anew", async () => {
  await using world = await open(await temporaryStore());
  await world.map.start();
  await world.put({ "10.0.0.0/8": "eu" });
  world.trouble.isThere = true;
  await world.put({ "10.0.0.0/8": "us" });
  assert.deepEqual(
    [world.map.isFailed(), place(world, "10.0.0.1"), world.faults],
    [true, "eu", ["the subnet mappings cannot be published: out of reach"]],
  );
  world.trouble.isThere = false;
  await world.put({ "11.0.0.0/8": "us" });
  await world.map.settled();
  assert.deepEqual([world.map.isFailed(), place(world, "10.0.0.1"), place(world, "11.0.0.1")], [false, "us", "us"]);
});
