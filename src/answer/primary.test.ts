/** What is handed over to the thread with keys and connections, and what that thread asks of an answerer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openSelectionLab } from "../../tests/support/selection-lab.ts";
import { answerLines, decode, nameOf, openLab, queryBytes, type ZoneLab, zone } from "../../tests/support/zone-lab.ts";
import { OPCODE, RCODE } from "../dns/codes.ts";
import { signRequest } from "../dns/tsig.ts";
import { COUNTER, queryPlace, TRANSPORT, type Transport, threadCounters, typeClass } from "../image/counters.ts";
import { setPrimary } from "../image/primary.ts";
import { ROUTE } from "../image/shared.ts";

const ZONES = [zone("example.test.", "www A 192.0.2.1\npool TXT x")];
const QUESTION = "www.example.test. A";
const AXFR = "example.test. AXFR";
const KEY = { name: nameOf("key.test."), algorithm: "hmac-sha256", secret: Buffer.alloc(32, 7) } as const;
const UPDATE = { opcode: OPCODE.UPDATE, edns: false } as const;
const EVERY: readonly Transport[] = Object.values(TRANSPORT);

const open = () => openLab(ZONES, { answerer: { forwards: true } });
const signed = (bytes: Uint8Array) => signRequest(KEY, bytes, 1_000).bytes;

/** "primary" where it is handed over, else the answer's status. */
function fate(lab: ZoneLab, packet: Uint8Array, transport: Transport = TRANSPORT.UDP): string | undefined {
  const answer = lab.sendOrLack(packet, { transport });
  if (answer !== "taken") return answer && answerLines(decode(answer))[0];
  assert.equal(lab.answerer.need.route, ROUTE.PRIMARY);
  return "primary";
}

test("whatever is signed is handed over, over each transport, and is no miss of the cache", () => {
  const lab = open();
  const messages = [
    queryBytes(QUESTION),
    queryBytes(QUESTION, { edns: false }),
    queryBytes("example.test. SOA", { opcode: OPCODE.NOTIFY }),
    queryBytes("example.test. SOA", UPDATE),
    queryBytes(QUESTION, { opcode: 15 }),
    queryBytes(QUESTION, { edns: { version: 1 } }),
    queryBytes(AXFR),
  ];
  for (const message of messages) {
    for (const transport of EVERY) assert.equal(fate(lab, signed(message), transport), "primary");
  }
  assert.equal(threadCounters(lab.shared, 0)[COUNTER.CACHE_MISSES], 0);
  assert.equal(fate(lab, queryBytes(QUESTION)), "NOERROR aa");
});

test("an update is refused while updates are off, and handed over else", () => {
  const lab = open();
  const update = queryBytes("example.test. SOA", UPDATE);
  assert.equal(fate(lab, update), "REFUSED");
  setPrimary(lab.shared, { updates: true, transfers: false });
  for (const transport of EVERY) assert.equal(fate(lab, update, transport), "primary");
  assert.equal(fate(lab, queryBytes(AXFR, { edns: false }), TRANSPORT.TCP), "REFUSED");
  setPrimary(lab.shared, { updates: false, transfers: false });
  assert.equal(fate(lab, update), "REFUSED");
});

test("a transfer is handed over while transfers are on, over TCP and TLS", () => {
  const lab = open();
  const request = queryBytes(AXFR, { edns: false });
  setPrimary(lab.shared, { updates: false, transfers: true });
  assert.deepEqual(
    EVERY.map((transport) => fate(lab, request, transport)),
    ["NOTIMP", "primary", "primary", "REFUSED"],
  );
  assert.equal(fate(lab, queryBytes("example.test. IXFR", { edns: false }), TRANSPORT.TCP), "NOTIMP");
  assert.equal(fate(lab, queryBytes(AXFR, { edns: false, class: 4 }), TRANSPORT.TCP), "REFUSED");
  assert.equal(fate(lab, queryBytes("example.test. SOA", UPDATE)), "REFUSED");
});

