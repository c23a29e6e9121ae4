import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  dnameLine,
  nsecLine,
  type ResponseText,
  recordText,
  responseTo,
  rulesFor,
  signatureLine,
} from "../../tests/support/response-lab.ts";
import { wireName } from "../../tests/support/scripted-replies.ts";
import { EDE, RCODE } from "../dns/codes.ts";
import { isSubdomain, nameToText } from "../dns/name.ts";
import { QUESTION_FLAG } from "../image/cache.ts";
import { type Answer, isLame, type ReadRules, readResponse } from "./response.ts";

const SOA = "example.test. 900 SOA ns.example.test. host.example.test. 1 2 3 4 300";
const DO = { flags: QUESTION_FLAG.DNSSEC_OK };

function read(name: string, type: string, text: ResponseText, change: Partial<ReadRules> = {}): Answer {
  const reading = readResponse(responseTo(name, type, text), rulesFor(name, type, change));
  assert.equal(reading.kind, "answer");
  return reading;
}

function readFailure(name: string, type: string, text: ResponseText, change: Partial<ReadRules> = {}): number {
  const reading = readResponse(responseTo(name, type, text), rulesFor(name, type, change));
  assert.equal(reading.kind, "failure");
  return reading.extendedError;
}

function lines(answer: Answer): readonly string[] {
  return answer.answers.map(recordText);
}

function below(domain: string): (target: Uint8Array) => boolean {
  return (target) => isSubdomain(target, wireName(domain));
}

describe("the chain", () => {
  test("stands in its order, in whatever order and case it came", () => {
    const answer = read("A.example.test.", "A", {
      answer: [
        "c.example.test. 60 A 192.0.2.1",
        "B.EXAMPLE.test. 70 CNAME c.example.test.",
        "c.example.test. 60 A 192.0.2.2",
        "a.example.TEST. 80 CNAME b.example.test.",
      ],
    });
    assert.deepEqual(lines(answer), [
      "a.example.TEST. 80 CNAME b.example.test.",
      "B.EXAMPLE.test. 70 CNAME c.example.test.",
      "c.example.test. 60 A 192.0.2.1",
      "c.example.test. 60 A 192.0.2.2",
    ]);
    assert.equal(answer.isOpen, false);
    assert.equal(answer.ttlSeconds, 60);
    assert.equal(answer.scrubbed, 0);
    assert.deepEqual(answer.followed.map(recordText), lines(answer).slice(0, 2));
  });

  test("ends at the first target that is routed elsewhere", () => {
    const text = {
      rcode: RCODE.NXDOMAIN,
      answer: [
        "a.example.test. 80 CNAME b.own.test.",
        "b.own.test. 5 CNAME c.example.test.",
        "c.example.test. 6 A 192.0.2.1",
      ],
    };
    const answer = read("a.example.test.", "A", text, { isElsewhere: below("own.test.") });
    assert.deepEqual(lines(answer), ["a.example.test. 80 CNAME b.own.test."]);
    assert.equal(answer.isOpen, true);
    assert.equal(answer.ttlSeconds, 80);
    assert.equal(answer.rcode, RCODE.NOERROR);
    assert.equal(answer.scrubbed, 2);
  });

  test("is open where the response leaves its end out", () => {
    const answer = read("a.example.test.", "A", { answer: ["a.example.test. 80 CNAME b.example.test."] });
    assert.equal(answer.isOpen, true);
    assert.equal(answer.ttlSeconds, 80);
  });

  test("is the CNAME alone where the CNAME was asked for", () => {
    const answer = read("a.example.test.", "CNAME", {
      answer: ["a.example.test. 80 CNAME b.example.test.", "b.example.test. 60 CNAME c.example.test."],
    });
    assert.deepEqual(lines(answer), ["a.example.test. 80 CNAME b.example.test."]);
    assert.equal(answer.isOpen, false);
    assert.deepEqual(answer.followed, []);
  });

  test("that loops, or is too long, is a failure", () => {
    const loop = ["a.example.test. 80 CNAME b.example.test.", "b.example.test. 60 CNAME A.example.test."];
    assert.equal(readFailure("a.example.test.", "A", { answer: loop }), EDE.OTHER);
    assert.equal(
      readFailure("a.example.test.", "A", { answer: ["a.example.test. 1 CNAME a.example.test."] }),
      EDE.OTHER,
    );
    const long = (count: number): readonly string[] => [
      ...Array.from({ length: count }, (_, index) => `n${index}.test. 9 CNAME n${index + 1}.test.`),
      `n${count}.test. 9 A 192.0.2.1`,
    ];
    assert.equal(readFailure("n0.test.", "A", { answer: long(17) }), EDE.OTHER);
    assert.equal(read("n0.test.", "A", { answer: long(16) }).answers.length, 17);
  });

  test("has one of several CNAMEs, and each RR once", () => {
    const answer = read("a.test.", "A", {
      answer: ["a.test. 9 CNAME b.test.", "a.test. 9 CNAME c.test.", "b.test. 9 A 192.0.2.1", "b.test. 9 A 192.0.2.1"],
    });
    assert.deepEqual(lines(answer), ["a.test. 9 CNAME b.test.", "b.test. 9 A 192.0.2.1"]);
  });
});

