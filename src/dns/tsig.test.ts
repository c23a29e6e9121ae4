import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { CLASS, FLAG, RCODE, RRTYPE } from "./codes.ts";
import { decodeMessage, encodeMessage, makeQuery } from "./message.ts";
import { nameFromText, nameToText } from "./name.ts";
import {
  readTsig,
  refusalAnswer,
  signRequest,
  signResponse,
  TSIG_ERROR,
  type TsigKey,
  type TsigRefusal,
  type TsigRequest,
  tsigBytes,
  verifyResponse,
} from "./tsig.ts";
import type { TsigAlgorithm } from "./tsig-algorithms.ts";
import { appendTsig, findTsig, type TsigRecord, tsigVariables } from "./tsig-record.ts";

const SECRET = Buffer.from("0123456789abcdef0123456789abcdef");
const NOW = 1_800_000_000;

function name(text: string): Uint8Array {
  const result = nameFromText(text);
  return result.kind === "name" ? result.name : assert.fail(`${text}: ${result.reason}`);
}

function keyWith(algorithm: TsigAlgorithm, text = "key.example."): TsigKey {
  return { name: name(text), algorithm, secret: SECRET };
}

const KEY = keyWith("hmac-sha256");
const QUERY = encodeMessage(makeQuery(0x1234, name("www.example.test."), RRTYPE.A, FLAG.RD)).bytes;

function readWith(key: TsigKey, bytes: Uint8Array, nowSeconds = NOW): TsigRequest {
  const isKey = (asked: Uint8Array) => Buffer.compare(asked, key.name) === 0;
  return readTsig(bytes, (asked) => (isKey(asked) ? key : undefined), nowSeconds);
}

function verified(request: TsigRequest): Extract<TsigRequest, { kind: "verified" }> {
  return request.kind === "verified" ? request : assert.fail(verdict(request));
}

function refused(request: TsigRequest): TsigRefusal {
  return request.kind === "refused" ? request : assert.fail(verdict(request));
}

/** "verified", "unsigned", or rcode and error of a refusal. */
function verdict(request: TsigRequest): string {
  return request.kind === "refused" ? `${request.rcode}/${request.error}` : request.kind;
}

function recordOf(bytes: Uint8Array): TsigRecord {
  const place = findTsig(bytes);
  return place.kind === "record" ? place.record : assert.fail(place.kind);
}

/** What programs sent; names of keys were given to some of them as Key.Example. */
const SENT: readonly (readonly [string, TsigAlgorithm, string])[] = [
  [
    "dig",
    "hmac-sha256",
    "55f90120000100000000000203777777076578616d706c650474657374000001000100002904d000000000000c000a0008248b58f6dcf2c598" +
      "036b6579076578616d706c650000fa00ff00000000003d0b686d61632d7368613235360000006b00b410012c0020e35488df5070cc02f79056" +
      "75dd38b422e168a31997f189c02ca0c462174515f255f900000000",
  ],
  [
    "kdig",
    "hmac-sha512",
    "0cb10120000100000000000103777777076578616d706c6504746573740000010001036b6579076578616d706c650000fa00ff00000000005d" +
      "0b686d61632d7368613531320000006b00b411012c0040cb2605f86559cf35649d1222a8dd20f5afb674db75aeb0aaa5618f83b3b62dc4030f" +
      "096b00ca524dffd6a562a09e52fb050d2f75126acd7af7118388b2e7f94f0cb100000000",
  ],
  [
    "nsupdate",
    "hmac-md5",
    "4b8028000001000000010001076578616d706c65047465737400000600010161c00c001000010000003c00020178036b6579076578616d706c" +
      "650000fa00ff00000000003a08686d61632d6d6435077369672d616c670372656703696e740000006b00b412012c00104c9e5141a6c429308b" +
      "4be8db8f1f0e204b8000000000",
  ],
  [
    "knsupdate",
    "hmac-sha1",
    "bc7128000001000000010001076578616d706c65047465737400000600010161c00c001000010000003c00020178036b6579076578616d706c" +
      "650000fa00ff00000000002f09686d61632d736861310000006b00b414012c0014227e6fad0ae965e0edb300d4123de4c64c6687adbc710000" +
      "0000",
  ],
];
const SENT_AT = 0x6b00b410;

