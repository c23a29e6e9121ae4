/** Answers of several messages, from the thread that makes them to a client that takes them as it likes. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { ACTION, createFakeAnswerer, testQuery } from "../../tests/support/listen/fake-answerer.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { COUNTER, TRANSPORT } from "../image/counters.ts";
import { COUNTERS_STRIDE, createSharedImage } from "../image/shared.ts";
import { createAnswerFrames, type FromSender, PART, type Part } from "./answer-frames.ts";
import { openHandoverInbox } from "./handover.ts";
import { recordToken } from "./handover-record.ts";
import { HANDED_OVER_MS, STREAM_LIMITS, type StreamLimits } from "./limits.ts";
import { createResolving } from "./resolving.ts";
import { createStreamService } from "./stream.ts";

type World = AsyncDisposable & {
  readonly client: Socket;
  readonly received: () => number;
  readonly counters: Float64Array;
  /** Token of the query that was handed over next. */
  readonly token: () => Promise<number>;
  readonly send: (token: number, bytes: number, part: Part) => void;
  /** What was said of flows. */
  readonly said: readonly Exclude<FromSender, number>[];
  readonly pass: (ms: number) => void;
  /** Another thread makes answers from now on. */
  readonly replace: () => void;
};

async function start(limits: Partial<StreamLimits> = {}): Promise<World> {
  let nowMs = 0;
  const shared = createSharedImage(1);
  const counters = new Float64Array(COUNTERS_STRIDE);
  const inbox = openHandoverInbox(shared, [0]);
  const said: Exclude<FromSender, number>[] = [];
  const ports: MessagePort[] = [];
  const open = () => {
    const { port1, port2 } = new MessageChannel();
    ports.unshift(port2);
    port2.on("message", (message: FromSender) => {
      if (typeof message !== "number") said.push(message);
    });
    return port1;
  };
  const resolving = createResolving({ shared, thread: 0, start: 0, port: open(), now: () => nowMs });
  const service = createStreamService({
    ...{ resolving, counters, answerer: createFakeAnswerer(), onFailure: () => {}, now: () => nowMs },
    limits: { ...STREAM_LIMITS, sweepMs: 5, drainIdleMs: 5, ...limits },
  });
  const server = createServer({ allowHalfOpen: true }, (socket) => service.accept(socket, TRANSPORT.TCP));
  server.listen({ host: "127.0.0.1", port: 0 });
  await once(server, "listening");
  const client = connect({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, noDelay: true });
  client.on("error", () => {});
  await once(client, "connect");
  let received = 0;
  client.on("data", (chunk: Buffer) => {
    received += chunk.length;
  });
  return {
    ...{ client, counters, said },
    received: () => received,
    token: () =>
      waitFor("a query is handed over", 5_000, () => {
        let token: number | undefined;
        inbox.drain(1, (_, record) => {
          token = recordToken(record);
        });
        return token;
      }),
    send: (token, bytes, part) => {
      const frames = createAnswerFrames();
      frames.add(token, new Uint8Array(bytes), part);
      ports[0]?.postMessage(frames.take());
    },
    pass: (ms) => {
      nowMs += ms;
    },
    replace: () => resolving.connect(open()),
    [Symbol.asyncDispose]: async () => {
      client.destroy();
      server.close();
      const drained = service.drain();
      nowMs += STREAM_LIMITS.drainMs;
      await drained;
      resolving.close();
      for (const port of ports) port.close();
    },
  };
}

function ask(client: Socket, action: number, id = 1): void {
  const query = testQuery(id, action);
  client.write(Buffer.concat([Buffer.of(0, query.length), query]));
}

/** Bytes of the echo of a query, with the client's address and the length in front. */
const ECHO_BYTES = 2 + 3 + 4;