describe("DNAME", () => {
  const dname = dnameLine("old.test.", 50, "new.test.");

  test("makes the CNAME that it stands for, given or not, and whatever the given one says", () => {
    const end = "a.b.new.test. 40 A 192.0.2.1";
    const expected = [
      "old.test. 50 DNAME new.test.",
      "a.b.old.test. 50 CNAME a.b.new.test.",
      "a.b.new.test. 40 A 192.0.2.1",
    ];
    for (const given of [[], ["a.b.old.test. 50 CNAME a.b.new.test."], ["a.b.old.test. 7 CNAME victim.test."]]) {
      const answer = read("a.b.old.test.", "A", { answer: [...given, end, dname] });
      assert.deepEqual(lines(answer), expected);
      assert.equal(answer.followed.length, 1);
      assert.equal(answer.scrubbed, 0);
    }
  });

  test("is told to those too who ask for the CNAME, or for all there is", () => {
    for (const type of ["CNAME", "ANY"]) {
      for (const given of [[], ["a.old.test. 50 CNAME a.new.test."]]) {
        const answer = read("a.old.test.", type, { answer: [...given, dname] });
        assert.deepEqual(lines(answer), ["old.test. 50 DNAME new.test.", "a.old.test. 50 CNAME a.new.test."]);
        assert.deepEqual([answer.followed.length, answer.isOpen, answer.scrubbed], [0, false, 0]);
      }
    }
  });

  test("says nothing of its own owner, of names beside it, nor above what the server is believed about", () => {
    assert.deepEqual(readFailure("old.test.", "A", { answer: [dname] }), EDE.NO_REACHABLE_AUTHORITY);
    assert.deepEqual(readFailure("bold.test.", "A", { answer: [dname] }), EDE.NO_REACHABLE_AUTHORITY);
    const domain = wireName("deep.old.test.");
    assert.equal(readFailure("a.deep.old.test.", "A", { answer: [dname] }, { domain }), EDE.NO_REACHABLE_AUTHORITY);
  });

  test("that makes a name too long is a failure", () => {
    const label = "x".repeat(63);
    const name = `${label}.${label}.${label}.o.test.`;
    const answer = [dnameLine("o.test.", 5, `${label}.test.`)];
    assert.equal(readFailure(name, "A", { answer }), EDE.OTHER);
  });

  test("twice on the way stands there once", () => {
    const answer = read("a.old.test.", "A", {
      answer: [dname, "a.new.test. 9 CNAME b.old.test.", "b.new.test. 8 A 192.0.2.9"],
    });
    assert.deepEqual(lines(answer), [
      "old.test. 50 DNAME new.test.",
      "a.old.test. 50 CNAME a.new.test.",
      "a.new.test. 9 CNAME b.old.test.",
      "b.old.test. 50 CNAME b.new.test.",
      "b.new.test. 8 A 192.0.2.9",
    ]);
  });
});