test("what dig, kdig, nsupdate and knsupdate signed is verified, and given without its signature", () => {
  for (const [program, algorithm, hex] of SENT) {
    const bytes = new Uint8Array(Buffer.from(hex, "hex"));
    const request = verified(readWith(keyWith(algorithm), bytes, SENT_AT));
    const before = decodeMessage(bytes);
    const after = decodeMessage(request.bytes);
    assert.ok(before.kind === "message" && after.kind === "message" && after.trailingBytes === 0, program);
    const additionals = before.message.additionals.filter(({ type }) => type !== RRTYPE.TSIG);
    assert.equal(additionals.length, before.message.additionals.length - 1);
    assert.deepEqual(after.message, { ...before.message, additionals });
    assert.equal(
      verdict(readWith({ ...keyWith(algorithm), secret: Buffer.alloc(32) }, bytes, SENT_AT)),
      "9/16",
      program,
    );
  }
});

test("a MAC that dig cut to 128 bits is refused as BADTRUNC, signed", () => {
  const bytes = Buffer.from(
    "53a90120000100000000000203777777076578616d706c650474657374000001000100002904d000000000000c000a000899dd35b758cce21b" +
      "036b6579076578616d706c650000fa00ff00000000002d0b686d61632d7368613235360000006b00b415012c00108afba65d1d1b1325897fe7" +
      "ab0ff967f953a900000000",
    "hex",
  );
  const refusal = refused(readWith(KEY, bytes, SENT_AT));
  assert.equal(verdict(refusal), "9/22");
  const answer = verifyResponse(refusalAnswer(refusal, SENT_AT), KEY, recordOf(bytes).mac, SENT_AT);
  assert.deepEqual(answer, { kind: "failed", reason: "error", error: TSIG_ERROR.BADTRUNC, isAuthentic: true });
});

test("each algorithm signs requests and answers that verify", () => {
  for (const algorithm of [
    "hmac-sha256",
    "hmac-sha384",
    "hmac-sha512",
    "hmac-sha224",
    "hmac-sha1",
    "hmac-md5",
  ] as const) {
    const key = keyWith(algorithm);
    const sent = signRequest(key, QUERY, NOW);
    assert.equal(sent.bytes.length, QUERY.length + tsigBytes(key));
    const request = verified(readWith(key, sent.bytes));
    assert.deepEqual(request.bytes, QUERY);
    assert.deepEqual(Buffer.from(request.mac), Buffer.from(sent.mac));
    const answer = signResponse(key, request.mac, () => NOW).sign(QUERY);
    const outcome = verifyResponse(answer, key, sent.mac, NOW);
    assert.equal(outcome.kind, "verified");
    assert.deepEqual(outcome.kind === "verified" ? outcome.bytes : undefined, QUERY);
    assert.equal(verifyResponse(answer, key, sent.mac.slice(1), NOW).kind, "failed");
  }
});

test("a MAC is made of the bytes that RFC 8945 section 4.3 names", () => {
  const { bytes, mac } = signRequest(KEY, QUERY, NOW);
  const keyName = "036b6579076578616d706c6500";
  const algorithm = "0b686d61632d73686132353600";
  const time = NOW.toString(16).padStart(12, "0");
  const variables = `${keyName}00ff00000000${algorithm}${time}012c00000000`;
  const expected = createHmac("sha256", SECRET).update(QUERY).update(variables, "hex").digest("hex");
  assert.equal(Buffer.from(mac).toString("hex"), expected);
  const record = `${keyName}00fa00ff00000000003d${algorithm}${time}012c0020${expected}123400000000`;
  assert.equal(Buffer.from(bytes.subarray(QUERY.length)).toString("hex"), record);
  assert.equal(bytes[11], 1);
});

test("names of keys and algorithms have no case, and a key's name may be compressed", () => {
  const { bytes } = signRequest(KEY, QUERY, NOW);
  const loud = Buffer.from(bytes);
  loud.write("KEY", QUERY.length + 1);
  loud.write("HMAC-SHA256", bytes.length - 61 + 1);
  verified(readWith(KEY, loud));
  // The key is called as the question, which its name then points to.
  const asked = keyWith("hmac-sha256", "www.example.test.");
  const signed = Buffer.from(signRequest(asked, QUERY, NOW).bytes);
  const rest = signed.subarray(QUERY.length + asked.name.length);
  const compressed = Buffer.concat([signed.subarray(0, QUERY.length), Buffer.from("c00c", "hex"), rest]);
  assert.deepEqual(verified(readWith(asked, compressed)).bytes, QUERY);
});

