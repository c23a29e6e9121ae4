import assert from "node:assert/strict";
import { isIP } from "node:net";
import { test } from "node:test";
import fc from "fast-check";
import { cidrFromText, ipFromText, ipToText } from "./ip.ts";

test("addresses that are read, and how they print", () => {
  const table: readonly (readonly [string, string])[] = [
    ["0.0.0.0", "0.0.0.0"],
    ["255.255.255.255", "255.255.255.255"],
    ["::", "::"],
    ["::1", "::1"],
    ["1::", "1::"],
    ["2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
    ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
    ["::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"],
    ["1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"],
    ["::ffff:1.2.3.4", "::ffff:1.2.3.4"],
    ["64:ff9b::192.0.2.33", "64:ff9b::c000:221"],
  ];
  for (const [text, printed] of table) {
    const address = ipFromText(text);
    assert.ok(address !== undefined, text);
    assert.equal(ipToText(address), printed);
    assert.deepEqual(ipFromText(printed), address);
  }
});

test("texts that are no address", () => {
  const four = [
    "",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "01.2.3.4",
    "1.2.3.4 ",
    "1..2.3",
    ".1.2.3",
    "1.2.3.",
    "0x1.2.3.4",
  ];
  const six = [":", ":::", "1:", ":1", "1:::2", "1::2::3", "12345::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "g::"];
  const mixed = ["1:2:3:4:5:6:7:8::", "1:2:3:4:5:6:7:1.2.3.4", "1.2.3.4::", "::1.2.3", "::1.2.3.4:5", "fe80::1%eth0"];
  for (const text of [...four, ...six, ...mixed]) assert.equal(ipFromText(text), undefined, text);
});

test("the same texts are addresses as for Node, zone ids apart", () => {
  const part = fc.constantFrom(
    "0",
    "1",
    "ffff",
    "255",
    "256",
    "01",
    "",
    ":",
    "::",
    ".",
    "a",
    "10.0.0.1",
    "%",
    "g",
    "00000",
  );
  const text = fc.array(part, { maxLength: 14 }).map((parts) => parts.join(""));
  const colons = fc.array(part, { maxLength: 9 }).map((parts) => parts.join(":"));
  const dots = fc.array(part, { minLength: 3, maxLength: 5 }).map((parts) => parts.join("."));
  fc.assert(
    fc.property(fc.oneof(text, colons, dots), (each) => {
      const expected = each.includes("%") ? 0 : isIP(each);
      assert.equal(ipFromText(each)?.length ?? 0, { 0: 0, 4: 4, 6: 16 }[expected]);
    }),
    { numRuns: 5000 },
  );
});

test("any address survives printing", () => {
  const bytes = (length: number) =>
    fc
      .array(fc.constantFrom(0, 0, 0, 1, 255, 16), { minLength: length, maxLength: length })
      .map((each) => Uint8Array.from(each));
  fc.assert(fc.property(fc.oneof(bytes(4), bytes(16)), (each) => assert.deepEqual(ipFromText(ipToText(each)), each)));
});

test("blocks have a prefix and may have host bits", () => {
  const table: readonly (readonly [string, number, boolean])[] = [
    ["10.0.0.0/8", 8, false],
    ["10.0.0.1/8", 8, true],
    ["10.128.0.0/9", 9, false],
    ["10.128.0.0/8", 8, true],
    ["0.0.0.0/0", 0, false],
    ["128.0.0.0/0", 0, true],
    ["10.0.0.1", 32, false],
    ["10.0.0.1/32", 32, false],
    ["fd00::/64", 64, false],
    ["fd00::1/127", 127, true],
    ["::1", 128, false],
  ];
  for (const [text, prefixBits, hostBitsSet] of table) {
    const block = cidrFromText(text);
    assert.deepEqual([block?.prefixBits, block?.hostBitsSet], [prefixBits, hostBitsSet], text);
  }
  for (const text of [
    "10.0.0.0/33",
    "10.0.0.0/08",
    "10.0.0.0/",
    "/8",
    "::/129",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
    "10/8",
  ]) {
    assert.equal(cidrFromText(text), undefined, text);
  }
});