describe("what nobody asked for", () => {
  const text = {
    answer: ["a.test. 60 A 192.0.2.1", "victim.test. 60 A 203.0.113.1", "a.test. 60 AAAA 2001:db8::1"],
    authority: ["test. 60 NS ns.evil.test."],
    additional: ["ns.evil.test. 60 A 203.0.113.2", "victim.test. 60 A 203.0.113.1"],
  };

  test("is left out, and counted", () => {
    const answer = read("a.test.", "A", text);
    assert.deepEqual(lines(answer), ["a.test. 60 A 192.0.2.1"]);
    assert.deepEqual(answer.authorities, []);
    assert.equal(answer.scrubbed, 2);
  });

  test("is passed on where the switch is off", () => {
    const answer = read("a.test.", "A", text, { isScrubbing: false });
    assert.deepEqual(lines(answer), text.answer);
    assert.equal(answer.scrubbed, 0);
  });

  test("does not make an answer", () => {
    const answer = ["victim.test. 60 A 203.0.113.1"];
    assert.equal(readFailure("a.test.", "A", { answer }), EDE.NO_REACHABLE_AUTHORITY);
  });

  test("is of another class", () => {
    const message = responseTo("a.test.", "A", { answer: ["a.test. 60 A 192.0.2.1", "a.test. 60 A 192.0.2.2"] });
    const answers = message.answers.map((record, index) => ({ ...record, class: index === 0 ? 3 : 1 }));
    const reading = readResponse({ ...message, answers }, rulesFor("a.test.", "A", { isScrubbing: false }));
    assert.equal(reading.kind, "answer");
    assert.deepEqual(lines(reading), ["a.test. 60 A 192.0.2.2"]);
  });
});

describe("negative answers", () => {
  test("hold as long as the SOA says: the smaller of its TTL and its minimum", () => {
    for (const rcode of [RCODE.NXDOMAIN, RCODE.NOERROR]) {
      const answer = read("a.example.test.", "A", { rcode, authority: [SOA] });
      assert.equal(answer.rcode, rcode);
      assert.equal(answer.ttlSeconds, 300);
      assert.deepEqual(
        answer.authorities.map(({ ttl }) => ttl),
        [300],
      );
    }
    const short = SOA.replace(" 900 ", " 20 ");
    assert.equal(read("a.example.test.", "A", { authority: [short] }).ttlSeconds, 20);
    assert.equal(read("a.example.test.", "A", { authority: [SOA] }, { maxNegativeTtl: 100 }).ttlSeconds, 100);
    assert.equal(read("a.example.test.", "A", { authority: [short] }, { minTtl: 40 }).ttlSeconds, 40);
  });

  test("behind a chain belong to its last name", () => {
    const answer = ["a.test. 9 CNAME b.example.test."];
    const found = read("a.test.", "A", { rcode: RCODE.NXDOMAIN, answer, authority: [SOA] });
    assert.deepEqual(lines(found), answer);
    assert.equal(found.rcode, RCODE.NXDOMAIN);
    assert.equal(found.isOpen, false);
    assert.equal(found.ttlSeconds, 9);
    assert.equal(read("a.test.", "A", { answer, authority: [SOA] }).isOpen, false);
  });

  test("without SOA, or with that of another zone, hold for nobody but those who wait", () => {
    const other = SOA.replace("example.test. 900", "other.test. 900");
    for (const authority of [[], [other]]) {
      const answer = read("a.example.test.", "A", { rcode: RCODE.NXDOMAIN, authority });
      assert.equal(answer.ttlSeconds, 0);
      assert.deepEqual(answer.authorities, []);
      assert.equal(read("a.example.test.", "A", { authority }).ttlSeconds, 0);
    }
  });

  test("that are no answers: other rcodes, and referrals of who was asked to recurse", () => {
    for (const rcode of [RCODE.SERVFAIL, RCODE.REFUSED, RCODE.NOTIMP, RCODE.FORMERR, RCODE.YXDOMAIN]) {
      const text = { rcode, answer: ["a.test. 9 A 192.0.2.1"] };
      assert.equal(readFailure("a.test.", "A", text), EDE.NO_REACHABLE_AUTHORITY);
    }
    const authority = ["example.test. 60 NS ns.example.test."];
    assert.equal(readFailure("a.example.test.", "A", { authority }), EDE.NOT_AUTHORITATIVE);
    const message = responseTo("a.example.test.", "A", { authority });
    assert.equal(isLame(message, rulesFor("a.example.test.", "A")), true);
  });

  test("of an upstream that says why", () => {
    const message = responseTo("a.test.", "A", { rcode: RCODE.SERVFAIL });
    const edns = { udpSize: 1232, version: 0, wantsDnssec: false, options: [{ code: 15, data: Uint8Array.of(0, 6) }] };
    assert.deepEqual(readResponse({ ...message, edns }, rulesFor("a.test.", "A")), {
      kind: "failure",
      extendedError: 6,
    });
  });
});

