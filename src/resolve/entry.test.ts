import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import {
  arbitraryResponse,
  entryMessage,
  recordText,
  responseTo,
  rulesFor,
  typeNumber,
} from "../../tests/support/response-lab.ts";
import { recordFromLine, wireName } from "../../tests/support/scripted-replies.ts";
import { decodeMessage, encodeMessage, type Message, type ResourceRecord } from "../dns/message.ts";
import { isSubdomain, nameLengthAt, namesEqual } from "../dns/name.ts";
import { CACHED_BYTES_MAX, type CachedAnswer, QUESTION_FLAG } from "../image/cache.ts";
import { encodeEntry } from "./entry.ts";
import { type Answer, readResponse } from "./response.ts";

const TERMS = { routing: 7, storedSeconds: 1_000, expiresSeconds: 1_060, keptUntilSeconds: 1_090 };

function askedFor(name: string, type: string, flags = 0) {
  return { name: wireName(name), type: typeNumber(type), flags, route: 99 };
}

function decoded(entry: CachedAnswer | undefined): Message {
  assert.ok(entry !== undefined);
  const result = entryMessage(entry);
  assert.equal(result.kind, "message", JSON.stringify(result));
  assert.equal(result.trailingBytes, 0);
  return result.message;
}

/** Where the targets stand is where the CNAMEs of the chain have their rdata, written out. */
function targetsOf(entry: CachedAnswer): readonly Uint8Array[] {
  return entry.targets.map((at) => {
    const length = nameLengthAt(entry.bytes, at, entry.bytes.length);
    assert.ok(length > 0);
    return entry.bytes.subarray(at, at + length);
  });
}

describe("an entry", () => {
  test("has what the question was, and every record", () => {
    const answer = ["www.example.test. 60 CNAME web.example.test.", "web.example.test. 60 MX 10 mail.example.test."];
    const authority = ["example.test. 60 SOA ns.example.test. host.example.test. 1 2 3 4 5"];
    const asked = askedFor("www.example.test.", "MX", 1);
    const answers = answer.map(recordFromLine);
    const content = {
      rcode: 3,
      extendedError: 9,
      answers,
      authorities: authority.map(recordFromLine),
      followed: [answers[0]!],
      isOpen: true,
    };
    const entry = encodeEntry(asked, content, TERMS);
    assert.ok(entry !== undefined);
    const { bytes, pointers, ttls, targets, name, ...rest } = entry;
    const fixed = { rcode: 3, extendedError: 9, answers: 2, authorities: 1, isOpen: true };
    assert.deepEqual(rest, { type: 15, flags: 1, route: 99, ...TERMS, ...fixed });
    assert.deepEqual([...name], [...wireName("www.example.test.")].slice(0, -1));
    const message = decoded(entry);
    assert.deepEqual(message.answers.map(recordText), answer);
    assert.deepEqual(message.authorities.map(recordText), authority);
    assert.deepEqual(
      targetsOf(entry).map((target) => Buffer.from(target)),
      [wireName("web.example.test.")].map((target) => Buffer.from(target)),
    );
    assert.equal(targets.length, 1);
    assert.equal(ttls.length, 3);
    // The question; the target of the CNAME; example.test. of the mail server; the SOA's owner and its two names.
    assert.equal(pointers.length, 6);
    assert.deepEqual(
      ttls.map((at) => new DataView(bytes.buffer, bytes.byteOffset).getUint32(at)),
      [60, 60, 60],
    );
  });

  test("of the root, of the longest name and of unknown types is as it came", () => {
    const label = "x".repeat(63);
    const long = `${label}.${label}.${label}.${"y".repeat(61)}.`;
    for (const [name, line] of [
      [".", ". 60 NS a.root-servers.net."],
      [long, `${long} 60 TYPE65399 \\# 3 c00c01`],
      ["a.test.", "a.test. 60 TYPE65399 \\# 0"],
      ["a.test.", 'a.test. 60 TXT ""'],
    ] as const) {
      const record = recordFromLine(line);
      const content = { rcode: 0, extendedError: -1, answers: [record], authorities: [], followed: [], isOpen: false };
      const message = decoded(
        encodeEntry({ name: wireName(name), type: record.type, flags: 0, route: 1 }, content, TERMS),
      );
      assert.deepEqual(message.answers.map(recordText), [recordText(record)]);
    }
  });

  test("does not tell in which case it was asked", () => {
    const record = recordFromLine("WwW.eXample.TEST. 60 CNAME Web.eXample.TEST.");
    const content = {
      rcode: 0,
      extendedError: -1,
      answers: [record],
      authorities: [],
      followed: [record],
      isOpen: true,
    };
    const message = decoded(encodeEntry(askedFor("www.example.test.", "A"), content, TERMS));
    assert.deepEqual(message.answers.map(recordText), ["www.example.test. 60 CNAME Web.example.test."]);
  });

  test("of more bytes than a message leaves is none", () => {
    const record = recordFromLine("a.test. 60 TYPE65399 \\# 1 00");
    const make = (bytes: number): CachedAnswer | undefined => {
      const answers = [{ ...record, rdata: new Uint8Array(bytes) }];
      const content = { rcode: 0, extendedError: -1, answers, authorities: [], followed: [], isOpen: false };
      return encodeEntry(askedFor("a.test.", "TYPE65399"), content, TERMS);
    };
    const head = 12;
    assert.equal(make(CACHED_BYTES_MAX - head)?.bytes.length, CACHED_BYTES_MAX);
    assert.equal(make(CACHED_BYTES_MAX - head + 1), undefined);
  });

  test("points to no name that lies beyond the reach of pointers", () => {
    const text = Array.from(
      { length: 1_200 },
      (_, index) => `a.test. 60 MX ${index} n${index >> 1}.${"z".repeat(20)}${index >> 1}.test.`,
    );
    const content = {
      rcode: 0,
      extendedError: -1,
      answers: text.map(recordFromLine),
      authorities: [],
      followed: [],
      isOpen: false,
    };
    const entry = encodeEntry(askedFor("a.test.", "MX"), content, TERMS);
    assert.deepEqual(decoded(entry).answers.map(recordText), text);
  });
});

