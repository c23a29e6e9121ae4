import assert from "node:assert/strict";
import { test } from "node:test";
import { introduce, type LabNode, labNode, relayTo } from "../../tests/support/stream-lab.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { openClusterPort } from "../cluster/sockets.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const texts = (messages: readonly Uint8Array[] = []) => messages.map((message) => Buffer.from(message).toString());

/** Every one of them has a stream to and from so many others. */
async function whenConnected(nodes: readonly LabNode[], others = nodes.length - 1): Promise<void> {
  const isWhole = ({ peers }: LabNode) => {
    const states = peers.states();
    return states.length === others && states.every(({ outgoing, incoming }) => outgoing && incoming);
  };
  await waitFor("streams between all nodes", 10_000, () => nodes.every(isWhole));
}

test("two nodes that know each other have a stream each way, and both carry messages both ways", async () => {
  await using one = await labNode("n1", { wallMs: () => 1_000_000 });
  await using two = await labNode("n2", { wallMs: () => 1_004_000 });
  introduce([one, two]);
  await whenConnected([one, two]);
  const peer = one.outgoing[0]?.channel.peer;
  assert.ok(peer);
  const { clockSkewMs, ...rest } = peer;
  const told = {
    nodeId: "n2",
    instanceId: "n2-1",
    version: 1,
    abilities: ["a"],
    collectedUpToMs: 1,
    lastAgreementMs: 2,
  };
  assert.deepEqual(rest, told);
  // Both clocks stand still, so that only half of the way there and back is added.
  assert.ok(clockSkewMs >= 4_000, `${clockSkewMs}`);
  assert.ok((two.incoming[0]?.channel.peer.clockSkewMs ?? 0) >= -4_000);
  assert.equal(two.incoming[0]?.channel.peer.nodeId, "n1");
  one.outgoing[0]?.channel.send(bytes("there"));
  two.incoming[0]?.channel.send(bytes("and back"));
  await waitFor("a message there", 5_000, () => two.incoming[0]?.messages.length === 1);
  await waitFor("a message back", 5_000, () => one.outgoing[0]?.messages.length === 1);
  assert.deepEqual(texts(two.incoming[0]?.messages), ["there"]);
  assert.deepEqual(texts(one.outgoing[0]?.messages), ["and back"]);
  const { opened, resets, bytesIn, bytesOut } = one.peers.figures();
  assert.deepEqual({ opened, resets }, { opened: 2, resets: 0 });
  assert.ok(bytesIn > 200 && bytesOut > 200);
});

test("a channel that is closed says why at both ends, resets nobody, and is dialed again", async () => {
  await using one = await labNode("n1");
  await using two = await labNode("n2");
  one.peers.setPeers([two.address]);
  await waitFor("a stream", 5_000, () => one.outgoing.length === 1 && two.incoming.length === 1);
  two.incoming[0]?.channel.send(bytes("last"));
  two.incoming[0]?.channel.close("it is enough");
  two.incoming[0]?.channel.send(bytes("too late"));
  two.incoming[0]?.channel.close("twice");
  await waitFor("the end", 5_000, () => one.outgoing[0]?.closed !== undefined);
  assert.equal(one.outgoing[0]?.closed, "it is enough");
  assert.equal(two.incoming[0]?.closed, "it is enough");
  assert.deepEqual(texts(one.outgoing[0]?.messages), ["last"]);
  await waitFor("another stream", 5_000, () => two.incoming.length === 2);
  assert.deepEqual([...one.resets, ...two.resets], []);
});

test("a channel may be used, and closed, by whoever is being told of it", async () => {
  let isFirst = true;
  const closed: string[] = [];
  await using one = await labNode("n1");
  await using two = await labNode("n2", {
    onIncoming: (channel) => {
      channel.send(bytes("welcome"));
      if (isFirst) channel.close("not now");
      isFirst = false;
      return { onMessage: () => {}, onDrain: () => {}, onClose: (reason) => closed.push(reason) };
    },
  });
  one.peers.setPeers([two.address]);
  await waitFor("the second stream", 5_000, () => one.outgoing[1]?.messages.length === 1);
  assert.deepEqual(closed, ["not now"]);
  assert.deepEqual(texts(one.outgoing[0]?.messages), ["welcome"]);
  assert.equal(one.outgoing[0]?.closed, "not now");
});

test("a member that is gone is dialed no more and its streams are closed; one that comes back is dialed at once", async () => {
  await using one = await labNode("n1", { random: () => 1 });
  await using two = await labNode("n2");
  introduce([one, two]);
  await whenConnected([one, two]);
  one.peers.setPeers([]);
  assert.deepEqual(one.peers.states(), []);
  await waitFor("the ends", 5_000, () => two.outgoing[0]?.closed && two.incoming[0]?.closed);
  assert.equal(two.incoming[0]?.closed, "no longer an alive member");
  introduce([one, two]);
  await whenConnected([one, two]);
  assert.deepEqual([...one.resets, ...two.resets], []);
});

