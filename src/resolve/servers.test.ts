import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openExchangeLab, outcomeText, questionFor, serverAt } from "../../tests/support/exchange-lab.ts";
import { freePort } from "../../tests/support/ports.ts";
import type { AnswerReply, Handler } from "../../tests/support/scripted-replies.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../../tests/support/scripted-upstream.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { ipFromText } from "../base/ip.ts";
import type { Message } from "../dns/message.ts";
import { parseUpstream, type Upstream } from "../dns/upstream.ts";
import type { ExchangeOutcome } from "./exchange.ts";
import { BACKOFF_FIRST_MS, FAILING_ASKED_MAX, QUESTION_MS } from "./limits.ts";
import type { Pool } from "./resolver-options.ts";
import { createServers } from "./servers.ts";

const WWW = questionFor("www.example.test.");
const saying = (address: string): AnswerReply => ({ kind: "answer", text: `www.example.test. 60 A ${address}` });
const SERVFAIL: AnswerReply = { kind: "answer", rcode: 2 };
const never = (): boolean => false;

function upstreamOf(text: string): Upstream {
  const parsed = parseUpstream(text);
  if (parsed.kind === "fault") throw new Error(parsed.detail);
  return parsed.upstream;
}

async function askPool(pool: Pool, isLame: (message: Message) => boolean = never): Promise<ExchangeOutcome> {
  return await new Promise((resolve) => pool.ask(WWW, resolve, isLame));
}

const textOf = (outcome: ExchangeOutcome): string => outcomeText({ outcome });

/** Two servers at one port, each with a handler of its own. */
async function startPair(first: Handler, second: Handler): Promise<ScriptedUpstream> {
  return await startScriptedUpstream({
    handler: (query) => (query.server === "127.0.0.1" ? first(query) : second(query)),
    addresses: ["127.0.0.1", "127.0.0.2"],
  });
}

type LabOptions = {
  readonly resolveHost?: (host: string) => Promise<readonly string[]>;
  readonly nowMs?: () => number;
};

/** A clock for tests in which nobody is silent: however busy the machine is, no server is taken for that. */
const slowly = (): number => performance.now() / 20;

function openLab({ resolveHost = async () => [], nowMs }: LabOptions = {}) {
  const lab = openExchangeLab({ socketsMax: 256, ...(nowMs === undefined ? {} : { nowMs }) });
  const servers = createServers({
    exchanger: lab.exchanger,
    timers: lab.timers,
    resolveHost: async (host) => (await resolveHost(host)).flatMap((text) => ipFromText(text) ?? []),
  });
  const poolOf = (...texts: readonly string[]): Pool => servers.openPool(texts.map(upstreamOf));
  return { lab, servers, poolOf, [Symbol.dispose]: lab.exchanger.close };
}

const pairOf = ({ port }: ScriptedUpstream): readonly string[] => [`127.0.0.1:${port}`, `127.0.0.2:${port}`];

