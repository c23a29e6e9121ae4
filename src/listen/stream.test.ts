import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, test } from "node:test";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { ACTION, createFakeAnswerer, longQuery, testQuery } from "../../tests/support/listen/fake-answerer.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { COUNTER, TRANSPORT } from "../image/counters.ts";
import { HANDOVER } from "../image/handover.ts";
import { COUNTERS_STRIDE, createSharedImage } from "../image/shared.ts";
import { createAnswerFrames } from "./answer-frames.ts";
import { openHandoverInbox } from "./handover.ts";
import { recordAddress, recordPort, recordQuery, recordToken, recordTransport } from "./handover-record.ts";
import { HANDED_OVER_MS, STREAM_LIMITS, STREAM_MESSAGE_BYTES, type StreamLimits } from "./limits.ts";
import { createResolving, type Resolving } from "./resolving.ts";
import { createStreamService } from "./stream.ts";

type Fixture = {
  readonly counters: Float64Array;
  readonly failures: Uint8Array[];
  /** Moves the service's clock. */
  readonly pass: (ms: number) => void;
  readonly drain: () => Promise<void>;
  readonly stopListening: () => void;
  /** The thread that resolves, as the test plays it. */
  readonly resolver: FakeResolver;
  readonly client: (from?: string) => Promise<Client>;
};

type FakeResolver = {
  readonly resolving: Resolving;
  /** What was handed over since the last time. */
  readonly take: () => Uint8Array[];
  readonly reply: (...answers: readonly (readonly [record: Uint8Array, answer: Uint8Array])[]) => void;
  /** The way of a replacement. */
  readonly replace: () => void;
};

function openResolver(now: () => number): FakeResolver {
  const shared = createSharedImage(1);
  const inbox = openHandoverInbox(shared, [0]);
  const first = new MessageChannel();
  let port: MessagePort = first.port2;
  const resolving = createResolving({ shared, thread: 0, start: 1, port: first.port1, now });
  return {
    resolving,
    take: () => {
      const records: Uint8Array[] = [];
      inbox.drain(1_000_000, (_, record) => records.push(record));
      return records;
    },
    reply: (...answers) => {
      const frames = createAnswerFrames();
      for (const [record, answer] of answers) frames.add(recordToken(record), answer);
      port.postMessage(frames.take());
    },
    replace: () => {
      const next = new MessageChannel();
      port = next.port2;
      resolving.connect(next.port1);
    },
  };
}

type Client = {
  readonly socket: Socket;
  /** Bytes received so far. */
  readonly received: () => Buffer;
  /** Whole messages received so far. */
  readonly messages: () => Buffer[];
  readonly isClosed: () => boolean;
};

const open: { server: Server; clients: Client[]; drain: () => Promise<void>; resolver: FakeResolver }[] = [];

afterEach(async () => {
  for (const { server, clients, drain, resolver } of open.splice(0)) {
    for (const { socket } of clients) socket.destroy();
    server.close();
    await drain();
    resolver.resolving.close();
  }
});

/** A service with its own clock, looked at often, so that times pass when the test says so. */
async function start(limits: Partial<StreamLimits> = {}): Promise<Fixture> {
  let nowMs = 0;
  const counters = new Float64Array(COUNTERS_STRIDE);
  const failures: Uint8Array[] = [];
  const resolver = openResolver(() => nowMs);
  const service = createStreamService({
    resolving: resolver.resolving,
    answerer: createFakeAnswerer(),
    counters,
    limits: { ...STREAM_LIMITS, sweepMs: 5, drainIdleMs: 20, ...limits },
    now: () => nowMs,
    onFailure: (query) => failures.push(query),
  });
  const server = createServer({ allowHalfOpen: true }, (socket) => service.accept(socket, TRANSPORT.TCP));
  server.listen({ host: "::", port: 0, ipv6Only: false });
  await once(server, "listening");
  const { port }: Pick<AddressInfo, "port"> = portOf(server);
  const clients: Client[] = [];
  let isDraining = false;
  const drain = async () => {
    if (isDraining) return;
    isDraining = true;
    const drained = service.drain();
    nowMs += STREAM_LIMITS.drainMs;
    await drained;
  };
  open.push({ server, clients, drain, resolver });
  return {
    resolver,
    counters,
    failures,
    pass: (ms) => {
      nowMs += ms;
    },
    drain: () => {
      isDraining = true;
      return service.drain();
    },
    stopListening: () => server.close(),
    client: async (from = "127.0.0.1") => {
      const host = from.includes(":") ? "::1" : "127.0.0.1";
      const socket = connect({ host, port, localAddress: from, noDelay: true });
      const client = watch(socket);
      clients.push(client);
      await once(socket, "connect");
      return client;
    },
  };
}