test("a forwarder's new id does not spoil a signature, and the answer goes back with it", () => {
  const { bytes } = signRequest(KEY, QUERY, NOW);
  bytes[0] = 0xab;
  const request = verified(readWith(KEY, bytes));
  assert.equal(request.originalId, 0x1234);
  assert.deepEqual([...request.bytes.subarray(0, 2)], [0xab, 0x34]);
});

test("each further message of a transfer is signed by the MAC before it and its own time", () => {
  const sent = signRequest(KEY, QUERY, NOW);
  let nowSeconds = NOW;
  const signer = signResponse(KEY, sent.mac, () => nowSeconds);
  let priorMac = sent.mac;
  for (let index = 0; index < 4; index++) {
    const message = encodeMessage(makeQuery(index, name(`n${index}.example.test.`), RRTYPE.TXT)).bytes;
    const bytes = signer.sign(message);
    const outcome = verifyResponse(bytes, KEY, priorMac, nowSeconds, index > 0);
    assert.ok(outcome.kind === "verified");
    assert.deepEqual(outcome.bytes, message);
    assert.equal(verifyResponse(bytes, KEY, priorMac, nowSeconds, index === 0).kind, "failed");
    if (index > 0) {
      const { time, mac } = { time: recordOf(bytes).timeSeconds, mac: recordOf(bytes).mac };
      const hmac = createHmac("sha256", SECRET).update(Uint8Array.of(0, 32)).update(priorMac).update(message);
      hmac.update(`${time.toString(16).padStart(12, "0")}012c`, "hex");
      assert.equal(hmac.digest("hex"), Buffer.from(mac).toString("hex"));
    }
    priorMac = outcome.mac;
    // A transfer that takes longer than clocks may differ.
    nowSeconds += 1_000;
  }
});

test("a message without room for its signature is a RangeError", () => {
  const room = 65_535 - tsigBytes(KEY);
  assert.equal(signRequest(KEY, new Uint8Array(room), NOW).bytes.length, 65_535);
  assert.throws(() => signRequest(KEY, new Uint8Array(room + 1), NOW), RangeError);
  assert.throws(() => signResponse(KEY, SECRET, () => NOW).sign(new Uint8Array(room + 1)), RangeError);
});

test("an unknown key, or one of another algorithm, is BADKEY without a MAC", () => {
  const sent = signRequest(KEY, QUERY, NOW);
  const others = [keyWith("hmac-sha256", "other.example."), keyWith("hmac-sha1")];
  const renamed = { ...recordOf(sent.bytes), algorithm: name("hmac-sha999.") };
  const requests = [...others.map((key) => readWith(key, sent.bytes)), readWith(KEY, appendTsig(QUERY, renamed))];
  for (const request of requests) {
    assert.equal(verdict(request), "9/17");
    const answer = refusalAnswer(refused(request), NOW + 1_000);
    const record = recordOf(answer);
    assert.deepEqual([record.mac.length, record.error, record.otherData.length], [0, TSIG_ERROR.BADKEY, 0]);
    assert.equal(nameToText(record.name), "key.example.");
    assert.equal(record.timeSeconds, NOW);
  }
  assert.equal(nameToText(recordOf(refusalAnswer(refused(requests.at(-1)!), NOW)).algorithm), "hmac-sha999.");
  const outcome = verifyResponse(refusalAnswer(refused(requests[0]!), NOW), KEY, sent.mac, NOW);
  assert.deepEqual(outcome, { kind: "failed", reason: "error", error: TSIG_ERROR.BADKEY, isAuthentic: false });
});

test("a wrong MAC is BADSIG without a MAC, whatever the time", () => {
  const { bytes } = signRequest({ ...KEY, secret: Buffer.alloc(32) }, QUERY, NOW - 10_000);
  const request = readWith(KEY, bytes);
  assert.equal(verdict(request), "9/16");
  const record = recordOf(refusalAnswer(refused(request), NOW));
  assert.deepEqual([record.mac.length, record.error], [0, TSIG_ERROR.BADSIG]);
});

