import assert from "node:assert/strict";
import { test } from "node:test";
import { createSimulatedCluster, type SimulatedCluster, type SimulatedEvent } from "../support/simulated-cluster.ts";

/** What the first of all seeds is: another one is given to look further. */
const FIRST_SEED = Number(process.env.SIGNPOST_SEED ?? 1);

/** 3 to 15 members, by the seed. */
function sizeOf(seed: number): number {
  return 3 + (seed % 13);
}

/** Runs a scenario for so many seeds; a failure says which, and how to have it again. */
async function forSeeds(count: number, run: (cluster: SimulatedCluster, size: number) => Promise<void>): Promise<void> {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + count; seed++) {
    const cluster = createSimulatedCluster(seed);
    const size = sizeOf(seed);
    try {
      await cluster.form(size);
      // Nobody's probes are where they were at the start.
      await cluster.network.pass(1_000 + cluster.network.random() * 1_000);
      await run(cluster, size);
    } catch (error) {
      throw new Error(`seed ${seed}; again by SIGNPOST_SEED=${seed}`, { cause: error });
    }
  }
}

function anyHost(cluster: SimulatedCluster, size: number): number {
  return 1 + Math.floor(cluster.network.random() * size);
}

/** What all were told since `atMs`, but for what names `except`. */
function eventsSince(cluster: SimulatedCluster, atMs: number, except = ""): SimulatedEvent[] {
  return cluster
    .members()
    .flatMap(({ events }) => events.filter((event) => event.atMs >= atMs && event.name !== except));
}

/** Cuts the hosts up to `last` off from the others. */
function split(cluster: SimulatedCluster, last: number): void {
  cluster.network.setLoss((from, to) => (from <= last === to <= last ? 0 : 1));
}

test("a member that is killed is declared dead by all within three seconds, and nobody else is", async () => {
  await forSeeds(104, async (cluster, size) => {
    const atMs = cluster.network.now();
    const victim = anyHost(cluster, size);
    cluster.kill(victim);
    await cluster.passUntil("all hold the killed one for dead", 3_000, cluster.agrees);
    assert.deepEqual(eventsSince(cluster, atMs, `node-${victim}`), []);
    for (const { events } of cluster.members()) {
      const leaves = events.filter(({ kind }) => kind === "leave");
      assert.deepEqual(
        leaves.map(({ name, state }) => ({ name, state })),
        [{ name: `node-${victim}`, state: "dead" }],
      );
    }
  });
});

test("a probe because a stream broke declares it sooner", async () => {
  await forSeeds(13, async (cluster, size) => {
    const victim = anyHost(cluster, size);
    cluster.kill(victim);
    for (const { membership } of cluster.members()) membership.probeNow(`node-${victim}`);
    await cluster.passUntil("all hold the killed one for dead", 2_500, cluster.agrees);
  });
});

test("a stall of 1.2 seconds is no event, neither to the others nor to the one that stood still", async () => {
  await forSeeds(65, async (cluster, size) => {
    const atMs = cluster.network.now();
    cluster.member(anyHost(cluster, size)).process.stall(1_200);
    await cluster.network.pass(5_000);
    assert.deepEqual(eventsSince(cluster, atMs), []);
  });
});

test("a stall until after its death ends with all of one mind", async () => {
  await forSeeds(26, async (cluster, size) => {
    const host = anyHost(cluster, size);
    cluster.member(host).process.stall(12_000);
    await cluster.network.pass(11_900);
    const others = cluster.members().filter((member) => member.host !== host);
    for (const { membership } of others) {
      assert.equal(membership.members().find(({ name }) => name === `node-${host}`)?.state, "dead");
    }
    await cluster.passUntil("it is a member again", 5_000, cluster.agrees);
    // Who stood still has not taken the others for dead.
    assert.deepEqual(
      cluster.member(host).events.filter(({ kind }) => kind === "leave"),
      [],
    );
  });
});

test("with UDP lost between two members, and between all, TCP keeps everybody alive", async () => {
  await forSeeds(13, async (cluster) => {
    const atMs = cluster.network.now();
    cluster.network.setLoss((from, to, carrier) => (carrier === "udp" && from + to === 3 ? 1 : 0));
    await cluster.network.pass(15_000);
    cluster.network.setLoss((_from, _to, carrier) => (carrier === "udp" ? 1 : 0));
    await cluster.network.pass(15_000);
    assert.deepEqual(eventsSince(cluster, atMs), []);
  });
});

test("a loss of 30 % of all packets brings no false death", async () => {
  await forSeeds(13, async (cluster) => {
    const atMs = cluster.network.now();
    cluster.network.setLoss((_from, _to, carrier) => (carrier === "udp" ? 0.3 : 0));
    await cluster.network.pass(30_000);
    assert.deepEqual(
      eventsSince(cluster, atMs).filter(({ kind }) => kind === "leave"),
      [],
    );
  });
});