test("messages arrive in turn, and what was taken is told of each", async () => {
  await using world = await start();
  ask(world.client, ACTION.RESOLVE);
  const token = await world.token();
  world.send(token, 0, PART.MORE);
  world.send(token, 1_000, PART.MORE);
  world.send(token, 500, PART.LAST);
  await waitFor("all of it", 5_000, () => world.received() === 1_504);
  await waitFor("both are told", 5_000, () => world.said.length === 2);
  assert.deepEqual(world.said, [
    { kind: "taken", token, bytes: 1_000 },
    { kind: "taken", token, bytes: 500 },
  ]);
  ask(world.client, ACTION.ECHO);
  await waitFor("the connection goes on", 5_000, () => world.received() === 1_504 + ECHO_BYTES);
});

test("one that has begun is waited for however long it takes, and is no idle connection", async () => {
  await using world = await start({ idleMs: 1_000, lifetimeMs: 10_000_000 });
  ask(world.client, ACTION.RESOLVE);
  const token = await world.token();
  world.send(token, 0, PART.MORE);
  world.send(token, 10, PART.MORE);
  await waitFor("the first", 5_000, () => world.received() === 12);
  world.pass(HANDED_OVER_MS * 10);
  ask(world.client, ACTION.ECHO);
  await waitFor("another answer", 5_000, () => world.received() === 12 + ECHO_BYTES);
  world.send(token, 10, PART.LAST);
  await waitFor("the last", 5_000, () => world.received() === 24 + ECHO_BYTES);
});

test("a client that takes nothing of it holds up neither its sender nor, once it reads, its own queries", async () => {
  await using world = await start({ maxQueuedBytes: 10_000 });
  const { client, said } = world;
  ask(client, ACTION.RESOLVE);
  const token = await world.token();
  client.pause();
  let sent = 0;
  let before = -1;
  const taken = () => said.reduce((sum, one) => sum + (one.kind === "taken" ? one.bytes : 0), 0);
  await waitFor("the kernel takes no more", 20_000, () => {
    // As a transfer does: no more than so many bytes that nobody has taken.
    for (; sent - taken() < 200_000; sent += 60_000) world.send(token, 60_000, PART.MORE);
    const isStill = taken() === before;
    before = taken();
    return isStill && client.readableLength > 0;
  });
  ask(client, ACTION.ECHO);
  client.resume();
  const all = () => sent + (sent / 60_000) * 2 + ECHO_BYTES;
  await waitFor("the rest and the other answer", 20_000, () => world.received() === all());
  world.send(token, 10, PART.LAST);
  await waitFor("the last", 5_000, () => world.received() === all() + 12);
});

test("whoever sends hears that the client has gone, once, also where it was before anything came", async () => {
  await using world = await start();
  ask(world.client, ACTION.RESOLVE);
  const token = await world.token();
  world.send(token, 10, PART.MORE);
  await waitFor("the first", 5_000, () => world.received() === 12);
  ask(world.client, ACTION.RESOLVE, 2);
  const other = await world.token();
  world.client.resetAndDestroy();
  const gone = () => world.said.filter(({ kind }) => kind === "gone").map((one) => one.token);
  await waitFor("it is told", 5_000, () => gone().length === 1);
  world.send(other, 0, PART.MORE);
  await waitFor("and of the other", 5_000, () => gone().length === 2);
  world.send(token, 10, PART.MORE);
  await waitFor("a token that nobody has", 5_000, () => gone().length === 3);
  assert.deepEqual(gone(), [token, other, token]);
});

for (const [why, end] of [
  ["whose sender gives it up", (world: World, token: number) => world.send(token, 0, PART.CUT)],
  ["whose sender is replaced", (world: World) => world.replace()],
] as const) {
  test(`a transfer ${why} ends with its connection: a part is not taken for the whole`, async () => {
    await using world = await start();
    ask(world.client, ACTION.RESOLVE);
    const token = await world.token();
    world.send(token, 10, PART.MORE);
    await waitFor("the first", 5_000, () => world.received() === 12);
    const closed = once(world.client, "close");
    end(world, token);
    await closed;
    assert.equal(world.counters[COUNTER.CONNECTIONS_CUT], 1);
  });
}
