import assert from "node:assert/strict";
import { test } from "node:test";
import type { Membership } from "../../src/cluster/member.ts";
import type { AliveMessage, PacketMessage } from "../../src/cluster/messages.ts";
import { INCARNATION_MAX, MEMBERS_MAX, NOTED_MAX } from "../../src/cluster/settings.ts";
import { createSimulatedCodec, type SimulatedProcess, simulatedEndpoint } from "../support/cluster-network.ts";
import { createSimulatedCluster, type SimulatedCluster } from "../support/simulated-cluster.ts";

async function formed(size: number, seed = 1): Promise<SimulatedCluster> {
  const cluster = createSimulatedCluster(seed);
  await cluster.form(size);
  await cluster.network.pass(2_000);
  return cluster;
}

function stateOf(membership: Membership, name: string): string | undefined {
  return membership.members().find((member) => member.name === name)?.state;
}

/** A holder of the key that says what it likes. */
function openLiar(
  cluster: SimulatedCluster,
  host: number,
): SimulatedProcess & { say: (to: number, ...messages: PacketMessage[]) => void } {
  const process = cluster.network.open(host);
  const codec = createSimulatedCodec(1);
  process.transport.start({ onPacket: () => undefined, onExchange: (exchange) => exchange.close() });
  return {
    ...process,
    say: (to, ...messages) => process.transport.sendPacket(codec.packPacket(messages, 5).packet, simulatedEndpoint(to)),
  };
}

function aliveAt(host: number, node: string, incarnation = 1): AliveMessage {
  const endpoint = simulatedEndpoint(host);
  return { type: "alive", incarnation, node, endpoint, meta: new Uint8Array(0), versions: [1, 5, 2, 2, 5, 4] };
}

/** Anything, of members that there are and that there are not. */
function lie(below: (bound: number) => number): PacketMessage {
  const node = `node-${1 + below(8)}`;
  const from = `node-${1 + below(8)}`;
  const incarnation = below(below(2) === 0 ? 5 : 1_000);
  const source = { endpoint: simulatedEndpoint(below(30)), node: from };
  const kinds: readonly PacketMessage[] = [
    { ...aliveAt(1 + below(30), node, incarnation), meta: Buffer.from(String(below(3))) },
    { type: "suspect", incarnation, node, from },
    { type: "dead", incarnation, node, from },
    { type: "dead", incarnation, node, from: node },
    { type: "ping", sequence: below(1_000), node: below(2) === 0 ? "" : node, source },
    { type: "indirect-ping", sequence: below(9), target: simulatedEndpoint(below(30)), node, wantsNack: true, source },
    { type: "ack", sequence: below(2 ** 32), payload: new Uint8Array(below(9)) },
    { type: "nack", sequence: below(2 ** 32) },
    { type: "user", payload: new Uint8Array(below(900)) },
  ];
  return kinds[below(kinds.length)] ?? aliveAt(1, node);
}

test("a second member of the same name is refused while the first is alive, and that is said once", async () => {
  const cluster = await formed(4);
  const double = cluster.start(9, { name: "node-2" });
  void double.membership.join(["host-1:7946"]);
  await cluster.network.pass(20_000);
  const first = cluster.member(1);
  const known = first.membership.members().find(({ name }) => name === "node-2");
  assert.equal(known?.endpoint.address[3], 2);
  assert.equal(known?.state, "alive");
  const lines = first.log.map(({ message }) => message);
  assert.deepEqual(lines, [
    "member node-2 is refused at 10.0.0.9:7946 while it is alive at 10.0.0.2:7946: every node needs a name of its own",
  ]);
  // And whoever came second hears why nobody knows it.
  assert.match(
    double.log[0]?.message ?? "",
    /^the name of this node, node-2, is also that of a member at 10.0.0.2:7946$/,
  );
});

test("whom the delegate refuses is no member, and becomes one when it may", async () => {
  const cluster = await formed(3);
  for (const { refused } of cluster.members()) refused.add("node-9");
  void cluster.start(9).membership.join(["host-1:7946"]);
  await cluster.network.pass(5_000);
  for (const host of [1, 2, 3]) assert.equal(stateOf(cluster.member(host).membership, "node-9"), undefined);
  assert.deepEqual(cluster.member(1).log, [
    { level: "warn", message: "member node-9 at 10.0.0.9:7946 is refused: it was removed" },
  ]);
  for (const { refused } of cluster.members()) refused.clear();
  await cluster.passUntil("it is a member", 35_000, cluster.agrees);
});

