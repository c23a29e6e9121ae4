import assert from "node:assert/strict";
import { test } from "node:test";
import { cidrFromText, ipFromText } from "../base/ip.ts";
import { mayTransfer, type TransferGrant } from "./transfer-acl.ts";

type Key = { readonly grants?: readonly TransferGrant[] } | undefined;

function asks(address: string, key: Key, networks: readonly string[] = ["10.0.0.0/8", "fd00::/8"], enabled = true) {
  const allowNetworks = networks.flatMap((text) => cidrFromText(text) ?? []);
  const client = { address: ipFromText(address) ?? new Uint8Array(0), key };
  return mayTransfer({ enabled, allowNetworks }, client, "corp.test.");
}

const GRANTED: Key = { grants: [{ zone: "corp.test.", transfer: true }] };

const CASES: readonly (readonly [why: string, allowed: boolean, isAllowed: boolean])[] = [
  ["an address that is listed", asks("10.1.2.3", undefined), true],
  ["an IPv6 address that is listed", asks("fd00::7", undefined), true],
  ["a listed IPv4 address over an IPv6 socket", asks("::ffff:10.1.2.3", undefined), true],
  ["an address that is not listed", asks("192.0.2.1", undefined), false],
  ["nobody is listed", asks("10.1.2.3", undefined, []), false],
  ["a key without grants, from anywhere", asks("192.0.2.1", {}), true],
  ["a key that grants this zone", asks("192.0.2.1", GRANTED), true],
  ["a key that grants nothing", asks("192.0.2.1", { grants: [] }), false],
  ["a key of another zone", asks("192.0.2.1", { grants: [{ zone: "other.test.", transfer: true }] }), false],
  ["a key that grants updates only", asks("192.0.2.1", { grants: [{ zone: "corp.test." }] }), false],
  ["a key that grants nothing, from an address that is listed", asks("10.1.2.3", { grants: [] }), true],
  ["all of it while transfers are off", asks("10.1.2.3", {}, ["0.0.0.0/0"], false), false],
];

for (const [why, allowed, isAllowed] of CASES) {
  test(`${isAllowed ? "may" : "may not"}: ${why}`, () => assert.equal(allowed, isAllowed));
}