describe("several servers", () => {
  test("the next one is asked where the first is silent", async () => {
    await using upstream = await startPair(
      () => ({ kind: "silence" }),
      () => saying("192.0.2.2"),
    );
    using world = openLab();
    assert.equal(textOf(await askPool(world.poolOf(...pairOf(upstream)))), "192.0.2.2");
  });

  test("the answer of the first is good also when the next was asked meanwhile", async () => {
    await using upstream = await startPair(
      () => ({ ...saying("192.0.2.1"), delayMs: 900 }),
      () => ({ kind: "silence" }),
    );
    using world = openLab();
    assert.equal(textOf(await askPool(world.poolOf(...pairOf(upstream)))), "192.0.2.1");
    await waitFor("the next one's", 5_000, () => upstream.queries.some(({ server }) => server === "127.0.0.2"));
  });

  for (const rcode of [1, 2, 4, 5]) {
    test(`rcode ${rcode} is the next one's turn, at once, and the outcome where all say so`, async () => {
      await using upstream = await startPair(
        () => ({ kind: "answer", rcode }),
        () => saying("192.0.2.2"),
      );
      // Time that stands still is over for nobody.
      using world = openLab({ nowMs: () => 0 });
      assert.equal(textOf(await askPool(world.poolOf(...pairOf(upstream)))), "192.0.2.2");
      upstream.setHandler(() => ({ kind: "answer", rcode }));
      assert.equal(textOf(await askPool(world.poolOf(...pairOf(upstream)))), `rcode ${rcode}`);
    });
  }

  test("an answer that is lame is the next one's turn too; NXDOMAIN is an answer", async () => {
    await using upstream = await startPair(
      () => saying("192.0.2.1"),
      () => ({ kind: "answer", rcode: 3 }),
    );
    using world = openLab({ nowMs: slowly });
    const outcome = await askPool(world.poolOf(...pairOf(upstream)), ({ answers }) => answers.length > 0);
    assert.equal(textOf(outcome), "rcode 3");
  });

  test("one that refuses connections is followed by the next at once, and then asked last", async () => {
    await using upstream = await startScriptedUpstream({ handler: () => saying("192.0.2.1") });
    using world = openLab({ nowMs: slowly });
    const pool = world.poolOf(`127.0.0.1:${await freePort()}`, `127.0.0.1:${upstream.port}`);
    for (let each = 0; each < 5; each++) assert.equal(textOf(await askPool(pool)), "192.0.2.1");
    const [dead, good] = pool.figures();
    assert.equal(dead?.networkErrors, 1);
    assert.equal(dead?.isFailing, true);
    assert.deepEqual([good?.queries, good?.answers, good?.isFailing], [5, 5, false]);
  });

  test("the faster one is found, and asked", async () => {
    await using upstream = await startPair(
      () => ({ ...saying("192.0.2.1"), delayMs: 200 }),
      () => saying("192.0.2.2"),
    );
    using world = openLab({ nowMs: slowly });
    const pool = world.poolOf(...pairOf(upstream));
    await askPool(pool);
    await waitFor("the second is known", 5_000, async () => {
      await askPool(pool);
      return pool.figures().every(({ smoothedRttMs }) => smoothedRttMs > 0);
    });
    upstream.queries.length = 0;
    for (let each = 0; each < 20; each++) assert.equal(textOf(await askPool(pool)), "192.0.2.2");
    assert.ok(upstream.queries.filter(({ server }) => server === "127.0.0.1").length <= 1);
  });

  test("a failing one is tried by a single question beside a good one, and used again when it is back", async () => {
    const state = { isBack: false };
    await using upstream = await startPair(
      () => (state.isBack ? saying("192.0.2.1") : { kind: "silence" }),
      () => ({ ...saying("192.0.2.2"), delayMs: 25 }),
    );
    using world = openLab();
    const pool = world.poolOf(...pairOf(upstream));
    await waitFor("the first is failing", 20_000, async () => {
      await Promise.all([askPool(pool), askPool(pool)]);
      return pool.figures()[0]?.isFailing;
    });
    upstream.queries.length = 0;
    const startedMs = performance.now();
    for (let each = 0; each < 20; each++) assert.equal(textOf(await askPool(pool)), "192.0.2.2");
    const tries = upstream.queries.filter(({ server }) => server === "127.0.0.1").length;
    assert.ok(tries <= 1 + (performance.now() - startedMs) / BACKOFF_FIRST_MS, `${tries} tries`);
    state.isBack = true;
    await waitFor("the first is good", 20_000, async () => textOf(await askPool(pool)) === "192.0.2.1");
    assert.equal(pool.figures()[0]?.isFailing, false);
  });

  test("the most telling fault is told where all fail", async () => {
    await using upstream = await startScriptedUpstream({ handler: () => ({ kind: "silence" }) });
    using world = openLab();
    assert.equal(textOf(await askPool(world.poolOf(`127.0.0.1:${await freePort()}`))), "network");
    world.lab.exchanger.setListens([{ address: Uint8Array.of(127, 0, 0, 1), port: upstream.port }]);
    assert.equal(textOf(await askPool(world.poolOf(...pairOf(upstream).slice(0, 1)))), "loop");
    assert.equal(textOf(await askPool(world.poolOf())), "closed");
  });

  test("a silent server ends in a timeout before clients give up", async () => {
    await using upstream = await startScriptedUpstream({ handler: () => ({ kind: "silence" }) });
    using world = openLab();
    const startedMs = performance.now();
    assert.equal(textOf(await askPool(world.poolOf(`127.0.0.1:${upstream.port}`))), "timeout");
    const tookMs = performance.now() - startedMs;
    assert.ok(tookMs >= 4_400 && tookMs < 15_000, `${tookMs} ms`);
    assert.ok(QUESTION_MS <= 4_500, "clients wait for five seconds, and half a second is for all but the upstream");
    assert.equal(upstream.queries.length, 3);
  });
});

