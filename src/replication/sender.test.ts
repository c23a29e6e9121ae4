import assert from "node:assert/strict";
import test from "node:test";
import { fakeReplicaStore } from "../../tests/support/fake-replica-store.ts";
import { createVirtualTime } from "../../tests/support/replication-network.ts";
import { createCalls } from "./calls.ts";
import { decodeMessage } from "./messages.ts";
import { OUTBOX_LIMITS } from "./outbox.ts";
import { createPeer, type Peer, type Way } from "./peer.ts";
import { createSender } from "./sender.ts";

type Sent = { readonly peer: string; readonly first: number; readonly items: number };

function connectedPeer(nodeId: string, sent: Sent[], untaken = () => 0): Peer {
  const peer = createPeer(nodeId, OUTBOX_LIMITS);
  const { timers } = createVirtualTime();
  const identity = { nodeId, instanceId: nodeId, version: 1, abilities: [], collectedUpToMs: 0, lastAgreementMs: 0 };
  const way: Way = {
    channel: {
      peer: { ...identity, clockSkewMs: 0 },
      send: (bytes) => {
        const message = decodeMessage(bytes);
        assert.ok(message.type === "changes");
        sent.push({ peer: nodeId, first: message.first, items: message.items.length });
      },
      untakenBytes: untaken,
      skewMs: () => 0,
      close: () => undefined,
    },
    isDialed: true,
    calls: createCalls({ timers, send: () => undefined }),
    ...{ isOpen: true, sentNumber: 0, receivedNumber: 0, unapplied: 0, serving: 0 },
    onClosed: new Set(),
    onDrained: new Set(),
  };
  peer.ways.push(way);
  peer.sending = way;
  peer.isAlive = true;
  return peer;
}

function senderTo(peers: readonly Peer[], keys: number) {
  const store = fakeReplicaStore("n0");
  const refs = Array.from({ length: keys }, (_, index) => `k${index}`);
  store.put(refs, "1");
  const time = createVirtualTime();
  const behind: string[] = [];
  let reads = 0;
  const sender = createSender({
    store: {
      refOf: store.refOf,
      items: (asked) => {
        reads += asked.length;
        return store.items(asked);
      },
    },
    timers: time.timers,
    peers: new Map(peers.map((peer) => [peer.nodeId, peer])),
    onBehind: (peer) => behind.push(peer.nodeId),
    onSent: () => undefined,
    log: () => undefined,
  });
  return { sender, refs, time, store, behind, reads: () => reads };
}

test("a few changes go to all peers at once, and are read once for all of them", () => {
  const sent: Sent[] = [];
  const peers = Array.from({ length: 29 }, (_, index) => connectedPeer(`p${index}`, sent));
  const { sender, refs, reads } = senderTo(peers, 5);
  sender.add(refs);
  assert.equal(sent.length, 29);
  assert.ok(sent.every(({ first, items }) => first === 1 && items === 5));
  assert.equal(reads(), 5);
});

test("many changes go in batches, no more of which are under way than may be", async () => {
  const sent: Sent[] = [];
  const [one, two] = [connectedPeer("p0", sent), connectedPeer("p1", sent)];
  const { sender, refs, time } = senderTo([one, two], 10_000);
  sender.add(refs);
  await time.pass(1_000);
  assert.deepEqual(
    sent.map(({ items }) => items),
    Array(8).fill(500),
  );
  one.outbox.acknowledge(1_000, []);
  sender.wake();
  await time.pass(1_000);
  assert.deepEqual(
    sent.slice(8).map(({ peer, first }) => [peer, first]),
    [
      ["p0", 2_001],
      ["p0", 2_501],
    ],
  );
});

test("a peer whose network takes nothing is sent nothing, and the others all", async () => {
  const sent: Sent[] = [];
  const { sender, refs, time } = senderTo([connectedPeer("p0", sent, () => 2 ** 30), connectedPeer("p1", sent)], 100);
  sender.add(refs);
  await time.pass(100);
  assert.deepEqual(
    sent.map(({ peer }) => peer),
    ["p1"],
  );
});

test("where the store cannot be read the peer is behind, and later changes are sent", async () => {
  const sent: Sent[] = [];
  const peer = connectedPeer("p0", sent);
  const { sender, time, store, behind } = senderTo([peer], 1);
  const { take } = peer.outbox;
  const broken = () => {
    throw new Error("the disk");
  };
  Object.assign(peer.outbox, { take: broken });
  sender.add(["k0"]);
  assert.deepEqual(behind, ["p0"]);
  assert.equal(peer.outbox.size(), 0);
  Object.assign(peer.outbox, { take });
  store.put(["k0"], "2");
  sender.add(["k0"]);
  await time.pass(10);
  assert.deepEqual(sent, [{ peer: "p0", first: 1, items: 1 }]);
});
