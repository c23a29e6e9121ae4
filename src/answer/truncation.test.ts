import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, openLab, queryBytes, type ZoneLab, zone } from "../../tests/support/zone-lab.ts";
import { FLAG, RCODE } from "../dns/codes.ts";
import { extendedErrorsOf } from "../dns/edns.ts";
import { TRANSPORT } from "../image/counters.ts";

/** Question `x.example.test. A` with its header, and an A record whose owner is a pointer to it. */
const QUESTION = "x.example.test. A";
const QUESTION_BYTES = 12 + 16 + 4;
const OPT_BYTES = 11;

/** A zone whose answer to QUESTION is `bytes` long, OPT aside. */
function zoneWithText(bytes: number): string {
  const rdata = bytes - QUESTION_BYTES - 12;
  const strings: string[] = [];
  for (let left = rdata; left > 0; ) {
    const size = Math.min(256, left === 257 ? 200 : left);
    strings.push(`"${"t".repeat(size - 1)}"`);
    left -= size;
  }
  return zone("example.test.", `x TXT ${strings.join(" ")}\n`);
}

type Size = {
  readonly limit: number;
  readonly edns: false | { readonly udpSize: number };
  readonly maxUdpSize?: number;
};

const SIZES: readonly Size[] = [
  { limit: 512, edns: false },
  { limit: 512, edns: { udpSize: 0 } },
  { limit: 512, edns: { udpSize: 511 } },
  { limit: 512, edns: { udpSize: 512 } },
  { limit: 513, edns: { udpSize: 513 } },
  { limit: 1000, edns: { udpSize: 1000 } },
  { limit: 1232, edns: { udpSize: 1232 } },
  { limit: 1232, edns: { udpSize: 4096 } },
  { limit: 1232, edns: { udpSize: 65_535 } },
  { limit: 512, edns: { udpSize: 4096 }, maxUdpSize: 512 },
  { limit: 4096, edns: { udpSize: 65_535 }, maxUdpSize: 4096 },
];

for (const { limit, edns, maxUdpSize = 1232 } of SIZES) {
  const said = edns === false ? "no EDNS" : `EDNS size ${edns.udpSize}`;
  test(`${said}, at most ${maxUdpSize}: ${limit} bytes fit and one more does not`, () => {
    const options = { edns };
    const optBytes = edns === false ? 0 : OPT_BYTES;
    const query = queryBytes("x.example.test. TXT", options);
    const fitting = openLab([zoneWithText(limit - optBytes)], { maxUdpSize }).send(query, options);
    assert.equal(fitting?.length, limit);
    assert.equal(decode(fitting ?? query).flags & FLAG.TC, 0);
    const over = openLab([zoneWithText(limit - optBytes + 1)], { maxUdpSize }).send(query, options);
    assert.equal(over?.length, QUESTION_BYTES + optBytes);
    const message = decode(over ?? query);
    assert.equal(message.flags & FLAG.TC, FLAG.TC);
    assert.deepEqual([message.answers, message.authorities, message.additionals], [[], [], []]);
  });
}

test("options of the answer count: cookie and NSID", () => {
  const options = {
    edns: {
      udpSize: 600,
      options: [
        { code: 10, data: new Uint8Array(8) },
        { code: 3, data: new Uint8Array(0) },
      ],
    },
  };
  const optBytes = OPT_BYTES + (4 + 24) + (4 + 6);
  const query = queryBytes("x.example.test. TXT", options);
  const lab = (bytes: number) => openLab([zoneWithText(bytes)], { nodeId: "node-1" });
  assert.equal(lab(600 - optBytes).send(query, options)?.length, 600);
  const over = lab(601 - optBytes).send(query, options);
  assert.equal(over?.length, QUESTION_BYTES + optBytes);
});

function addresses(count: number): ZoneLab {
  return openLab([
    zone(
      "example.test.",
      Array.from({ length: count }, (_, index) => `x A 192.0.${index >> 8}.${index & 255}\n`).join(""),
    ),
  ]);
}

test("an RRset is sent whole or not at all (RFC 2181 section 9)", () => {
  assert.equal(addresses(30).message(QUESTION, { edns: false }).answers.length, 30);
  const { answers, flags } = addresses(31).message(QUESTION, { edns: false });
  assert.deepEqual([answers.length, flags & FLAG.TC], [0, FLAG.TC]);
});

test("over TCP the same answer is whole", () => {
  const { answers, flags } = addresses(1000).message(QUESTION, { edns: false, transport: TRANSPORT.TCP });
  assert.deepEqual([answers.length, flags & FLAG.TC], [1000, 0]);
});

test("a negative answer whose SOA does not fit is truncated", () => {
  const long = `${"l".repeat(63)}.`.repeat(3);
  const text = `t. 60 SOA ${long}a. ${long}b. 1 1 1 1 60\nalias.t. 60 CNAME nope.${long}t.\n`;
  assert.deepEqual(openLab([text]).ask("alias.t. A", { edns: false }), ["NXDOMAIN aa tc"]);
});

test("an extended error beside records is left off where it does not fit", () => {
  /** A chain that takes `bytes` of the answer and ends at an ALIAS that fails. */
  const chain = (bytes: number) => {
    const lengths = [...new Array<number>(6).fill(52), bytes - 6 * (15 + 52) - 15];
    const links = lengths.map((length, index) => `${index}${"l".repeat(length - 1)}`);
    const owners = ["x", ...links];
    const lines = links.map((target, index) => `${owners[index]} CNAME ${target}\n`);
    return `${lines.join("")}${links.at(-1)} ALIAS nobody.elsewhere.\n`;
  };
  const options = { edns: { udpSize: 512 } };
  const lengthAndErrors = (bytes: number) => {
    const answer = openLab([zone("example.test.", chain(bytes))]).send(queryBytes(QUESTION, options), options);
    const { edns, answers, rcode } = decode(answer ?? new Uint8Array(0));
    assert.deepEqual([answers.length, rcode], [7, RCODE.SERVFAIL]);
    return [answer?.length, extendedErrorsOf(edns).length];
  };
  const room = 512 - QUESTION_BYTES - OPT_BYTES;
  assert.deepEqual(lengthAndErrors(room - 6), [512, 1]);
  assert.deepEqual(lengthAndErrors(room - 5), [507, 0]);
  assert.deepEqual(lengthAndErrors(room), [512, 0]);
});