test("a time outside of the fudge is BADTIME, signed, with the client's time and ours", () => {
  for (const [difference, expected] of [
    [300, "verified"],
    [-300, "verified"],
    [301, "9/18"],
    [-301, "9/18"],
  ] as const) {
    assert.equal(verdict(readWith(KEY, signRequest(KEY, QUERY, NOW + difference).bytes)), expected, `${difference}`);
  }
  const sent = signRequest(KEY, QUERY, NOW - 4_000);
  const answer = refusalAnswer(refused(readWith(KEY, sent.bytes)), NOW);
  const record = recordOf(answer);
  assert.equal(record.timeSeconds, NOW - 4_000);
  assert.equal(Buffer.from(record.otherData).toString("hex"), NOW.toString(16).padStart(12, "0"));
  const outcome = verifyResponse(answer, KEY, sent.mac, NOW - 4_000);
  assert.deepEqual(outcome, { kind: "failed", reason: "error", error: TSIG_ERROR.BADTIME, isAuthentic: true });
  // 48 bits of seconds go further than 32.
  const late = signRequest(KEY, QUERY, 0xffff_ffff_ffff);
  verified(readWith(KEY, late.bytes, 0xffff_ffff_fff0));
  assert.equal(verdict(readWith(KEY, late.bytes)), "9/18");
});

test("the length of a MAC is checked as RFC 8945 section 5.2.2.1 says", () => {
  const lengths = (algorithm: TsigAlgorithm, all: readonly number[]): readonly string[] => {
    const key = keyWith(algorithm);
    const record = recordOf(signRequest(key, QUERY, NOW).bytes);
    const mac = Buffer.concat([record.mac, Buffer.alloc(1)]);
    return all.map((length) => verdict(readWith(key, appendTsig(QUERY, { ...record, mac: mac.subarray(0, length) }))));
  };
  assert.deepEqual(lengths("hmac-sha256", [0, 1, 15, 16, 31, 32, 33]), [
    ...["1/0", "1/0", "1/0"],
    ...["9/22", "9/22", "verified", "1/0"],
  ]);
  assert.deepEqual(lengths("hmac-sha512", [31, 32, 63, 64, 65]), ["1/0", "9/22", "9/22", "verified", "1/0"]);
  assert.deepEqual(lengths("hmac-sha1", [9, 10, 19, 20, 21]), ["1/0", "9/22", "9/22", "verified", "1/0"]);
  assert.deepEqual(lengths("hmac-md5", [8, 9, 10, 15, 16, 17]), ["1/0", "1/0", "9/22", "9/22", "verified", "1/0"]);
});

/** Adds one to a section's count and a copy of the bytes behind the message. */
function withRecord(message: Uint8Array, countAt: number, record: Uint8Array): Uint8Array {
  const all = Buffer.concat([message, record]);
  all.writeUInt16BE(all.readUInt16BE(countAt) + 1, countAt);
  return all;
}

test("a record that is not the last, not the only one, or not in the additional section is FORMERR", () => {
  const { bytes } = signRequest(KEY, QUERY, NOW);
  const record = bytes.subarray(QUERY.length);
  const opt = Buffer.from("00002904d0000000000000", "hex");
  const changed = (at: number, value: number) => {
    const copy = Buffer.from(bytes);
    copy.writeUInt8(value, at);
    return copy;
  };
  const classAt = QUERY.length + KEY.name.length + 2;
  for (const [what, message] of [
    ["behind it OPT", withRecord(bytes, 10, opt)],
    ["twice", withRecord(bytes, 10, record)],
    ["an answer", withRecord(QUERY, 6, record)],
    ["of the authority section", withRecord(QUERY, 8, record)],
    ["bytes behind it", Buffer.concat([bytes, Buffer.alloc(1)])],
    ["class IN", changed(classAt + 1, CLASS.IN)],
    ["a TTL", changed(classAt + 5, 1)],
    ["rdata too short for its parts", changed(classAt + 7, 0x3c)],
    ["cut short", bytes.subarray(0, -1)],
    ["a MAC longer than the rdata", changed(classAt + 8 + 13 + 9, 0x30)],
    ["a name that ends nowhere", changed(QUERY.length, 0x40)],
    ["a name that points to itself", changed(QUERY.length, 0xc0)],
  ] as const) {
    assert.equal(verdict(readWith(KEY, message)), "1/0", what);
    const answer = refusalAnswer(refused(readWith(KEY, message)), NOW);
    const decoded = decodeMessage(answer);
    assert.ok(decoded.kind === "message", what);
    assert.equal(decoded.message.rcode, RCODE.FORMERR);
    assert.deepEqual(decoded.message.additionals, []);
  }
  // A pointer in the name of the algorithm, to the root at the end of the key's name.
  const rest = Buffer.from(bytes.subarray(classAt + 8 + 13));
  const target = QUERY.length + KEY.name.length - 1;
  const head = Buffer.from(bytes.subarray(0, classAt + 8));
  head.writeUInt16BE(rest.length + 14, classAt + 6);
  const pointed = Buffer.concat([head, Buffer.from("0b686d61632d736861323536", "hex"), Buffer.of(0xc0, target), rest]);
  assert.equal(verdict(readWith(KEY, pointed)), "1/0");
});

