import assert from "node:assert/strict";
import { test } from "node:test";
import { addressFromText, addressToText, clientAddress, isWildcard, sameAddress } from "./address.ts";

test("an address and port read and print as the same text", () => {
  for (const text of ["127.0.0.1:53", "0.0.0.0:0", "[::]:53", "[2001:db8::1]:65535"]) {
    const address = addressFromText(text);
    assert.ok(address, text);
    assert.equal(addressToText(address), text);
  }
});

test("what is no address and port is refused", () => {
  for (const text of ["", "127.0.0.1", ":53", "::1:53", "[127.0.0.1]:53", "[::1]", "[::1]:", "localhost:53"]) {
    assert.equal(addressFromText(text), undefined, text);
  }
  for (const text of ["127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.256:53", "127.0.0.1:53 ", "[fe80::1%eth0]:53"]) {
    assert.equal(addressFromText(text), undefined, text);
  }
});

test("addresses compare by bytes and port", () => {
  const [one, same, port, family] = ["[::1]:53", "[0:0::1]:53", "[::1]:54", "0.0.0.1:53"].map((text) =>
    addressFromText(text),
  );
  assert.ok(one && same && port && family);
  assert.ok(sameAddress(one, same));
  assert.ok(!sameAddress(one, port));
  assert.ok(!sameAddress(one, family));
});

test("the wildcard is the address of zeros, in both families", () => {
  assert.deepEqual(
    ["0.0.0.0:1", "[::]:1", "0.0.0.1:1", "[1::]:1"].map((text) => isWildcard(addressFromText(text)?.bytes ?? LOOPBACK)),
    [true, true, false, false],
  );
});

const LOOPBACK = Uint8Array.of(127, 0, 0, 1);

test("a client is known by its own address, however the socket tells it", () => {
  assert.deepEqual(clientAddress("192.0.2.1"), Uint8Array.of(192, 0, 2, 1));
  assert.deepEqual(clientAddress("::ffff:192.0.2.1"), Uint8Array.of(192, 0, 2, 1));
  assert.deepEqual(clientAddress("fe80::1%eth0"), clientAddress("fe80::1"));
  assert.equal(clientAddress("fe80::1")?.length, 16);
  assert.equal(clientAddress(""), undefined);
});
