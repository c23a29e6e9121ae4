/** Members that are made up, packets of strangers and connections that say nothing, against nodes as an operator starts them. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { createCodec } from "../../src/cluster/codec.ts";
import type { AliveMessage, DeadMessage, Endpoint, PacketMessage } from "../../src/cluster/messages.ts";
import { nodeKeys } from "../../src/node/keys.ts";
import { PART_LINES_MAX } from "../../src/node/limits.ts";
import { signIn } from "../scenarios/api-client.ts";
import { create } from "../scenarios/notify-world.ts";
import { waitFor } from "../support/wait.ts";
import { addressesOf, CLUSTER_KEY, type ClusterNode, startCluster, statusesOf, untilAnswers } from "./cluster-world.ts";

const PORT_OF = /:(\d+)$/;

function portOf({ peers }: ClusterNode): number {
  return Number(PORT_OF.exec(peers)?.[1]);
}

function codecOfHolder() {
  const keys = nodeKeys(new Uint8Array(32), CLUSTER_KEY).cluster;
  assert.ok(keys);
  return createCodec({ key: keys.membership });
}

/** Nobody is there. */
const endpoint: Endpoint = { address: Uint8Array.of(127, 9, 9, 9), port: 9 };

function alive(node: string, incarnation: number): AliveMessage {
  return { type: "alive", incarnation, node, endpoint, meta: new Uint8Array(0), versions: [1, 5, 2, 2, 5, 4] };
}

function left(node: string, incarnation: number): DeadMessage {
  return { type: "dead", incarnation, node, from: node };
}

async function udp(context: TestContext): Promise<(port: number, packet: Uint8Array) => Promise<void>> {
  const socket = createSocket("udp4");
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  context.after(() => socket.close());
  return (port, packet) =>
    new Promise((resolve) => {
      socket.send(packet, port, "127.0.0.1", () => resolve());
    });
}

function silent(context: TestContext, port: number, localAddress: string, first?: Uint8Array): Socket {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  socket.on("error", () => {});
  if (first !== undefined) socket.write(first);
  context.after(() => socket.destroy());
  return socket;
}

test("made-up members, garbage and silent connections leave a cluster that answers, replicates and logs little", async (context) => {
  await using cluster = await startCluster(2);
  const [a, b] = cluster.nodes;
  assert.ok(b);
  await using api = await signIn(a.api);
  const zone = await create(api, "/zones", { name: "corp.test." });
  await waitFor(
    "an active zone",
    30_000,
    async () => (await api.ask("GET", `/zones/${zone}`)).body.status === "active",
  );
  const record = await create(api, `/zones/${zone}/records`, {
    name: "www",
    type: "A",
    values: [{ value: "192.0.2.1" }],
  });
  await untilAnswers(b, "www.corp.test", ["192.0.2.1"]);
  const port = portOf(a);
  const send = await udp(context);
  const codec = codecOfHolder();
  const before = a.messages().length;

  // Thousands of names that come and go, and come and go again.
  for (let incarnation = 1; incarnation <= 3; incarnation++) {
    for (let at = 0; at < 2_000; at += 10) {
      const names = Array.from({ length: 10 }, (_, index) => `made-up-${at + index}`);
      let messages: readonly PacketMessage[] = names.flatMap((name) => [
        alive(name, incarnation),
        left(name, incarnation),
      ]);
      while (messages.length > 0) {
        const { packet, count } = codec.packPacket(messages, 5);
        await send(port, packet);
        messages = messages.slice(Math.max(1, count));
      }
    }
  }
  // Neither sealed nor anything else.
  for (let at = 0; at < 5_000; at++) await send(port, Buffer.alloc(1_400, at));
  // Connections that say nothing, that begin a TLS hello or a frame and never go on, from many addresses.
  const hello = Uint8Array.of(0x16, 3, 1, 2, 0, 1);
  const frame = Uint8Array.of(10, 1, 0, 0, 0);
  for (let host = 20; host < 30; host++) {
    for (let count = 0; count < 60; count++) {
      silent(context, port, `127.0.0.${host}`, [undefined, hello, frame][count % 3]);
    }
  }
  assert.deepEqual(await addressesOf(a, "www.corp.test"), ["192.0.2.1"]);
  assert.equal((await api.ask("PUT", `/records/${record}`, { values: [{ value: "192.0.2.2" }] })).status, 200);
  for (const node of [a, b]) await untilAnswers(node, "www.corp.test", ["192.0.2.2"]);
  await waitFor("the other is a member still", 30_000, async () => (await statusesOf(api)).b === "alive");
  const lines = a.messages().slice(before);
  assert.ok(lines.length <= 4 * PART_LINES_MAX, `${lines.length} lines, the last: ${lines.slice(-3).join("; ")}`);
});
