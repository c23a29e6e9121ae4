import assert from "node:assert/strict";
import test from "node:test";
import { openSelectionLab, type SelectionLab } from "../../tests/support/selection-lab.ts";
import { decode, negative, queryBytes, zone } from "../../tests/support/zone-lab.ts";
import { TRANSPORT } from "../image/counters.ts";

const POOL = ["10.0.0.1", "10.0.0.2", "10.0.0.3"] as const;
const GATED = POOL.map((value) => ({ value, probe: value }));

function open(body = "", more: readonly string[] = []): SelectionLab {
  const lab = openSelectionLab([zone("corp.test.", body), ...more]);
  lab.select("pool.corp.test. A", { method: "FAILOVER" }, GATED);
  return lab;
}

test("other types of a selected name stay as they are", () => {
  const lab = open("pool TXT here");
  lab.select("pool.corp.test. AAAA", { method: "FAILOVER", ttl: 5 }, ["fd00::1", "fd00::2"]);
  assert.deepEqual(lab.ask("pool.corp.test. AAAA"), ["NOERROR aa", "answer pool.corp.test. 5 IN AAAA fd00::1"]);
  assert.deepEqual(lab.ask("pool.corp.test. TXT"), ["NOERROR aa", 'answer pool.corp.test. 300 IN TXT "here"']);
  assert.deepEqual(lab.ask("pool.corp.test. MX"), ["NOERROR aa", negative("corp.test.")]);
  assert.deepEqual(lab.ask("POOL.corp.test. A"), ["NOERROR aa", "answer POOL.corp.test. 30 IN A 10.0.0.1"]);
});

test("a wildcard selects for each name below it", () => {
  const lab = open("*.apps TXT x");
  lab.select("*.apps.corp.test. A", { method: "FAILOVER" }, GATED);
  lab.health(POOL[0], "UNHEALTHY");
  assert.deepEqual(lab.ask("a.b.apps.corp.test. A"), ["NOERROR aa", "answer a.b.apps.corp.test. 30 IN A 10.0.0.2"]);
});

test("at the end of a CNAME chain, within a zone and across two", () => {
  const lab = open("www CNAME web\nweb CNAME pool", [zone("other.test.", "far CNAME www.corp.test.")]);
  lab.health(POOL[0], "UNHEALTHY");
  assert.deepEqual(lab.ask("www.corp.test. A"), [
    "NOERROR aa",
    "answer www.corp.test. 300 IN CNAME web.corp.test.",
    "answer web.corp.test. 300 IN CNAME pool.corp.test.",
    "answer pool.corp.test. 30 IN A 10.0.0.2",
  ]);
  assert.deepEqual(lab.ask("far.other.test. A").slice(-1), ["answer pool.corp.test. 30 IN A 10.0.0.2"]);
});

test("of a CNAME with several values one is answered and followed", () => {
  const lab = open("a A 10.1.0.1\nb A 10.1.0.2\nx CNAME a");
  const values = ["a.corp.test.", "b.corp.test.", "elsewhere.example."].map((value) => ({ value, probe: value }));
  lab.select("x.corp.test. CNAME", { method: "FAILOVER", single: true }, values);
  const first = ["answer x.corp.test. 30 IN CNAME a.corp.test.", "answer a.corp.test. 300 IN A 10.1.0.1"];
  assert.deepEqual(lab.ask("x.corp.test. A"), ["NOERROR aa", ...first]);
  lab.health("a.corp.test.", "UNHEALTHY");
  const second = ["answer x.corp.test. 30 IN CNAME b.corp.test.", "answer b.corp.test. 300 IN A 10.1.0.2"];
  assert.deepEqual(lab.ask("x.corp.test. A"), ["NOERROR aa", ...second]);
  lab.health("b.corp.test.", "UNHEALTHY");
  const third = ["answer x.corp.test. 30 IN CNAME elsewhere.example."];
  assert.deepEqual(lab.ask("x.corp.test. A"), ["NOERROR aa", ...third]);
  assert.deepEqual(lab.ask("x.corp.test. CNAME"), ["NOERROR aa", ...third]);
});

