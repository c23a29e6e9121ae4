/** Upstreams that lie, fail or are silent: nothing of it is believed, kept, or in anybody's way. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type answerMessage,
  type Handler,
  largeAnswer,
  loopingBytes,
  type ReceivedQuery,
  type Reply,
  replyBytes,
} from "../support/scripted-replies.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { waitFor } from "../support/wait.ts";
import { sharedForwarding } from "./forward-shared.ts";
import { type Forwarding, forwardTo, startForwarding, ZONE } from "./forward-world.ts";
import { create, untilFigure } from "./notify-world.ts";

const forwarding = sharedForwarding();

const HONEST = "liar.example. 300 A 192.0.2.1";
const EVIL = "liar.example. 300 A 203.0.113.66";

function evil(lie: Parameters<typeof answerMessage>[1]["lie"]): Reply {
  return { kind: "answer", text: EVIL, ...(lie === undefined ? {} : { lie }) };
}

/** Each comes before the honest answer and must not be taken for it. */
const LIES: Readonly<Record<string, (query: ReceivedQuery) => Reply>> = {
  "a wrong id": () => evil("id"),
  "another name in the question": () => evil("name"),
  "another type in the question": () => evil("type"),
  "another class in the question": () => evil("class"),
  "no question": () => evil("no-question"),
  "two questions": () => evil("two-questions"),
  "a query instead of a response": () => evil("query"),
  "another opcode": () => evil("opcode"),
  "another port of the upstream": () => ({ kind: "answer", text: EVIL, from: "server" }),
  "another address": () => ({ kind: "answer", text: EVIL, from: "127.0.0.3" }),
  garbage: () => ({ kind: "bytes", bytes: Buffer.from("not a message at all, of no use") }),
  "a header and nothing else": (query) => ({ kind: "bytes", bytes: query.bytes.subarray(0, 12) }),
  "an answer that is cut off": (query) => ({
    kind: "bytes",
    bytes: replyBytes(query, { kind: "answer", text: EVIL, edns: "none" }).subarray(0, -3),
  }),
  "a compression loop": (query) => ({ kind: "bytes", bytes: loopingBytes(query) }),
};

test("lies of all kinds are not taken for an answer, and the honest one behind each is", async (t) => {
  await using world = await forwarding();
  for (const [what, lie] of Object.entries(LIES)) {
    await t.test(what, async () => {
      world.upstream.setHandler((query) => [lie(query), { kind: "answer", text: HONEST, delayMs: 150 }]);
      const answer = await world.ask("liar.example A");
      assert.deepEqual([answer.rcode, answer.data], ["NOERROR", ["liar.example. A 192.0.2.1"]]);
      assert.deepEqual(
        (await world.ask("liar.example A")).data,
        ["liar.example. A 192.0.2.1"],
        "and it is what is kept",
      );
      assert.equal((await world.api.ask("POST", "/cache/flush", {})).body.flushed, 1);
    });
  }
});

test("records for other names are neither given nor kept", async () => {
  await using world = await forwarding({
    handler: (query) =>
      query.name.toLowerCase() === "ask.example."
        ? {
            kind: "answer",
            text: `ask.example. 60 A 192.0.2.1\nbank.example. 60 A 203.0.113.66\n;; AUTHORITY\nexample. 60 NS evil.example.\n;; ADDITIONAL\nbank.example. 60 A 203.0.113.66\nevil.example. 60 A 203.0.113.66`,
          }
        : { kind: "answer", text: `${query.name} 60 A 192.0.2.2` },
  });
  const { data, authority } = await world.ask("ask.example A");
  assert.deepEqual([data, authority], [["ask.example. A 192.0.2.1"], []]);
  assert.deepEqual((await world.ask("bank.example A")).data, ["bank.example. A 192.0.2.2"]);
});

test("a CNAME loop of the upstream ends", async () => {
  await using world = await forwarding({
    handler: () => ({ kind: "answer", text: "one.example. 60 CNAME two.example.\ntwo.example. 60 CNAME one.example." }),
  });
  const { rcode, data } = await world.ask("one.example A");
  assert.ok(rcode === "SERVFAIL" || data.length <= 17, rcode);
  assert.ok(world.upstream.queries.length < 40, `${world.upstream.queries.length} queries`);
});

test("an endless chain of names ends", async () => {
  await using world = await forwarding({
    handler: (query) => {
      const [, number = "0"] = /^n(\d+)\./i.exec(query.name) ?? [];
      return { kind: "answer", text: `${query.name} 60 CNAME n${Number(number) + 1}.example.` };
    },
  });
  await world.ask("n0.example A");
  assert.ok(world.upstream.queries.length <= 40, `${world.upstream.queries.length} queries`);
});

test("a chain that leads between us and the upstream for ever ends", async () => {
  await using world = await forwarding({
    isPatient: true,
    handler: () => ({ kind: "answer", text: `back.example. 60 CNAME there.${ZONE}` }),
  });
  await world.record({ name: "there", type: "CNAME", values: [{ value: "back.example." }] });
  const { data } = await world.ask("back.example A");
  assert.ok(data.length <= 17, String(data.length));
  assert.ok(world.upstream.queries.length <= 4, `${world.upstream.queries.length} queries`);
});

test("an answer of nearly 64 KiB comes over TCP; over UDP its client is told to come back", async () => {
  await using world = await forwarding({ handler: () => largeAnswer("large.example.", 60_000) });
  const overUdp = await world.ask("large.example TXT");
  assert.match(overUdp.flags, /tc/);
  assert.deepEqual(overUdp.answer, []);
  const overTcp = await world.ask("large.example TXT", { tcp: true });
  assert.equal(overTcp.answer.length, 229);
});

