/** The bytes of membership against a live serf, by hand: only codec and sockets, and no state behind them. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type TestContext, test } from "node:test";
import { ipFromText } from "../../src/base/ip.ts";
import { type Codec, createCodec } from "../../src/cluster/codec.ts";
import type {
  AliveMessage,
  Endpoint,
  NodeState,
  PacketMessage,
  PushPullMessage,
  StreamMessage,
} from "../../src/cluster/messages.ts";
import { type ClusterPort, openClusterPort } from "../../src/cluster/sockets.ts";
import type { Exchange } from "../../src/cluster/transport.ts";
import { requireSerf, type SerfAgent, startSerf } from "../support/peers/serf.ts";
import { waitFor } from "../support/wait.ts";

const WAIT_MS = 20_000;
const KEY = Buffer.from("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", "hex");
const OTHER_KEY = Buffer.alloc(16, 0x55);
const LOOPBACK = "127.0.0.1";

/** A member without a state machine: it answers pings and push/pulls, and keeps all that it hears. */
type Puppet = {
  readonly name: string;
  readonly port: ClusterPort;
  readonly codec: Codec;
  readonly heard: PacketMessage[];
  readonly streamed: StreamMessage[];
  readonly faults: string[];
  readonly alive: AliveMessage;
  readonly ask: (to: Endpoint, message: StreamMessage) => Promise<StreamMessage>;
  readonly send: (to: Endpoint, ...messages: readonly PacketMessage[]) => void;
};

async function openPuppet(context: TestContext, name: string, key: Uint8Array, host = LOOPBACK): Promise<Puppet> {
  const codec = createCodec({ key });
  const port = await openClusterPort({ listen: { host, port: 0 }, onTls: (socket) => socket.destroy() });
  context.after(() => port[Symbol.asyncDispose]());
  const alive: AliveMessage = {
    type: "alive",
    incarnation: 1,
    node: name,
    endpoint: port.local,
    meta: new Uint8Array(),
    versions: [1, 5, 2, 2, 5, 4],
  };
  const heard: PacketMessage[] = [];
  const streamed: StreamMessage[] = [];
  const faults: string[] = [];
  const send: Puppet["send"] = (to, ...messages) => port.sendPacket(codec.packPacket(messages, 5).packet, to);
  const answer = async (exchange: Exchange) => {
    const unpacked = codec.unpackFrame(await exchange.receive());
    if ("fault" in unpacked) faults.push(unpacked.fault);
    else {
      streamed.push(unpacked.message);
      const { message } = unpacked;
      if (message.type === "push-pull") exchange.send(codec.packFrame(statesOf([alive], false), "reply"));
    }
    exchange.close();
  };
  port.start({
    onPacket: (packet, from) => {
      const unpacked = codec.unpackPacket(packet);
      if ("fault" in unpacked) return void faults.push(unpacked.fault);
      if (unpacked.malformed > 0) faults.push(`${unpacked.malformed} malformed`);
      heard.push(...unpacked.messages);
      for (const message of unpacked.messages) {
        if (message.type === "ping") send(from, { type: "ack", sequence: message.sequence, payload: new Uint8Array() });
      }
    },
    onExchange: (exchange) => void answer(exchange).catch((error: unknown) => faults.push(String(error))),
  });
  return {
    name,
    port,
    codec,
    heard,
    streamed,
    faults,
    alive,
    send,
    ask: async (to, message) => {
      const exchange = await port.dial(to, WAIT_MS);
      try {
        exchange.send(codec.packFrame(message, "request"));
        const unpacked = codec.unpackFrame(await exchange.receive());
        assert.ok("message" in unpacked, JSON.stringify(unpacked));
        return unpacked.message;
      } finally {
        exchange.close();
      }
    },
  };
}

function statesOf(members: readonly AliveMessage[], isJoin: boolean): PushPullMessage {
  const nodes = members.map(({ type: _, ...member }): NodeState => ({ ...member, state: 0 }));
  return { type: "push-pull", isJoin, nodes, userState: new Uint8Array() };
}

function addressOf(host: string): Uint8Array {
  return ipFromText(host) ?? assert.fail(host);
}

function endpointOf({ host, port }: SerfAgent): Endpoint {
  return { address: addressOf(host), port };
}

function hears<Type extends PacketMessage["type"]>({ heard }: Puppet, type: Type) {
  return heard.filter((message): message is Extract<PacketMessage, { type: Type }> => message.type === type);
}

