/** Whatever a trusted resolver says of a client (RFC 7871): it is answered, with its own words back, or told that it is FORMERR. */
import assert from "node:assert/strict";
import test from "node:test";
import { cidrFromText } from "../../src/base/ip.ts";
import { EDNS_OPTION, RCODE } from "../../src/dns/codes.ts";
import { TRANSPORT } from "../../src/image/counters.ts";
import { type Chance, seededChance } from "../support/chance.ts";
import { addressOf, openSelectionLab } from "../support/selection-lab.ts";
import { decode, nameOf, zone } from "../support/zone-lab.ts";

const PACKETS = 100_000;
const SEED = 20_260_301;
const TRUSTED = "192.0.2.53";
const NAMES = ["region", "geo", "affine", "weighted", "down", "ns1", "missing"] as const;
const TYPES = [1, 28, 255] as const;

function openSubnetLab() {
  const clientSubnetSources = [cidrFromText("192.0.2.0/26") ?? assert.fail()];
  const lab = openSelectionLab([zone("corp.test.")], { answerer: { clientSubnetSources } });
  const inside = { "10.1.0.0/16": "west", "10.1.7.0/25": "east", "fd00:1::/32": "west", "fd00:1:2:3::/65": "east" };
  lab.regions({ ...inside, "0.0.0.0/1": "south", "255.255.255.255/32": "east" }, "home");
  const values = [
    { value: "10.0.0.1", region: "west", probe: "one", weight: 40 },
    { value: "10.0.0.2", region: "east", probe: "two", weight: 60 },
    { value: "10.0.0.3", region: "home", probe: "three", weight: 0 },
  ];
  lab.select("region.corp.test. A", { method: "REGION", preferred: ["east"] }, values);
  lab.select("geo.corp.test. A", { method: "REGION", single: true, affinitySeconds: 60 }, values);
  lab.select("affine.corp.test. A", { method: "ALL", affinitySeconds: 300 }, values);
  lab.select("weighted.corp.test. A", { method: "WEIGHTED", affinitySeconds: 300 }, values);
  const dead = values.map((value) => ({ ...value, probe: "dead" }));
  lab.select("down.corp.test. A", { method: "REGION" }, dead);
  lab.health("dead", "UNHEALTHY");
  lab.health("two", "UNHEALTHY");
  return lab;
}

type Option = { readonly code: number; readonly data: readonly number[] };

/** Mostly near to what is right, so that faults are faults of one thing. */
function subnetOption(chance: Chance): Option {
  const family = chance.pick([0, 1, 1, 1, 2, 2, 3, 256, 65_535]);
  const bits = family === 1 ? 32 : family === 2 ? 128 : 0;
  const source = chance.below(8) === 0 ? chance.below(256) : chance.below(bits + 1);
  const bytes = Math.max(0, Math.ceil(source / 8) + chance.pick([0, 0, 0, 0, 0, 0, 1, -1, 40]));
  const known = chance.pick([[10, 1, 7, 9], [0xfd, 0, 0, 1, 0, 2, 0, 3], [255, 255, 255, 255], []]);
  const address = Array.from({ length: bytes }, (_, index) => known[index] ?? chance.below(256));
  const last = address.length - 1;
  if (source % 8 !== 0 && last >= 0 && chance.below(6) !== 0) {
    address[last] = (address[last] ?? 0) & (0xff << (8 - (source % 8))) & 0xff;
  }
  const scope = chance.below(12) === 0 ? chance.below(256) : 0;
  const data = [family >>> 8, family & 255, source, scope, ...address];
  return { code: EDNS_OPTION.CLIENT_SUBNET, data: chance.below(20) === 0 ? data.slice(0, chance.below(6)) : data };
}

function otherOption(chance: Chance): Option {
  const data = Array.from({ length: chance.below(9) }, () => chance.below(256));
  return chance.below(2) === 0 ? { code: EDNS_OPTION.NSID, data: [] } : { code: 65_001, data };
}

