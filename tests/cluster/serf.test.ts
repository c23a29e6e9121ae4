import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, type TestContext, test } from "node:test";
import { type LiveMember, startLiveMember } from "../support/live-member.ts";
import { requireSerf, type SerfAgent, startSerf } from "../support/peers/serf.ts";
import { waitFor } from "../support/wait.ts";

const WAIT_MS = 30_000;
/** How long members watch each other do nothing. */
const IDLE_MS = process.env.SIGNPOST_LONG === "1" ? 60_000 : 2_000;

type Pair = { readonly key: Uint8Array; readonly ours: LiveMember; readonly serf: SerfAgent };

async function seesIt(ours: LiveMember, name: string, state: string): Promise<void> {
  await waitFor(`our member holds ${name} for ${state}`, WAIT_MS, () => ours.stateOf(name) === state);
}

async function serfSees(serf: SerfAgent, name: string, states: readonly string[]): Promise<void> {
  await waitFor(`serf holds ${name} for ${states.join(" or ")}`, WAIT_MS, async () =>
    states.includes((await serf.members()).get(name) ?? "unknown"),
  );
}

/** One of ours and an agent of serf, of one cluster; `isOursFirst`: serf joins ours, else ours serf. */
async function startPair(t: TestContext, path: string, isOursFirst: boolean): Promise<Pair> {
  const key = randomBytes(32);
  const ours = await startLiveMember("ours", key);
  t.after(() => ours.kill());
  const serf = await startSerf(path, { name: "theirs", key });
  t.after(() => serf.stop());
  if (isOursFirst) await serf.run("join", `127.0.0.1:${ours.port}`);
  else assert.deepEqual(await ours.membership.join([`localhost:${serf.port}`]), { joined: 1, failures: [] });
  await seesIt(ours, "theirs", "alive");
  await serfSees(serf, "ours", ["alive"]);
  return { key, ours, serf };
}

describe("against serf", { concurrency: true }, () => {
  test("ours joins serf: its events arrive, nobody is suspected, and its leave is one", async (t) => {
    const path = requireSerf(t);
    if (path === undefined) return;
    const { ours, serf } = await startPair(t, path, false);
    await serf.run("event", "-coalesce=false", "deploy", "payload of the event");
    await waitFor("its event", WAIT_MS, () => ours.payloads.some((one) => one.includes("payload of the event")));
    const startMs = performance.now();
    await waitFor("time to pass", IDLE_MS, () => performance.now() - startMs > IDLE_MS, 100);
    assert.deepEqual(ours.events, ["join theirs"]);
    await serfSees(serf, "ours", ["alive"]);
    const { failedProbes, dropped } = ours.membership.figures();
    assert.equal(failedProbes, 0);
    assert.ok(
      Object.values(dropped).every((count) => count === 0),
      JSON.stringify(dropped),
    );
    await serf.run("leave");
    await seesIt(ours, "theirs", "left");
    assert.deepEqual(ours.events, ["join theirs", "leave theirs left"]);
  });

  test("serf joins ours, which leaves, and comes back at another address", async (t) => {
    const path = requireSerf(t);
    if (path === undefined) return;
    const { key, ours, serf } = await startPair(t, path, true);
    await ours.membership.leave(WAIT_MS);
    await ours.kill();
    // Without serf's own message ahead of it, the leave of a member is a failure to some of its versions.
    await serfSees(serf, "ours", ["left", "failed"]);
    assert.doesNotMatch(serf.child.output(), /Suspect ours/);
    const again = await startLiveMember("ours", key);
    t.after(() => again.kill());
    assert.equal((await again.membership.join([`127.0.0.1:${serf.port}`])).joined, 1);
    await serfSees(serf, "ours", ["alive"]);
    assert.ok(again.membership.self().incarnation > 1);
  });

  test("serf is killed, and ours declares it dead", async (t) => {
    const path = requireSerf(t);
    if (path === undefined) return;
    const { ours, serf } = await startPair(t, path, false);
    process.kill(serf.child.pid, "SIGKILL");
    await seesIt(ours, "theirs", "dead");
    assert.deepEqual(ours.events, ["join theirs", "suspect theirs", "leave theirs dead"]);
  });

  test("ours is killed, and serf declares it failed", async (t) => {
    const path = requireSerf(t);
    if (path === undefined) return;
    const { ours, serf } = await startPair(t, path, true);
    await ours.kill();
    await serfSees(serf, "ours", ["failed"]);
  });

  test("another key is refused in both directions, and both say so", async (t) => {
    const path = requireSerf(t);
    if (path === undefined) return;
    const ours = await startLiveMember("ours", randomBytes(32));
    t.after(() => ours.kill());
    const serf = await startSerf(path, { name: "theirs", key: randomBytes(32) });
    t.after(() => serf.stop());
    const { joined, failures } = await ours.membership.join([`127.0.0.1:${serf.port}`]);
    assert.equal(joined, 0);
    assert.equal(failures.length, 1);
    await assert.rejects(serf.run("join", `127.0.0.1:${ours.port}`));
    assert.ok((ours.membership.figures().dropped.sealed ?? 0) > 0);
    assert.match(serf.child.output(), /decrypt/);
    assert.equal(ours.stateOf("theirs"), undefined);
    assert.ok(!(await serf.members()).has("ours"));
  });
});