test("who is forgotten stays so, whatever is gossiped of its death, until it comes with a greater incarnation", async () => {
  const cluster = await formed(4);
  cluster.member(4).membership.setMeta(Buffer.from("raises its incarnation"));
  await cluster.network.pass(1_000);
  cluster.kill(4);
  await cluster.passUntil("it is dead", 3_000, cluster.agrees);
  const { membership } = cluster.member(1);
  membership.forget("node-4");
  assert.equal(stateOf(membership, "node-4"), undefined);
  // The others still tell of its death.
  await cluster.network.pass(60_000);
  assert.equal(stateOf(membership, "node-4"), undefined);
  const again = cluster.start(4);
  assert.equal(again.membership.self().incarnation, 1);
  void again.membership.join(["host-1:7946"]);
  await cluster.passUntil("it is back", 5_000, cluster.agrees);
  assert.ok(again.membership.self().incarnation > 2);
});

test("who is forgotten is dialed no more, although it is a join address", async () => {
  const cluster = await formed(2);
  cluster.kill(1);
  await cluster.passUntil("it is dead", 3_000, cluster.agrees);
  const { membership } = cluster.member(2);
  await cluster.network.pass(60_000);
  const before = membership.figures().failedPushPulls;
  assert.ok(before > 3);
  membership.forget("node-1");
  await cluster.network.pass(120_000);
  assert.ok(membership.figures().failedPushPulls <= before + 1);
});

test("a member that is alive, and oneself, cannot be forgotten", async () => {
  const cluster = await formed(3);
  const { membership } = cluster.member(1);
  for (const name of ["node-1", "node-2", "nobody"]) membership.forget(name);
  assert.equal(membership.members().length, 3);
});

test("join addresses are tried until somebody is there", async () => {
  const cluster = createSimulatedCluster(3);
  const { membership } = cluster.start(1);
  const outcomes: unknown[] = [];
  void membership.join(["host-2:7946", "host-1:7946", "nonsense"]).then((outcome) => outcomes.push(outcome));
  await cluster.network.pass(120_000);
  assert.deepEqual(outcomes, [
    {
      joined: 0,
      failures: [
        { address: "nonsense", detail: "it is not of the form host:port" },
        { address: "host-2:7946", detail: "nobody answers" },
      ],
    },
  ]);
  cluster.start(2);
  await cluster.passUntil("they have found each other", 25_000, cluster.agrees);
});

test("another key joins nobody, and both sides say so, once", async () => {
  const cluster = await formed(2);
  const stranger = cluster.start(3, { key: 2 });
  const failures: string[] = [];
  void stranger.membership
    .join(["host-1:7946"])
    .then((outcome) => failures.push(...outcome.failures.map(({ detail }) => detail)));
  await cluster.network.pass(10_000);
  assert.equal(failures.length, 1);
  assert.equal(stranger.membership.members().length, 1);
  assert.equal(cluster.member(1).membership.members().length, 2);
  const other = "has another replication.encrypt_key than this node";
  assert.deepEqual(cluster.member(1).log, [{ level: "warn", message: `10.0.0.3 ${other}` }]);
  assert.match(
    failures[0] ?? "",
    /^it does not answer as a member of this cluster, as a node with another replication/,
  );
  const lines = stranger.log.map(({ message }) => message);
  const asOther = "as a node with another replication.encrypt_key would";
  assert.deepEqual(lines, [`10.0.0.1 does not answer as a member of this cluster, ${asOther}: the peer ended it`]);
  assert.ok((cluster.member(1).membership.figures().dropped.sealed ?? 0) > 0);
});

test("a key that was mended and is another one again is said again", async () => {
  const cluster = await formed(2);
  const { log } = cluster.member(1);
  const others = () =>
    log.filter(({ message }) => message.endsWith("has another replication.encrypt_key than this node")).length;
  const wrong = { key: 2 };
  void cluster.start(3, wrong).membership.join(["host-1:7946"]);
  await cluster.passUntil("it is said", 10_000, () => others() === 1);
  cluster.kill(3);
  void cluster.start(3).membership.join(["host-1:7946"]);
  await cluster.passUntil("it is a member", 30_000, cluster.agrees);
  cluster.kill(3);
  await cluster.network.pass(90_000);
  assert.equal(others(), 1);
  void cluster.start(3, wrong).membership.join(["host-1:7946"]);
  await cluster.passUntil("it is said again", 30_000, () => others() === 2);
});