describe("TTLs", () => {
  test("are the smallest of the RRset, within the limits, and the answer's is the smallest of all", () => {
    const answer = ["a.test. 7000 CNAME b.test.", "b.test. 900 A 192.0.2.1", "b.test. 5 A 192.0.2.2"];
    assert.deepEqual(
      read("a.test.", "A", { answer }).answers.map(({ ttl }) => ttl),
      [7000, 5, 5],
    );
    const clamped = read("a.test.", "A", { answer }, { minTtl: 30, maxTtl: 600 });
    assert.deepEqual(
      clamped.answers.map(({ ttl }) => ttl),
      [600, 30, 30],
    );
    assert.equal(clamped.ttlSeconds, 30);
    assert.equal(read("a.test.", "A", { answer: ["a.test. 0 A 192.0.2.1"] }).ttlSeconds, 0);
  });
});

describe("DNSSEC", () => {
  const signed = [
    "a.test. 60 A 192.0.2.1",
    signatureLine("a.test.", 50, "A", 2, "test."),
    signatureLine("a.test.", 60, "MX", 2, "test."),
  ];
  const negative = {
    rcode: RCODE.NXDOMAIN,
    authority: [
      SOA,
      signatureLine("example.test.", 900, "SOA", 2, "example.test."),
      nsecLine("example.test.", 200, "z.example.test."),
      signatureLine("example.test.", 200, "NSEC", 2, "example.test."),
      nsecLine("other.test.", 1, "z.other.test."),
      "example.test. 900 NS ns.example.test.",
    ],
  };

  test("records go to those who want them", () => {
    assert.deepEqual(lines(read("a.test.", "A", { answer: signed }, DO)), [
      "a.test. 50 A 192.0.2.1",
      "a.test. 50 RRSIG A",
    ]);
    assert.deepEqual(read("a.example.test.", "A", negative, DO).authorities.map(recordText), [
      "example.test. 300 SOA ns.example.test. host.example.test. 1 2 3 4 300",
      "example.test. 300 RRSIG SOA",
      "example.test. 200 NSEC z.example.test.",
      "example.test. 200 RRSIG NSEC",
    ]);
  });

  test("records do not go to others, unless they ask for the type", () => {
    assert.deepEqual(lines(read("a.test.", "A", { answer: signed })), ["a.test. 60 A 192.0.2.1"]);
    assert.equal(read("a.example.test.", "A", negative).authorities.length, 1);
    assert.equal(read("a.test.", "RRSIG", { answer: signed }).answers.length, 2);
    assert.deepEqual(lines(read("a.test.", "ANY", { answer: signed })), ["a.test. 60 A 192.0.2.1"]);
    assert.equal(read("a.test.", "ANY", { answer: signed }, DO).answers.length, 3);
  });

  test("proofs go with what a wildcard made", () => {
    const answer = ["a.b.test. 60 A 192.0.2.1", signatureLine("a.b.test.", 60, "A", 2, "test.")];
    const authority = [
      nsecLine("b.test.", 40, "c.test."),
      signatureLine("b.test.", 40, "NSEC", 2, "test."),
      nsecLine("other.", 1, "z.other."),
    ];
    const found = read("a.b.test.", "A", { answer, authority }, DO);
    assert.deepEqual(found.authorities.map(recordText), ["b.test. 40 NSEC c.test.", "b.test. 40 RRSIG NSEC"]);
    assert.equal(found.ttlSeconds, 40);
    const exact = [answer[0]!, signatureLine("a.b.test.", 60, "A", 3, "test.")];
    assert.deepEqual(read("a.b.test.", "A", { answer: exact, authority }, DO).authorities, []);
  });
});