for (const [host, args] of [
  [LOOPBACK, []],
  ["::1", ["-disable-compression"]],
] as const) {
  test(`a member of serf's cluster at ${[host, ...args].join(" ")}`, async (context) => {
    const path = requireSerf(context);
    if (path === undefined) return;
    await using serf = await startSerf(path, { name: "alpha", key: KEY, host, args });
    const puppet = await openPuppet(context, "puppet", KEY, host);
    const to = endpointOf(serf);

    const theirs = await puppet.ask(to, statesOf([puppet.alive], true));
    assert.ok(theirs.type === "push-pull");
    assert.deepEqual(
      theirs.nodes.map(({ node, endpoint, state }) => ({ node, endpoint, state })),
      [{ node: "alpha", endpoint: to, state: 0 }],
    );
    assert.deepEqual(theirs.nodes[0]?.versions.slice(0, 3), [1, 5, 2]);
    assert.ok(theirs.userState.length > 0);
    await waitFor("serf knows us", WAIT_MS, async () => (await serf.members()).get("puppet") === "alive");

    puppet.send(to, { type: "ping", sequence: 77, node: "alpha", source: undefined });
    const source = { endpoint: puppet.alive.endpoint, node: "puppet" };
    const overTcp = await puppet.ask(to, { type: "ping", sequence: 78, node: "alpha", source });
    assert.deepEqual([overTcp.type, overTcp.type === "ack" && overTcp.sequence], ["ack", 78]);
    await waitFor("its ack", WAIT_MS, () => hears(puppet, "ack").some(({ sequence }) => sequence === 77));
    await waitFor("its ping", WAIT_MS, () => hears(puppet, "ping").length > 0);

    // A relayed ping: serf asks us on our own behalf, and hands the answer on.
    const target = puppet.alive.endpoint;
    puppet.send(to, { type: "indirect-ping", sequence: 79, target, node: "puppet", wantsNack: true, source });
    await waitFor("the relayed ack", WAIT_MS, () => hears(puppet, "ack").some(({ sequence }) => sequence === 79));

    // It refutes a suspicion of itself with a greater incarnation.
    puppet.send(to, { type: "suspect", incarnation: 1, node: "alpha", from: "puppet" });
    await waitFor("its refutation", WAIT_MS, () =>
      hears(puppet, "alive").some(({ node, incarnation }) => node === "alpha" && incarnation > 1),
    );

    await serf.run("event", "-coalesce=false", "deploy", "x".repeat(300));
    await waitFor("the event", WAIT_MS, () =>
      hears(puppet, "user").some(({ payload }) => /deploy.*x{300}/s.test(Buffer.from(payload).toString("latin1"))),
    );

    await serf.run("join", `${host.includes(":") ? `[${host}]` : host}:${puppet.port.local.port}`);
    const joined = puppet.streamed.find(({ type }) => type === "push-pull");
    assert.ok(joined?.type === "push-pull" && joined.isJoin);
    assert.deepEqual(joined.nodes.map(({ node }) => node).sort(), ["alpha", "puppet"]);

    // Three in one packet; a dead that comes from the node itself is a leave.
    const news = { ...puppet.alive, incarnation: 2, node: "second" };
    const leave = { type: "dead", incarnation: 2, node: "second", from: "second" } as const;
    puppet.send(to, { type: "nack", sequence: 1 }, news);
    await waitFor("the second member", WAIT_MS, async () => (await serf.members()).has("second"));
    puppet.send(to, leave, { ...puppet.alive, incarnation: 3 });
    await waitFor("its end", WAIT_MS, async () => (await serf.members()).get("second") !== "alive");
    assert.deepEqual(puppet.faults, []);
  });
}

test("a push/pull of many members, as long as compression needs to begin its table anew", async (context) => {
  const path = requireSerf(context);
  if (path === undefined) return;
  await using serf = await startSerf(path, { name: "alpha", key: KEY });
  const puppet = await openPuppet(context, "puppet", KEY);
  // Port 9 throws away what it gets.
  const endpoint = { address: addressOf(LOOPBACK), port: 9 };
  const many = Array.from({ length: 200 }, (_, index): AliveMessage => {
    const meta = new Uint8Array(
      createHash("shake256", { outputLength: 1 + 2 * index })
        .update(String(index))
        .digest(),
    );
    return { ...puppet.alive, node: `member-${index}`, endpoint, meta };
  });
  await puppet.ask(endpointOf(serf), statesOf([puppet.alive, ...many], true));
  const known = await waitFor("all of them", WAIT_MS, async () => {
    const states = await puppet.ask(endpointOf(serf), statesOf([puppet.alive], false));
    assert.ok(states.type === "push-pull");
    return states.nodes.length === many.length + 2 && states.nodes;
  });
  for (const { node, meta } of many) {
    assert.deepEqual(known.find((state) => state.node === node)?.meta, meta, node);
  }
});

test("another key is refused by both sides, over UDP and TCP", async (context) => {
  const path = requireSerf(context);
  if (path === undefined) return;
  await using serf = await startSerf(path, { name: "alpha", key: KEY });
  const stranger = await openPuppet(context, "stranger", OTHER_KEY);
  const to = endpointOf(serf);
  // It tells us why, under its own key.
  await assert.rejects(stranger.ask(to, statesOf([stranger.alive], true)), /"fault":"sealed"/);
  stranger.send(to, stranger.alive);
  await assert.rejects(serf.run("join", `127.0.0.1:${stranger.port.local.port}`));
  assert.deepEqual(stranger.faults, ["sealed"]);
  await waitFor("its complaint", WAIT_MS, () => /decrypt packet failed/i.test(serf.child.output()));
  assert.deepEqual([...(await serf.members()).keys()], ["alpha"]);
  await serf.run("leave");
  await serf.child.exited;
});