const arbitraryRules = fc.record({
  flags: fc.constantFrom(0, QUESTION_FLAG.DNSSEC_OK),
  isRecursive: fc.boolean(),
  isScrubbing: fc.boolean(),
  rebindingExceptions: fc.constantFrom(undefined, []),
  domain: fc.constantFrom(wireName("."), wireName("test.")),
  isElsewhere: fc.constantFrom(
    () => false,
    (target: Uint8Array) => isSubdomain(target, wireName("other.")),
  ),
  minTtl: fc.constantFrom(0, 30),
  maxTtl: fc.constantFrom(100, 86_400),
});

function sameData(left: ResourceRecord, right: ResourceRecord): boolean {
  const same = left.type === right.type && namesEqual(left.name, right.name);
  return (
    same &&
    Buffer.from(left.rdata).toString("latin1").toLowerCase() ===
      Buffer.from(right.rdata).toString("latin1").toLowerCase()
  );
}

/** True for a CNAME that some DNAME of the response stands for. */
function isSynthesized(record: ResourceRecord, sent: readonly ResourceRecord[]): boolean {
  if (record.type !== 5) return false;
  return sent.some(({ type, name, rdata }) => {
    if (type !== 39 || name.length >= record.name.length || !isSubdomain(record.name, name)) return false;
    const prefix = record.name.subarray(0, record.name.length - name.length);
    return namesEqual(record.rdata, Buffer.concat([prefix, rdata]));
  });
}

function holdsFor(answer: Answer, entry: CachedAnswer, message: Message, rules: ReturnType<typeof rulesFor>): void {
  const found = decoded(entry);
  for (const record of found.answers) {
    const isSent = message.answers.some((sent) => sameData(record, sent)) || isSynthesized(record, message.answers);
    assert.ok(isSent, recordText(record));
    assert.ok(record.ttl >= Math.min(rules.minTtl, rules.maxTtl) && record.ttl <= rules.maxTtl, recordText(record));
    assert.ok(record.ttl >= answer.ttlSeconds || answer.ttlSeconds === 0);
  }
  for (const record of found.authorities) assert.ok(message.authorities.some((sent) => sameData(record, sent)));
  if (rules.isScrubbing) holdsTogether(found, rules);
  let name = rules.name;
  const targets = targetsOf(entry);
  for (const target of targets) {
    const at = name;
    assert.ok(
      found.answers.some(
        (record) => record.type === 5 && namesEqual(record.name, at) && namesEqual(record.rdata, target),
      ),
    );
    name = target;
  }
  assert.equal(
    new Set(targets.map((target) => Buffer.from(target).toString("latin1").toLowerCase())).size,
    targets.length,
  );
  for (const target of targets.slice(0, -1)) assert.ok(!rules.isElsewhere(target));
  if (entry.isOpen) assert.ok(targets.length > 0);
  if (rules.flags === 0 && rules.type !== 46)
    assert.ok(!found.answers.some(({ type }) => type === 46 && rules.isScrubbing));
  if (rules.rebindingExceptions !== undefined) {
    assert.ok(
      !found.answers.some(({ type, rdata }) => (type === 1 && rdata[0] === 10) || (type === 28 && rdata[0] === 0xfd)),
    );
  }
}

/** Every owner is the question, or what a CNAME before it leads to, or of a DNAME above such a name. */
function holdsTogether(found: Message, rules: ReturnType<typeof rulesFor>): void {
  const names = [rules.name];
  for (const { name, type, rdata } of found.answers) {
    const isOfChain = names.some((each) => namesEqual(each, name));
    assert.ok(isOfChain || names.some((each) => isSubdomain(each, name)));
    if (type === 5) names.push(rdata);
  }
}

describe("whatever an upstream says", () => {
  test("the entry has nothing but what it said, in order, with bounded TTLs", () => {
    let entries = 0;
    fc.assert(
      fc.property(arbitraryResponse, arbitraryRules, (text, change) => {
        const message = responseTo(text.name, text.type, text);
        const rules = rulesFor(text.name, text.type, change);
        const reading = readResponse(message, rules);
        if (reading.kind !== "answer") return;
        const entry = encodeEntry(askedFor(text.name, text.type, rules.flags), reading, TERMS);
        assert.ok(entry !== undefined);
        entries++;
        holdsFor(reading, entry, message, rules);
      }),
      { numRuns: 3_000 },
    );
    assert.ok(entries > 500, `${entries} entries`);
  });

  test("no bytes make it throw", () => {
    fc.assert(
      fc.property(
        arbitraryResponse,
        arbitraryRules,
        fc.array(fc.tuple(fc.nat(400), fc.nat(255)), { maxLength: 8 }),
        (text, change, faults) => {
          const { bytes } = encodeMessage(responseTo(text.name, text.type, text));
          for (const [at, value] of faults) bytes[at % bytes.length] = value;
          const result = decodeMessage(bytes);
          if (result.kind !== "message") return;
          const reading = readResponse(result.message, rulesFor(text.name, text.type, change));
          if (reading.kind === "answer") decoded(encodeEntry(askedFor(text.name, text.type), reading, TERMS));
        },
      ),
      { numRuns: 3_000 },
    );
  });
});