test("new meta reaches all, and so does a payload", async () => {
  const cluster = await formed(15);
  cluster.member(3).membership.setMeta(Buffer.from("new"));
  cluster.member(5).membership.broadcast(Buffer.from("hello"));
  const others = (host: number) => cluster.members().filter((member) => member.host !== host);
  await cluster.passUntil("all know the meta", 2_000, () =>
    others(3).every(({ membership }) =>
      membership.members().some(({ name, meta }) => name === "node-3" && Buffer.from(meta).toString() === "new"),
    ),
  );
  await cluster.passUntil("all have the payload", 2_000, () =>
    others(5).every(({ payloads }) => payloads.includes("hello")),
  );
  for (const { events } of others(3)) {
    assert.deepEqual(
      events.filter(({ kind }) => kind === "update").map(({ name }) => name),
      ["node-3"],
    );
  }
  const { membership } = cluster.member(1);
  assert.throws(() => membership.setMeta(new Uint8Array(513)), RangeError);
  assert.throws(() => membership.broadcast(new Uint8Array(1_025)), RangeError);
});

test("a false accusation and a false death are refuted, and only what is newer counts", async () => {
  const cluster = await formed(5);
  const liar = openLiar(cluster, 20);
  const atMs = cluster.network.now();
  liar.say(1, { type: "suspect", incarnation: 1, node: "node-2", from: "node-3" });
  liar.say(4, { type: "dead", incarnation: 1, node: "node-5", from: "node-3" });
  liar.say(3, { type: "dead", incarnation: 0, node: "node-1", from: "node-3" });
  await cluster.network.pass(200);
  await cluster.passUntil("both are alive to all", 5_000, cluster.agrees);
  for (const host of [2, 5]) assert.equal(cluster.member(host).membership.self().incarnation, 2);
  assert.equal(cluster.member(1).membership.self().incarnation, 1);
  for (const { events } of cluster.members()) {
    assert.ok(!events.some((event) => event.atMs >= atMs && event.kind === "leave" && event.name !== "node-5"));
  }
});

test("whoever holds the key cannot fill the log", async () => {
  const cluster = await formed(2);
  const liar = openLiar(cluster, 20);
  for (let port = 1; port <= 2_000; port++) {
    liar.say(1, { ...aliveAt(30, "node-2", port), endpoint: { address: Uint8Array.of(10, 0, 0, 30), port } });
  }
  await cluster.network.pass(5_000);
  assert.equal(cluster.member(1).log.length, NOTED_MAX + 1);
  assert.ok(cluster.agrees());
});

test("statements that cannot be are dropped and counted", async () => {
  const cluster = await formed(3);
  const liar = openLiar(cluster, 20);
  const { membership } = cluster.member(1);
  liar.say(
    1,
    { ...aliveAt(30, "beyond"), incarnation: INCARNATION_MAX + 1 },
    { ...aliveAt(30, "portless"), endpoint: { address: Uint8Array.of(10, 0, 0, 30), port: 0 } },
    { ...aliveAt(30, "addressless"), endpoint: { address: Uint8Array.of(10), port: 1 } },
    { ...aliveAt(30, "later"), versions: [6, 9, 6, 2, 5, 4] },
    { ...aliveAt(30, "") },
    { ...aliveAt(30, "heavy"), meta: new Uint8Array(513) },
    { type: "suspect", incarnation: INCARNATION_MAX + 1, node: "node-2", from: "x" },
    { type: "dead", incarnation: INCARNATION_MAX + 1, node: "node-1", from: "x" },
    { type: "dead", incarnation: 5, node: "nobody", from: "x" },
    { type: "ping", sequence: 1, node: "somebody-else", source: undefined },
    { type: "ack", sequence: 77, payload: new Uint8Array(0) },
  );
  await cluster.network.pass(5_000);
  assert.equal(membership.members().length, 3);
  assert.equal(membership.figures().dropped.unfit, 6);
  assert.equal(membership.figures().dropped.misaddressed, 1);
  assert.ok(cluster.agrees());
});

