import assert from "node:assert/strict";
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { listenFor } from "../../tests/support/probe-lab.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { errorCode } from "../base/errors.ts";
import { createPoster, type PostRequest } from "./post.ts";

const BODY = Buffer.from('{"ü":1}', "utf8");

function posterFor(t: TestContext) {
  const poster = createPoster();
  t.after(poster.close);
  return (port: number, given: Partial<PostRequest> = {}) =>
    poster.post({
      url: new URL(`http://127.0.0.1:${port}/hook?x=y`),
      headers: { "Content-Type": "application/json" },
      body: BODY,
      timeoutMs: 60_000,
      signal: new AbortController().signal,
      ...given,
    });
}

async function collect(t: TestContext, answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const seen: { readonly line: string; readonly headers: IncomingMessage["headers"]; readonly body: string }[] = [];
  let connections = 0;
  const server = createHttp((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString("utf8");
      seen.push({ line: `${request.method} ${request.url}`, headers: request.headers, body });
      answer(request, response);
    });
  });
  server.on("connection", () => {
    connections += 1;
  });
  return { port: await listenFor(t, server), seen, connections: () => connections };
}

test("posts exactly the body, with its length, over connections that are kept", async (t) => {
  const { port, seen, connections } = await collect(t, (_, response) => response.writeHead(202).end("thank you"));
  const post = posterFor(t);
  for (let index = 0; index < 3; index += 1) assert.equal(await post(port), 202);
  assert.equal(seen[0]?.line, "POST /hook?x=y");
  assert.equal(seen[0]?.body, BODY.toString("utf8"));
  assert.equal(seen[0]?.headers["content-length"], String(BODY.length));
  assert.equal(seen[0]?.headers["content-type"], "application/json");
  assert.equal(connections(), 1);
});

test("a redirect is an answer like any other, and is not followed", async (t) => {
  const elsewhere = await collect(t, (_, response) => response.end());
  const { port, seen } = await collect(t, (_, response) =>
    response.writeHead(307, { location: `http://127.0.0.1:${elsewhere.port}/` }).end(),
  );
  assert.equal(await posterFor(t)(port), 307);
  assert.deepEqual([seen.length, elsewhere.seen.length], [1, 0]);
});

test("an answer that never ends has its status, and its connection is closed", async (t) => {
  const flood = Buffer.alloc(16_384, "x");
  const closed: string[] = [];
  const { port } = await collect(t, (request, response) => {
    request.socket.on("close", () => closed.push(request.headers["x-kind"] as string));
    response.writeHead(200);
    if (request.headers["x-kind"] === "silent") return response.flushHeaders();
    const more = () => {
      while (!response.destroyed && response.write(flood));
    };
    response.on("drain", more);
    more();
  });
  const post = posterFor(t);
  const kinds = ["flood", "silent"];
  const statuses = await Promise.all(kinds.map((kind) => post(port, { headers: { "X-Kind": kind } })));
  assert.deepEqual(statuses, [200, 200]);
  await waitFor("both connections are closed", 5_000, () => closed.length === 2);
});

/** A server of bytes; each connection is given to `serve` when its request has begun. */
async function rawServer(t: TestContext, serve: (socket: Socket) => void): Promise<number> {
  return await listenFor(
    t,
    createServer((socket) => {
      socket.once("data", () => serve(socket));
    }),
  );
}

test("who never answers, or answers a byte at a time, is given up when the time is over", async (t) => {
  const bytes = "HTTP/1.1 200 OK\r\nX-Long: ";
  const servers: readonly ((socket: Socket) => void)[] = [
    () => {},
    (socket) => {
      let at = 0;
      const timer = setInterval(() => socket.write(bytes[at++] ?? "x"), 5);
      socket.on("close", () => clearInterval(timer));
    },
    // Interim answers (RFC 9110 section 15.2) without end.
    (socket) => {
      const timer = setInterval(() => socket.write("HTTP/1.1 103 Early Hints\r\n\r\n"), 5);
      socket.on("close", () => clearInterval(timer));
    },
  ];
  const post = posterFor(t);
  for (const serve of servers) {
    const port = await rawServer(t, serve);
    await assert.rejects(post(port, { timeoutMs: 200 }), (error) => errorCode(error) === "ETIMEDOUT");
  }
});

test("who resets, hangs up, switches protocols or speaks none at all is a failure", async (t) => {
  const servers: readonly ((socket: Socket) => void)[] = [
    (socket) => socket.resetAndDestroy(),
    (socket) => socket.end(),
    (socket) => socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"),
    (socket) => socket.end("SSH-2.0-x\r\n"),
    (socket) => socket.end(`HTTP/1.1 200 OK\r\nX-Long: ${"x".repeat(100_000)}\r\n\r\n`),
  ];
  const post = posterFor(t);
  for (const serve of servers) await assert.rejects(post(await rawServer(t, serve)));
  // Nobody listens there.
  await assert.rejects(post(1), /ECONNREFUSED/);
});

test("an answer cut off behind its head is an answer", async (t) => {
  const port = await rawServer(t, (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"));
  assert.equal(await posterFor(t)(port), 200);
});

test("a signal ends what is under way", async (t) => {
  const arrived = Promise.withResolvers<void>();
  const port = await rawServer(t, () => arrived.resolve());
  const ending = new AbortController();
  const posted = posterFor(t)(port, { signal: ending.signal });
  const rejected = assert.rejects(posted, { name: "AbortError" });
  await arrived.promise;
  ending.abort();
  await rejected;
});

test("a name is looked up, and one that does not exist is a failure", async (t) => {
  const { port } = await collect(t, (_, response) => response.writeHead(204).end());
  const post = posterFor(t);
  assert.equal(await post(port, { url: new URL(`http://localhost:${port}/`) }), 204);
  await assert.rejects(post(port, { url: new URL("http://nowhere.invalid/") }), /nowhere\.invalid/);
});
