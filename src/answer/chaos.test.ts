import assert from "node:assert/strict";
import { test } from "node:test";
import { openLab, zone } from "../../tests/support/zone-lab.ts";
import { CLASS, RCODE } from "../dns/codes.ts";
import { rdataToText } from "../dns/rdata.ts";

const ZONE = zone("example.test.", 'www A 192.0.2.1\n@ TXT "t"\n');
const CHAOS = { class: CLASS.CH };

for (const question of ["id.server. TXT", "hostname.bind. TXT", "HostName.BIND. TXT", "id.server. ANY"]) {
  test(`${question} of class CH answers the node's id`, () => {
    const { rcode, answers, flags } = openLab([ZONE], { nodeId: "node-7" }).message(question, CHAOS);
    assert.equal(rcode, RCODE.NOERROR);
    assert.equal(flags & 0x0400, 0x0400);
    assert.deepEqual(
      answers.map(({ type, class: answerClass, ttl, rdata }) => [type, answerClass, ttl, rdataToText(type, rdata)]),
      [[16, CLASS.CH, 0, '"node-7"']],
    );
  });
  test(`${question} of class CH is refused where the node has no id`, () => {
    assert.deepEqual(openLab([ZONE]).ask(question, CHAOS), ["REFUSED"]);
  });
}

for (const question of [
  "version.bind. TXT",
  "version.server. TXT",
  "id.server. A",
  "x.id.server. TXT",
  "server. TXT",
  "example.test. TXT",
  "www.example.test. A",
]) {
  test(`${question} of class CH is refused`, () => {
    assert.deepEqual(openLab([ZONE], { nodeId: "node-7" }).ask(question, CHAOS), ["REFUSED"]);
  });
}

test("id.server. of class IN is a name like others", () => {
  assert.deepEqual(openLab([ZONE], { nodeId: "node-7" }).ask("id.server. TXT"), ["REFUSED ede=20"]);
});

test("an id of 63 bytes fits into the smallest answer", () => {
  const { answers } = openLab([ZONE], { nodeId: "n".repeat(63) }).message("hostname.bind. TXT", {
    ...CHAOS,
    edns: false,
  });
  assert.equal(answers[0]?.rdata.length, 64);
});
