import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { connect as connectTls, TLSSocket, type TLSSocketOptions } from "node:tls";
import { waitFor } from "../../tests/support/wait.ts";
import { createCodec, SEALED_FRAME_BYTES_MAX } from "./codec.ts";
import type { Endpoint } from "./messages.ts";
import { type ClusterPort, type ClusterPortOptions, openClusterPort } from "./sockets.ts";
import type { Exchange } from "./transport.ts";

const codec = createCodec({ key: new Uint8Array(32).fill(9) });
const WAIT_MS = 10_000;
/** Where no other test listens: a port that is given back here is not somebody else's a moment later. */
const OWN_HOST = "127.0.0.77";

type Lab = {
  readonly port: ClusterPort;
  readonly packets: { readonly text: string; readonly from: Endpoint }[];
  readonly tls: Socket[];
};

/** A port that answers the frame of each exchange with the same bytes, and keeps packets and TLS connections. */
async function openLab(
  context: TestContext,
  host = "127.0.0.1",
  limits: NonNullable<ClusterPortOptions["limits"]> = {},
  isMember: NonNullable<ClusterPortOptions["isMember"]> = () => false,
): Promise<Lab> {
  const tls: Socket[] = [];
  const packets: Lab["packets"] = [];
  const onTls = (socket: Socket) => tls.push(socket);
  const port = await openClusterPort({ listen: { host, port: 0 }, limits, onTls, isMember });
  context.after(() => port[Symbol.asyncDispose]());
  context.after(() => {
    for (const socket of tls) socket.destroy();
  });
  port.start({
    onPacket: (packet, from) => packets.push({ text: Buffer.from(packet).toString("latin1"), from }),
    onExchange: (exchange) => void echo(exchange),
  });
  return { port, packets, tls };
}

async function echo(exchange: Exchange): Promise<void> {
  const frame = await exchange.receive().catch(() => undefined);
  if (frame !== undefined) exchange.send(frame);
  exchange.close();
}

function frameOf(bytes: number): Uint8Array {
  return codec.packFrame({ type: "user", payload: new Uint8Array(bytes).fill(1) }, "request");
}

/** A bare connection that writes what it is given, and ends when the port does. */
function rawClient(context: TestContext, { local }: ClusterPort, host = "127.0.0.1"): Socket {
  const socket = connect({ port: local.port, host, allowHalfOpen: true });
  socket.on("error", () => {});
  socket.on("end", () => socket.destroy());
  socket.resume();
  context.after(() => socket.destroy());
  return socket;
}

/** By an end or by a reset, which is as good. */
async function untilClosed(socket: Socket): Promise<void> {
  await waitFor("the end of the connection", WAIT_MS, () => socket.destroyed);
}

function collect(socket: Socket): Buffer[] {
  const received: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => received.push(chunk));
  return received;
}

for (const [host, address] of [
  ["127.0.0.1", [127, 0, 0, 1]],
  ["::1", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]],
  ["0.0.0.0", [127, 0, 0, 1]],
  ["::", [127, 0, 0, 1]],
] as const) {
  test(`packets and frames between ports at ${host}`, async (context) => {
    const one = await openLab(context, host);
    const other = await openLab(context, host);
    const to = { address: Uint8Array.from(address), port: other.port.local.port };
    one.port.sendPacket(Buffer.from("ping"), to);
    await waitFor("the packet", WAIT_MS, () => other.packets.length === 1);
    assert.equal(other.packets[0]?.text, "ping");
    assert.deepEqual(Buffer.from(other.packets[0].from.address), Buffer.from(address));
    assert.equal(other.packets[0].from.port, one.port.local.port);

    for (const bytes of [0, 5, 300_000]) {
      const exchange = await one.port.dial(to, WAIT_MS);
      exchange.send(frameOf(bytes));
      const answer = codec.unpackFrame(await exchange.receive());
      assert.equal("message" in answer && answer.message.type === "user" && answer.message.payload.length, bytes);
      exchange.close();
    }
    assert.deepEqual([one.port.figures().exchangesOut, other.port.figures().exchangesIn], [3, 3]);
  });
}

test("a frame that comes byte by byte, with a label and another behind it, is one frame", async (context) => {
  const { port } = await openLab(context);
  const labelled = createCodec({ key: new Uint8Array(16), label: "blue" });
  const frame = labelled.packFrame({ type: "error", text: "slow" }, "request");
  const socket = rawClient(context, port);
  socket.setNoDelay(true);
  const received = collect(socket);
  for (const byte of frame) {
    socket.write(Uint8Array.of(byte));
    await new Promise(setImmediate);
  }
  socket.write(frameOf(10));
  await once(socket, "end");
  assert.deepEqual(Buffer.concat(received), Buffer.from(frame));
});

