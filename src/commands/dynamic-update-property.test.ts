/** Random updates, against a zone that is kept as RFC 2136 sections 3.2.5 and 3.4.2.7 write it down. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { givenUpdateZone, sortedLines, updateOf, zoneLines } from "../../tests/support/update-text.ts";
import { RCODE } from "../dns/codes.ts";
import { applyUpdate } from "./dynamic-update.ts";

/** By "name type": the TTL and the rdata of an RRset. An apex NS is always among them. */
type NaiveZone = Map<string, { ttl: number; rdatas: Set<string> }>;

const NAMES = ["@", "www", "a.www", "*"];
const RDATA: Readonly<Record<string, readonly string[]>> = {
  A: ["192.0.2.1", "192.0.2.2", "192.0.2.3"],
  MX: ["10 a.corp.", "20 a.corp.", "10 b.corp."],
  TXT: ['"a"', '"b"', '"a" "b"'],
  CNAME: ["a.corp.", "b.corp."],
  NS: ["ns1.corp.", "ns2.corp.", "ns3.corp."],
};

const type = fc.constantFrom(...Object.keys(RDATA));
const name = fc.constantFrom(...NAMES);
const value = type.chain((each) => fc.constantFrom(...(RDATA[each] ?? [])).map((rdata) => [each, rdata] as const));
/** Never 3600, the zone's own TTL, which a record may have without saying so. */
const ttl = fc.constantFrom(60, 300);

const prerequisite = fc.oneof(
  fc.tuple(fc.constantFrom("yxdomain", "nxdomain"), name).map((words) => words.join(" ")),
  fc.tuple(fc.constantFrom("yxrrset", "nxrrset"), name, type).map((words) => words.join(" ")),
  fc.tuple(name, value).map(([at, [each, rdata]]) => `yxrrset ${at} ${each} ${rdata}`),
);
const operation = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(name, ttl, value)
      .map(([at, seconds, [each, rdata]]) => `add ${at} ${seconds} ${each} ${rdata}`),
  },
  { weight: 2, arbitrary: fc.tuple(name, value).map(([at, [each, rdata]]) => `delete ${at} ${each} ${rdata}`) },
  fc.tuple(name, type).map(([at, each]) => `delete ${at} ${each}`),
  name.map((at) => `delete ${at}`),
);
const update = fc.record({
  prerequisites: fc.array(prerequisite, { maxLength: 2 }),
  operations: fc.array(operation, { maxLength: 6 }),
});

function naivePrerequisites(zone: NaiveZone, lines: readonly string[]): keyof typeof RCODE {
  const wanted = new Map<string, Set<string>>();
  for (const line of lines) {
    const [what = "", at = "", each = "", ...rdata] = line.split(" ");
    const isInUse = [...zone.keys()].some((key) => key.startsWith(`${at} `));
    const hasSet = zone.has(`${at} ${each}`);
    if (what === "yxdomain" && !isInUse) return "NXDOMAIN";
    if (what === "nxdomain" && isInUse) return "YXDOMAIN";
    if (what === "nxrrset" && hasSet) return "YXRRSET";
    if (what === "yxrrset" && rdata.length === 0 && !hasSet) return "NXRRSET";
    if (rdata.length > 0) wanted.set(`${at} ${each}`, (wanted.get(`${at} ${each}`) ?? new Set()).add(rdata.join(" ")));
  }
  for (const [key, rdatas] of wanted) {
    const present = zone.get(key)?.rdatas ?? new Set();
    if (present.size !== rdatas.size || [...rdatas].some((rdata) => !present.has(rdata))) return "NXRRSET";
  }
  return "NOERROR";
}

function naiveUpdate(zone: NaiveZone, line: string): void {
  const [word = "", at = "", ...rest] = line.split(" ");
  if (word === "add") {
    naiveAdd(zone, at, rest);
    return;
  }
  const [each, ...words] = rest;
  const rdata = words.join(" ");
  for (const [key, { rdatas }] of [...zone]) {
    const [keyName, keyType] = key.split(" ");
    if (keyName !== at || (each !== undefined && keyType !== each)) continue;
    const isApexNs = key === "@ NS";
    if (rdata === "" && !isApexNs) rdatas.clear();
    if (rdata !== "" && !(isApexNs && rdatas.size === 1)) rdatas.delete(rdata);
    if (rdatas.size === 0) zone.delete(key);
  }
}

function naiveAdd(zone: NaiveZone, at: string, [ttlText, each = "", ...words]: readonly string[]): void {
  // The SOA, which is not in the map, is another type at the apex.
  const others = [...zone.keys()].filter((key) => key.startsWith(`${at} `) && key !== `${at} ${each}`);
  if (each === "CNAME" ? others.length > 0 || at === "@" : others.includes(`${at} CNAME`)) return;
  const set = zone.get(`${at} ${each}`) ?? { ttl: 0, rdatas: new Set<string>() };
  if (each === "CNAME") set.rdatas.clear();
  set.rdatas.add(words.join(" "));
  set.ttl = Number(ttlText);
  zone.set(`${at} ${each}`, set);
}

function naiveLines(zone: NaiveZone): readonly string[] {
  return [...zone].flatMap(([key, { ttl: seconds, rdatas }]) => {
    const [at, each] = key.split(" ");
    return [...rdatas].map((rdata) => `${at} ${seconds} ${each} ${rdata}`);
  });
}

test("random updates give the rcodes and the zone of the RFC's own pseudocode", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(update, { minLength: 1, maxLength: 12 }), async (updates) => {
      await using world = await givenUpdateZone("@ 300 NS ns1.corp.");
      let zone: NaiveZone = new Map([["@ NS", { ttl: 300, rdatas: new Set(["ns1.corp."]) }]]);
      for (const { prerequisites, operations } of updates) {
        const expected = naivePrerequisites(zone, prerequisites);
        const serial = world.store.serialOf("corp.");
        const lines = [...prerequisites.map((line) => `prereq ${line}`), ...operations];
        const message = updateOf(lines.join("\n"));
        const { rcode } = await applyUpdate(world.context, { address: "192.0.2.1" }, message);
        assert.equal(rcode, RCODE[expected]);
        const before = naiveLines(zone);
        if (expected === "NOERROR") {
          zone = structuredClone(zone);
          for (const line of operations) naiveUpdate(zone, line);
        }
        assert.deepEqual(zoneLines(world.store), sortedLines(naiveLines(zone).join("\n")));
        const isSame = sortedLines(before.join("\n")).join() === zoneLines(world.store).join();
        assert.equal(world.store.serialOf("corp.") === serial, isSame);
      }
    }),
    { numRuns: 150 },
  );
});