function portOf(server: Server): AddressInfo {
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  return address;
}

function watch(socket: Socket): Client {
  const chunks: Buffer[] = [];
  let isClosed = false;
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.on("error", () => {});
  socket.on("end", () => {
    isClosed = true;
  });
  socket.on("close", () => {
    isClosed = true;
  });
  const received = () => Buffer.concat(chunks);
  const messages = () => {
    const all: Buffer[] = [];
    let rest = received();
    while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0)) {
      all.push(rest.subarray(2, 2 + rest.readUInt16BE(0)));
      rest = rest.subarray(2 + rest.readUInt16BE(0));
    }
    return all;
  };
  return { socket, received, messages, isClosed: () => isClosed };
}

function framed(...messages: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    messages.flatMap((message) => [Buffer.from([message.length >> 8, message.length & 255]), message]),
  );
}

function idsOf(client: Client): number[] {
  return client.messages().map((message) => message.readUInt16BE(0));
}

const until = (what: string, condition: () => boolean) => waitFor(what, 5_000, condition, 2);

test("many messages in one segment are answered", async () => {
  const { client, counters } = await start();
  const one = await client();
  const ids = Array.from({ length: 500 }, (_, index) => index);
  one.socket.write(framed(...ids.map((id) => testQuery(id, ACTION.ECHO))));
  await until("all answers", () => one.messages().length === ids.length);
  assert.deepEqual(idsOf(one), ids);
  assert.equal(counters[COUNTER.LATENCY_BUCKETS], ids.length);
});

