import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import fc from "fast-check";
import { openExchangeLab, outcomeText, questionFor, serverAt, socketKinds } from "../../tests/support/exchange-lab.ts";
import { freePort } from "../../tests/support/ports.ts";
import {
  type AnswerReply,
  largeAnswer,
  loopingBytes,
  type Reply,
  replyBytes,
  tableHandler,
} from "../../tests/support/scripted-replies.ts";
import { startScriptedUpstream } from "../../tests/support/scripted-upstream.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { findOption } from "../dns/edns.ts";
import { QUESTION_FLAG } from "../image/cache.ts";
import type { ExchangeOutcome } from "./exchange.ts";

const RIGHT: AnswerReply = { kind: "answer", text: "www.example.test. 60 A 192.0.2.1" };
const WRONG: AnswerReply = { kind: "answer", text: "www.example.test. 60 A 198.51.100.66" };
const WWW = questionFor("www.example.test.");

for (const sockets of socketKinds()) {
  describe(`over ${sockets} sockets`, () => {
    test("an answer comes from the server at either family of addresses", async () => {
      for (const address of ["127.0.0.1", "::1"]) {
        await using upstream = await startScriptedUpstream({ handler: () => RIGHT, addresses: [address] });
        using lab = openExchangeLab({ sockets });
        const asked = await lab.ask(serverAt(address, upstream.port), WWW);
        assert.equal(outcomeText(asked), "192.0.2.1");
        assert.equal(upstream.queries[0]?.message.flags, 0x100);
        assert.equal(upstream.queries[0]?.message.edns?.udpSize, 1232);
        assert.equal(lab.exchanger.inFlight(), 0);
      }
    });

    test("each query has an id and a port of its own", async () => {
      await using upstream = await startScriptedUpstream({ handler: () => RIGHT });
      using lab = openExchangeLab({ sockets });
      for (let each = 0; each < 60; each++) await lab.ask(serverAt("127.0.0.1", upstream.port), WWW);
      const ports = upstream.queries.map(({ source }) => source.port);
      const ids = upstream.queries.map(({ message }) => message.id);
      for (const drawn of [ports, ids]) {
        assert.ok(new Set(drawn).size > 50);
        // Numbers that count up would rise nearly always.
        const rises = drawn.filter((value, index) => index > 0 && value > drawn[index - 1]!).length;
        assert.ok(rises > 10 && rises < 50, `${rises} of 59 rise`);
      }
      assert.ok(ports.every((port) => port >= 1024));
    });

    const lies: readonly (readonly [string, Reply, string])[] = [
      ["a wrong id", { ...WRONG, lie: "id" }, "id"],
      ["another name", { ...WRONG, lie: "name" }, "question"],
      ["another type", { ...WRONG, lie: "type" }, "question"],
      ["another class", { ...WRONG, lie: "class" }, "question"],
      ["no question", { ...WRONG, lie: "no-question" }, "question"],
      ["two questions", { ...WRONG, lie: "two-questions" }, "question"],
      ["a query", { ...WRONG, lie: "query" }, "garbage"],
      ["another opcode", { ...WRONG, lie: "opcode" }, "garbage"],
      ["no header", { kind: "bytes", bytes: Uint8Array.of(1, 2, 3) }, "garbage"],
      ["nothing at all", { kind: "bytes", bytes: new Uint8Array(0) }, "garbage"],
    ];
    for (const [what, lie, rejection] of lies) {
      test(`${what} is passed over, and the answer behind it taken`, async () => {
        await using upstream = await startScriptedUpstream({ handler: () => [lie, { ...RIGHT, delayMs: 30 }] });
        using lab = openExchangeLab({ sockets });
        const asked = await lab.ask(serverAt("127.0.0.1", upstream.port), WWW);
        assert.equal(outcomeText(asked), "192.0.2.1");
        assert.deepEqual(asked.rejections, [rejection]);
      });
    }

    test("a compression loop and a message that is cut are passed over", async () => {
      await using upstream = await startScriptedUpstream({
        handler: (query) => [
          { kind: "bytes", bytes: loopingBytes(query) },
          { kind: "bytes", bytes: replyBytes(query, WRONG).subarray(0, 40) },
          { ...RIGHT, delayMs: 30 },
        ],
      });
      using lab = openExchangeLab({ sockets });
      const asked = await lab.ask(serverAt("127.0.0.1", upstream.port), WWW);
      assert.equal(outcomeText(asked), "192.0.2.1");
      assert.deepEqual(asked.rejections, ["garbage", "garbage"]);
    });

    test("an answer from another address or port does not arrive", async () => {
      await using upstream = await startScriptedUpstream({
        handler: () => [
          { ...WRONG, from: "127.0.0.9" },
          { ...WRONG, from: "server" },
          { ...RIGHT, delayMs: 60 },
        ],
      });
      using lab = openExchangeLab({ sockets });
      assert.equal(outcomeText(await lab.ask(serverAt("127.0.0.1", upstream.port), WWW)), "192.0.2.1");
    });

    test("a port that nobody has is a network fault at once", async () => {
      using lab = openExchangeLab({ sockets });
      const asked = await lab.ask(serverAt("127.0.0.1", await freePort()), WWW);
      assert.equal(outcomeText(asked), "network");
      assert.ok(asked.tookMs < 10_000);
    });

    test("silence is a timeout, and lies without an answer behind them are garbage", async () => {
      await using upstream = await startScriptedUpstream({ handler: () => ({ kind: "silence" }) });
      using lab = openExchangeLab({ sockets });
      const server = serverAt("127.0.0.1", upstream.port);
      assert.equal(outcomeText(await lab.ask(server, WWW, 60)), "timeout");
      upstream.setHandler(() => ({ ...WRONG, lie: "id" }));
      const clock = { ms: 0 };
      using held = openExchangeLab({ sockets, nowMs: () => clock.ms });
      const outcome = await new Promise<ExchangeOutcome>((resolve) => {
        held.exchanger.ask(server, WWW, 1_000, resolve, () => {
          clock.ms = 1_000;
        });
      });
      assert.equal(outcomeText({ outcome }), "garbage");
    });

    test("what is called off is not heard of any more", async () => {
      await using upstream = await startScriptedUpstream({ handler: () => ({ ...RIGHT, delayMs: 20 }) });
      using lab = openExchangeLab({ sockets });
      let calls = 0;
      const stop = lab.exchanger.ask(serverAt("127.0.0.1", upstream.port), WWW, 5_000, () => calls++);
      await upstream.received(1);
      stop();
      assert.equal(lab.exchanger.inFlight(), 0);
      assert.equal(outcomeText(await lab.ask(serverAt("127.0.0.1", upstream.port), WWW)), "192.0.2.1");
      assert.equal(calls, 0);
    });

    test("more questions than sockets wait for one, and what is closed ends them all", async () => {
      await using upstream = await startScriptedUpstream({ handler: () => ({ ...RIGHT, delayMs: 5 }) });
      using lab = openExchangeLab({ sockets, socketsMax: 4 });
      const server = serverAt("127.0.0.1", upstream.port);
      const all = await Promise.all(Array.from({ length: 50 }, () => lab.ask(server, WWW)));
      assert.ok(all.every((each) => outcomeText(each) === "192.0.2.1"));
      upstream.setHandler(() => ({ kind: "silence" }));
      const ended = Array.from({ length: 20 }, () => lab.ask(server, WWW));
      lab.exchanger.close();
      assert.deepEqual(new Set((await Promise.all(ended)).map(outcomeText)), new Set(["closed"]));
      assert.equal(outcomeText(await lab.ask(server, WWW)), "closed");
    });

    test("a client that is one of our own exchanges is known", async () => {
      await using upstream = await startScriptedUpstream({ handler: () => ({ kind: "silence" }) });
      using lab = openExchangeLab({ sockets });
      const asked = lab.ask(serverAt("127.0.0.1", upstream.port), WWW, 1_000);
      const [query] = await upstream.received(1);
      const { port } = query!.source;
      const { isOurs } = lab.exchanger;
      const upper = questionFor("WWW.example.TEST.").name;
      assert.equal(isOurs(Uint8Array.of(127, 0, 0, 1), port, upper, 1), true);
      assert.equal(isOurs(Uint8Array.of(127, 0, 0, 1), port, upper, 28), false);
      assert.equal(isOurs(Uint8Array.of(127, 0, 0, 1), port ^ 1, upper, 1), false);
      assert.equal(isOurs(Uint8Array.of(127, 0, 0, 1), port, questionFor("a.test.").name, 1), false);
      assert.equal(isOurs(Uint8Array.of(192, 0, 2, 77), port, upper, 1), false);
      await asked;
      assert.equal(isOurs(Uint8Array.of(127, 0, 0, 1), port, upper, 1), false);
    });

    test("a server that is this node is not asked", async () => {
      using lab = openExchangeLab({ sockets });
      const loopback = Uint8Array.of(127, 0, 0, 1);
      lab.exchanger.setListens([{ address: loopback, port: 5353 }]);
      assert.equal(outcomeText(await lab.ask(serverAt("127.0.0.1", 5353), WWW)), "loop");
      assert.equal(outcomeText(await lab.ask(serverAt("::ffff:127.0.0.1", 5353), WWW)), "loop");
      assert.equal(outcomeText(await lab.ask(serverAt("0.0.0.0", 5353), WWW)), "loop");
      lab.exchanger.setListens([{ address: new Uint8Array(4), port: 5353 }]);
      assert.equal(outcomeText(await lab.ask(serverAt("127.0.0.7", 5353), WWW)), "loop");
      assert.notEqual(outcomeText(await lab.ask(serverAt("127.0.0.7", await freePort()), WWW)), "loop");
    });

    test("arbitrary bytes are never taken for an answer, and throw nothing", async () => {
      const state: { handler: (bytes: Uint8Array) => void; pending: Uint8Array[] } = { handler: () => {}, pending: [] };
      await using upstream = await startScriptedUpstream({
        handler: (query) => [
          ...state.pending.map((bytes): Reply => {
            const copy = Uint8Array.from(bytes);
            // A right id and a right head of the flags let most of the bytes be looked at.
            if (copy.length > 4) copy.set([query.bytes[0]!, query.bytes[1]!, 0x80 | (copy[2]! & 7)]);
            return { kind: "bytes", bytes: copy };
          }),
          { ...RIGHT, delayMs: 5 },
        ],
      });
      using lab = openExchangeLab({ sockets });
      await fc.assert(
        fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 80 }), { minLength: 1, maxLength: 10 }), async (all) => {
          state.pending = all;
          const asked = await lab.ask(serverAt("127.0.0.1", upstream.port), WWW);
          assert.equal(outcomeText(asked), "192.0.2.1");
          assert.equal(asked.rejections.length, all.length);
        }),
        { numRuns: 60 },
      );
    });
  });
}

