import assert from "node:assert/strict";
import { test } from "node:test";
import { describeNode, type LabNode, labNode, playPeer } from "../../tests/support/stream-lab.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { encodeHello } from "./identity.ts";
import { FRAME } from "./peers-wire.ts";

/** What both ends say of a stream that `one` dials to `two` and that never opens. */
async function refusal(one: LabNode, two: LabNode, nodeId = two.id): Promise<readonly [string, string]> {
  one.peers.setPeers([{ ...two.address, nodeId }]);
  await waitFor("a refusal", 5_000, () => one.peers.states()[0]?.lastFailure !== undefined && two.lines.length > 0);
  assert.deepEqual([one.outgoing.length, two.incoming.length], [0, 0]);
  return [one.peers.states()[0]?.lastFailure ?? "", String(two.lines[0]?.fields.detail)];
}

test("one's own id is refused, by either side and with the same words", async () => {
  await using one = await labNode("n1");
  await using two = await labNode("n1", { instanceId: "another" });
  const said = await refusal(one, two, "n2");
  assert.deepEqual(said, ["n1 is the id of both nodes", "n1 is the id of both nodes"]);
  assert.equal(two.peers.figures().failures.refused, 1);
  assert.equal(one.peers.figures().failures.refused_by_peer, 1);
  assert.equal(one.lines[0]?.level, "warn");
});

test("a node that is not whom the member list has at its address is refused by the dialer", async () => {
  await using one = await labNode("n1");
  await using two = await labNode("n2");
  const words = "n3 was expected, and n2 is at its address";
  assert.deepEqual(await refusal(one, two, "n3"), [words, words]);
  assert.equal(one.peers.figures().failures.refused, 1);
  assert.equal(two.peers.figures().failures.refused_by_peer, 1);
});

test("an id that has an open stream as another instance is refused until that stream is over", async () => {
  await using one = await labNode("n1");
  await using twin = await labNode("n1", { instanceId: "another" });
  await using two = await labNode("n2");
  one.peers.setPeers([two.address]);
  await waitFor("the first", 5_000, () => two.incoming.length === 1);
  twin.peers.setPeers([two.address]);
  await waitFor("a refusal", 5_000, () => twin.peers.states()[0]?.lastFailure);
  assert.equal(twin.peers.states()[0]?.lastFailure, "n1 is alive as another instance, n1-1 and not another");
  assert.equal(two.incoming[0]?.closed, undefined);
  one.peers.setPeers([]);
  await waitFor("the other", 5_000, () => two.incoming.length === 2);
  assert.equal(two.incoming[1]?.channel.peer.instanceId, "another");
});

test("whoever runs the node may refuse a peer, and both ends say why", async () => {
  await using one = await labNode("n1");
  await using two = await labNode("n2", {
    refusal: ({ nodeId, instanceId }) => `${nodeId} (${instanceId}) was removed from the cluster`,
  });
  const words = "n1 (n1-1) was removed from the cluster";
  assert.deepEqual(await refusal(one, two), [words, words]);
});

test("nodes of neighbouring versions speak the greatest that both know; others are refused", async () => {
  await using one = await labNode("n1", { versions: { least: 2, greatest: 4 } });
  await using two = await labNode("n2", { versions: { least: 1, greatest: 3 } });
  await using old = await labNode("old", { versions: { least: 1, greatest: 1 } });
  one.peers.setPeers([two.address]);
  await waitFor("a stream", 5_000, () => two.incoming.length === 1);
  assert.equal(two.incoming[0]?.channel.peer.version, 3);
  assert.equal(one.outgoing[0]?.channel.peer.version, 3);
  one.outgoing[0]?.channel.close("enough");
  const words = "old speaks version 1 of the replication protocol and n1 2 to 4";
  one.peers.setPeers([old.address]);
  await waitFor("a refusal", 5_000, () => one.peers.states()[0]?.lastFailure);
  assert.equal(one.peers.states()[0]?.lastFailure, words);
  assert.equal(old.peers.figures().failures.version, 1);
});

test("who has the cluster's key can claim any id: nodes of one cluster trust each other", async () => {
  await using node = await labNode("n1");
  const player = await playPeer(node);
  const hello = { ...describeNode("n7", "made up"), versions: { least: 1, greatest: 9 }, wallMs: 1 };
  player.wire.send(FRAME.HELLO, encodeHello(hello, player.keys, "dialer"));
  player.wire.send(FRAME.CONFIRM, Buffer.alloc(8));
  await waitFor("a stream", 5_000, () => node.incoming.length === 1);
  assert.equal(node.incoming[0]?.channel.peer.nodeId, "n7");
  player.wire.destroy();
});

const MALFORMED: readonly (readonly [string, number, Uint8Array])[] = [
  ["a second hello", FRAME.HELLO, Buffer.alloc(40)],
  ["an unknown kind", 99, Buffer.alloc(4)],
  ["a ping without a time", FRAME.PING, Buffer.alloc(3)],
  ["an answer with a time that is none", FRAME.PONG, Buffer.alloc(16, 0xff)],
  ["a message that is too long", FRAME.MESSAGE, Buffer.alloc(8 * 2 ** 20 + 1)],
];
for (const [name, kind, body] of MALFORMED) {
  test(`an open stream ends, with a reason, at ${name}`, async () => {
    await using node = await labNode("n1");
    const player = await playPeer(node);
    const hello = { ...describeNode("n2"), versions: { least: 1, greatest: 1 }, wallMs: 1 };
    player.wire.send(FRAME.HELLO, encodeHello(hello, player.keys, "dialer"));
    player.wire.send(FRAME.CONFIRM, Buffer.alloc(8));
    player.wire.send(kind, body);
    await waitFor("its end", 5_000, () => node.incoming[0]?.closed);
    assert.match(node.incoming[0]?.closed ?? "", /malformed message|8388609 bytes/);
    await waitFor("the reason", 5_000, () => player.frames.at(-1)?.kind === FRAME.CLOSE);
    assert.equal(Buffer.from(player.frames.at(-1)?.body ?? []).toString(), node.incoming[0]?.closed);
    assert.deepEqual(node.resets, []);
    player.wire.destroy();
  });
}
