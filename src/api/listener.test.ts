import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { Readable } from "node:stream";
import test from "node:test";
import { connect } from "node:tls";
import Type from "typebox";
import { startApi } from "../../tests/support/api.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { trackConnections } from "./listener.ts";
import { route } from "./route.ts";

test("connections are counted by address, those of IPv6 by /64", () => {
  const server = new EventEmitter();
  const bounds = { connectionsMax: 100, connectionsPerAddressMax: 2, idleMs: 1 };
  const { sockets, refused } = trackConnections(server as never, bounds);
  const from = (remoteAddress: string) => {
    const socket = Object.assign(new EventEmitter(), { remoteAddress, destroy: () => socket.emit("close") });
    server.emit("connection", socket);
    return socket;
  };
  const first = from("2001:db8::1");
  from("2001:db8::2");
  from("2001:db8::ffff:1");
  assert.deepEqual([sockets.size, refused()], [2, 1]);
  from("2001:db8:0:1::1");
  from("192.0.2.1");
  from("192.0.2.2");
  assert.deepEqual([sockets.size, refused()], [5, 1]);
  first.destroy();
  from("2001:db8::3");
  assert.deepEqual([sockets.size, refused()], [5, 1]);
});

test("TLS 1.2 is spoken with authenticated encryption only", async () => {
  await using api = await startApi(() => []);
  const hello = async (ciphers: string): Promise<string> => {
    const options = { port: api.server.port, host: "127.0.0.1", rejectUnauthorized: false, ciphers } as const;
    const socket = connect({ ...options, maxVersion: "TLSv1.2" });
    try {
      await once(socket, "secureConnect");
      return socket.getCipher().name;
    } finally {
      socket.destroy();
    }
  };
  assert.match(await hello("DEFAULT"), /GCM|POLY1305/);
  await assert.rejects(
    hello("ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA256:AES128-SHA256:AES256-SHA"),
    /handshake/,
  );
});

const row = route({
  method: "POST",
  path: "/guarded",
  tag: "t",
  summary: "Needs a token",
  access: "editor",
  body: Type.Unknown(),
  response: Type.Unknown(),
  handle: () => ({ body: {} }),
});

test("a refused HTTP/2 request whose client does not end it is over with its answer, and its stream soon after", async () => {
  await using api = await startApi(() => [row], { bounds: { lingerMs: 1_500 } });
  const client = connectHttp2(api.url, { rejectUnauthorized: false });
  try {
    const stream = client.request({ ":method": "POST", ":path": "/api/v1/guarded" }, { endStream: false });
    stream.resume();
    const [headers] = await once(stream, "response");
    assert.equal(headers[":status"], 401);
    await waitFor("the request is over", 5_000, () => api.server.requestsUnderWay() === 0);
    assert.equal(stream.closed, false, "an honest client has a moment to end it");
    await once(stream, "close");
    assert.equal(stream.rstCode, 0);
    assert.equal(client.destroyed, false);
  } finally {
    client.destroy();
  }
});

const STALL_MS = 1_500;

/** An answer of `count` pieces of 64 KB. */
const pieces = (count: number) =>
  route({
    method: "GET",
    path: "/pieces",
    tag: "t",
    summary: "Answers more than a window holds",
    access: "public",
    response: Type.Unknown(),
    handle: () => ({
      headers: { "content-type": "text/plain" },
      body: Readable.from(Array.from({ length: count }, () => Buffer.alloc(65_536, 0x61))),
    }),
  });

test("an answer that its client does not take is ended, whatever PINGs come", async () => {
  await using api = await startApi(() => [pieces(4)], { bounds: { answerStallMs: STALL_MS, idleMs: 60_000 } });
  const client = connectHttp2(api.url, { rejectUnauthorized: false, settings: { initialWindowSize: 0 } });
  const pings = setInterval(() => client.ping(() => {}), 20);
  try {
    const stream = client.request({ ":path": "/api/v1/pieces" });
    stream.on("error", () => {});
    await once(stream, "response");
    assert.equal(api.server.requestsUnderWay(), 1);
    await waitFor("the answer is ended", 5_000, () => api.server.requestsUnderWay() === 0);
    await waitFor("the client hears of it", 5_000, () => stream.closed);
    assert.equal(client.destroyed, false);
  } finally {
    clearInterval(pings);
    client.destroy();
  }
});

test("an answer over HTTP/1.1 that its client does not take is ended, though bytes come", async () => {
  await using api = await startApi(() => [pieces(400)], { bounds: { answerStallMs: STALL_MS, idleMs: 60_000 } });
  const options = { port: api.server.port, host: "127.0.0.1", rejectUnauthorized: false } as const;
  const socket = connect({ ...options, ALPNProtocols: ["http/1.1"] });
  socket.on("error", () => {});
  await once(socket, "secureConnect");
  socket.pause();
  socket.write("GET /api/v1/pieces HTTP/1.1\r\nHost: a\r\n\r\n");
  const trickle = setInterval(() => socket.write("\r\n"), 20);
  try {
    await waitFor("the request begins", 5_000, () => api.server.requestsUnderWay() === 1);
    await waitFor("the answer is ended", 5_000, () => api.server.requestsUnderWay() === 0);
    await waitFor("the connection is gone", 5_000, () => api.server.openConnections() === 0);
  } finally {
    clearInterval(trickle);
    socket.destroy();
  }
});

for (const http2 of [true, false]) {
  test(`a slow client that takes its answer keeps it over HTTP/${http2 ? 2 : 1.1}`, async () => {
    const count = http2 ? 12 : 200;
    await using api = await startApi(() => [pieces(count)], { bounds: { answerStallMs: STALL_MS, idleMs: 60_000 } });
    const client = http2 ? connectHttp2(api.url, { rejectUnauthorized: false }) : undefined;
    const tls = { port: api.server.port, host: "127.0.0.1", rejectUnauthorized: false } as const;
    const source = client?.request({ ":path": "/api/v1/pieces" }) ?? connect({ ...tls, ALPNProtocols: ["http/1.1"] });
    if (client === undefined) source.write("GET /api/v1/pieces HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    const startedAt = performance.now();
    let taken = 0;
    let nextAt = 65_536;
    try {
      for await (const chunk of source) {
        taken += chunk.length;
        if (taken < nextAt) continue;
        nextAt += (count * 65_536) / 12;
        const goOnAt = performance.now() + STALL_MS / 5;
        await waitFor("the client goes on", 5_000, () => performance.now() >= goOnAt);
      }
    } finally {
      client?.destroy();
      source.destroy();
    }
    assert.ok(taken >= count * 65_536, `${taken} bytes`);
    assert.ok(performance.now() - startedAt > 2 * STALL_MS, "it took twice what a client that stands still has");
  });
}