test("flags of the question become DO and CD, and recursion is asked for or not", async () => {
  await using upstream = await startScriptedUpstream({ handler: () => RIGHT });
  using lab = openExchangeLab();
  const server = serverAt("127.0.0.1", upstream.port);
  await lab.ask(server, questionFor("a.test.", 1, { maxUdpSize: 4096 }, QUESTION_FLAG.DNSSEC_OK));
  await lab.ask(server, {
    ...questionFor("b.test.", 1, undefined, QUESTION_FLAG.CHECKING_DISABLED),
    recursionDesired: false,
  });
  const [first, second] = upstream.queries;
  assert.deepEqual([first?.message.edns?.wantsDnssec, first?.message.edns?.udpSize], [true, 4096]);
  assert.equal(first?.message.flags, 0x100);
  assert.equal(second?.message.flags, 0x10);
  assert.equal(second?.message.edns?.wantsDnssec, false);
});

test("an answer that has no room comes over TCP, as does one of 64 KiB", async () => {
  await using upstream = await startScriptedUpstream({ handler: () => largeAnswer("big.example.test.", 64_000) });
  using lab = openExchangeLab();
  const { outcome } = await lab.ask(serverAt("127.0.0.1", upstream.port), questionFor("big.example.test.", 16));
  assert.ok(outcome.kind === "answer");
  assert.equal(outcome.message.answers.length, 244);
  assert.ok(outcome.bytes > 60_000);
  assert.deepEqual(
    upstream.queries.map(({ transport }) => transport),
    ["udp", "tcp"],
  );
});

