import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { describeNode, labNode, playPeer, relayTo } from "../../tests/support/stream-lab.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { encodeHello, VERSIONS } from "./identity.ts";
import { encodeTimes } from "./identity-exchange.ts";
import { PEERS_LIMITS } from "./peers.ts";
import { FRAME } from "./peers-wire.ts";

const FAST = { pingMs: 80, silentPings: 5 };

test("a stream that is reset is told of at both ends at once, and dialed again", async () => {
  await using one = await labNode("n1");
  await using two = await labNode("n2");
  await using relay = await relayTo(two);
  one.peers.setPeers([relay.address]);
  await waitFor("a stream", 5_000, () => two.incoming.length === 1 && one.outgoing.length === 1);
  relay.reset();
  await waitFor("both resets", 5_000, () => one.resets.length === 1 && two.resets.length === 1);
  assert.deepEqual([one.resets, two.resets], [["n2"], ["n1"]]);
  assert.match(one.outgoing[0]?.closed ?? "", /broke|gone/);
  await waitFor("another stream", 5_000, () => two.incoming.length === 2);
  assert.equal(one.peers.figures().resets, 1);
});

test("a peer that is silent is closed and told of, and one that has nothing to say is not silent", async () => {
  await using one = await labNode("n1", { limits: FAST });
  await using two = await labNode("n2", { limits: FAST });
  await using relay = await relayTo(two);
  one.peers.setPeers([relay.address]);
  await waitFor("a stream", 5_000, () => two.incoming.length === 1 && one.outgoing.length === 1);
  const before = relay.forwarded();
  await waitFor("many pings", 5_000, () => relay.forwarded() > before + 12 * 50);
  assert.deepEqual([one.outgoing.length, one.resets], [1, []]);
  relay.stall();
  await waitFor("both ends", 5_000, () => one.resets.length > 0 && two.resets.length > 0);
  assert.equal(one.outgoing[0]?.closed, "nothing came from the peer any more");
  assert.equal(two.incoming[0]?.closed, "nothing came from the peer any more");
});

test("a peer that talks and takes nothing of what it is sent is closed", async () => {
  await using one = await labNode("n1", { limits: FAST });
  const talker = await playPeer(one);
  try {
    const { wire, keys, socket } = talker;
    const hello = { ...describeNode("n2"), versions: VERSIONS, wallMs: Date.now() };
    wire.send(FRAME.HELLO, encodeHello(hello, keys, "dialer"));
    await waitFor("its hello", 5_000, () => talker.frames.length > 0);
    wire.send(FRAME.CONFIRM, encodeTimes(Date.now()));
    await waitFor("a stream", 5_000, () => one.incoming.length === 1);
    const [stream] = one.incoming;
    assert.ok(stream);
    socket.pause();
    const talking = setInterval(() => wire.send(FRAME.PONG, encodeTimes(0, Date.now())), 20);
    try {
      for (let count = 0; count < 24; count++) stream.channel.send(Buffer.alloc(2 ** 20));
      await waitFor("the end", 15_000, () => stream.closed !== undefined);
      assert.equal(stream.closed, "the peer takes nothing of what it is sent");
    } finally {
      clearInterval(talking);
    }
  } finally {
    talker.socket.destroy();
  }
});

test("a stream that has carried enough is closed and dialed again, with new keys", async () => {
  await using one = await labNode("n1", { limits: { ...FAST, renewBytes: 100_000 } });
  await using two = await labNode("n2");
  one.peers.setPeers([two.address]);
  await waitFor("a stream", 5_000, () => one.outgoing.length === 1);
  one.outgoing[0]?.channel.send(Buffer.alloc(100_000));
  await waitFor("another", 5_000, () => one.outgoing.length === 2 && two.incoming.length === 2);
  assert.equal(two.incoming[0]?.messages.length, 1);
  assert.equal(two.incoming[0]?.closed, "its keys have been used for long enough");
  assert.deepEqual([...one.resets, ...two.resets], []);
});

test("pings tell how far the clocks are apart, as they move", async () => {
  let ahead = 3_000;
  await using one = await labNode("n1", { limits: FAST });
  await using two = await labNode("n2", { limits: FAST, wallMs: () => Date.now() + ahead });
  one.peers.setPeers([two.address]);
  const skew = () => one.peers.states()[0]?.outgoing?.skewMs;
  const channelSkew = () => one.outgoing.at(-1)?.channel.skewMs() ?? 0;
  // Half of the way there and back is the most that it can be off by; the limit is wide for a machine that is busy.
  await waitFor("3 s", 5_000, () => Math.abs((skew() ?? 0) - 3_000) < 500);
  ahead = -5_000;
  await waitFor("-5 s", 5_000, () => Math.abs((skew() ?? 0) + 5_000) < 500);
  assert.equal(channelSkew(), skew());
  const other = () => two.peers.states()[0]?.incoming?.skewMs ?? 0;
  await waitFor("5 s at the other end", 5_000, () => Math.abs(other() - 5_000) < 500);
});

