/** Clients that send all of a large body before they read: each has to find its refusal, and no broken connection. */
import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { connect } from "node:tls";
import Type from "typebox";
import { route } from "../../src/api/route.ts";
import { Refusal } from "../../src/model/refusal.ts";
import { startApi, type TestApi } from "../support/api.ts";

const BODY_LIMIT = 10_000_000;
/** More than the buffers of both ends together hold. */
const BODY = Buffer.alloc(BODY_LIMIT + 1, "x");
const PIECE_BYTES = 65_536;

function startTarget(): Promise<TestApi> {
  const post = { tag: "t", summary: "Do", access: "editor", response: Type.Unknown(), method: "POST" } as const;
  const handle = () => ({ body: {} });
  const gone = () => {
    throw new Refusal("not_found", "there is no such thing");
  };
  return startApi(() => [
    route({ ...post, path: "/in", rawBody: ["text/dns"], bodyLimitBytes: BODY_LIMIT, handle }),
    route({ ...post, path: "/small", rawBody: ["text/dns"], bodyLimitBytes: 10, handle }),
    route({ ...post, path: "/large", rawBody: ["text/dns"], bodyLimitBytes: 2 * BODY_LIMIT, handle }),
    route({ ...post, path: "/gone", rawBody: ["text/dns"], find: gone, handle }),
  ]);
}

type Refused = { readonly path: string; readonly headers: string; readonly body?: Buffer; readonly status: number };

const GOOD = "Authorization: Bearer editor\r\nX-SVC-CSRF: 1\r\nContent-Type: text/dns\r\n";
const LENGTH = `Content-Length: ${BODY.length}\r\n`;
const CHUNKED = Buffer.concat([Buffer.from(`${BODY.length.toString(16)}\r\n`), BODY, Buffer.from("\r\n0\r\n\r\n")]);

const REFUSED: Readonly<Record<string, Refused>> = {
  "a declared length over the limit": { path: "/in", headers: GOOD + LENGTH, status: 413 },
  "far over the limit": { path: "/small", headers: GOOD + LENGTH, status: 413 },
  "chunks over the limit": {
    path: "/in",
    headers: `${GOOD}Transfer-Encoding: chunked\r\n`,
    body: CHUNKED,
    status: 413,
  },
  "no credentials": { path: "/in", headers: GOOD.replace(/^.*\r\n/, "") + LENGTH, status: 401 },
  "too small a role": { path: "/in", headers: GOOD.replace("editor", "readonly") + LENGTH, status: 403 },
  "no such thing": { path: "/gone", headers: GOOD + LENGTH, status: 404 },
  "no such path": { path: "/nowhere", headers: GOOD + LENGTH, status: 404 },
  "another media type": { path: "/large", headers: GOOD.replace("text/dns", "text/html") + LENGTH, status: 415 },
  "a parameter that is none": { path: "/in?x=1", headers: GOOD + LENGTH, status: 400 },
};

/** Sends all, then reads all, as http.client of Python does. Rejects where the connection breaks before its end. */
async function sendThenRead(api: TestApi, text: string, body: Buffer): Promise<string> {
  const { port } = api.server;
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] });
  await once(socket, "secureConnect");
  const broken = once(socket, "error").then(([error]) => Promise.reject(error));
  const talk = async (): Promise<string> => {
    socket.write(text);
    for (let at = 0; at < body.length; at += PIECE_BYTES) {
      if (!socket.write(body.subarray(at, at + PIECE_BYTES))) await once(socket, "drain");
    }
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    await once(socket, "end");
    return Buffer.concat(chunks).toString();
  };
  try {
    return await Promise.race([talk(), broken]);
  } finally {
    broken.catch(() => {});
    socket.destroy();
  }
}

for (const version of ["1.1", "1.0"]) {
  test(`a refusal reaches a client of HTTP/${version} that sends all of its body first, also with Connection: close`, async () => {
    await using api = await startTarget();
    for (const [what, { path, headers, body = BODY, status }] of Object.entries(REFUSED)) {
      // HTTP/1.0 has no chunks (RFC 9112 section 6.1).
      if (version === "1.0" && body === CHUNKED) continue;
      const head = `POST /api/v1${path} HTTP/${version}\r\nHost: a\r\nConnection: close\r\n${headers}\r\n`;
      const answer = await sendThenRead(api, head, body).catch((error: unknown) => assert.fail(`${what}: ${error}`));
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), what);
      assert.equal(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n"))).status, status, what);
    }
    assert.equal(api.server.requestsUnderWay(), 0);
  });
}
