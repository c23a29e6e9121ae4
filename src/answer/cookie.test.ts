import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type AskOptions,
  COOKIE_SECRETS,
  decode,
  openLab,
  queryBytes,
  type ZoneLab,
  zone,
} from "../../tests/support/zone-lab.ts";
import { EDNS_OPTION, RCODE } from "../dns/codes.ts";
import { findOption } from "../dns/edns.ts";
import { CONTROL } from "../image/shared.ts";
import { answerCookie, type CookieMaker, createCookieMaker } from "./cookie.ts";

const NOW_SECONDS = 1_800_000_000;
const CLIENT_COOKIE = hex("2464c4abcf10c957");
const ADDRESS = Uint8Array.of(198, 51, 100, 100);

function hex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, "hex"));
}

function words(bytes: Uint8Array): Int32Array {
  return new Int32Array(Uint8Array.from(bytes).buffer);
}

/** The cookie answered to `cookie` by a server with the secret in hexadecimal. */
function answered(
  secret: string,
  cookie: string,
  address: Uint8Array,
  now: number,
): { cookie: string; proved: boolean } {
  const bytes = new Uint8Array(40);
  bytes.set(hex(cookie));
  const secrets = Int32Array.of(...words(hex(secret)), 0, 0, 0, 0);
  const proved = answerCookie(
    createCookieMaker(),
    secrets,
    0,
    4,
    new Int32Array(bytes.buffer),
    cookie.length / 2,
    address,
    0,
    address.length,
    now,
  );
  return { cookie: Buffer.from(bytes.subarray(0, 24)).toString("hex"), proved };
}

const SECRET = "e5e973e5a6b2a43f48e7dc849e37bfcf";

test("RFC 9018 appendix A.1: a new cookie", () => {
  const made = answered(SECRET, "2464c4abcf10c957", ADDRESS, 1_559_731_985);
  assert.deepEqual(made, { cookie: "2464c4abcf10c957010000005cf79f111f8130c3eee29480", proved: false });
});

test("RFC 9018 appendix A.2: the same client earns a renewed cookie", () => {
  const made = answered(SECRET, "2464c4abcf10c957010000005cf79f111f8130c3eee29480", ADDRESS, 1_559_734_385);
  assert.deepEqual(made, { cookie: "2464c4abcf10c957010000005cf7a871d4a564a1442aca77", proved: true });
});

test("RFC 9018 appendix A.3: a cookie with other reserved bytes is taken, and a plain one given", () => {
  const learned = "fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5";
  const client = Uint8Array.of(203, 0, 113, 203);
  assert.equal(answered(SECRET, learned, client, 0x5cf78f71 + 3599).proved, true);
  const made = answered(SECRET, learned, client, 1_559_734_700);
  // The example's cookie is older than the hour that section 4.3 allows, so that it proves nothing by then.
  assert.deepEqual(made, { cookie: "fc93fc62807ddb86010000005cf7a9acf73a7810aca2381e", proved: false });
});

test("RFC 9018 appendix A.4: an IPv6 client", () => {
  const made = answered(
    "445536bcd2513298075a5d379663c962",
    "22681ab97d52c298010000005cf7c57926556bd0934c72f8",
    hex("20010db8022000010059de8af84b0000"),
    1_559_741_961,
  );
  assert.equal(made.cookie.slice(0, 32), "22681ab97d52c298010000005cf7c609");
});

function lab(now = NOW_SECONDS): ZoneLab {
  return openLab([zone("example.test.", "www A 192.0.2.1\n")], { nowSeconds: now });
}

function withCookie(data: Uint8Array): AskOptions {
  return { edns: { options: [{ code: EDNS_OPTION.COOKIE, data }] }, client: ADDRESS };
}

function cookieOf(from: ZoneLab, data: Uint8Array): string {
  const { edns, rcode, answers } = from.message("www.example.test. A", withCookie(data));
  assert.equal(rcode, RCODE.NOERROR);
  assert.equal(answers.length, 1);
  return Buffer.from(findOption(edns, EDNS_OPTION.COOKIE) ?? []).toString("hex");
}

test("a client cookie alone gets a whole cookie", () => {
  const cookie = cookieOf(lab(), CLIENT_COOKIE);
  assert.equal(cookie.length, 48);
  assert.equal(cookie.slice(0, 32), `2464c4abcf10c95701000000${NOW_SECONDS.toString(16)}`);
});

test("a young cookie of ours comes back as it is", () => {
  const cookie = cookieOf(lab(), CLIENT_COOKIE);
  assert.equal(cookieOf(lab(NOW_SECONDS + 1799), hex(cookie)), cookie);
});

test("one of half its life is renewed, and so is an expired, a forged or another client's one", () => {
  const cookie = cookieOf(lab(), CLIENT_COOKIE);
  for (const seconds of [1800, 3599, 3600, 100_000]) {
    const later = cookieOf(lab(NOW_SECONDS + seconds), hex(cookie));
    assert.equal(later.slice(24, 32), (NOW_SECONDS + seconds).toString(16));
  }
  const forged = hex(cookie);
  forged[20]! ^= 1;
  assert.equal(cookieOf(lab(), forged), cookie);
});