describe("private addresses of public names", () => {
  const text = { answer: ["a.evil.test. 60 A 10.0.0.1", "a.evil.test. 60 A 192.0.2.1", "a.evil.test. 60 A 127.0.0.1"] };

  test("are left out with the protection, and pass without it", () => {
    const answer = read("a.evil.test.", "A", text, { rebindingExceptions: [] });
    assert.deepEqual(lines(answer), ["a.evil.test. 60 A 192.0.2.1"]);
    assert.equal(answer.rebinding, 2);
    assert.equal(answer.extendedError, -1);
    assert.equal(read("a.evil.test.", "A", text).answers.length, 3);
  });

  test("leave an answer without data that says so, where nothing else is there", () => {
    const answer = ["a.evil.test. 60 CNAME b.evil.test.", "b.evil.test. 60 AAAA ::ffff:192.168.0.1"];
    const found = read("a.evil.test.", "AAAA", { answer }, { rebindingExceptions: [] });
    assert.deepEqual(lines(found), ["a.evil.test. 60 CNAME b.evil.test."]);
    assert.equal(found.extendedError, EDE.BLOCKED);
    assert.equal(found.rcode, RCODE.NOERROR);
    assert.equal(found.isOpen, false);
    assert.equal(found.ttlSeconds, 60);
  });

  test("pass for names at and below the exceptions", () => {
    for (const exception of ["a.evil.test.", "evil.test.", "test."])
      assert.equal(read("a.evil.test.", "A", text, { rebindingExceptions: [wireName(exception)] }).rebinding, 0);
    assert.equal(read("a.evil.test.", "A", text, { rebindingExceptions: [wireName("x.a.evil.test.")] }).rebinding, 2);
  });

  test("take their signatures with them", () => {
    const answer = ["a.test. 60 A 10.0.0.1", "a.test. 60 A 192.0.2.1", signatureLine("a.test.", 60, "A", 2, "test.")];
    const found = read("a.test.", "A", { answer }, { ...DO, rebindingExceptions: [] });
    assert.deepEqual(lines(found), ["a.test. 60 A 192.0.2.1"]);
  });
});

describe("servers that are asked without recursion", () => {
  const stub = { domain: wireName("example.test."), isRecursive: false };

  test("refer downwards, between their zone and the name", () => {
    const authority = ["sub.example.test. 60 NS ns1.sub.example.test.", "sub.example.test. 50 NS ns.other.test."];
    const reading = readResponse(
      responseTo("a.sub.example.test.", "A", { authority }),
      rulesFor("a.sub.example.test.", "A", stub),
    );
    assert.equal(reading.kind, "referral");
    assert.equal(nameToText(reading.cut), "sub.example.test.");
    assert.deepEqual(
      reading.servers.map((name) => nameToText(name)),
      ["ns1.sub.example.test.", "ns.other.test."],
    );
    assert.equal(reading.ttlSeconds, 50);
  });

  test("lead nowhere else: upwards, sideways, to themselves", () => {
    for (const owner of [".", "test.", "example.test.", "other.example.test.", "x.a.sub.example.test."]) {
      const text = { authority: [`${owner} 60 NS ns.evil.test.`] };
      assert.equal(readFailure("a.sub.example.test.", "A", text, stub), EDE.NO_REACHABLE_AUTHORITY);
    }
  });

  test("are believed about their zone only", () => {
    const answer = ["a.example.test. 60 CNAME b.other.test.", "b.other.test. 60 A 203.0.113.1"];
    const found = read("a.example.test.", "A", { isAuthoritative: true, answer }, stub);
    assert.deepEqual(lines(found), [answer[0]!]);
    assert.equal(found.isOpen, true);
    const above = SOA.replace("example.test. 900", "test. 900");
    const text = { isAuthoritative: true, rcode: RCODE.NXDOMAIN, authority: [above] };
    assert.equal(read("a.example.test.", "A", text, stub).ttlSeconds, 0);
  });

  test("deny what is theirs, not what they happen to know", () => {
    for (const text of [{ authority: [SOA] }, { rcode: RCODE.NXDOMAIN, authority: [SOA] }, { rcode: RCODE.NXDOMAIN }])
      assert.equal(readFailure("a.example.test.", "A", text, stub), EDE.NO_REACHABLE_AUTHORITY);
    assert.equal(read("a.example.test.", "A", { isAuthoritative: true, authority: [SOA] }, stub).ttlSeconds, 300);
  });
});