test("a loss of 30 % of everything ends with all of one mind", async () => {
  await forSeeds(13, async (cluster) => {
    cluster.network.setLoss(() => 0.3);
    await cluster.network.pass(20_000);
    cluster.network.setLoss(undefined);
    await cluster.passUntil("all know all", 20_000, cluster.agrees);
  });
});

test("a partition, short or long, heals by itself", async () => {
  await forSeeds(26, async (cluster, size) => {
    const { network } = cluster;
    const last = 1 + Math.floor(network.random() * (size - 1));
    split(cluster, last);
    const isLong = network.random() < 0.2;
    // A side of few doubts itself first (Lifeguard), and takes its time.
    await network.pass(isLong ? 120_000 : 40_000);
    for (const { membership, host } of cluster.members()) {
      for (const { name, state } of membership.members()) {
        const isHere = Number(name.slice(5)) <= last === host <= last;
        assert.equal(state, isHere ? "alive" : "dead", `${name} on host ${host}`);
      }
    }
    network.setLoss(undefined);
    await cluster.passUntil("both sides are one again", 2_000, cluster.agrees);
  });
});

test("a partition heals over TCP where no packet comes through", async () => {
  await forSeeds(5, async (cluster, size) => {
    split(cluster, Math.floor(size / 2));
    await cluster.network.pass(40_000);
    cluster.network.setLoss((_from, _to, carrier) => (carrier === "udp" ? 1 : 0));
    await cluster.passUntil("both sides are one again", 90_000, cluster.agrees);
  });
});

test("who leaves has left, without a suspicion, and may come back", async () => {
  await forSeeds(26, async (cluster, size) => {
    const { network } = cluster;
    const atMs = network.now();
    const host = anyHost(cluster, size);
    const name = `node-${host}`;
    let isDone = false;
    void cluster
      .member(host)
      .membership.leave(5_000)
      .then(() => {
        isDone = true;
      });
    await cluster.passUntil("the others have heard", 3_000, () => isDone);
    cluster.kill(host);
    await network.pass(10_000);
    for (const { events } of cluster.members()) {
      const heard = events.filter((event) => event.atMs >= atMs).map(({ kind, state }) => ({ kind, state }));
      assert.deepEqual(heard, [{ kind: "leave", state: "left" }]);
    }
    const other = host === 1 ? 2 : 1;
    void cluster.start(host, { meta: "again" }).membership.join([`host-${other}:7946`]);
    await cluster.passUntil("it is back", 3_000, cluster.agrees);
    const [first] = cluster.members();
    const back = first?.membership.members().find((member) => member.name === name);
    assert.equal(Buffer.from(back?.meta ?? []).toString(), "again");
  });
});

test("a restart before anybody noticed is an update, and one after its death a join", async () => {
  await forSeeds(26, async (cluster, size) => {
    const host = 1 + Math.floor(cluster.network.random() * (size - 1));
    const name = `node-${host}`;
    const isEarly = cluster.network.random() < 0.5;
    cluster.kill(host);
    if (!isEarly) await cluster.passUntil("all hold it for dead", 3_000, cluster.agrees);
    const atMs = cluster.network.now();
    const again = cluster.start(host, { meta: "second life" });
    void again.membership.join([`host-${size}:7946`]);
    const metaOf = (member: typeof again) =>
      Buffer.from(member.membership.members().find((one) => one.name === name)?.meta ?? []).toString();
    await cluster.passUntil("all know its second life", 10_000, () =>
      cluster.members().every((member) => metaOf(member) === "second life"),
    );
    await cluster.passUntil("all know all", 3_000, cluster.agrees);
    const others = cluster.members().filter((member) => member !== again);
    for (const { events } of others) {
      const kinds = events.filter((event) => event.atMs >= atMs && event.name === name).map(({ kind }) => kind);
      assert.ok(kinds.includes(isEarly ? "update" : "join"), kinds.join(" "));
    }
  });
});

test("a restart at another address waits for the death of the old one", async () => {
  await forSeeds(13, async (cluster, size) => {
    const host = 1 + Math.floor(cluster.network.random() * (size - 1));
    cluster.kill(host);
    const moved = cluster.start(100, { name: `node-${host}` });
    void moved.membership.join([`host-${size}:7946`]);
    const isMoved = () =>
      cluster.members().every(({ membership }) => {
        const member = membership.members().find(({ name }) => name === `node-${host}`);
        return member?.state === "alive" && member.endpoint.address[3] === 100;
      });
    await cluster.passUntil("all know the new address", 15_000, () => isMoved() && cluster.agrees());
  });
});
