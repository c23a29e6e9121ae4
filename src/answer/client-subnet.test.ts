import assert from "node:assert/strict";
import test from "node:test";
import { addressOf, openSelectionLab, type SelectionLab } from "../../tests/support/selection-lab.ts";
import { decode, queryBytes, zone } from "../../tests/support/zone-lab.ts";
import { cidrFromText } from "../base/ip.ts";
import { EDNS_OPTION, RCODE } from "../dns/codes.ts";
import { findOption } from "../dns/edns.ts";
import type { Message } from "../dns/message.ts";
import { TRANSPORT } from "../image/counters.ts";

const TRUSTED = "192.0.2.53";
const REGIONAL = "www.corp.test. A";
const STATIC = "ns1.corp.test. A";
const AFFINE = "app.corp.test. A";
const FAMILY = { V4: 1, V6: 2 } as const;

function open(sources = ["192.0.2.0/26", "fd53::/16"]): SelectionLab {
  const clientSubnetSources = sources.map((text) => cidrFromText(text) ?? assert.fail(text));
  const lab = openSelectionLab([zone("corp.test.")], { answerer: { clientSubnetSources } });
  lab.regions({ "10.1.0.0/16": "west", "10.2.0.0/15": "east", "fd00:1::/32": "west" }, "home");
  lab.select(REGIONAL, { method: "REGION" }, [
    { value: "10.0.0.1", region: "west" },
    { value: "10.0.0.2", region: "east" },
    { value: "10.0.0.3", region: "home" },
  ]);
  lab.select(AFFINE, { method: "ALL", affinitySeconds: 300 }, ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]);
  lab.select("all.corp.test. A", { method: "ALL" }, ["10.0.0.1", "10.0.0.2"]);
  lab.select("first.corp.test. A", { method: "FAILOVER", affinitySeconds: 300 }, ["10.0.0.1", "10.0.0.2"]);
  return lab;
}

/** The option's data: family, source prefix, scope, and so much of the address as is told. */
function subnet(family: number, source: number, address: readonly number[], scope = 0): Uint8Array {
  return Uint8Array.of(family >>> 8, family & 255, source, scope, ...address);
}

function asking(data: Uint8Array, from = TRUSTED) {
  return { edns: { options: [{ code: EDNS_OPTION.CLIENT_SUBNET, data }] }, client: addressOf(from) };
}

function answered(message: Message): readonly string[] {
  return message.answers.map(({ rdata }) => rdata.join("."));
}

function echoed(message: Message): readonly number[] | undefined {
  const data = findOption(message.edns, EDNS_OPTION.CLIENT_SUBNET);
  return data === undefined ? undefined : [...data];
}

test("the network that a trusted resolver asks for is the client", () => {
  const lab = open();
  const west = lab.message(REGIONAL, asking(subnet(FAMILY.V4, 24, [10, 1, 2])));
  assert.deepEqual(answered(west), ["10.0.0.1"]);
  assert.deepEqual(echoed(west), [0, 1, 24, 16, 10, 1, 2]);
  const east = lab.message(REGIONAL, asking(subnet(FAMILY.V4, 24, [10, 3, 2]), "fd53::1"));
  assert.deepEqual([answered(east), echoed(east)], [["10.0.0.2"], [0, 1, 24, 15, 10, 3, 2]]);
  const v6 = lab.message(REGIONAL, asking(subnet(FAMILY.V6, 48, [0xfd, 0, 0, 1, 0, 9])));
  assert.deepEqual([answered(v6), echoed(v6)], [["10.0.0.1"], [0, 2, 48, 32, 0xfd, 0, 0, 1, 0, 9]]);
});

test("what region or affinity chose is for this client, and nothing else is", () => {
  const lab = open();
  const forClient = (question: string, ask = {}) => {
    lab.message(question, ask);
    return lab.answerer.isForClient;
  };
  for (const question of [REGIONAL, AFFINE]) {
    assert.equal(forClient(question), true, question);
    // A resolver that wants no tailoring has what everybody has.
    assert.equal(forClient(question, asking(subnet(FAMILY.V4, 0, []))), false, question);
  }
  for (const question of [STATIC, "all.corp.test. A", "first.corp.test. A", "nope.corp.test. A"]) {
    assert.equal(forClient(question), false, question);
  }
});

test("from elsewhere, and where nobody is trusted, the option is as good as not there", () => {
  const data = subnet(FAMILY.V4, 24, [10, 1, 2]);
  for (const [lab, from] of [
    [open(), "192.0.2.64"],
    [open([]), TRUSTED],
  ] as const) {
    const message = lab.message(REGIONAL, asking(data, from));
    assert.deepEqual([answered(message), echoed(message)], [["10.0.0.3"], undefined]);
    const malformed = lab.message(REGIONAL, asking(Uint8Array.of(9), from));
    assert.equal(malformed.rcode, RCODE.NOERROR);
  }
});

test("a trusted resolver that does not ask for anybody is the client itself, and gets no option", () => {
  const message = open().message(REGIONAL, { client: addressOf(TRUSTED) });
  assert.deepEqual([answered(message), echoed(message)], [["10.0.0.3"], undefined]);
});