test("where nobody can be given it, it is SERVFAIL, and who gives nothing away answers as if it were not signed", () => {
  const lab = open();
  setPrimary(lab.shared, { updates: true, transfers: true });
  const now = (question: string, options: object) => lab.askNow(question, 0, { edns: false, ...options })[0];
  assert.equal(now("example.test. SOA", UPDATE), "SERVFAIL");
  assert.equal(now(AXFR, { transport: TRANSPORT.TCP }), "SERVFAIL");
  const own = openLab(ZONES);
  assert.equal(fate(own, signed(queryBytes(QUESTION))), "NOERROR aa");
  const frozen = openLab(ZONES, { answerer: { forwards: true, isFrozen: true } });
  assert.equal(fate(frozen, signed(queryBytes(QUESTION))), "NOERROR aa");
});

test("room for the signature is left in an answer of every size", () => {
  const texts = Array.from({ length: 40 }, (_, index) => `t${index} ${"TXT"} "${"x".repeat(20 + index * 25)}"`);
  const lab = openLab([zone("example.test.", texts.join("\n"))], { answerer: { forwards: true } });
  for (const bytes of [0, 90, 377]) {
    lab.answerer.setView(bytes, false);
    for (let index = 0; index < texts.length; index++) {
      for (const edns of [false, { udpSize: 700 }, { udpSize: 1232 }] as const) {
        const answer = lab.send(queryBytes(`t${index}.example.test. TXT`, { edns }));
        const most = edns === false ? 512 : edns.udpSize;
        assert.ok(answer !== undefined && answer.length + bytes <= most, `${answer?.length} and ${bytes}`);
      }
    }
  }
});

test("the management view has all that is stored: values, whatever is healthy, and nothing that an override says", () => {
  const lab = openSelectionLab([zone("corp.test.", "www CNAME pool\nmail MX 1 pool")]);
  const values = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
  lab.select(
    "pool.corp.test. A",
    { method: "FAILOVER" },
    values.map((value) => ({ value, probe: value })),
  );
  lab.select("turn.corp.test. A", { method: "ROUND_ROBIN" }, values);
  lab.health("10.0.0.1", "UNHEALTHY");
  lab.override("mail.corp.test. 60 A 10.9.9.9");
  const all = (name: string) => values.map((value) => `answer ${name} 30 IN A ${value}`);
  assert.deepEqual(lab.ask("pool.corp.test. A"), ["NOERROR aa", "answer pool.corp.test. 30 IN A 10.0.0.2"]);
  lab.answerer.setView(0, true);
  assert.deepEqual(lab.ask("pool.corp.test. A"), ["NOERROR aa", ...all("pool.corp.test.")]);
  for (let time = 0; time < 3; time++) {
    assert.deepEqual(lab.ask("turn.corp.test. A"), ["NOERROR aa", ...all("turn.corp.test.")]);
  }
  assert.deepEqual(lab.ask("www.corp.test. A"), [
    "NOERROR aa",
    "answer www.corp.test. 300 IN CNAME pool.corp.test.",
    ...all("pool.corp.test."),
  ]);
  assert.deepEqual(lab.ask("mail.corp.test. MX")[1], "answer mail.corp.test. 300 IN MX 1 pool.corp.test.");
  lab.answerer.setView(0, false);
  assert.deepEqual(lab.ask("mail.corp.test. A"), ["NOERROR aa", "answer mail.corp.test. 60 IN A 10.9.9.9"]);
});

test("answers with an RCODE alone, and those made elsewhere, are counted as all are", () => {
  const lab = open();
  const counters = threadCounters(lab.shared, 0);
  const query = queryBytes("example.test. SOA", { opcode: OPCODE.UPDATE });
  const bytes = new Uint8Array(4_096);
  bytes.set(query);
  const address = Uint8Array.of(127, 0, 0, 1);
  lab.answerer.enter();
  const { UDP } = TRANSPORT;
  const length = lab.answerer.answerWith(bytes, 0, query.length, address, 0, 4, UDP, RCODE.NOTZONE);
  const answer = bytes.slice(0, length);
  const { opcode, rcode, questions, edns } = decode(answer);
  assert.deepEqual([opcode, rcode, questions.length, edns?.udpSize], [OPCODE.UPDATE, RCODE.NOTZONE, 1, 1232]);
  bytes.set(query);
  lab.answerer.note(bytes, 0, query.length, answer, address, 0, 4, UDP);
  lab.answerer.leave();
  assert.equal(counters[queryPlace(UDP, typeClass(6), RCODE.NOTZONE)], 2);
});
