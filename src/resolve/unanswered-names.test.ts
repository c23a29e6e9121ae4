/** Names that nobody answers for, in floods: whoever asks for others must not suffer for it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openExchangeLab, outcomeText, questionFor, serverAt } from "../../tests/support/exchange-lab.ts";
import type { Handler } from "../../tests/support/scripted-replies.ts";
import { startScriptedUpstream } from "../../tests/support/scripted-upstream.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { parseUpstream } from "../dns/upstream.ts";
import type { ExchangeOutcome } from "./exchange.ts";
import { ANSWERED_LATELY_MS, FAILING_ASKED_MAX, SILENCES_MAX } from "./limits.ts";
import { createServerState, noteAlive, noteAnswer, noteSilence, takeAliveTurn } from "./server-state.ts";
import { createServers } from "./servers.ts";

/** Silent to those names; all others have an address, or a refusal. */
const handler: Handler = ({ name, type }) => {
  if (/tarpit/i.test(name)) return { kind: "silence" };
  return type === "NS" ? { kind: "answer", rcode: 5 } : { kind: "answer", text: `${name} 60 A 192.0.2.1` };
};

const never = (): boolean => false;
const tarpit = (index: number) => questionFor(`n${index}.tarpit.test.`);

test("a server fails by silence only where it has not answered anything lately", () => {
  const state = createServerState(false);
  noteAnswer(state, 5, true, 1_000);
  const isFailing = (nowMs: number): boolean => {
    for (let count = 0; count < SILENCES_MAX; count++) noteSilence(state, nowMs);
    return state.isFailing;
  };
  assert.equal(isFailing(1_000 + ANSWERED_LATELY_MS - 1), false);
  assert.equal(isFailing(1_000 + ANSWERED_LATELY_MS), true);
  assert.equal(takeAliveTurn(state, 10_000), true);
  assert.equal(takeAliveTurn(state, 10_001), false, "not all the time");
  noteAlive(state, 11_000);
  assert.equal(isFailing(11_001), false);

  const unknown = createServerState(false);
  for (let count = 0; count < SILENCES_MAX; count++) noteSilence(unknown, 100);
  assert.equal(unknown.isFailing, true);
});

test("a server that is asked for nothing else for a while is found to be there", async () => {
  await using upstream = await startScriptedUpstream({ handler });
  using lab = openExchangeLab({ socketsMax: 1_024 });
  const servers = createServers({ exchanger: lab.exchanger, timers: lab.timers, resolveHost: async () => [] });
  const parsed = parseUpstream(`127.0.0.1:${upstream.port}`);
  assert.ok(parsed.kind !== "fault");
  const pool = servers.openPool([parsed.upstream]);
  let count = 0;
  const askMore = () => {
    for (let each = 0; each < FAILING_ASKED_MAX; each++) pool.ask(tarpit(count++), () => {}, never);
  };
  // Nothing has been answered yet, and whatever is let through when it fails is of this kind too.
  askMore();
  await waitFor("it fails", 20_000, () => pool.figures()[0]?.isFailing);
  await waitFor("it is there", 20_000, () => {
    askMore();
    return pool.figures()[0]?.isFailing === false;
  });
  const outcome = await new Promise<ExchangeOutcome>((resolve) => {
    pool.ask(questionFor("www.example.test."), resolve, never);
  });
  assert.equal(outcomeText({ outcome }), "192.0.2.1");
  pool.close();
});

test("who has waited for long gives its socket to who has not asked yet", async () => {
  await using upstream = await startScriptedUpstream({ handler });
  using lab = openExchangeLab({ socketsMax: 32 });
  const server = serverAt("127.0.0.1", upstream.port);
  const silent = Array.from({ length: 32 }, (_, index) => lab.ask(server, tarpit(index)));
  await upstream.received(32);
  const early = lab.ask(server, questionFor("early.test."), 300);
  assert.equal(outcomeText(await early), "timeout", "they have not waited for long yet");
  await waitFor("another one is answered", 10_000, async () => {
    const { outcome, tookMs } = await lab.ask(server, questionFor("www.example.test."), 200);
    return outcome.kind === "answer" && tookMs < 10_000;
  });
  assert.equal(outcomeText(await Promise.race(silent)), "timeout");
  const ended = await Promise.race([silent[31]?.then(() => true), Promise.resolve(false)]);
  assert.equal(ended, false, "no more of them than it takes");
});