test("a peer that has ended its half is still answered", async (context) => {
  const { port } = await openLab(context);
  const socket = rawClient(context, port);
  const received = collect(socket);
  socket.end(frameOf(10));
  await once(socket, "end");
  assert.deepEqual(Buffer.concat(received).length, frameOf(10).length);
});

test("TLS is handed over with the bytes of its hello", async (context) => {
  const { port, tls } = await openLab(context);
  const key = Buffer.alloc(32, 3);
  const psk = { minVersion: "TLSv1.3", ciphers: "TLS_AES_128_GCM_SHA256" } as const;
  const client = connectTls({
    port: port.local.port,
    host: "127.0.0.1",
    ...psk,
    pskCallback: () => ({ psk: key, identity: "test" }),
    checkServerIdentity: () => undefined,
  });
  context.after(() => client.destroy());
  const raw = await waitFor("the connection", WAIT_MS, () => tls[0]);
  // Node's types know the call-back of servers only.
  const options: TLSSocketOptions & { pskCallback: () => Uint8Array } = { ...psk, pskCallback: () => key };
  const server = new TLSSocket(raw, { isServer: true, ...options });
  context.after(() => server.destroy());
  client.write("hello");
  const [said] = (await once(server, "data")) as [Buffer];
  assert.equal(said.toString(), "hello");
  // It outlives the port.
  await port[Symbol.asyncDispose]();
  server.write("still here");
  const [answer] = (await once(client, "data")) as [Buffer];
  assert.equal(answer.toString(), "still here");
  assert.equal(port.figures().tlsHandedOver, 1);
});

test("what is neither a frame nor TLS is closed and counted", async (context) => {
  const { port } = await openLab(context);
  const socket = rawClient(context, port);
  socket.write("GET / HTTP/1.1\r\n\r\n");
  await untilClosed(socket);
  assert.equal(port.figures().foreign, 1);
});

test("frames that may not be end the exchange before their body is read", async (context) => {
  const { port } = await openLab(context);
  const header = Buffer.from([10, 0, 0, 0, 0]);
  header.writeUInt32BE(SEALED_FRAME_BYTES_MAX + 1, 1);
  for (const [bytes, count] of [
    [header, 1],
    [Buffer.from([244, 2, 1, 1, 22]), 2],
  ] as const) {
    const socket = rawClient(context, port);
    socket.write(bytes);
    await untilClosed(socket);
    assert.equal(port.figures().unframed, count);
  }
});

test("a connection that says nothing, and an exchange that does not end, are ended in time", async (context) => {
  const impatient = await openLab(context, "127.0.0.1", { firstByteMs: 20 });
  await untilClosed(rawClient(context, impatient.port));
  const brief = await openLab(context, "127.0.0.1", { exchangeMs: 20 });
  const slow = rawClient(context, brief.port);
  slow.write(Uint8Array.of(10));
  await untilClosed(slow);
  assert.deepEqual([impatient.port.figures().silent, brief.port.figures().overdue], [1, 1]);
});

test("connections are bounded in all and by address, and free their places", async (context) => {
  const limits = { connections: 3, connectionsPerAddress: 2 };
  const { port } = await openLab(context, "0.0.0.0", limits);
  const open = async (localAddress: string) => {
    const socket = connect({ port: port.local.port, host: "127.0.0.1", localAddress });
    socket.on("error", () => {});
    context.after(() => socket.destroy());
    const before = port.figures();
    socket.write(Uint8Array.of(10));
    await waitFor("a decision", WAIT_MS, () => {
      const { refused, exchangesIn } = port.figures();
      return refused + exchangesIn > before.refused + before.exchangesIn;
    });
    return { socket, isIn: port.figures().exchangesIn > before.exchangesIn };
  };
  const first = await open("127.0.0.1");
  const decisions = [first];
  for (const address of ["127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.3"]) decisions.push(await open(address));
  assert.deepEqual(
    decisions.map(({ isIn }) => isIn),
    [true, true, false, true, false],
  );
  first.socket.destroy();
  await waitFor("a free place", WAIT_MS, async () => (await open("127.0.0.3")).isIn);
});

test("a member gets in while strangers have all of their places", async (context) => {
  const limits = { connections: 2, memberConnections: 1 };
  const isMember = ({ address }: Endpoint) => address[3] === 9;
  const { port } = await openLab(context, "0.0.0.0", limits, isMember);
  const connected = (localAddress: string) => {
    const socket = connect({ port: port.local.port, host: "127.0.0.1", localAddress, allowHalfOpen: true });
    socket.on("error", () => {});
    context.after(() => socket.destroy());
    return socket;
  };
  for (const address of ["127.0.0.1", "127.0.0.2", "127.0.0.3"]) connected(address);
  await waitFor("one stranger too many", WAIT_MS, () => port.figures().refused === 1);
  const member = connected("127.0.0.9");
  const received = collect(member);
  member.end(frameOf(10));
  await once(member, "end");
  assert.equal(Buffer.concat(received).length, frameOf(10).length);
  connected("127.0.0.9");
  connected("127.0.0.9");
  await waitFor("one member too many", WAIT_MS, () => port.figures().refused === 2);
});