test("a message without the record is unsigned, and one that is no message is left to others", () => {
  assert.equal(readWith(KEY, QUERY).kind, "unsigned");
  assert.equal(readWith(KEY, new Uint8Array(0)).kind, "unsigned");
  assert.equal(readWith(KEY, QUERY.subarray(0, 11)).kind, "unsigned");
  assert.equal(verdict(readWith(KEY, QUERY.subarray(0, 13))), "1/0");
});

test("a refusal repeats id, opcode, RD and the question, and has OPT where the request has", () => {
  const edns = { udpSize: 4096, version: 0, wantsDnssec: true, options: [] };
  const query = { ...makeQuery(7, name("corp.test."), RRTYPE.SOA, FLAG.RD | FLAG.CD, edns), opcode: 5 };
  const { bytes } = signRequest(keyWith("hmac-sha256", "who.example."), encodeMessage(query).bytes, NOW);
  const decoded = decodeMessage(refusalAnswer(refused(readWith(KEY, bytes)), NOW));
  assert.ok(decoded.kind === "message");
  const { message } = decoded;
  assert.deepEqual([message.id, message.opcode, message.flags], [7, 5, FLAG.QR | FLAG.RD]);
  assert.deepEqual(message.questions, query.questions);
  assert.deepEqual(message.edns, { ...edns, udpSize: 1232 });
  assert.equal(message.rcode, RCODE.NOTAUTH);
  assert.deepEqual(
    message.additionals.map(({ type }) => type),
    [RRTYPE.TSIG],
  );
});

test("an answer that is not signed, or not by that key and to that request, is not verified", () => {
  const sent = signRequest(KEY, QUERY, NOW);
  const answer = signResponse(KEY, sent.mac, () => NOW).sign(QUERY);
  const reasonOf = (bytes: Uint8Array, key = KEY, mac = sent.mac, nowSeconds = NOW) => {
    const outcome = verifyResponse(bytes, key, mac, nowSeconds);
    return outcome.kind === "failed" ? outcome.reason : outcome.kind;
  };
  assert.equal(reasonOf(answer), "verified");
  assert.equal(reasonOf(QUERY), "unsigned");
  assert.equal(reasonOf(answer.subarray(0, -1)), "malformed");
  assert.equal(reasonOf(answer, keyWith("hmac-sha256", "other.")), "key");
  assert.equal(reasonOf(answer, keyWith("hmac-sha1")), "key");
  assert.equal(reasonOf(answer, { ...KEY, secret: Buffer.alloc(32) }), "signature");
  assert.equal(reasonOf(answer, KEY, signRequest(KEY, QUERY, NOW + 1).mac), "signature");
  assert.equal(reasonOf(answer, KEY, sent.mac, NOW + 301), "time");
  const record = recordOf(answer);
  assert.equal(reasonOf(appendTsig(QUERY, { ...record, mac: new Uint8Array(0) })), "signature");
  assert.equal(reasonOf(appendTsig(QUERY, { ...record, mac: record.mac.subarray(0, 31) })), "signature");
  // Another error than the two that nobody can sign needs a MAC.
  assert.equal(
    reasonOf(appendTsig(QUERY, { ...record, mac: new Uint8Array(0), error: TSIG_ERROR.BADTIME })),
    "signature",
  );
  assert.equal(tsigVariables(record).length, 44);
});
