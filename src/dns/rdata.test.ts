import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { RRTYPE } from "./codes.ts";
import { nameFromText } from "./name.ts";
import { checkRdata, rdataFromText, rdataToText, ZONE_TYPES } from "./rdata.ts";
import { isMetaType, typeFromText, typeToText } from "./type-names.ts";

function hexOf(type: number, text: string, origin?: string): string {
  const name = origin === undefined ? undefined : nameFromText(origin);
  const result = rdataFromText(type, text, name?.kind === "name" ? name.name : undefined);
  return result.kind === "rdata" ? Buffer.from(result.rdata).toString("hex") : `${result.column}: ${result.detail}`;
}

test("text of a value becomes wire bytes", () => {
  const table: readonly (readonly [number, string, string])[] = [
    [RRTYPE.A, "192.0.2.1", "c0000201"],
    [RRTYPE.AAAA, "2001:db8::1", "20010db8000000000000000000000001"],
    [RRTYPE.MX, "10 a", "000a016101" + "7800"],
    [RRTYPE.SRV, "1 2 3 .", "00010002000300"],
    [RRTYPE.TXT, 'ab "c d"', "026162" + "03632064"],
    [RRTYPE.TXT, '""', "00"],
    [RRTYPE.CAA, '1 issue ";"', "010569737375653b"],
    [RRTYPE.SOA, "a. b. 4294967295 1h 1m 1d 1", "01610001620" + "0ffffffff00000e100000003c0001518000000001"],
    [RRTYPE.ALIAS, "a", "01610178" + "00"],
    [RRTYPE.A, "\\# 4 c0000201", "c0000201"],
  ];
  for (const [type, text, hex] of table) assert.equal(hexOf(type, text, "x."), hex, text);
});

test("a value that is none has its column and its reason", () => {
  const table: readonly (readonly [number, string, string])[] = [
    [RRTYPE.A, "", "1: A address: missing"],
    [RRTYPE.A, "1.2.3.4 5", "9: text behind the end of the record"],
    [RRTYPE.A, "1.2.3.4\n1.2.3.5", "1: more than one line"],
    [RRTYPE.MX, "10", "3: MX exchange: missing"],
    [RRTYPE.MX, "10 a", "4: MX exchange: relative name without an origin"],
    [RRTYPE.TXT, '"a', "1: the quoted text does not end on its line"],
    [46, "x", "1: RRSIG is not held here"],
  ];
  for (const [type, text, detail] of table) assert.equal(hexOf(type, text), detail, text);
});

test("wire rdata is checked to its last byte", () => {
  const table: readonly (readonly [number, string, string | undefined])[] = [
    [RRTYPE.A, "0a000001", undefined],
    [RRTYPE.A, "0a0000", "not a valid address"],
    [RRTYPE.A, "0a00000101", "bytes behind the end of the rdata"],
    [RRTYPE.MX, "000a00", undefined],
    [RRTYPE.MX, "000a", "not a valid exchange"],
    [RRTYPE.MX, "000ac00c", "not a valid exchange"],
    [RRTYPE.TXT, "", "not a valid text"],
    [RRTYPE.TXT, "0261", "not a valid text"],
    [RRTYPE.CAA, "0000", "not a valid tag"],
    [RRTYPE.CAA, "00012d", "not a valid tag"],
    [RRTYPE.CAA, "000161", undefined],
    [46, "00", "a type that zones do not hold"],
  ];
  for (const [type, hex, fault] of table) {
    const bytes = Uint8Array.from([7, ...Buffer.from(hex, "hex"), 7]);
    assert.equal(checkRdata(type, bytes, 1, bytes.length - 2), fault, `${type} ${hex}`);
  }
  assert.equal(checkRdata(RRTYPE.A, new Uint8Array(4), 1, 4), "rdata ends outside its bytes");
});

test("any bytes print as text that gives the same bytes, or generically", () => {
  fc.assert(
    fc.property(fc.constantFrom(...ZONE_TYPES), fc.uint8Array({ maxLength: 60 }), (type, bytes) => {
      const text = rdataToText(type, bytes);
      const isValid = checkRdata(type, bytes, 0, bytes.length) === undefined;
      assert.equal(text.startsWith("\\#"), !isValid);
      const again = rdataFromText(type, text);
      assert.equal(again.kind, isValid ? "rdata" : "error");
      if (again.kind === "rdata") assert.deepEqual(again.rdata, Uint8Array.from(bytes));
    }),
    { numRuns: 3000 },
  );
});

test("type names go both ways, in any case", () => {
  for (const name of ["A", "aaaa", "Mx", "NSAP-PTR", "type65400", "TYPE1", "HTTPS", "CAA"]) {
    const type = typeFromText(name);
    assert.ok(type !== undefined, name);
    assert.equal(typeFromText(typeToText(type)), type);
  }
  for (const name of ["", "B", "AA", "TYPE", "TYPE65536", "TYPE-1", "TYPE1x", "MX ", "NSAP", "M\u0178"]) {
    assert.equal(typeFromText(name) === undefined, name !== "NSAP", name);
  }
  assert.deepEqual([0, 1, 41, 128, 252, 255, 256].map(isMetaType), [true, false, true, true, true, true, false]);
});