function packetOf(chance: Chance, options: readonly Option[]): Buffer {
  const rdata = options.flatMap(({ code, data }) => [
    code >> 8,
    code & 255,
    data.length >> 8,
    data.length & 255,
    ...data,
  ]);
  const name = nameOf(`${chance.pick(NAMES)}.corp.test.`);
  const header = [0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1];
  const opt = [0, 0, 41, 4, 208, 0, 0, 0, 0, rdata.length >> 8, rdata.length & 255];
  return Buffer.from([...header, ...name, 0, chance.pick(TYPES), 0, 1, ...opt, ...rdata]);
}

/** By RFC 7871 section 6: as many octets as the prefix needs, no bit behind it, and no scope in a query. */
function isWellFormed(data: readonly number[]): boolean {
  const [high = -1, low = -1, source = -1, scope = -1, ...address] = data;
  if (scope !== 0) return false;
  const bits = new Map([
    [0, 0],
    [1, 32],
    [2, 128],
  ]).get(high * 256 + low);
  if (bits === undefined || source > bits || address.length !== Math.ceil(source / 8)) return false;
  const text = address.map((octet) => octet.toString(2).padStart(8, "0")).join("");
  return !text.slice(source).includes("1");
}

test(`${PACKETS.toLocaleString("en")} ways to name a client: the words come back with a scope, or it is FORMERR`, () => {
  const lab = openSubnetLab();
  const chance = seededChance(SEED);
  const counts = { good: 0, malformed: 0, none: 0 };
  for (let sent = 0; sent < PACKETS; sent++) {
    const others = Array.from({ length: chance.below(3) }, () => otherOption(chance));
    const subnets = Array.from({ length: chance.pick([0, 1, 1, 1, 1, 1, 1, 2]) }, () => subnetOption(chance));
    const options = chance.below(2) === 0 ? [...others, ...subnets] : [...subnets, ...others];
    const packet = packetOf(chance, options);
    const transport = chance.below(4) === 0 ? TRANSPORT.TCP : TRANSPORT.UDP;
    const bytes = lab.send(packet, { client: addressOf(TRUSTED), transport });
    const about = `transport ${transport} ${packet.toString("hex")}`;
    assert.ok(bytes !== undefined, about);
    const { rcode, answers, questions, edns } = decode(bytes);
    const echoes = (edns?.options ?? []).filter(({ code }) => code === EDNS_OPTION.CLIENT_SUBNET);
    const [first] = subnets;
    if (first !== undefined && !isWellFormed(first.data)) {
      counts.malformed += 1;
      assert.equal(rcode, RCODE.FORMERR, about);
      continue;
    }
    assert.ok(rcode === RCODE.NOERROR || rcode === RCODE.NXDOMAIN, about);
    // Selection leaves nobody without an answer, whoever asks and whatever is down.
    const isSelected = questions[0]?.type === 1 && rcode === RCODE.NOERROR;
    if (isSelected) assert.ok(answers.length > 0, about);
    if (first === undefined) {
      counts.none += 1;
      assert.equal(echoes.length, 0, about);
      continue;
    }
    counts.good += 1;
    const echo = [...(echoes[0]?.data ?? [])];
    assert.equal(echoes.length, 1, about);
    const scope = echo[3] ?? -1;
    assert.ok(scope >= 0 && scope <= (first.data[1] === 1 ? 32 : first.data[1] === 2 ? 128 : 0), about);
    assert.deepEqual([...echo.slice(0, 3), 0, ...echo.slice(4)], first.data, about);
    // RFC 7871 section 7.1.2: without a prefix nothing was tailored.
    if (first.data[2] === 0) assert.equal(scope, 0, about);
  }
  for (const [kind, count] of Object.entries(counts)) assert.ok(count > PACKETS / 20, `${kind}: ${count}`);
});