/** Over UDP there is never room for the answer. */
function overTcp(reply: Reply): Handler {
  return ({ transport }) => (transport === "udp" ? { kind: "answer", isTruncated: true } : reply);
}

const TROUBLE: Readonly<Record<string, Handler>> = {
  silence: () => ({ kind: "silence" }),
  SERVFAIL: () => ({ kind: "answer", rcode: 2 }),
  REFUSED: () => ({ kind: "answer", rcode: 5 }),
  "a trickle over TCP": overTcp({ kind: "answer", text: HONEST, trickle: { bytes: 1, everyMs: 200 } }),
  "a reset over TCP": overTcp({ kind: "reset" }),
  "an end over TCP": overTcp({ kind: "close" }),
  "silence over TCP": overTcp({ kind: "silence" }),
  "a message over TCP that never ends": overTcp({ kind: "stream-bytes", bytes: Uint8Array.of(0xff, 0xff, 0, 0) }),
};
const CLIENT_GIVES_UP_MS = 5_000;

test("trouble of all kinds: SERVFAIL with an extended error before the client gives up, and what is ours is answered meanwhile", async () => {
  await using undo = new AsyncDisposableStack();
  const world = undo.use(await startForwarding());
  await world.record({ name: "here", type: "A", values: [{ value: "192.0.2.7" }] });
  const upstreams = new Map<string, ScriptedUpstream>();
  for (const [what, handler] of Object.entries(TROUBLE)) {
    const upstream = undo.use(await startScriptedUpstream({ handler }));
    const domain = `${what.replaceAll(" ", "-")}.example.`;
    await create(world.api, "/forwarders", { domain, upstreams: [`127.0.0.1:${upstream.port}`] });
    upstreams.set(domain, upstream);
  }
  let left = upstreams.size;
  const startedMs = performance.now();
  const failing = [...upstreams.keys()].map(async (domain) => {
    const answer = await world.ask(`gone.${domain} A`);
    left--;
    return { domain, ...answer, tookMs: performance.now() - startedMs };
  });
  // A machine that is busy adds to the time of every answer.
  let slowestMs = 0;
  await waitFor("all of them end", 30_000, async () => {
    const askedMs = performance.now();
    assert.deepEqual((await world.ask(`here.${ZONE} A`)).data, [`here.${ZONE} A 192.0.2.7`]);
    slowestMs = Math.max(slowestMs, performance.now() - askedMs);
    return left === 0;
  });
  for (const { domain, rcode, ede, tookMs } of await Promise.all(failing)) {
    assert.equal(rcode, "SERVFAIL", domain);
    assert.ok(ede !== undefined && [22, 23].includes(ede), `${domain}: ${ede}`);
    assert.ok(tookMs < CLIENT_GIVES_UP_MS + 5 * slowestMs, `${domain}: ${tookMs} ms, ours up to ${slowestMs} ms`);
  }
  for (const [domain, { queries }] of upstreams)
    assert.equal(queries.at(-1)?.transport, domain.includes("-over-TCP") ? "tcp" : "udp", domain);
});

test("a failure is remembered for a moment only, and then the upstream that is back is asked", async () => {
  await using world = await forwarding({ handler: () => ({ kind: "answer", rcode: 2 }) });
  assert.equal((await world.ask("liar.example A")).rcode, "SERVFAIL");
  world.upstream.setHandler(() => ({ kind: "answer", text: HONEST }));
  await waitFor("it answers", 10_000, async () => (await world.ask("liar.example A")).rcode === "NOERROR");
});

async function isRefused({ api }: Forwarding, upstreams: readonly string[]): Promise<string> {
  const { status, body } = await api.ask("PUT", "/forwarders/default", { upstreams, enabled: true });
  assert.equal(status, 400, JSON.stringify(body));
  return body.errors[0].pointer;
}

test("a forwarder that points at ourselves is refused by its place in the list", async () => {
  await using world = await forwarding({ forwards: false });
  const own = `127.0.0.1:${world.node.dns[0]?.port}`;
  assert.equal(await isRefused(world, [own]), "/upstreams/0");
  assert.equal(await isRefused(world, [`127.0.0.1:${world.upstream.port}`, own]), "/upstreams/1");
});

test("one that comes back to us by way of another server ends in SERVFAIL, and what is ours is answered", async () => {
  await using first = await startForwarding({ forwards: false });
  await using second = await startForwarding({ forwards: false });
  await forwardTo(first, [`127.0.0.1:${second.node.dns[0]?.port}`]);
  await forwardTo(second, [`127.0.0.1:${first.node.dns[0]?.port}`]);
  const { rcode } = await first.ask("round.example A");
  assert.equal(rcode, "SERVFAIL");
  await first.record({ name: "here", type: "A", values: [{ value: "192.0.2.7" }] });
  assert.equal((await first.ask(`here.${ZONE} A`)).rcode, "NOERROR");
});

test("what came and was no answer is counted", async () => {
  await using world = await forwarding({
    isPatient: true,
    handler: () => [evil("id"), evil("name"), { kind: "answer", text: HONEST, delayMs: 100 }],
  });
  await world.ask("liar.example A");
  const series = `svc_forward_upstream_rejected_total{upstream="127.0.0.1:${world.upstream.port}"}`;
  await untilFigure(world.node, series, 2);
});
