/** Bytes that no honest client sends, over real TLS: ambiguous lengths, frames without end, handshakes without end. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectTcp, createServer as createTcpServer } from "node:net";
import test from "node:test";
import { connect, type TLSSocket } from "node:tls";
import Type from "typebox";
import type { ListenerLimits } from "../../src/api/listener.ts";
import { route } from "../../src/api/route.ts";
import { startApi, type TestApi } from "../support/api.ts";
import { waitFor } from "../support/wait.ts";

const common = { tag: "t", summary: "Do", access: "public", response: Type.Unknown() } as const;
const BODY_LIMIT = 10_000;

/** A server with one route that takes a body and one that takes none, both of which count who was there. */
async function startTarget(bounds: Partial<ListenerLimits> = {}) {
  const seen: string[] = [];
  const logged: string[] = [];
  const reply = (path: string) => () => {
    seen.push(path);
    return { body: { path } };
  };
  const post = { ...common, method: "POST", body: Type.Unknown(), bodyLimitBytes: BODY_LIMIT } as const;
  const routes = [
    route({ ...post, path: "/in", handle: reply("/in") }),
    route({ ...common, method: "GET", path: "/plain", handle: reply("/plain") }),
    route({ ...common, method: "GET", path: "/smuggled", handle: reply("/smuggled") }),
  ];
  const api = await startApi(() => routes, {
    bounds,
    log: (level, message) => level === "error" && void logged.push(message),
  });
  return { api, seen, logged, [Symbol.asyncDispose]: () => api[Symbol.asyncDispose]() };
}

type Wire = AsyncDisposable & {
  readonly socket: TLSSocket;
  readonly text: () => string;
  readonly send: (bytes: string | Uint8Array) => void;
  readonly isClosed: () => boolean;
};

async function wire(api: TestApi, protocol: "http/1.1" | "h2", options: object = {}): Promise<Wire> {
  const socket = connect({
    port: api.server.port,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    ALPNProtocols: [protocol],
    ...options,
  });
  let text = "";
  socket.on("error", () => {});
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  await once(socket, "secureConnect");
  return {
    socket,
    text: () => text,
    send: (bytes) => void (socket.destroyed || socket.write(bytes)),
    isClosed: () => socket.closed,
    [Symbol.asyncDispose]: async () => void socket.destroy(),
  };
}

async function stillAnswers(api: TestApi): Promise<void> {
  assert.equal((await api.ask("GET", "/plain", { as: null })).status, 200);
}

const statusesIn = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));

const POST = "POST /api/v1/in HTTP/1.1\r\nHost: a\r\nX-SVC-CSRF: 1\r\nContent-Type: application/json\r\n";
const SMUGGLED = "GET /api/v1/smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

