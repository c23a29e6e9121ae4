import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { openLab, queryBytes, zone } from "../../tests/support/zone-lab.ts";
import { freshSeconds } from "./https-freshness.ts";

const lab = openLab([
  zone(
    "example.test.",
    "www 300 A 192.0.2.1\nalias 7 CNAME www\nslow 86400 A 192.0.2.2\nmx 600 MX 1 www\nzero 0 A 192.0.2.3\nchild NS ns.child\nns.child 5 A 192.0.2.4\n",
  ),
]);

function fresh(question: string): number {
  const answer = lab.send(queryBytes(question));
  assert.ok(answer);
  return freshSeconds(answer);
}

test("the least TTL of the answer section", () => {
  assert.equal(fresh("www.example.test. A"), 300);
  assert.equal(fresh("slow.example.test. A"), 86_400);
  assert.equal(fresh("alias.example.test. A"), 7);
  assert.equal(fresh("zero.example.test. A"), 0);
});

test("TTLs of the additional section count for nothing", () => {
  assert.equal(fresh("mx.example.test. MX"), 600);
});

test("of a negative answer what its SOA says", () => {
  const soa = lab.message("nope.example.test. A").authorities[0];
  assert.ok(soa);
  const minimum = Buffer.from(soa.rdata).readUInt32BE(soa.rdata.length - 4);
  assert.equal(fresh("nope.example.test. A"), Math.min(soa.ttl, minimum));
  assert.equal(fresh("www.example.test. MX"), Math.min(soa.ttl, minimum));
});

test("none where nothing says one: refusals and referrals", () => {
  assert.equal(fresh("www.elsewhere.test. A"), 0);
  assert.equal(fresh("x.child.example.test. A"), 0);
});

test("whatever stands in the bytes, it ends with a number of seconds", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 12, maxLength: 200 }), (bytes) => {
      const seconds = freshSeconds(bytes);
      assert.ok(Number.isInteger(seconds) && seconds >= 0 && seconds < 2 ** 31);
    }),
  );
});