test("one CNAME is answered also where nobody said that it should be alone", () => {
  const lab = open("x TXT x");
  lab.select("y.corp.test. CNAME", { method: "ALL" }, ["pool.corp.test.", "ns1.corp.test."]);
  const answers = Array.from({ length: 2 }, () => lab.ask("y.corp.test. A"));
  assert.deepEqual(
    answers.map((lines) => lines.length),
    [3, 3],
  );
  assert.notDeepEqual(answers[0], answers[1]);
});

test("a circle of selected CNAMEs ends", () => {
  const lab = open();
  for (const name of ["p", "q"]) {
    lab.select(`${name}.corp.test. CNAME`, { method: "ALL", single: true }, ["p.corp.test.", "q.corp.test."]);
  }
  for (let answer = 0; answer < 8; answer++) {
    const lines = lab.ask("p.corp.test. A");
    assert.equal(lines[0], "NOERROR aa");
    assert.ok(lines.length <= 4, lines.join("\n"));
  }
});

test("an ALIAS of several targets has the addresses of the chosen one, a selected RRset's among them", () => {
  const lab = open("a A 10.1.0.1\na A 10.1.0.9");
  const values = ["a.corp.test.", "pool.corp.test."].map((value) => ({ value, probe: value }));
  lab.select("corp.test. ALIAS", { method: "FAILOVER", single: true, ttl: 20 }, values);
  assert.deepEqual(lab.ask("corp.test. A"), [
    "NOERROR aa",
    "answer corp.test. 20 IN A 10.1.0.1",
    "answer corp.test. 20 IN A 10.1.0.9",
  ]);
  lab.health("a.corp.test.", "UNHEALTHY");
  lab.health(POOL[0], "UNHEALTHY");
  assert.deepEqual(lab.ask("corp.test. A"), ["NOERROR aa", "answer corp.test. 20 IN A 10.0.0.2"]);
  lab.select("pool.corp.test. A", { method: "ALL", ttl: 5 }, GATED);
  assert.deepEqual(lab.ask("corp.test. A"), [
    "NOERROR aa",
    ...["10.0.0.2", "10.0.0.3"].map((value) => `answer corp.test. 5 IN A ${value}`),
  ]);
});

test("a selected SRV has the addresses of the targets that it has, and no others", () => {
  const lab = open("a A 10.1.0.1\na AAAA fd00::1");
  const what = "_sip._tcp.corp.test. SRV";
  const values = ["1 1 5060 a.corp.test.", "1 1 5060 pool.corp.test.", "1 1 5060 far.example."];
  lab.select(
    what,
    { method: "FAILOVER" },
    values.map((value) => ({ value, probe: value })),
  );
  assert.deepEqual(lab.ask(what), [
    "NOERROR aa",
    "answer _sip._tcp.corp.test. 30 IN SRV 1 1 5060 a.corp.test.",
    "additional a.corp.test. 300 IN A 10.1.0.1",
    "additional a.corp.test. 300 IN AAAA fd00::1",
  ]);
  lab.health(values[0]!, "UNHEALTHY");
  lab.health(POOL[0], "UNHEALTHY");
  assert.deepEqual(lab.ask(what), [
    "NOERROR aa",
    "answer _sip._tcp.corp.test. 30 IN SRV 1 1 5060 pool.corp.test.",
    "additional pool.corp.test. 30 IN A 10.0.0.2",
  ]);
  lab.select(what, { method: "ALL" }, values.toReversed());
  assert.deepEqual(lab.ask(what).slice(4), [
    "additional pool.corp.test. 30 IN A 10.0.0.2",
    "additional a.corp.test. 300 IN A 10.1.0.1",
    "additional a.corp.test. 300 IN AAAA fd00::1",
  ]);
});

test("an MX's additional section has what is selected of its target", () => {
  const lab = open();
  lab.select("mx.corp.test. MX", { method: "ALL" }, ["10 pool.corp.test."]);
  lab.health(POOL[0], "UNHEALTHY");
  assert.deepEqual(lab.ask("mx.corp.test. MX").at(-1), "additional pool.corp.test. 30 IN A 10.0.0.2");
});