test("a member that moved is dialed at its new address", async () => {
  await using one = await labNode("n1");
  await using two = await labNode("n2");
  const gone = await relayTo(two);
  await gone[Symbol.asyncDispose]();
  one.peers.setPeers([gone.address]);
  await waitFor("a failure", 5_000, () => one.peers.states()[0]?.lastFailure);
  assert.match(one.peers.states()[0]?.lastFailure ?? "", /ECONNREFUSED/);
  assert.equal(one.peers.figures().failures.network, 1);
  one.peers.setPeers([two.address]);
  await waitFor("a stream", 5_000, () => one.peers.states()[0]?.outgoing);
  assert.equal(one.peers.states()[0]?.lastFailure, undefined);
});

test("streams come in by the port that membership has too", async () => {
  await using one = await labNode("n1");
  await using two = await labNode("n2");
  await using port = await openClusterPort({ listen: { host: "127.0.0.1", port: 0 }, onTls: two.peers.accept });
  port.start({ onPacket: () => {}, onExchange: () => {} });
  one.peers.setPeers([{ nodeId: "n2", endpoint: port.local }]);
  await waitFor("a stream", 5_000, () => one.outgoing.length === 1 && two.incoming.length === 1);
  one.outgoing[0]?.channel.send(Buffer.alloc(300_000, 1));
  await waitFor("a message", 5_000, () => two.incoming[0]?.messages[0]?.length === 300_000);
  assert.equal(port.figures().tlsHandedOver, 1);
});

test("a newer stream of the same instance takes the place of the older", async () => {
  await using one = await labNode("n1");
  await using again = await labNode("n1");
  await using two = await labNode("n2");
  one.peers.setPeers([two.address]);
  await waitFor("the older", 5_000, () => two.incoming.length === 1);
  // One process that has two streams of one id, as after a connection that only one end has lost.
  again.peers.setPeers([two.address]);
  await waitFor("the newer", 5_000, () => two.incoming.length >= 2);
  assert.equal(two.incoming[0]?.closed, "a newer stream takes its place");
  assert.equal(two.peers.states().length, 1);
});

test("thousands of small messages and some of the greatest size arrive whole and in order", async () => {
  await using one = await labNode("n1");
  await using two = await labNode("n2");
  one.peers.setPeers([two.address]);
  await waitFor("a stream", 5_000, () => one.outgoing.length === 1 && two.incoming.length === 1);
  const channel = one.outgoing[0]?.channel;
  assert.ok(channel);
  const large = Buffer.alloc(8 * 2 ** 20, "0123456789abcdef-");
  for (let count = 0; count < 5_000; count++) {
    channel.send(Buffer.from(String(count)));
    if (count % 2_000 === 1_000) channel.send(large);
  }
  assert.throws(() => channel.send(Buffer.alloc(8 * 2 ** 20 + 1)), RangeError);
  await waitFor("all of them", 10_000, () => two.incoming[0]?.messages.length === 5_002);
  const small = two.incoming[0]?.messages
    .filter((message) => message.length < 10)
    .map((message) => Number(Buffer.from(message)));
  assert.deepEqual(
    small,
    Array.from({ length: 5_000 }, (_, count) => count),
  );
  const greatest = two.incoming[0]?.messages.filter((message) => message.length > 10) ?? [];
  assert.equal(greatest.length, 2);
  for (const message of greatest) assert.ok(large.equals(message));
  assert.equal(channel.untakenBytes(), 0);
  assert.equal(one.outgoing[0]?.drains, 1);
});

test("a node and thirty others have a stream each way, and end without a trace", async () => {
  const hub = await labNode("hub");
  const others = await Promise.all(Array.from({ length: 30 }, (_, at) => labNode(`n${at}`)));
  try {
    for (const { peers } of others) peers.setPeers([hub.address]);
    hub.peers.setPeers(others.map(({ address }) => address));
    await whenConnected([hub], 30);
    for (const { channel } of hub.outgoing) channel.send(bytes("all"));
    await waitFor("30 messages", 10_000, () => others.every(({ incoming }) => incoming[0]?.messages.length === 1));
  } finally {
    await Promise.all([hub, ...others].map((node) => node[Symbol.asyncDispose]()));
  }
  for (const { accepted, resets } of [hub, ...others]) assert.deepEqual([accepted.size, resets], [0, []]);
});
