import assert from "node:assert/strict";
import { test } from "node:test";
import { OperatorError } from "../base/errors.ts";
import type { Address } from "./address.ts";
import { openLibc } from "./linux/libc.ts";
import { closeDescriptor, describeSocket, openTcpListener, openUdpSocket } from "./linux/socket.ts";
import { closeListeners, openListeners } from "./sockets.ts";
import { probeListeners } from "./sockets-portable.ts";

const found = openLibc();
assert.ok(found, "these tests need Linux and koffi");
const libc = found;

const ANY_PORT: Address = { bytes: Uint8Array.of(127, 0, 0, 1), port: 0 };

test("opens a UDP socket a thread and a TCP socket on one port that the system chose", () => {
  const listeners = openListeners(libc, [ANY_PORT, ANY_PORT], 3, []);
  for (const { address, udp, tcp } of listeners) {
    assert.equal(udp.length, 3);
    assert.notEqual(address.port, 0);
    for (const descriptor of udp) assert.deepEqual(describeSocket(libc, descriptor), { kind: "udp", address });
    assert.equal(describeSocket(libc, tcp ?? -1)?.kind, "tcp");
  }
  assert.notEqual(listeners[0]?.address.port, listeners[1]?.address.port);
  closeListeners(libc, listeners);
});

test("a UDP port that another program shares is in use all the same", () => {
  const other = openUdpSocket(libc, ANY_PORT, true);
  const address = describeSocket(libc, other)?.address;
  assert.ok(address);
  assert.throws(() => openListeners(libc, [address], 1, []), isInUse("UDP"));
  closeDescriptor(libc, other);
});

test("a TCP port in use is an error, and nothing stays open", () => {
  const other = openTcpListener(libc, ANY_PORT);
  const address = describeSocket(libc, other)?.address;
  assert.ok(address);
  assert.throws(() => openListeners(libc, [ANY_PORT, address], 2, []), isInUse("TCP"));
  closeDescriptor(libc, other);
  closeListeners(libc, openListeners(libc, [address], 2, []));
});

test("an inherited socket takes the place of an own one", () => {
  const udp = openUdpSocket(libc, ANY_PORT, false);
  const address = describeSocket(libc, udp)?.address;
  assert.ok(address);
  const listeners = openListeners(libc, [address], 4, [{ descriptor: udp, kind: "udp", address, name: "dns" }]);
  assert.deepEqual(listeners[0]?.udp, [udp]);
  assert.equal(describeSocket(libc, listeners[0]?.tcp ?? -1)?.address.port, address.port);
  closeListeners(libc, listeners);
});

test("without descriptors to hand over, addresses are proved free and ports chosen", async () => {
  const [listener] = await probeListeners([ANY_PORT]);
  assert.ok(listener);
  assert.notEqual(listener.address.port, 0);
  const udp = openUdpSocket(libc, listener.address, false);
  await assert.rejects(probeListeners([listener.address]), isInUse("UDP"));
  closeDescriptor(libc, udp);
  const tcp = openTcpListener(libc, listener.address);
  await assert.rejects(probeListeners([listener.address]), isInUse("TCP"));
  closeDescriptor(libc, tcp);
});

function isInUse(transport: string): (error: unknown) => boolean {
  return (error) =>
    error instanceof OperatorError && error.message.includes(`(${transport}): another program uses this address`);
}