/** Each may be understood in two ways by two servers, so that the second request is one for one of them only. */
const AMBIGUOUS: Readonly<Record<string, string>> = {
  "a length beside chunks": `${POST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  "chunks beside a length": `${POST}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  "two lengths": `${POST}Content-Length: 0\r\nContent-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
  "a list of lengths": `${POST}Content-Length: 0, ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
  "a length with a sign": `${POST}Content-Length: +0\r\n\r\n${SMUGGLED}`,
  "a negative length": `${POST}Content-Length: -1\r\n\r\n${SMUGGLED}`,
  "a hexadecimal length": `${POST}Content-Length: 0x0\r\n\r\n${SMUGGLED}`,
  "a length beyond 64 bits": `${POST}Content-Length: 18446744073709551616\r\n\r\n${SMUGGLED}`,
  "an empty length": `${POST}Content-Length:\r\n\r\n${SMUGGLED}`,
  "chunks by another name": `${POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  "chunks and then none": `${POST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  "chunks, spelled twice": `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  "a space before the colon": `${POST}Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  "a folded header": `${POST}X: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  "lines that end in LF": `${POST.replaceAll("\r\n", "\n")}Content-Length: 0\n\n${SMUGGLED}`,
  "a bare CR": `${POST}X: a\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n${SMUGGLED}`,
  "a NUL in a header": `${POST}X: a\u0000b\r\nContent-Length: 0\r\n\r\n${SMUGGLED}`,
  "no header name": `${POST}: a\r\nContent-Length: 0\r\n\r\n${SMUGGLED}`,
  "a chunk size beyond all": `${POST}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n${SMUGGLED}`,
  "a chunk size with a sign": `${POST}Transfer-Encoding: chunked\r\n\r\n-1\r\n${SMUGGLED}`,
  "a chunk that is longer than it says": `${POST}Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n${SMUGGLED}`,
  "a chunk that ends in LF": `${POST}Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n${SMUGGLED}`,
  "a line break in the target": `GET /api/v1/plain\rX: HTTP/1.1\r\nHost: a\r\n\r\n${SMUGGLED}`,
  "a version that is none": `GET /api/v1/plain HTTP/9.9\r\nHost: a\r\n\r\n${SMUGGLED}`,
  "no version": `GET /api/v1/plain\r\n\r\n${SMUGGLED}`,
  "the preface of HTTP/2": `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${SMUGGLED}`,
};

test("a request that two servers could read in two ways is one 400 and the end of its connection", async () => {
  await using target = await startTarget();
  for (const [what, bytes] of Object.entries(AMBIGUOUS)) {
    target.seen.length = 0;
    await using client = await wire(target.api, "http/1.1");
    client.send(bytes);
    await waitFor(`${what}: the connection ends`, 5_000, client.isClosed).catch((error: unknown) => {
      throw new Error(`${error} ${client.text().slice(0, 2_000)}`);
    });
    assert.deepEqual(statusesIn(client.text()), [400], `${what}: ${client.text().slice(0, 500)}`);
    assert.ok(!target.seen.includes("/smuggled"), what);
  }
  await stillAnswers(target.api);
  assert.deepEqual(target.logged, []);
});

test("a request in the body of a refused one is no request", async () => {
  await using target = await startTarget();
  // Refused before its body is read, which then must be taken in as a body and as nothing else.
  const refused = POST.replace("X-SVC-CSRF: 1\r\n", "");
  for (const bytes of [
    `${refused}Content-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
    `${refused}Transfer-Encoding: chunked\r\n\r\n${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`,
  ]) {
    await using client = await wire(target.api, "http/1.1");
    client.send(`${bytes}GET /api/v1/plain HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    await waitFor("the connection ends", 5_000, client.isClosed);
    assert.equal(statusesIn(client.text())[0], 403);
    assert.ok(!target.seen.includes("/smuggled"));
  }
});

test("a request with no Host, or with two, is refused, and the one behind it is answered as one of its own", async () => {
  await using target = await startTarget();
  for (const hosts of ["", "Host: a\r\nHost: b\r\n"]) {
    await using client = await wire(target.api, "http/1.1");
    const plain = "GET /api/v1/plain HTTP/1.1\r\n";
    client.send(`${plain}${hosts}\r\n${plain}Host: a\r\nConnection: close\r\n\r\n`);
    await waitFor("the connection ends", 5_000, client.isClosed);
    assert.deepEqual(statusesIn(client.text()), [400, 200]);
    assert.match(client.text(), /"code":"invalid_request"/);
  }
  assert.deepEqual(target.seen, ["/plain", "/plain"]);
});

test("pipelined requests are answered in their order, and forms of HTTP that are no API do no harm", async () => {
  await using target = await startTarget();
  await using client = await wire(target.api, "http/1.1");
  const paths = Array.from({ length: 200 }, (_, index) => (index % 2 === 0 ? "/plain" : `/nowhere${index}`));
  client.send(paths.map((path) => `GET /api/v1${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join(""));
  await waitFor("all are answered", 10_000, () => statusesIn(client.text()).length === paths.length);
  assert.deepEqual(
    statusesIn(client.text()),
    paths.map((path) => (path === "/plain" ? 200 : 404)),
  );
  for (const head of [
    "CONNECT example.org:443 HTTP/1.1\r\nHost: a",
    "GET http://other.example/api/v1/plain HTTP/1.1\r\nHost: a",
    "OPTIONS * HTTP/1.1\r\nHost: a",
    "GET /api/v1/plain HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk",
    "GET /api/v1/plain HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket",
    "POST /api/v1/in HTTP/1.1\r\nHost: a\r\nX-SVC-CSRF: 1\r\nExpect: nonsense\r\nContent-Length: 0",
    "GET /api/v1/plain HTTP/1.0",
    `GET /api/v1/plain?${"a".repeat(15_000)} HTTP/1.1\r\nHost: a`,
  ]) {
    await using other = await wire(target.api, "http/1.1");
    other.send(`${head}\r\nX-End: 1\r\n\r\n`);
    await waitFor(head, 5_000, () => other.isClosed() || statusesIn(other.text()).length > 0);
    assert.ok(
      statusesIn(other.text()).every((status) => status < 500 && status !== 101),
      other.text(),
    );
  }
  await stillAnswers(target.api);
  assert.deepEqual(target.logged, []);
});