test("a server that does not know EDNS is asked without, and remembered", async () => {
  for (const lie of [undefined, "no-question"] as const) {
    for (const rcode of [1, 4]) {
      await using upstream = await startScriptedUpstream({
        handler: ({ message }) =>
          message.edns === undefined
            ? RIGHT
            : { kind: "answer", rcode, edns: "none", ...(lie === undefined ? {} : { lie }) },
      });
      using lab = openExchangeLab();
      const server = serverAt("127.0.0.1", upstream.port);
      assert.equal(outcomeText(await lab.ask(server, WWW)), "192.0.2.1");
      assert.equal(outcomeText(await lab.ask(server, WWW)), "192.0.2.1");
      assert.deepEqual(
        upstream.queries.map(({ message }) => message.edns !== undefined),
        [true, false, false],
      );
    }
  }
});

test("a question that the server cannot read is no reason to ask without EDNS from then on", async () => {
  await using upstream = await startScriptedUpstream({ handler: () => ({ kind: "answer", rcode: 1 }) });
  using lab = openExchangeLab();
  const server = serverAt("127.0.0.1", upstream.port);
  assert.equal(outcomeText(await lab.ask(server, WWW)), "rcode 1");
  assert.equal(outcomeText(await lab.ask(server, WWW)), "rcode 1");
  assert.deepEqual(
    upstream.queries.map(({ message }) => message.edns !== undefined),
    [true, false, true, false],
  );
});