test("a server that does not answer has a bounded number of questions at a time", async () => {
  await using upstream = await startScriptedUpstream({ handler: () => ({ kind: "silence" }) });
  using world = openLab();
  const pool = world.poolOf(`127.0.0.1:${upstream.port}`);
  await waitFor("it is failing", 30_000, async () => {
    await Promise.all(Array.from({ length: 4 }, () => askPool(pool)));
    return pool.figures()[0]?.isFailing;
  });
  let ended = 0;
  const stops = Array.from({ length: 1_000 }, () => pool.ask(WWW, () => ended++, never));
  await waitFor("those beyond the limit are told at once", 5_000, () => ended > 0);
  // Besides them it is asked whether it is there at all.
  assert.ok(world.lab.exchanger.inFlight() <= FAILING_ASKED_MAX + 1);
  assert.ok(ended >= 1_000 - FAILING_ASKED_MAX);
  upstream.setHandler(() => saying("192.0.2.1"));
  await waitFor("one of those that were let through finds it back", 10_000, () => !pool.figures()[0]?.isFailing);
  for (const stop of stops) stop();
  assert.equal(textOf(await askPool(pool)), "192.0.2.1");
});

test("figures tell what was asked and what came of it", async () => {
  await using upstream = await startScriptedUpstream({
    handler: () => [{ ...saying("198.51.100.66"), lie: "id" }, saying("192.0.2.1")],
  });
  using world = openLab({ nowMs: slowly });
  const pool = world.poolOf(`127.0.0.1:${upstream.port}`);
  await askPool(pool);
  upstream.setHandler(() => SERVFAIL);
  await askPool(pool);
  const [figures] = pool.figures();
  assert.ok(figures !== undefined);
  assert.equal(figures.upstream, `127.0.0.1:${upstream.port}`);
  assert.deepEqual([figures.queries, figures.answers, figures.failures, figures.rejected], [2, 2, 1, 1]);
  assert.equal(
    figures.latencyCounts.reduce((sum, count) => sum + count, 0),
    2,
  );
  assert.ok(figures.latencySumMs > 0 && figures.smoothedRttMs > 0);
});

test("servers of a referral are asked by the same rules", async () => {
  await using upstream = await startPair(
    () => SERVFAIL,
    () => saying("192.0.2.2"),
  );
  using world = openLab();
  const servers = upstream.addresses.map((address) => serverAt(address, upstream.port));
  const outcome = await new Promise<ExchangeOutcome>((resolve) => {
    world.servers.askServers(servers, WWW, 3_000, resolve, never);
  });
  assert.equal(textOf(outcome), "192.0.2.2");
});

describe("upstreams by name", () => {
  test("are as many servers as the name has addresses", async () => {
    await using upstream = await startPair(
      () => SERVFAIL,
      () => saying("192.0.2.2"),
    );
    const asked: string[] = [];
    using world = openLab({
      nowMs: slowly,
      resolveHost: async (host) => {
        asked.push(host);
        return ["127.0.0.1", "127.0.0.2"];
      },
    });
    const pool = world.poolOf(`dns.example:${upstream.port}`);
    for (let each = 0; each < 3; each++) assert.equal(textOf(await askPool(pool)), "192.0.2.2");
    assert.deepEqual(asked, ["dns.example"]);
  });

  test("are not waited for where another one is known, and are a fault where they lead nowhere", async () => {
    await using upstream = await startScriptedUpstream({ handler: () => saying("192.0.2.1") });
    using world = openLab({
      resolveHost: async (host) => (host === "slow.example" ? await new Promise<never>(() => {}) : []),
    });
    const pool = world.poolOf("slow.example", `127.0.0.1:${upstream.port}`);
    assert.equal(textOf(await askPool(pool)), "192.0.2.1");
    assert.equal(textOf(await askPool(world.poolOf("none.example"))), "closed");
  });

  test("a look-up that fails is a fault and is done again later", async () => {
    let isUp = false;
    await using upstream = await startScriptedUpstream({ handler: () => saying("192.0.2.1") });
    using world = openLab({
      resolveHost: async () => {
        if (!isUp) throw new Error("no resolver");
        return ["127.0.0.1"];
      },
    });
    const pool = world.poolOf(`dns.example:${upstream.port}`);
    assert.equal(textOf(await askPool(pool)), "closed");
    isUp = true;
    await waitFor("the host is found", 10_000, async () => textOf(await askPool(pool)) === "192.0.2.1", 100);
  });
});

test("what is called off says nothing, and neither does a pool that is closed", async () => {
  await using upstream = await startScriptedUpstream({ handler: () => ({ ...saying("192.0.2.1"), delayMs: 20 }) });
  using world = openLab();
  let calls = 0;
  const pool = world.poolOf(`127.0.0.1:${upstream.port}`);
  pool.ask(WWW, () => calls++, never)();
  pool.ask(WWW, () => calls++, never);
  pool.close();
  assert.equal(world.lab.exchanger.inFlight(), 0);
  assert.equal(textOf(await askPool(world.poolOf(`127.0.0.1:${upstream.port}`))), "192.0.2.1");
  assert.equal(calls, 0);
});
