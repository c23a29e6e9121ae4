import assert from "node:assert/strict";
import { test } from "node:test";
import { labNode } from "../../tests/support/stream-lab.ts";
import { waitFor } from "../../tests/support/wait.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const texts = (messages: readonly Uint8Array[]) => messages.map((message) => Buffer.from(message).toString());

test("two nodes that know each other have a stream each way, and both carry messages both ways", async () => {
  await using one = await labNode("n1");
  await using two = await labNode("n2");
  one.peers.setPeers([one.address, two.address]);
  two.peers.setPeers([one.address, two.address]);
  await waitFor("two streams", 5_000, () => one.incoming.length === 1 && two.incoming.length === 1);
  await waitFor("both ends of them", 5_000, () => one.outgoing.length === 1 && two.outgoing.length === 1);
  assert.equal(one.outgoing[0]?.channel.peer.nodeId, "n2");
  assert.equal(two.incoming[0]?.channel.peer.instanceId, "n1-1");
  assert.deepEqual(two.incoming[0]?.channel.peer.abilities, ["a"]);
  one.outgoing[0]?.channel.send(bytes("there"));
  two.incoming[0]?.channel.send(bytes("and back"));
  await waitFor(
    "messages",
    5_000,
    () => two.incoming[0]?.messages.length === 1 && one.outgoing[0]?.messages.length === 1,
  );
  assert.deepEqual(texts(two.incoming[0]?.messages ?? []), ["there"]);
  assert.deepEqual(texts(one.outgoing[0]?.messages ?? []), ["and back"]);
});