test("scope 0 where no client mattered", () => {
  const lab = open();
  for (const question of [STATIC, "all.corp.test. A", "first.corp.test. A", "no.corp.test. A", "www.corp.test. MX"]) {
    assert.deepEqual(echoed(lab.message(question, asking(subnet(FAMILY.V4, 24, [10, 1, 2])))), [0, 1, 24, 0, 10, 1, 2]);
  }
});

test("a client without a mapping: the scope is what is not mapped around it", () => {
  const message = open().message(REGIONAL, asking(subnet(FAMILY.V4, 24, [10, 0, 9])));
  assert.deepEqual([answered(message), echoed(message)], [["10.0.0.3"], [0, 1, 24, 16, 10, 0, 9]]);
  const far = open().message(REGIONAL, asking(subnet(FAMILY.V4, 24, [203, 0, 113])));
  assert.deepEqual(echoed(far), [0, 1, 24, 1, 203, 0, 113]);
});

test("affinity goes by the network asked for, and the scope says so though less of it was told", () => {
  const lab = open();
  const values = Array.from({ length: 64 }, (_, third) => {
    const message = lab.message(AFFINE, asking(subnet(FAMILY.V4, 24, [10, 1, third])));
    assert.deepEqual(echoed(message), [0, 1, 24, 24, 10, 1, third]);
    assert.deepEqual(answered(message), lab.values(AFFINE, `10.1.${third}.9`), "as if it asked itself");
    return answered(message)[0];
  });
  assert.equal(new Set(values).size, 4);
  assert.deepEqual(echoed(lab.message(AFFINE, asking(subnet(FAMILY.V4, 16, [10, 1])))), [0, 1, 16, 24, 10, 1]);
  assert.deepEqual(
    echoed(lab.message(AFFINE, asking(subnet(FAMILY.V6, 56, [253, 0, 0, 0, 0, 0, 1])))),
    [0, 2, 56, 56, 253, 0, 0, 0, 0, 0, 1],
  );
});

for (const family of [0, FAMILY.V4, FAMILY.V6]) {
  test(`source prefix 0 of family ${family} wants no tailoring: own region, no affinity, scope 0`, () => {
    const lab = open();
    const regional = lab.message(REGIONAL, asking(subnet(family, 0, [])));
    assert.deepEqual([answered(regional), echoed(regional)], [["10.0.0.3"], [0, family, 0, 0]]);
    const affine = lab.message(AFFINE, asking(subnet(family, 0, [])));
    assert.equal(affine.answers.length, 4);
    assert.deepEqual(echoed(affine), [0, family, 0, 0]);
  });
}

const MALFORMED: readonly (readonly [string, Uint8Array])[] = [
  ["too short", Uint8Array.of(0, 1, 24)],
  ["empty", new Uint8Array(0)],
  ["too few octets", subnet(FAMILY.V4, 24, [10, 1])],
  ["too many octets", subnet(FAMILY.V4, 16, [10, 1, 2])],
  ["bits behind the prefix", subnet(FAMILY.V4, 20, [10, 1, 0x11])],
  ["a scope", subnet(FAMILY.V4, 24, [10, 1, 2], 24)],
  ["a prefix of 33", subnet(FAMILY.V4, 33, [10, 1, 2, 3, 128])],
  ["a prefix of 129", subnet(FAMILY.V6, 129, [...new Uint8Array(16), 128])],
  ["an unknown family", subnet(3, 8, [10])],
  ["an address of no family", subnet(0, 8, [10])],
];
for (const [fault, data] of MALFORMED) {
  test(`a malformed option of a trusted resolver is a format error: ${fault}`, () => {
    const message = open().message(REGIONAL, asking(data));
    assert.equal(message.rcode, RCODE.FORMERR);
    assert.deepEqual([message.answers.length, echoed(message)], [0, undefined]);
  });
}

test("the option counts for the size of the answer, over TCP and UDP", () => {
  const lab = open();
  const values = Array.from({ length: 40 }, (_, index) => ({ value: `10.0.1.${index}`, region: "west" }));
  lab.select(REGIONAL, { method: "REGION" }, values);
  const question = 12 + 15 + 4;
  const whole = question + 40 * 16 + 11 + 4 + 7;
  for (const [udpSize, isTruncated] of [
    [whole, false],
    [whole - 1, true],
  ] as const) {
    const { edns, client } = asking(subnet(FAMILY.V4, 24, [10, 1, 2]));
    const options = { edns: { ...edns, udpSize }, client };
    const bytes = lab.send(queryBytes(REGIONAL, options), options)!;
    assert.equal((decode(bytes).flags & 0x200) !== 0, isTruncated);
    assert.ok(bytes.length <= udpSize);
    assert.deepEqual(echoed(decode(bytes)), [0, 1, 24, 16, 10, 1, 2]);
    const stream = lab.message(REGIONAL, { ...options, transport: TRANSPORT.TCP });
    assert.equal(stream.answers.length, 40);
  }
});

test("the first option of several counts", () => {
  const first = { code: EDNS_OPTION.CLIENT_SUBNET, data: subnet(FAMILY.V4, 24, [10, 1, 2]) };
  const second = { code: EDNS_OPTION.CLIENT_SUBNET, data: subnet(FAMILY.V4, 24, [10, 2, 2]) };
  const message = open().message(REGIONAL, { edns: { options: [first, second] }, client: addressOf(TRUSTED) });
  assert.deepEqual(answered(message), ["10.0.0.1"]);
});