test("a TLS connection that was handed over takes no place any more", async (context) => {
  const { port, tls } = await openLab(context, "127.0.0.1", { connections: 1 });
  rawClient(context, port).write(Uint8Array.of(0x16));
  await waitFor("the hand-over", WAIT_MS, () => tls.length === 1);
  const exchange = await port.dial(port.local, WAIT_MS);
  exchange.send(frameOf(1));
  await exchange.receive();
});

test("where frames hold too much, the largest goes", async (context) => {
  const { port } = await openLab(context, "127.0.0.1", { unreadBytes: 200_000 });
  const large = frameOf(1_000_000);
  const small = rawClient(context, port);
  const greedy = rawClient(context, port);
  small.write(frameOf(50_000).subarray(0, 40_000));
  await waitFor("the small one", WAIT_MS, () => port.figures().bytesIn >= 40_000);
  greedy.write(large.subarray(0, 500_000));
  await untilClosed(greedy);
  assert.equal(port.figures().cut, 1);
  assert.equal(small.destroyed, false);
});

test("dialling where nobody listens, or nobody answers, fails with the reason", async (context) => {
  const { port } = await openLab(context);
  const closed = await openClusterPort({ listen: { host: OWN_HOST, port: 0 }, onTls: () => {} });
  await closed[Symbol.asyncDispose]();
  await assert.rejects(port.dial(closed.local, WAIT_MS), /ECONNREFUSED/);

  const mute = createServer(() => {}).listen(0, "127.0.0.1");
  await once(mute, "listening");
  context.after(() => mute.close());
  const bound = mute.address();
  const muteAt = { address: Uint8Array.of(127, 0, 0, 1), port: typeof bound === "object" ? (bound?.port ?? 0) : 0 };
  const exchange = await port.dial(muteAt, 500);
  await assert.rejects(exchange.receive(), /it took too long/);
  exchange.send(frameOf(1));
  await assert.rejects(exchange.receive(), /it took too long/);
});

test("whoever waits is told when the peer ends, and when the port is disposed of", async (context) => {
  const { port } = await openLab(context);
  const ending = createServer((socket) => socket.end()).listen(0, "127.0.0.1");
  await once(ending, "listening");
  context.after(() => ending.close());
  const bound = ending.address();
  const endingAt = { address: Uint8Array.of(127, 0, 0, 1), port: typeof bound === "object" ? (bound?.port ?? 0) : 0 };
  const exchange = await port.dial(endingAt, WAIT_MS);
  await assert.rejects(exchange.receive(), /closed the connection/);

  const other = await openLab(context);
  const waiting = await other.port.dial(port.local, WAIT_MS);
  const answer = assert.rejects(waiting.receive(), /this member ends/);
  await other.port[Symbol.asyncDispose]();
  await answer;
  await assert.rejects(other.port.dial(port.local, WAIT_MS), /this member ends/);
  other.port.sendPacket(new Uint8Array(1), port.local);
});

test("a port that is taken is named, whichever of both it is", async (context) => {
  const { port } = await openLab(context, OWN_HOST);
  const listen = { host: OWN_HOST, port: port.local.port };
  await assert.rejects(
    openClusterPort({ listen, onTls: () => {} }),
    /cannot listen on 127.0.0.77:\d+ \(TCP, cluster\)/,
  );
  // Free again at once, for both.
  await port[Symbol.asyncDispose]();
  const again = await openClusterPort({ listen, onTls: () => {} });
  await again[Symbol.asyncDispose]();

  const udp = createSocket("udp4").bind(listen.port, listen.host);
  await once(udp, "listening");
  context.after(() => udp.close());
  await assert.rejects(
    openClusterPort({ listen, onTls: () => {} }),
    /cannot listen on 127.0.0.77:\d+ \(UDP, cluster\)/,
  );
  await assert.rejects(
    openClusterPort({ listen: { host: "nowhere", port: 0 }, onTls: () => {} }),
    /no IP address: "nowhere"/,
  );
});

test("packets that cannot be sent are counted", async (context) => {
  const { port } = await openLab(context);
  port.sendPacket(new Uint8Array(10), { address: new Uint8Array(16), port: 7946 });
  port.sendPacket(new Uint8Array(70_000), port.local);
  await waitFor("both", WAIT_MS, () => port.figures().packetsUnsent === 2);
});