test("a body in chunks without end, or with extensions without end, is cut off", async () => {
  await using target = await startTarget();
  const head = `${POST}Transfer-Encoding: chunked\r\n\r\n`;
  for (const [first, more, status] of [
    [head, `1000\r\n${"x".repeat(4096)}\r\n`, 413],
    [`${head}1;`, "a".repeat(4096), 413],
  ] as const) {
    await using client = await wire(target.api, "http/1.1");
    client.send(first);
    let sent = 0;
    await waitFor("an answer comes", 10_000, () => {
      for (let count = 0; count < 8 && client.socket.writableLength < 1_000_000; count++, sent += more.length)
        client.send(more);
      return statusesIn(client.text()).length > 0 || client.isClosed();
    });
    assert.ok(
      statusesIn(client.text()).every((found) => found === status || found === 400),
      client.text(),
    );
    assert.ok(sent < 20_000_000, `${sent} bytes`);
  }
  await waitFor("nothing is left under way", 30_000, () => target.api.server.requestsUnderWay() === 0);
  await stillAnswers(target.api);
  assert.deepEqual(target.logged, []);
});

/** One frame of HTTP/2 (RFC 9113 section 4.1). */
function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const PREFACE = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0)]);
/** GET of https://a/, from the static table of HPACK. */
const GET_BLOCK = Buffer.from([0x82, 0x87, 0x84, 0x41, 0x01, 0x61]);
const setting = (id: number, value: number) => {
  const payload = Buffer.alloc(6);
  payload.writeUInt16BE(id, 0);
  payload.writeUInt32BE(value, 2);
  return payload;
};

/** A header x with so many bytes, from 128 to 16,510 (RFC 7541 section 6.2); `kind` 0x40 enters it into the table. */
function headerOf(kind: number, length: number): Buffer {
  const rest = length - 127;
  const head = Buffer.from([kind, 0x01, 0x78, 0x7f, (rest & 0x7f) | 0x80, rest >> 7]);
  return Buffer.concat([head, Buffer.alloc(length, 0x61)]);
}

/** Each is sent again and again to one connection. `ends`: the server has to end it by itself. */
const FLOODS: Readonly<Record<string, { readonly ends: boolean; readonly bytes: (index: number) => Uint8Array }>> = {
  pings: { ends: false, bytes: () => frame(6, 0, 0, Buffer.alloc(8)) },
  settings: { ends: false, bytes: () => frame(4, 0, 0, setting(4, 65_535)) },
  priorities: { ends: false, bytes: (index) => frame(2, 0, (2 * index + 1) & 0x7fffffff, Buffer.alloc(5, 1)) },
  "empty data of no stream": { ends: true, bytes: () => frame(0, 0, 1) },
  "resets of streams that are none": {
    ends: true,
    bytes: (index) => frame(3, 0, (2 * index + 1) & 0x7fffffff, Buffer.alloc(4)),
  },
  "windows that overflow": { ends: true, bytes: () => frame(8, 0, 0, Buffer.from([0x7f, 0xff, 0xff, 0xff])) },
  "windows of nothing": { ends: true, bytes: () => frame(8, 0, 0, Buffer.alloc(4)) },
  "headers that go on without end": {
    ends: true,
    bytes: (index) => (index === 0 ? frame(1, 0, 1, GET_BLOCK) : frame(9, 0, 1, headerOf(0x00, 3_000))),
  },
  "empty continuations": { ends: true, bytes: (index) => (index === 0 ? frame(1, 0, 1, GET_BLOCK) : frame(9, 0, 1)) },
  "a table of headers, named a thousand times": {
    ends: false,
    bytes: (index) => {
      const stream = (2 * index + 1) & 0x7fffffff;
      const block = [GET_BLOCK, headerOf(0x40, 3_000), Buffer.alloc(4_000, 0xbe)];
      return frame(1, 5, stream, Buffer.concat(block));
    },
  },
  "a frame larger than all": { ends: true, bytes: () => frame(0, 0, 1, Buffer.alloc(100_000)) },
  "resets as soon as streams are open": {
    ends: true,
    bytes: (index) => {
      const stream = (2 * index + 1) & 0x7fffffff;
      return Buffer.concat([frame(1, 5, stream, GET_BLOCK), frame(3, 0, stream, Buffer.from([0, 0, 0, 8]))]);
    },
  },
};