describe("random case", () => {
  const cased = questionFor("www.a-long-enough-name.example.test.", 1, { caseRandomization: true });
  const answer: AnswerReply = { kind: "answer", text: "www.a-long-enough-name.example.test. 60 A 192.0.2.1" };
  const forged: AnswerReply = { kind: "answer", text: "www.a-long-enough-name.example.test. 60 A 198.51.100.66" };

  test("letters are asked in any case, another one each time", async () => {
    await using upstream = await startScriptedUpstream({ handler: () => answer });
    using lab = openExchangeLab();
    const server = serverAt("127.0.0.1", upstream.port);
    for (let each = 0; each < 20; each++) assert.equal(outcomeText(await lab.ask(server, cased)), "192.0.2.1");
    assert.ok(new Set(upstream.queries.map(({ name }) => name)).size > 15);
    await lab.ask(server, WWW);
    assert.equal(upstream.queries.at(-1)?.name, "www.example.test.");
  });

  test("an answer in another case is taken without it and passed over with it", async () => {
    await using upstream = await startScriptedUpstream({
      handler: ({ transport }) => (transport === "udp" ? [{ ...forged, lie: "case" }] : { ...answer, delayMs: 20 }),
    });
    using lab = openExchangeLab();
    const server = serverAt("127.0.0.1", upstream.port);
    const without = { ...cased, hardening: { ...cased.hardening!, caseRandomization: false } };
    assert.equal(outcomeText(await lab.ask(server, without)), "198.51.100.66");
    const asked = await lab.ask(server, cased);
    assert.equal(outcomeText(asked), "192.0.2.1");
    assert.deepEqual(asked.rejections, ["case"]);
  });

  test("the answer may still come over UDP where the server has no TCP", async () => {
    await using upstream = await startScriptedUpstream({
      handler: () => [
        { ...forged, lie: "case" },
        { ...answer, delayMs: 50 },
      ],
      only: "udp",
    });
    using lab = openExchangeLab();
    assert.equal(outcomeText(await lab.ask(serverAt("127.0.0.1", upstream.port), cased)), "192.0.2.1");
  });

  test("a server that lower-cases is asked over TCP from then on", async () => {
    await using upstream = await startScriptedUpstream({ handler: () => ({ ...answer, lie: "lower" }) });
    using lab = openExchangeLab();
    const server = serverAt("127.0.0.1", upstream.port);
    for (let each = 0; each < 6; each++) assert.equal(outcomeText(await lab.ask(server, cased)), "192.0.2.1");
    const transports = upstream.queries.map(({ transport }) => transport);
    assert.deepEqual(transports, ["udp", "tcp", "udp", "tcp", "udp", "tcp", "tcp", "tcp", "tcp"]);
  });
});

