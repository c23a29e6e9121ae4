/** For whom names are resolved that are not ours: what clients outside of the networks get is what they would get without any forwarder. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { addressOf } from "../../tests/support/selection-lab.ts";
import { openLab, queryBytes, type ZoneLab, zone } from "../../tests/support/zone-lab.ts";
import { cidrFromText, cidrHolds } from "../base/ip.ts";
import { EDE, EDNS_OPTION, FLAG } from "../dns/codes.ts";
import { COUNTER, sumCounter, TRANSPORTS } from "../image/counters.ts";
import { createPrefixMemory } from "../image/prefix-table.ts";
import { isOfferedTo, offerRecursion } from "../image/recursion.ts";
import { createSharedImage } from "../image/shared.ts";
import { openView } from "../image/view.ts";
import { openImageWriter } from "../image/writer.ts";
import { NOT_PUBLIC_NETWORKS } from "../model/not-public-networks.ts";
import { createAnswerer } from "./answerer.ts";

const RECORDS = `
www A 192.0.2.1
out CNAME www.outside.net.
out2 CNAME out
listed CNAME x.ads.
cut NS ns.cut
ns.cut A 192.0.2.9
to-cut CNAME x.cut
alias ALIAS www.outside.net.
below-cut ALIAS x.cut
mx MX 10 mail.outside.net.
`;
const DEFAULT = 99;
const NOW = 1_000;
const INSIDE = addressOf("10.1.2.3");
const OUTSIDE = addressOf("192.0.2.77");
const RD = FLAG.RD;

const networksOf = (...texts: readonly string[]) => texts.map((text) => cidrFromText(text) ?? assert.fail(text));

function open(forwards = true, clientSubnetSources = networksOf("192.0.2.0/24")): ZoneLab {
  const lab = openLab([zone("example.test.", RECORDS)], {
    answerer: { forwards, clientSubnetSources },
    nowSeconds: NOW,
  });
  if (!forwards) return lab;
  offerRecursion(lab.writer, networksOf("10.0.0.0/8", "fd00::/8"));
  lab.route(".", DEFAULT);
  lab.route("partner.", 50);
  lab.block("ads.");
  lab.cached("www.outside.net. A", { route: DEFAULT, seconds: 300, answers: "www.outside.net. 300 A 198.51.100.1" });
  return lab;
}

const refusals = ({ shared }: ZoneLab) => sumCounter(shared, COUNTER.RECURSION_REFUSED);

test("what only a forwarder or the cache could answer is REFUSED outside, with Prohibited and without RA", () => {
  const lab = open();
  const questions = [
    "www.outside.net. A",
    "nowhere.net. A",
    "www.partner. MX",
    "partner. DS",
    ". NS",
    "outside.net. ANY",
  ];
  for (const [index, question] of questions.entries()) {
    for (const flags of [0, RD, RD | FLAG.CD]) {
      const status = flags === 0 ? "REFUSED ede=18" : "REFUSED rd ede=18";
      assert.deepEqual(lab.ask(question, { client: OUTSIDE, flags }), [status], question);
    }
    assert.equal(refusals(lab), (index + 1) * 2, "of those that want recursion");
  }
  assert.equal(
    lab.ask("www.outside.net. A", { client: INSIDE, flags: RD })[1],
    "answer www.outside.net. 300 IN A 198.51.100.1",
  );
  assert.equal(lab.lack("www.partner. MX", { client: INSIDE, flags: RD }), "50 www.partner. MX 0");
  assert.equal(refusals(lab), questions.length * 2);
});

test("over every transport, and for whoever is not to be waited for", () => {
  const lab = open();
  for (const [transport] of TRANSPORTS.entries()) {
    const query = queryBytes("www.outside.net. A", { flags: RD });
    const answer = lab.sendOrLack(query, { client: OUTSIDE, transport: transport as 0 | 1 | 2 | 3 });
    assert.ok(answer instanceof Uint8Array);
    assert.equal((answer[3] ?? 0) & 0x8f, 5, "RA is clear, the rcode is REFUSED");
  }
  assert.deepEqual(lab.askNow("nowhere.net. A", EDE.OTHER, { client: OUTSIDE, flags: RD }), ["REFUSED rd ede=18"]);
});

test("what is ours is answered outside as by a server without recursion", () => {
  const [lab, without] = [open(), open(false)];
  const questions = [
    "www.example.test. A",
    "www.example.test. TXT",
    "nope.example.test. A",
    "mx.example.test. MX",
    "out.example.test. A",
    "out2.example.test. TXT",
    "x.cut.example.test. A",
    "cut.example.test. NS",
    "cut.example.test. DS",
    "to-cut.example.test. A",
    "example.test. AXFR",
  ];
  for (const question of questions) {
    for (const flags of [0, RD]) {
      const how = { client: OUTSIDE, flags };
      assert.deepEqual(lab.ask(question, how), without.ask(question, how), question);
    }
  }
  // Behind the CNAMEs, and of the names below the cut, which a client inside has resolved.
  assert.equal(refusals(lab), 2 + 3);
  assert.equal(lab.ask("www.example.test. A", { client: INSIDE, flags: RD })[0], "NOERROR aa rd ra");
});

test("an override, the blocklist and an ALIAS of ours are for everybody", () => {
  const lab = open();
  lab.override("over.outside.net. A 192.0.2.3\n");
  const ask = (question: string, client: Uint8Array) => lab.ask(question, { client, flags: RD });
  for (const question of ["over.outside.net. A", "x.ads. A", "listed.example.test. A", "alias.example.test. A"]) {
    const [status = "", ...records] = ask(question, INSIDE);
    assert.match(status, / ra( |$)/);
    assert.deepEqual(ask(question, OUTSIDE), [status.replace(" ra", ""), ...records], question);
    assert.ok(records.length > 0, question);
  }
  assert.equal(lab.lack("below-cut.example.test. A", { client: OUTSIDE }), "1 x.cut.example.test. A 0");
  assert.equal(lab.lack("alias.example.test. AAAA", { client: OUTSIDE }), `${DEFAULT} www.outside.net. AAAA 0`);
  assert.equal(refusals(lab), 0);
});

test("the sender counts, not whom it asks for", () => {
  const lab = open();
  const subnet = (...address: readonly number[]) => ({
    options: [{ code: EDNS_OPTION.CLIENT_SUBNET, data: Uint8Array.of(0, 1, 24, 0, ...address) }],
  });
  const ask = (client: Uint8Array, edns: ReturnType<typeof subnet>) =>
    lab.message("www.outside.net. A", { client, flags: RD, edns });
  assert.equal(ask(OUTSIDE, subnet(10, 1, 2)).rcode, 5);
  const trusting = open(true, networksOf("10.0.0.0/8"));
  const inside = trusting.message("www.outside.net. A", { client: INSIDE, flags: RD, edns: subnet(192, 0, 2) });
  assert.equal(inside.rcode, 0);
});

test("where nothing was said, it is offered to nobody but the node itself", () => {
  const lab = open();
  offerRecursion(lab.writer, []);
  assert.deepEqual(lab.ask("www.outside.net. A", { client: INSIDE, flags: RD }), ["REFUSED rd ede=18"]);
  const options = { thread: 1, nodeId: undefined, maxUdpSize: 1232, tcpIdleSeconds: 10 };
  const own = createAnswerer(lab.shared, { ...options, forwards: true, offersToAll: true });
  const bytes = new Uint8Array(512);
  const query = queryBytes("www.outside.net. A", { flags: RD });
  bytes.set(query);
  own.enter();
  own.answer(bytes, 0, query.length, bytes.length, OUTSIDE, 0, 4, 0);
  own.leave();
  assert.equal((bytes[3] ?? 0) & 15, 0);
});

test("a change holds from the next query on, whatever a thread remembers", () => {
  const lab = open();
  const status = () => lab.ask("www.outside.net. A", { client: OUTSIDE, flags: RD })[0];
  for (let round = 0; round < 5; round++) {
    assert.equal(status(), "REFUSED rd ede=18");
    offerRecursion(lab.writer, networksOf("0.0.0.0/0", "192.0.2.0/25"));
    assert.equal(status(), "NOERROR rd ra");
    offerRecursion(lab.writer, networksOf("192.0.2.76/32", "192.0.2.78/31"));
  }
});

test("an address is in what is offered exactly where one of the networks has it", () => {
  const writer = openImageWriter(createSharedImage(1));
  const view = openView(writer.view.shared);
  const memory = createPrefixMemory();
  const byte = fc.constantFrom(0, 1, 10, 127, 128, 192, 255);
  const address = fc
    .oneof(fc.array(byte, { minLength: 4, maxLength: 4 }), fc.array(byte, { minLength: 16, maxLength: 16 }))
    .map((bytes) => Uint8Array.from(bytes));
  const network = fc.tuple(address, fc.nat(128)).map(([bytes, bits]) => {
    const prefixBits = Math.min(bits, bytes.length * 8);
    const masked = bytes.map((one, index) => one & (0xff00 >> Math.max(0, Math.min(8, prefixBits - index * 8))) & 0xff);
    return { address: masked, prefixBits, hostBitsSet: false };
  });
  fc.assert(
    fc.property(fc.array(network, { maxLength: 8 }), fc.array(address, { maxLength: 10 }), (networks, others) => {
      offerRecursion(writer, networks);
      for (const one of [...others, ...networks.map((each) => each.address)]) {
        const isIn = networks.some((each) => cidrHolds(each, one));
        assert.equal(isOfferedTo(memory, view, one, 0, one.length), isIn, one.join("."));
      }
    }),
    { numRuns: 200 },
  );
});

test("by default it is for networks that the public Internet does not reach", () => {
  const networks = networksOf(...NOT_PUBLIC_NETWORKS);
  assert.ok(networks.every(({ hostBitsSet }) => !hostBitsSet));
  const isPrivate = (text: string) => networks.some((network) => cidrHolds(network, addressOf(text)));
  const inside =
    "127.0.0.1 10.9.9.9 172.31.255.255 192.168.0.1 100.127.0.1 169.254.1.1 192.0.2.1 198.19.0.1 203.0.113.9";
  for (const text of [...inside.split(" "), "::1", "fe80::1", "fdff::1", "2001:db8::1"])
    assert.ok(isPrivate(text), text);
  const outside = "8.8.8.8 172.32.0.1 100.128.0.1 192.0.1.1 198.20.0.1 11.0.0.1 224.0.0.1 0.0.0.0 255.255.255.255";
  for (const text of [...outside.split(" "), "2001:db9::1", "2606::1", "::", "ff02::1"]) {
    assert.ok(!isPrivate(text), text);
  }
});