test("glue is selected too", () => {
  const lab = open("sub NS ns.sub\nsub NS ns2.sub\nns2.sub A 10.7.0.1");
  lab.select("ns.sub.corp.test. A", { method: "FAILOVER" }, GATED);
  lab.health(POOL[0], "UNHEALTHY");
  const lines = lab.ask("x.sub.corp.test. A");
  assert.ok(lines.includes("additional ns.sub.corp.test. 30 IN A 10.0.0.2"), lines.join("\n"));
  assert.equal(lines.filter((line) => line.startsWith("additional ns.sub.")).length, 1);
});

test("an override is selected like a record", () => {
  const lab = open("www CNAME pool");
  lab.override("www.corp.test. A 172.16.0.1\nout.example. A 172.16.0.1");
  for (const name of ["www.corp.test.", "out.example."]) {
    lab.select(`${name} A`, { method: "FAILOVER" }, GATED);
    assert.deepEqual(lab.ask(`${name} A`), ["NOERROR aa", `answer ${name} 30 IN A 10.0.0.1`]);
  }
  lab.health(POOL[0], "UNHEALTHY");
  assert.deepEqual(lab.ask("out.example. A"), ["NOERROR aa", "answer out.example. 30 IN A 10.0.0.2"]);
});

test("class ANY and type ANY", () => {
  const lab = open();
  assert.deepEqual(lab.ask("pool.corp.test. A", { class: 255 }), [
    "NOERROR",
    "answer pool.corp.test. 30 IN A 10.0.0.1",
  ]);
  assert.deepEqual(lab.ask("pool.corp.test. ANY"), ["NOERROR aa", "answer pool.corp.test. 30 IN A 10.0.0.1"]);
});

test("what does not fit over UDP is truncated and comes over TCP; health makes it fit", () => {
  const lab = open();
  const values = Array.from({ length: 60 }, (_, index) => ({ value: `10.3.0.${index}`, probe: `many${index}` }));
  lab.select("many.corp.test. A", { method: "ALL" }, values);
  const udp = lab.message("many.corp.test. A", { edns: false });
  assert.deepEqual([udp.flags & 0x200, udp.answers.length], [0x200, 0]);
  assert.equal(lab.message("many.corp.test. A", { transport: TRANSPORT.TCP }).answers.length, 60);
  for (const { probe } of values.slice(20)) lab.health(probe, "UNHEALTHY");
  const fits = lab.message("many.corp.test. A", { edns: false });
  assert.deepEqual([fits.flags & 0x200, fits.answers.length], [0, 20]);
});

test("as many values as an RRset can have", () => {
  const lab = open();
  const values = Array.from({ length: 4_000 }, (_, index) => `10.${index >>> 8}.${index & 255}.1`);
  lab.select("huge.corp.test. A", { method: "ALL" }, values);
  const { answers } = lab.message("huge.corp.test. A", { transport: TRANSPORT.TCP });
  assert.deepEqual(new Set(answers.map(({ rdata }) => rdata.join("."))), new Set(values));
});

test("an owner that the message does not spell where it could be pointed to is written out", () => {
  // Behind 16 KiB nobody can point to a name (RFC 1035 section 4.1.4).
  const label = "n".repeat(60);
  const lab = open(`long TXT x`);
  const far = Array.from({ length: 300 }, (_, index) => `10 0 1 ${label}.t${index}.corp.test.`);
  lab.select("_far._tcp.corp.test. SRV", { method: "ALL" }, [...far, "10 0 1 pool.corp.test."]);
  const bytes = lab.send(queryBytes("_far._tcp.corp.test. SRV"), { transport: TRANSPORT.TCP })!;
  const { answers, additionals } = decode(bytes);
  assert.equal(answers.length, 301);
  assert.equal(additionals.length, 1);
  assert.deepEqual([...additionals[0]!.rdata], [10, 0, 0, 1]);
});