describe("cookies", () => {
  const withCookies = questionFor("www.example.test.", 1, { cookies: true });

  test("are sent where they are switched on, and the server's with them once it is known", async () => {
    await using upstream = await startScriptedUpstream({ handler: () => ({ ...RIGHT, cookie: "good" }) });
    using lab = openExchangeLab();
    const server = serverAt("127.0.0.1", upstream.port);
    await lab.ask(server, WWW);
    await lab.ask(server, withCookies);
    await lab.ask(server, withCookies);
    assert.deepEqual(
      upstream.queries.map(({ cookie }) => cookie?.length),
      [undefined, 8, 24],
    );
    assert.deepEqual(upstream.queries[1]?.cookie?.subarray(0, 8), upstream.queries[2]?.cookie?.subarray(0, 8));
  });

  test("differ by server", async () => {
    await using upstream = await startScriptedUpstream({ handler: () => RIGHT, addresses: ["127.0.0.1", "127.0.0.2"] });
    using lab = openExchangeLab();
    for (const address of upstream.addresses) await lab.ask(serverAt(address, upstream.port), withCookies);
    assert.notDeepEqual(upstream.queries[0]?.cookie, upstream.queries[1]?.cookie);
  });

  test("an answer with a wrong one is passed over, and so is one without where the server gives them", async () => {
    await using upstream = await startScriptedUpstream({ handler: () => ({ ...RIGHT, cookie: "good" }) });
    using lab = openExchangeLab();
    const server = serverAt("127.0.0.1", upstream.port);
    await lab.ask(server, withCookies);
    for (const forged of [WRONG, { ...WRONG, cookie: "wrong-client" }, { ...WRONG, cookie: "client-only" }] as const) {
      upstream.setHandler(({ transport }) =>
        transport === "udp" ? [forged, { ...RIGHT, cookie: "good", delayMs: 30 }] : { kind: "silence" },
      );
      const asked = await lab.ask(server, withCookies);
      assert.equal(outcomeText(asked), "192.0.2.1");
      assert.deepEqual(asked.rejections, ["cookie"]);
      assert.equal(outcomeText(await lab.ask(server, WWW)), "198.51.100.66");
    }
  });

  test("a server that gives them no more is believed over TCP, and asked as before from then on", async () => {
    await using upstream = await startScriptedUpstream({ handler: () => ({ ...RIGHT, cookie: "good" }) });
    using lab = openExchangeLab();
    const server = serverAt("127.0.0.1", upstream.port);
    await lab.ask(server, withCookies);
    upstream.setHandler(() => RIGHT);
    assert.equal(outcomeText(await lab.ask(server, withCookies)), "192.0.2.1");
    assert.equal(outcomeText(await lab.ask(server, withCookies)), "192.0.2.1");
    assert.deepEqual(
      upstream.queries.map(({ transport }) => transport),
      ["udp", "udp", "tcp", "udp"],
    );
  });

  test("BADCOOKIE is asked again with the new one, then over TCP", async () => {
    await using upstream = await startScriptedUpstream({
      handler: ({ cookie }) =>
        cookie?.length === 24 ? { ...RIGHT, cookie: "good" } : { kind: "answer", rcode: 23, cookie: "good" },
    });
    using lab = openExchangeLab();
    assert.equal(outcomeText(await lab.ask(serverAt("127.0.0.1", upstream.port), withCookies)), "192.0.2.1");
    assert.deepEqual(
      upstream.queries.map(({ transport }) => transport),
      ["udp", "udp"],
    );

    await using stubborn = await startScriptedUpstream({
      handler: ({ transport }) => (transport === "tcp" ? RIGHT : { kind: "answer", rcode: 23, cookie: "good" }),
    });
    assert.equal(outcomeText(await lab.ask(serverAt("127.0.0.1", stubborn.port), withCookies)), "192.0.2.1");
    assert.deepEqual(
      stubborn.queries.map(({ transport }) => transport),
      ["udp", "udp", "tcp"],
    );
  });
});