test("floods of frames cost their own connection, bounded memory, and nobody else", async () => {
  await using target = await startTarget();
  for (const [what, { ends, bytes }] of Object.entries(FLOODS)) {
    await using client = await wire(target.api, "h2");
    client.send(PREFACE);
    await waitFor(`${what}: the server begins`, 5_000, () => client.text().length >= 9);
    const before = process.memoryUsage().rss;
    for (let index = 0; index < 20_000 && !client.socket.destroyed; index++) {
      client.send(bytes(index));
      // What the server does not take must not pile up here: that would measure the client.
      if (client.socket.writableLength > 500_000) {
        await waitFor("it is taken", 5_000, () => client.socket.writableLength === 0 || client.isClosed()).catch(
          () => {},
        );
        if (client.socket.writableLength > 0) break;
      }
    }
    if (ends) await waitFor(`${what}: the connection ends`, 10_000, client.isClosed);
    await stillAnswers(target.api);
    const grown = (process.memoryUsage().rss - before) / 2 ** 20;
    assert.ok(grown < 150, `${what}: ${grown.toFixed(0)} MB`);
    client.socket.destroy();
    await waitFor(`${what}: nothing is left`, 10_000, () => target.api.server.requestsUnderWay() === 0);
  }
  assert.deepEqual(target.logged, []);
});

test("a client may not ask for another handshake", async () => {
  await using target = await startTarget();
  await using client = await wire(target.api, "http/1.1", { maxVersion: "TLSv1.2" });
  let done = 0;
  let isRefused = false;
  client.socket.renegotiate({ rejectUnauthorized: false }, (error) => {
    if (error !== null && error !== undefined) isRefused = true;
    else done++;
  });
  await waitFor("the handshake is refused", 10_000, () => client.isClosed() || isRefused || done > 0);
  assert.equal(done, 0);
  for (const options of [{ maxVersion: "TLSv1.1", minVersion: "TLSv1", ciphers: "ALL:@SECLEVEL=0" }]) {
    await assert.rejects(wire(target.api, "http/1.1", options));
  }
  await stillAnswers(target.api);
});

test("connections that never end their handshake give back their places", async () => {
  await using target = await startTarget({ handshakeMs: 2_000 });
  await using greeter = await recordedHello();
  const hello = greeter.bytes;
  const openings = [
    Buffer.alloc(0),
    Buffer.from([0x16]),
    hello.subarray(0, 40),
    hello,
    Buffer.from("GET / HTTP/1.1\r\n\r\n"),
  ];
  const sockets = openings.flatMap((bytes) =>
    ["stays", "ends"].map((end) => {
      const socket = connectTcp({ port: target.api.server.port, host: "127.0.0.1", allowHalfOpen: true });
      socket.on("error", () => {});
      socket.write(bytes);
      if (end === "ends") socket.end();
      return socket;
    }),
  );
  await waitFor("those that wait are taken in", 5_000, () => target.api.server.openConnections() >= 4);
  await waitFor("every place is free again", 5_000, () => target.api.server.openConnections() === 0);
  await stillAnswers(target.api);
  for (const socket of sockets) socket.destroy();
  assert.deepEqual(target.logged, []);
});

/** What a TLS client begins with: it speaks first, and to nobody here. */
async function recordedHello(): Promise<{
  readonly bytes: Buffer;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
}> {
  const server = createTcpServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const client = connect({ port: address.port, host: "127.0.0.1", rejectUnauthorized: false });
  client.on("error", () => {});
  const [socket] = await once(server, "connection");
  const [bytes] = await once(socket, "data");
  socket.destroy();
  client.destroy();
  return { bytes, [Symbol.asyncDispose]: async () => void server.close() };
}