test("what a slow reader has not taken is counted, its channel says when there is room, and others go on", async () => {
  await using one = await labNode("n1");
  await using slow = await labNode("slow");
  await using quick = await labNode("quick");
  await using relay = await relayTo(slow);
  one.peers.setPeers([relay.address, quick.address]);
  await waitFor("two streams", 5_000, () => slow.incoming.length === 1 && quick.incoming.length === 1);
  const [toSlow, toQuick] = ["slow", "quick"].map((id) =>
    one.outgoing.find(({ channel }) => channel.peer.nodeId === id),
  );
  assert.ok(toSlow && toQuick);
  relay.stall();
  const megabyte = Buffer.alloc(2 ** 20);
  for (let count = 0; count < 24; count++) toSlow.channel.send(megabyte);
  toQuick.channel.send(Buffer.from("quick"));
  await waitFor("the quick one", 5_000, () => quick.incoming[0]?.messages.length === 1);
  assert.ok(toSlow.channel.untakenBytes() > 8 * 2 ** 20);
  assert.equal(
    one.peers.states().find(({ nodeId }) => nodeId === "slow")?.outgoing?.untakenBytes,
    toSlow.channel.untakenBytes(),
  );
  assert.equal(toSlow.drains, 0);
  relay.resume();
  await waitFor("all of it", 10_000, () => slow.incoming[0]?.messages.length === 24);
  await waitFor("room", 5_000, () => toSlow.channel.untakenBytes() === 0);
  assert.equal(toSlow.drains, 1);
  assert.deepEqual(
    slow.incoming[0]?.messages.map((message) => message.length),
    Array.from({ length: 24 }, () => 2 ** 20),
  );
});

test("a channel to which more is sent than anybody takes is closed", async () => {
  await using one = await labNode("n1");
  await using two = await labNode("n2");
  await using relay = await relayTo(two);
  one.peers.setPeers([relay.address]);
  await waitFor("a stream", 5_000, () => one.outgoing.length === 1);
  const heard = one.outgoing[0];
  relay.stall();
  const large = Buffer.alloc(8 * 2 ** 20);
  for (let count = 0; count < 17 && heard?.closed === undefined; count++) heard?.channel.send(large);
  assert.equal(heard?.closed, "the peer does not take what it is sent");
  assert.equal(heard?.channel.untakenBytes(), 0);
});

test("connections that never finish are ended, bounded by address, and disturb no open stream", async () => {
  const limits = { openingMs: 500 };
  await using one = await labNode("n1");
  await using two = await labNode("n2", { limits });
  one.peers.setPeers([two.address]);
  await waitFor("a stream", 5_000, () => one.outgoing.length === 1 && two.incoming.length === 1);
  const flood: Socket[] = [];
  for (let count = 0; count < 200; count++) {
    const socket = connect(two.address.endpoint.port, "127.0.0.1");
    socket.on("error", () => {});
    // A hello that goes on for ever: of 512 bytes six come.
    socket.write(Buffer.of(0x16, 3, 1, 2, 0, 1));
    flood.push(socket);
  }
  one.outgoing[0]?.channel.send(Buffer.from("undisturbed"));
  await waitFor("a message", 5_000, () => two.incoming[0]?.messages.length === 1);
  const failures = () => two.peers.figures().failures;
  await waitFor("the end of all of them", 10_000, () => failures().limit + failures().timeout === 200);
  // So many at once, and more of them on a machine that takes longer over the flood than they may.
  assert.ok(failures().timeout >= PEERS_LIMITS.strangersOfAddress && failures().limit >= 100);
  await waitFor("no connection but one", 5_000, () => two.accepted.size === 1);
  assert.equal(one.outgoing[0]?.closed, undefined);
  for (const socket of flood) socket.destroy();
});

test("a member gets in while strangers of other addresses keep all of their places", async () => {
  const limits = { strangersOfAddress: 2, openingMs: 60_000 };
  await using one = await labNode("n1");
  await using two = await labNode("n2", { limits });
  const strangers = await Promise.all([playPeer(two), playPeer(two)]);
  await assert.rejects(playPeer(two), /network/);
  two.peers.setPeers([one.address]);
  one.peers.setPeers([two.address]);
  await waitFor("streams", 5_000, () => two.incoming.length === 1 && one.incoming.length === 1);
  for (const { wire } of strangers) wire.destroy();
});

test("a peer that accepts and says nothing is given up in time", async () => {
  await using one = await labNode("n1", { limits: { openingMs: 100 } });
  await using two = await labNode("n2");
  await using relay = await relayTo(two);
  relay.stallNew();
  one.peers.setPeers([relay.address]);
  await waitFor("two attempts", 5_000, () => one.peers.figures().failures.timeout >= 2);
  assert.match(one.peers.states()[0]?.lastFailure ?? "", /within 100 ms/);
});