test("one message over many segments is answered when it is whole", async () => {
  const { client } = await start();
  const one = await client();
  for (const byte of framed(testQuery(7, ACTION.ECHO), testQuery(8, ACTION.ECHO))) {
    one.socket.write(Uint8Array.of(byte));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await until("both answers", () => one.messages().length === 2);
  assert.deepEqual(idsOf(one), [7, 8]);
});

test("the longest message goes in and out", async () => {
  const { client } = await start();
  const one = await client();
  const query = Buffer.concat([longQuery(1, STREAM_MESSAGE_BYTES), Buffer.alloc(STREAM_MESSAGE_BYTES - 5)]);
  one.socket.write(framed(query, longQuery(2, STREAM_MESSAGE_BYTES)));
  await until("both answers", () => one.messages().length === 2);
  assert.deepEqual(
    one.messages().map((message) => message.length),
    [STREAM_MESSAGE_BYTES, STREAM_MESSAGE_BYTES],
  );
});

test("silence and a throw cost only their own query", async () => {
  const { client, counters, failures } = await start();
  const one = await client();
  const actions = [ACTION.ECHO, ACTION.SILENCE, ACTION.THROW, ACTION.ECHO];
  one.socket.write(framed(...actions.map((action, id) => testQuery(id, action))));
  await until("the others", () => one.messages().length === 2);
  assert.deepEqual(idsOf(one), [0, 3]);
  assert.equal(counters[COUNTER.FAILED], 1);
  assert.deepEqual(
    failures.map((query) => Buffer.from(query)),
    [testQuery(2, ACTION.THROW)],
  );
});

test("a client that ends its side gets the answers to what it asked, then the end", async () => {
  const { client } = await start();
  const one = await client();
  one.socket.end(framed(...Array.from({ length: 300 }, (_, id) => longQuery(id, 2_000))));
  await until("the end", one.isClosed);
  assert.equal(one.messages().length, 300);
});

test("a message of no length ends the connection behind the answers before it", async () => {
  const { client } = await start();
  const one = await client();
  one.socket.write(Buffer.concat([framed(testQuery(1, ACTION.ECHO)), Uint8Array.of(0, 0)]));
  await until("the end", one.isClosed);
  assert.deepEqual(idsOf(one), [1]);
});

test("an idle connection is closed, one in use is not", async () => {
  const { client, pass, counters } = await start({ idleMs: 1_000 });
  const [idle, busy] = [await client(), await client()];
  await until("both are open", () => counters[COUNTER.CONNECTIONS_OPEN] === 2);
  pass(600);
  busy.socket.write(framed(testQuery(1, ACTION.ECHO)));
  await until("the answer", () => busy.messages().length === 1);
  pass(600);
  await until("the end", idle.isClosed);
  assert.equal(busy.isClosed(), false);
  assert.equal(counters[COUNTER.CONNECTIONS_CUT], 0);
});

test("a message that does not become whole in time cuts the connection, however often bytes come", async () => {
  const { client, pass, counters } = await start({ messageMs: 1_000, idleMs: 1_000_000 });
  const one = await client();
  one.socket.write(framed(testQuery(1, ACTION.ECHO)));
  await until("the answer", () => one.messages().length === 1);
  one.socket.write(Uint8Array.of(0));
  one.socket.write(Uint8Array.of(9, 1, 2));
  await until("the bytes have come", () => one.socket.bytesWritten === 2 + 3 + 4 && one.socket.writableLength === 0);
  // The bytes are under way; time passes in steps until the service has seen them and then their age.
  await until("the cut", () => {
    one.socket.write(Uint8Array.of(3));
    pass(200);
    return one.isClosed();
  });
  assert.equal(counters[COUNTER.CONNECTIONS_CUT], 1);
});

test("no connection lives longer than its lifetime, busy or not", async () => {
  const { client, pass } = await start({ lifetimeMs: 1_000 });
  const one = await client();
  let asked = 0;
  await until("the cut", () => {
    one.socket.write(framed(testQuery(asked++, ACTION.ECHO)));
    pass(50);
    return one.isClosed();
  });
  assert.ok(asked >= 1_000 / 50);
});

test("a client that takes no answers is not read any more, and cut in the end", async () => {
  const { client, pass, counters } = await start({ writeMs: 1_000, maxQueuedBytes: 100_000 });
  const one = await client();
  one.socket.pause();
  // 10,000 answers of 60,000 bytes would be 600 MB: what the service holds must stay near its bound.
  const before = process.memoryUsage().arrayBuffers;
  one.socket.write(framed(...Array.from({ length: 10_000 }, (_, id) => longQuery(id, 60_000))));
  let most = 0;
  await until("the cut", () => {
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
    pass(10);
    return counters[COUNTER.CONNECTIONS_CUT] === 1;
  });
  assert.ok(most < 20_000_000, `${most} bytes held`);
});

for (const sweepMs of [1, 1_000_000])
  test(`clients that take no answers are cut where all of them hold too much: looked at every ${sweepMs} ms`, async () => {
    const { client, pass, counters } = await start({
      sweepMs,
      writeMs: 1_000_000,
      maxQueuedBytes: 100_000,
      maxQueuedBytesOfAll: 250_000,
    });
    const polite = await client();
    const greedy = await Promise.all(Array.from({ length: 5 }, client));
    for (const { socket } of greedy) {
      socket.pause();
      socket.write(framed(...Array.from({ length: 1_000 }, (_, id) => longQuery(id, 60_000))));
    }
    await until("the cut", () => {
      pass(10);
      return counters[COUNTER.CONNECTIONS_CUT]! > 0;
    });
    assert.equal(polite.isClosed(), false);
    assert.ok(counters[COUNTER.CONNECTIONS_CUT]! < 5, "no more are cut than it takes");
  });

test("a client that takes its answers slowly gets all of them", async () => {
  const { client } = await start({ maxQueuedBytes: 10_000, maxBurst: 7 });
  const one = await client();
  one.socket.write(framed(...Array.from({ length: 1_000 }, (_, id) => longQuery(id, 5_000))));
  one.socket.end();
  while (!one.isClosed()) {
    one.socket.pause();
    await new Promise((resolve) => setImmediate(resolve));
    one.socket.resume();
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual(
    idsOf(one),
    Array.from({ length: 1_000 }, (_, id) => id),
  );
});

test("too many connections are refused, overall and of one client", async () => {
  const { client, counters } = await start({ maxConnections: 3, maxConnectionsPerClient: 2 });
  const [first, second] = [await client(), await client()];
  const third = await client();
  await until("the client's third is refused", third.isClosed);
  const other = await client("127.0.0.2");
  const last = await client("127.0.0.3");
  await until("the fourth is refused", last.isClosed);
  assert.equal(counters[COUNTER.CONNECTIONS_REFUSED], 2);
  assert.equal(counters[COUNTER.CONNECTIONS_ACCEPTED], 3);
  assert.deepEqual(
    [first, second, other].map((one) => one?.isClosed()),
    [false, false, false],
  );
  first?.socket.destroy();
  await until("the place is free", () => counters[COUNTER.CONNECTIONS_OPEN] === 2);
  const next = await client();
  next.socket.write(framed(testQuery(1, ACTION.ECHO)));
  await until("the answer", () => next.messages().length === 1);
});

test("draining answers what is under way, then ends every connection", async () => {
  const { client, counters, drain, pass, stopListening } = await start({ drainMs: 500, drainIdleMs: 20 });
  const [idle, busy, stuck] = [await client(), await client(), await client()];
  stuck.socket.write(Uint8Array.of(0, 9, 1));
  await until("all are open", () => counters[COUNTER.CONNECTIONS_OPEN] === 3);
  stopListening();
  busy.socket.write(framed(testQuery(5, ACTION.ECHO)));
  const drained = drain();
  await until("the answer", () => busy.messages().length === 1);
  pass(100);
  await until("idle ones end", () => idle.isClosed() && busy.isClosed());
  assert.equal(stuck.isClosed(), false);
  pass(500);
  await drained;
  await until("the last one ends", stuck.isClosed);
  assert.equal(counters[COUNTER.CONNECTIONS_OPEN], 0);
});

/** Takes records until there are `count` of them. */
async function handedOver({ take }: FakeResolver, count: number): Promise<Uint8Array[]> {
  const records: Uint8Array[] = [];
  await until(`${count} records`, () => records.push(...take()) >= count);
  return records;
}

test("what is resolved comes when it comes, and delays nothing else of the connection", async () => {
  const { client, counters, resolver } = await start();
  const one = await client();
  const [slow, slower] = [testQuery(1, ACTION.RESOLVE, 9, 9), testQuery(3, ACTION.RESOLVE)];
  one.socket.write(framed(slow, testQuery(2, ACTION.ECHO), slower, testQuery(4, ACTION.ECHO)));
  const records = await handedOver(resolver, 2);
  await until("the others", () => one.messages().length === 2);
  assert.deepEqual(idsOf(one), [2, 4]);
  const [first, second] = records;
  assert.ok(first !== undefined && second !== undefined);
  assert.deepEqual(Buffer.from(recordQuery(first)), slow);
  assert.deepEqual(recordAddress(first), Buffer.from([127, 0, 0, 1]));
  assert.equal(recordPort(first), one.socket.localPort);
  assert.equal(recordTransport(first), TRANSPORT.TCP);
  const [answer, other] = [Buffer.concat([slow, Buffer.alloc(60_000, 1)]), Buffer.concat([slower, Buffer.alloc(3)])];
  resolver.reply([second, other], [first, answer]);
  await until("all", () => one.messages().length === 4);
  assert.deepEqual(one.messages().slice(2), [other, answer]);
  assert.equal(counters[COUNTER.LATENCY_BUCKETS], 2, "what is resolved is counted where it is resolved");
});

test("a connection is not idle while something of it is resolved, and ends behind it where the client has ended", async () => {
  const { client, pass, resolver } = await start({ idleMs: 1_000 });
  const [open, ended] = [await client(), await client()];
  open.socket.write(framed(testQuery(1, ACTION.RESOLVE)));
  ended.socket.end(framed(testQuery(2, ACTION.RESOLVE), testQuery(3, ACTION.ECHO)));
  const records = await handedOver(resolver, 2);
  await until("the other answer", () => ended.messages().length === 1);
  pass(5_000);
  resolver.reply(...records.map((record) => [record, recordQuery(record)] as const));
  await until("the answers", () => open.messages().length === 1 && ended.messages().length === 2);
  await until("the end", ended.isClosed);
  assert.equal(open.isClosed(), false);
  pass(1_000);
  await until("it is idle now", open.isClosed);
});

test("a connection with many queries being resolved is read no further", async () => {
  const { client, resolver } = await start({ maxResolving: 3 });
  const one = await client();
  const ids = Array.from({ length: 10 }, (_, id) => id);
  one.socket.write(framed(...ids.map((id) => testQuery(id, ACTION.RESOLVE)), testQuery(99, ACTION.ECHO)));
  for (let resolved = 0; resolved < 10; ) {
    const records = await handedOver(resolver, Math.min(3, 10 - resolved));
    assert.ok(records.length <= 3, `${records.length} at once`);
    const behind = idsOf(one).filter((id) => id !== 99);
    assert.equal(behind.length, resolved);
    resolver.reply(...records.map((record) => [record, recordQuery(record)] as const));
    resolved += records.length;
    await until("the answers", () => one.messages().length >= resolved);
  }
  await until("the last", () => one.messages().length === 11);
  assert.deepEqual(
    idsOf(one).toSorted((a, b) => a - b),
    [...ids, 99],
  );
});

test("answers to a client that has gone, to nobody's token, and of no bytes are dropped", async () => {
  const { client, counters, resolver } = await start();
  const [gone, here] = [await client(), await client()];
  gone.socket.write(framed(testQuery(1, ACTION.RESOLVE)));
  here.socket.write(framed(testQuery(2, ACTION.RESOLVE), testQuery(3, ACTION.RESOLVE)));
  const records = await handedOver(resolver, 3);
  gone.socket.resetAndDestroy();
  await until("it is gone", () => counters[COUNTER.CONNECTIONS_OPEN] === 1);
  const ofHere = records.filter((record) => recordPort(record) === here.socket.localPort);
  const [silent, answered] = ofHere;
  const [ofGone] = records.filter((record) => !ofHere.includes(record));
  assert.ok(silent !== undefined && answered !== undefined && ofGone !== undefined);
  const stranger = Buffer.from(answered);
  stranger[HANDOVER.TOKEN + 3]! ^= 1;
  const wrong = testQuery(66, ACTION.ECHO);
  resolver.reply(
    [ofGone, wrong],
    [stranger, wrong],
    [silent, Buffer.alloc(0)],
    [silent, wrong],
    [answered, recordQuery(answered)],
  );
  await until("the answer", () => here.messages().length === 1);
  assert.deepEqual(here.messages(), [Buffer.from(recordQuery(answered))]);
});

test("what a thread that died had in hand is given up; its replacement answers what comes", async () => {
  const { client, pass, resolver } = await start({ idleMs: 1_000 });
  const one = await client();
  one.socket.write(framed(testQuery(1, ACTION.RESOLVE)));
  await handedOver(resolver, 1);
  resolver.replace();
  one.socket.write(framed(testQuery(2, ACTION.RESOLVE)));
  const [second] = await handedOver(resolver, 1);
  assert.ok(second !== undefined);
  resolver.reply([second, recordQuery(second)]);
  await until("the answer", () => one.messages().length === 1);
  pass(HANDED_OVER_MS);
  await until("it is idle", () => {
    pass(100);
    return one.isClosed();
  });
  assert.deepEqual(idsOf(one), [2]);
});

test("where the way is full, the client is told so at once", async () => {
  const { client, counters } = await start({ maxResolving: 1_000_000 });
  const one = await client();
  const query = Buffer.concat([testQuery(1, ACTION.RESOLVE), Buffer.alloc(60_000)]);
  one.socket.write(framed(...Array.from({ length: 20 }, () => query)));
  await until("what has no room", () => one.messages().length === 12);
  assert.equal(counters[COUNTER.HANDOVER_FULL], 12);
  assert.deepEqual(one.messages()[0], Buffer.concat([query, Buffer.alloc(1)]));
});
