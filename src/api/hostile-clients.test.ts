/** What clients can open, leave open, reset and not read, against small bounds. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { Readable } from "node:stream";
import test from "node:test";
import { connect, type TLSSocket } from "node:tls";
import Type from "typebox";
import { startApi, type TestApi } from "../../tests/support/api.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { STREAMS_MAX } from "./limits.ts";
import { type Route, route } from "./route.ts";

const base = { tag: "t", summary: "Do", response: Type.Unknown() };

function open(api: TestApi): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect(
      { port: api.server.port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] },
      () => resolve(socket),
    );
    socket.once("error", reject);
  });
}

const closed = (socket: { readonly closed: boolean }) => () => socket.closed;

test("slow heads and silent connections are ended", async () => {
  await using api = await startApi(() => [], { bounds: { headersMs: 1_000, idleMs: 3_000 } });
  const slow = await open(api);
  slow.write("GET /api/v1/x HTTP/1.1\r\nHost: a\r\nX-Slow: ");
  const silent = await open(api);
  let answer = "";
  slow.on("data", (chunk) => {
    answer += chunk;
  });
  slow.on("error", () => {});
  silent.on("error", () => {});
  silent.resume();
  await waitFor("the slow head ends", 5_000, closed(slow));
  await waitFor("the silent connection ends", 5_000, closed(silent));
  assert.match(answer, /^HTTP\/1\.1 408 [\s\S]*"code":"invalid_request"/);
  await waitFor("both are forgotten", 5_000, () => api.server.openConnections() === 0);
});

test("a body that stops arriving ends with its connection, and its memory is given back", async () => {
  const row = route({
    ...base,
    method: "POST",
    path: "/in",
    access: "public",
    body: Type.Unknown(),
    handle: () => ({ body: {} }),
  });
  const logged: string[] = [];
  await using api = await startApi(() => [row], {
    bounds: { headersMs: 1_000, idleMs: 1_500, requestMs: 2_000 },
    log: (level, message) => void logged.push(`${level} ${message}`),
  });
  const socket = await open(api);
  socket.on("error", () => {});
  socket.resume();
  socket.write(
    "POST /api/v1/in HTTP/1.1\r\nHost: a\r\nX-SVC-CSRF: 1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
  );
  await waitFor("the request begins", 5_000, () => api.server.requestsUnderWay() === 1);
  await waitFor("the request ends", 5_000, () => api.server.requestsUnderWay() === 0);
  await waitFor("the connection ends", 5_000, closed(socket));
  assert.deepEqual(logged, []);
});

test("connections are counted, together and by address", async () => {
  await using api = await startApi(() => [], { bounds: { connectionsPerAddressMax: 3 } });
  const sockets = await Promise.all([open(api), open(api), open(api)]);
  await assert.rejects(open(api));
  assert.equal(api.server.refusedConnections(), 1);
  for (const socket of sockets) socket.destroy();
  await waitFor("the places are free", 5_000, () => api.server.openConnections() === 0);
  (await open(api)).destroy();
});

test("what is no HTTP is answered once and ended, and so is a head without end", async () => {
  await using api = await startApi(() => []);
  for (const [bytes, status] of [
    ["\u0016\u0003\u0001 nonsense\r\n\r\n", 400],
    [`GET / HTTP/1.1\r\nHost: a\r\nX: ${"a".repeat(40_000)}\r\n\r\n`, 431],
    ["GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400],
  ] as const) {
    const socket = await open(api);
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("error", () => {});
    socket.write(bytes);
    await waitFor("the connection ends", 5_000, closed(socket));
    assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `));
  }
});

test("an endless answer waits for its reader in bounded memory, and ends with it", async () => {
  let pieces = 0;
  let ended = false;
  const row = route({
    ...base,
    method: "GET",
    path: "/endless",
    access: "public",
    handle: ({ signal }) => {
      signal.addEventListener("abort", () => {
        ended = true;
      });
      const text = function* () {
        for (;;) {
          pieces++;
          yield Buffer.alloc(65_536, 0x61);
        }
      };
      return { headers: { "content-type": "text/plain" }, body: Readable.from(text()) };
    },
  });
  await using api = await startApi(() => [row]);
  const socket = await open(api);
  socket.on("error", () => {});
  socket.pause();
  socket.write("GET /api/v1/endless HTTP/1.1\r\nHost: a\r\n\r\n");
  let before = -1;
  await waitFor(
    "the answer stops growing",
    10_000,
    () => {
      const isStill = pieces > 0 && pieces === before;
      before = pieces;
      return isStill;
    },
    200,
  );
  assert.ok(pieces < 400, `${pieces} pieces of 64 KB for a reader that reads none`);
  socket.destroy();
  await waitFor("the handler hears of it", 5_000, () => ended);
  await waitFor("the request is over", 5_000, () => api.server.requestsUnderWay() === 0);
});

const session = async (api: TestApi): Promise<ClientHttp2Session> => {
  const client = connectHttp2(api.url, { rejectUnauthorized: false });
  client.on("error", () => {});
  await once(client, "connect");
  return client;
};

const waitingRow = (): Route =>
  route({
    ...base,
    method: "GET",
    path: "/wait",
    access: "public",
    handle: ({ signal }) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => resolve({ body: {} }));
      }),
  });

test("one HTTP/2 connection has a bounded number of requests under way", async () => {
  await using api = await startApi(() => [waitingRow()]);
  const client = await session(api);
  await waitFor("the settings arrive", 5_000, () => client.remoteSettings?.maxConcurrentStreams === STREAMS_MAX);
  for (let index = 0; index < STREAMS_MAX * 2; index++) {
    client.request({ ":path": "/api/v1/wait" }).on("error", () => {});
  }
  await waitFor("the streams are open", 5_000, () => api.server.requestsUnderWay() === STREAMS_MAX);
  client.destroy();
  await waitFor("all of them end with it", 5_000, () => api.server.requestsUnderWay() === 0);
});

test("large bodies of refused requests leave an HTTP/2 connection as it was", async () => {
  await using api = await startApi(() => [waitingRow()]);
  const client = await session(api);
  for (let index = 0; index < 30; index++) {
    const stream = client.request({ ":method": "POST", ":path": "/api/v1/wait", "content-type": "text/plain" });
    const answered = once(stream, "response");
    stream.end(Buffer.alloc(1_200_000));
    const [headers] = await answered;
    assert.equal(headers[":status"], 405);
    stream.resume();
    await once(stream, "close");
    assert.equal(stream.rstCode, 0);
  }
  client.destroy();
});

test("streams that are opened and reset without end cost the client its connection", async () => {
  await using api = await startApi(() => [waitingRow()]);
  const client = await session(api);
  let resets = 0;
  const storm = setInterval(() => {
    for (let index = 0; index < 50 && !client.destroyed; index++) {
      resets++;
      const stream = client.request({ ":path": "/api/v1/wait" });
      stream.on("error", () => {});
      stream.close(8);
    }
  }, 1);
  try {
    await waitFor("the session ends", 20_000, () => client.destroyed);
  } finally {
    clearInterval(storm);
  }
  assert.ok(resets < 20_000, `${resets} resets`);
  await waitFor("nothing is left", 5_000, () => api.server.requestsUnderWay() === 0);
});

test("close takes nothing new, lets what is under way end, and ends every connection", async () => {
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const row = route({
    ...base,
    method: "GET",
    path: "/held",
    access: "public",
    handle: async () => {
      await held;
      return { body: { ended: true } };
    },
  });
  await using api = await startApi(() => [row]);
  const answer = api.ask("GET", "/held", { as: null });
  await waitFor("the request is under way", 5_000, () => api.server.requestsUnderWay() === 1);
  const done = api.server.close();
  await assert.rejects(open(api));
  release();
  assert.deepEqual((await answer).body, { ended: true });
  await done;
  await waitFor("no connection is left", 1_000, () => api.server.openConnections() === 0);
});
