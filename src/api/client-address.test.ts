import assert from "node:assert/strict";
import test from "node:test";
import { cidrFromText } from "../base/ip.ts";
import { clientAddress } from "./client-address.ts";

const trusted = ["10.0.0.0/9", "2001:db8::/33"].map((text) => cidrFromText(text)!);

const cases: readonly (readonly [peer: string, header: string | undefined, expected: string])[] = [
  ["192.0.2.1", "198.51.100.1", "192.0.2.1"],
  ["10.0.0.1", undefined, "10.0.0.1"],
  ["10.0.0.1", "198.51.100.1", "198.51.100.1"],
  ["10.0.0.1", "203.0.113.9, 198.51.100.1", "198.51.100.1"],
  ["10.0.0.1", "203.0.113.9, 198.51.100.1, 10.127.0.2", "198.51.100.1"],
  ["10.0.0.1", "203.0.113.9, 10.128.0.2", "10.128.0.2"],
  ["10.0.0.1", "nonsense", "10.0.0.1"],
  ["10.0.0.1", "203.0.113.9, nonsense, 10.0.0.2", "10.0.0.2"],
  ["10.0.0.1", "", "10.0.0.1"],
  ["10.0.0.1", "203.0.113.9, 198.51.100.1:4711", "198.51.100.1"],
  ["10.0.0.1", "198.51.100.1, 10.0.0.2:80", "198.51.100.1"],
  ["10.0.0.1", "[2001:db8:8000::1]:443", "2001:db8:8000::1"],
  ["10.0.0.1", "[2001:db8:8000::1]", "2001:db8:8000::1"],
  ["10.0.0.1", "198.51.100.1:x", "10.0.0.1"],
  ["10.0.0.1", "2001:db8:8000::1:443", "2001:db8:8000::1:443"],
  ["::ffff:10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"],
  ["::ffff:192.0.2.1", undefined, "192.0.2.1"],
  ["2001:db8:7fff::1", "2001:db8:8000::1", "2001:db8:8000::1"],
  ["2001:db8:8000::1", "198.51.100.1", "2001:db8:8000::1"],
];

for (const [peer, header, expected] of cases) {
  test(`a request from ${peer} forwarded for ${header ?? "nobody"} comes from ${expected}`, () => {
    assert.equal(clientAddress(peer, header, trusted), expected);
  });
}

test("without trusted proxies the header says nothing", () => {
  assert.equal(clientAddress("10.0.0.1", "198.51.100.1", []), "10.0.0.1");
});
