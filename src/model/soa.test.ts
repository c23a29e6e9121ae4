import assert from "node:assert/strict";
import { test } from "node:test";
import { RRTYPE } from "../dns/codes.ts";
import { rdataToText } from "../dns/rdata.ts";
import { soaFromRdata, soaRdata } from "./soa.ts";

test("a SOA has its names and numbers in their order", () => {
  const soa = { mname: "Ns1.corp.", rname: "joe\\.doe.corp.", refresh: 1, retry: 2, expire: 3, minimum: 4 };
  assert.equal(rdataToText(RRTYPE.SOA, soaRdata(soa, 4_294_967_295)), "Ns1.corp. joe\\.doe.corp. 4294967295 1 2 3 4");
});

test("what a SOA is made of can be read from it", () => {
  const soa = { mname: "Ns1.corp.", rname: "joe\\.doe.corp.", refresh: 1, retry: 2, expire: 3, minimum: 4_294_967_295 };
  assert.deepEqual(soaFromRdata(soaRdata(soa, 7)), { ...soa, serial: 7 });
  const root = { ...soa, mname: ".", rname: "." };
  assert.deepEqual(soaFromRdata(soaRdata(root, 7)), { ...root, serial: 7 });
});