describe("TCP", () => {
  const truncated: AnswerReply = { kind: "answer", isTruncated: true };
  const cases: readonly (readonly [string, Reply, string])[] = [
    ["a reset", { kind: "reset" }, "network"],
    ["an end without an answer", { kind: "close" }, "network"],
    ["a wrong name", { ...WRONG, lie: "name" }, "garbage"],
    ["a message that cannot be read", { kind: "bytes", bytes: randomBytes(7) }, "network"],
    ["silence", { kind: "silence" }, "timeout"],
    ["a trickle", { ...WRONG, trickle: { bytes: 1, everyMs: 30 } }, "timeout"],
  ];
  for (const [what, reply, fault] of cases) {
    test(`${what} is ${fault}, and leaves no connection`, async () => {
      await using upstream = await startScriptedUpstream({
        handler: ({ transport }) => (transport === "udp" ? truncated : reply),
      });
      using lab = openExchangeLab();
      const timeoutMs = fault === "timeout" ? 600 : undefined;
      assert.equal(outcomeText(await lab.ask(serverAt("127.0.0.1", upstream.port), WWW, timeoutMs)), fault);
      await waitFor("no connection", 5_000, () => upstream.connections().open === 0 && lab.tcp.connections() === 0);
    });
  }

  test("a wrong id is passed over, and the answer behind it taken", async () => {
    await using upstream = await startScriptedUpstream({
      handler: ({ transport }) =>
        transport === "udp"
          ? truncated
          : [
              { ...WRONG, lie: "id" },
              { ...RIGHT, delayMs: 20 },
            ],
    });
    using lab = openExchangeLab();
    const asked = await lab.ask(serverAt("127.0.0.1", upstream.port), WWW);
    assert.equal(outcomeText(asked), "192.0.2.1");
    assert.deepEqual(asked.rejections, ["id"]);
  });

  test("an answer in small pieces is put together", async () => {
    await using upstream = await startScriptedUpstream({
      handler: ({ transport }) => (transport === "udp" ? truncated : { ...RIGHT, trickle: { bytes: 3, everyMs: 1 } }),
    });
    using lab = openExchangeLab();
    assert.equal(outcomeText(await lab.ask(serverAt("127.0.0.1", upstream.port), WWW)), "192.0.2.1");
  });

  test("a connection is used again, and a question that crosses with its end is asked once more", async () => {
    await using upstream = await startScriptedUpstream({
      handler: ({ transport }) => (transport === "udp" ? truncated : RIGHT),
    });
    using lab = openExchangeLab();
    const server = serverAt("127.0.0.1", upstream.port);
    for (let each = 0; each < 3; each++) assert.equal(outcomeText(await lab.ask(server, WWW)), "192.0.2.1");
    assert.equal(upstream.connections().accepted, 1);
    upstream.setHandler(({ transport, connection }) =>
      transport === "udp" ? truncated : connection === 0 ? { kind: "reset" } : RIGHT,
    );
    assert.equal(outcomeText(await lab.ask(server, WWW)), "192.0.2.1");
    assert.equal(upstream.connections().accepted, 2);
  });

  test("many at a time share a bounded number of connections", async () => {
    await using upstream = await startScriptedUpstream({
      handler: ({ transport }) => (transport === "udp" ? truncated : { ...RIGHT, delayMs: 5 }),
    });
    using lab = openExchangeLab({ socketsMax: 200 });
    const server = serverAt("127.0.0.1", upstream.port);
    const all = await Promise.all(Array.from({ length: 150 }, () => lab.ask(server, WWW)));
    assert.ok(all.every((each) => outcomeText(each) === "192.0.2.1"));
    assert.ok(upstream.connections().accepted <= 32);
  });
});

test("a table of the scripted upstream is answered from", async () => {
  await using upstream = await startScriptedUpstream({ handler: tableHandler("www.example.test. 60 A 192.0.2.5") });
  using lab = openExchangeLab();
  const { outcome } = await lab.ask(serverAt("127.0.0.1", upstream.port), WWW);
  assert.ok(outcome.kind === "answer" && findOption(outcome.message.edns, 10) === undefined);
  assert.equal(outcomeText({ outcome }), "192.0.2.5");
});