/** Lies by chance in small batches, each as `told` has it, and then the true ones are members and nobody else. */
async function outlivesLies(
  seed: number,
  told: (message: PacketMessage, below: (bound: number) => number) => PacketMessage,
): Promise<SimulatedCluster> {
  const cluster = await formed(5, seed);
  const liar = openLiar(cluster, 20);
  const { random } = cluster.network;
  const below = (bound: number): number => Math.floor(random() * bound);
  for (let batch = 0; batch < 60; batch++) {
    const lies = Array.from({ length: 1 + below(6) }, () => told(lie(below), below));
    liar.say(1 + below(5), ...lies);
    await cluster.network.pass(below(400));
  }
  // Those that were invented do not answer.
  await cluster.passUntil("the true ones are members, and nobody else", 120_000, cluster.agrees);
  return cluster;
}

test("after whatever a holder of the key has said, the members find each other again", async () => {
  for (let seed = 1; seed <= 30; seed++) {
    const cluster = await outlivesLies(seed, (message) => message);
    for (const { membership } of cluster.members()) assert.ok(membership.members().length < 30);
  }
});

/** Those beyond which there is no greater one, and those half way round from where members begin. */
const LAST_INCARNATIONS = [INCARNATION_MAX, INCARNATION_MAX - 1, 2 ** 31 + 1, 2 ** 31, 2 ** 31 - 1, 0];

for (const incarnation of LAST_INCARNATIONS) {
  for (const from of ["node-1", "node-2"]) {
    test(`a member whose death of incarnation ${incarnation} is told by ${from} comes back, also by another start`, async () => {
      const cluster = await formed(4);
      const liar = openLiar(cluster, 20);
      liar.say(1, { type: "dead", incarnation, node: "node-2", from });
      await cluster.network.pass(5_000);
      await cluster.passUntil("it is alive", 60_000, cluster.agrees);
      liar.say(1, aliveAt(2, "node-2", incarnation));
      liar.say(2, aliveAt(2, "node-2", incarnation));
      await cluster.network.pass(5_000);
      await cluster.passUntil("it is alive", 60_000, cluster.agrees);
      cluster.kill(2);
      await cluster.passUntil("it is dead", 10_000, cluster.agrees);
      void cluster.start(2).membership.join(["host-1:7946"]);
      await cluster.passUntil("it is back", 60_000, cluster.agrees);
    });
  }
}

test("after whatever a holder of the key has said of the greatest incarnations, the members find each other again", async () => {
  for (let seed = 1; seed <= 30; seed++) {
    await outlivesLies(seed, (message, below) => {
      const incarnation = LAST_INCARNATIONS[below(LAST_INCARNATIONS.length)] ?? 0;
      return "incarnation" in message ? { ...message, incarnation } : message;
    });
  }
});

test("whoever holds the key and invents members fills the table and no more, and the true ones stay", async () => {
  const cluster = await formed(3);
  const liar = openLiar(cluster, 20);
  for (let batch = 0; batch < 300; batch++) {
    const invented = Array.from({ length: 10 }, (_, at) => aliveAt(50, `invented-${batch}-${at}`));
    liar.say(1, ...invented);
    liar.say(1, {
      type: "indirect-ping",
      sequence: batch,
      target: simulatedEndpoint(99),
      node: "x",
      wantsNack: true,
      source: undefined,
    });
  }
  await cluster.network.pass(500);
  const { membership } = cluster.member(1);
  assert.equal(membership.members().length, MEMBERS_MAX);
  assert.equal(stateOf(membership, "node-2"), "alive");
  assert.ok((membership.figures().dropped.full ?? 0) > 1_000);
  assert.ok(membership.figures().queuedBroadcasts <= MEMBERS_MAX);
});

test("what ended is silent", async () => {
  const cluster = await formed(3);
  const { membership } = cluster.member(1);
  await membership[Symbol.asyncDispose]();
  const before = membership.figures();
  await cluster.network.pass(10_000);
  assert.deepEqual(membership.figures(), before);
  await assert.rejects(async () => {
    const { failures } = await membership.join(["host-2:7946"]);
    throw new Error(failures[0]?.detail);
  }, /the membership has ended/);
});