test("a cookie is of its client, and a proof only while it lives", () => {
  const { cookie } = answered(SECRET, "2464c4abcf10c957", ADDRESS, NOW_SECONDS);
  const proves = (seconds: number, address = ADDRESS, secret = SECRET) =>
    answered(secret, cookie, address, NOW_SECONDS + seconds).proved;
  assert.deepEqual(
    [0, 1799, 1800, 3599, 3600].map((age) => proves(age)),
    [true, true, true, true, false],
  );
  assert.deepEqual(
    [-299, -300, -301].map((age) => proves(age)),
    [true, false, false],
  );
  assert.equal(proves(0, Uint8Array.of(198, 51, 100, 101)), false);
  assert.equal(proves(0, ADDRESS, "00000000000000000000000000000000"), false);
});

test("ages are counted in serial arithmetic, past 2^31 and 2^32 too (RFC 9018 section 4.3)", () => {
  for (const now of [2 ** 31 - 10, 2 ** 32 - 10]) {
    const { cookie } = answered(SECRET, "2464c4abcf10c957", ADDRESS, now | 0);
    assert.equal(answered(SECRET, cookie, ADDRESS, (now + 20) | 0).proved, true);
  }
});

test("yesterday's secret proves, and today's makes the answer", () => {
  const before = lab();
  new Int32Array(before.shared.control).set(COOKIE_SECRETS.yesterday, CONTROL.COOKIE_SECRET);
  const old = hex(cookieOf(before, CLIENT_COOKIE));
  const today = cookieOf(lab(), CLIENT_COOKIE);
  assert.equal(cookieOf(lab(), old), today);
  const secrets = Int32Array.of(...COOKIE_SECRETS.today, ...COOKIE_SECRETS.yesterday);
  const given = Uint8Array.of(...old, ...new Uint8Array(16));
  const cookie = new Int32Array(given.buffer);
  assert.equal(answerCookie(createCookieMaker(), secrets, 0, 4, cookie, 24, ADDRESS, 0, 4, NOW_SECONDS), true);
  assert.equal(Buffer.from(given.subarray(0, 24)).toString("hex"), today);
});

test("what a maker remembers of one client, address, time or secret is not taken for another's", () => {
  const address6 = (first: Uint8Array) => Uint8Array.of(...first, ...new Uint8Array(12));
  const maker = createCookieMaker();
  const make = (from: CookieMaker, client: number, address: Uint8Array, now: number, secret: number): string => {
    const secrets = Int32Array.of(...words(hex(SECRET)), 0, 0, 0, 0);
    secrets[3]! ^= secret;
    const cookie = new Int32Array(10);
    cookie.set([client, 1], 0);
    answerCookie(from, secrets, 0, 4, cookie, 8, address, 0, address.length, now);
    return Buffer.from(cookie.buffer, 0, 24).toString("hex");
  };
  const made = new Set<string>();
  for (let round = 0; round < 2; round++) {
    for (let client = 0; client < 200; client++) {
      for (const address of [ADDRESS, address6(ADDRESS), Uint8Array.of(198, 51, 100, 101)]) {
        for (const now of [NOW_SECONDS, NOW_SECONDS + 1]) {
          for (const secret of [0, 1]) {
            const cookie = make(maker, client, address, now, secret);
            assert.equal(cookie, make(createCookieMaker(), client, address, now, secret));
            assert.equal(make(maker, client, address, now, secret), cookie);
            made.add(cookie);
          }
        }
      }
    }
  }
  assert.equal(made.size, 200 * 3 * 2 * 2);
});

test("cookies of other lengths that RFC 7873 allows get one of ours", () => {
  for (const length of [16, 17, 23, 25, 40]) {
    const cookie = cookieOf(
      lab(),
      Uint8Array.from({ length }, () => 0x24),
    );
    assert.equal(cookie.slice(0, 24), "242424242424242401000000");
  }
});

test("a cookie of a length that no cookie has is FORMERR (RFC 7873 section 5.2.2)", () => {
  for (const length of [0, 1, 7, 9, 15, 41, 100]) {
    const { rcode, answers, edns } = lab().message("www.example.test. A", withCookie(new Uint8Array(length)));
    // The OPT RR could be read, so the answer has one (RFC 6891 section 6.1.1).
    assert.deepEqual([rcode, answers.length, edns?.options], [RCODE.FORMERR, 0, []], `${length} bytes`);
  }
});

test("QDCOUNT 0 with a cookie asks for a cookie alone (RFC 7873 section 5.4)", () => {
  const query = queryBytes(". A", withCookie(CLIENT_COOKIE));
  const without = Uint8Array.of(...query.subarray(0, 12), ...query.subarray(17));
  without[5] = 0;
  const bytes = lab().send(without, withCookie(CLIENT_COOKIE));
  const message = decode(bytes ?? new Uint8Array(0));
  assert.equal(message.rcode, RCODE.NOERROR);
  assert.deepEqual(message.questions, []);
  assert.equal(findOption(message.edns, EDNS_OPTION.COOKIE)?.length, 24);
});

test("a question without a cookie is answered without one", () => {
  assert.equal(findOption(lab().message("www.example.test. A").edns, EDNS_OPTION.COOKIE), undefined);
});
