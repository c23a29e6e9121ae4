import assert from "node:assert/strict";
import { test } from "node:test";
import { ipFromText } from "../base/ip.ts";
import { isPrivateAddress } from "./private-address.ts";

function judge(text: string): boolean {
  const address = ipFromText(text);
  assert.ok(address !== undefined, text);
  return isPrivateAddress(address);
}

test("addresses of this host, its link and private networks are private", () => {
  const all =
    "0.0.0.0 0.1.2.3 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 127.255.255.255 169.254.0.1 172.16.0.0 " +
    "172.31.255.255 192.168.0.0 192.168.255.255 :: ::1 fe80::1 febf::1 fec0::1 fc00::1 fdff::1 ::ffff:10.0.0.1 " +
    "::ffff:127.0.0.1 ::10.0.0.1 64:ff9b::192.168.1.1";
  for (const text of all.split(" ")) assert.equal(judge(text), true, text);
});

test("the others are not", () => {
  const all =
    "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 169.253.0.1 169.255.0.1 172.15.0.1 " +
    "172.32.0.0 192.167.0.1 192.169.0.1 2001:db8::1 2000:: fe00::1 ff02::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 64:ff9b:1::10.0.0.1 " +
    "::fffe:10.0.0.1 0:1::10.0.0.1";
  for (const text of all.split(" ")) assert.equal(judge(text), false, text);
  assert.equal(isPrivateAddress(Uint8Array.of(10, 0, 0)), false);
});
