/** Clients over HTTP that break rules or flood: each is cut within its limit, and the others do not notice. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { TLSSocket } from "node:tls";
import { type HttpsLab, openHttpsLab } from "../../tests/support/https-lab.ts";
import { ACTION, testQuery } from "../../tests/support/listen/fake-answerer.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { COUNTER } from "../image/counters.ts";
import {
  FRAME,
  FRAME_FLAG,
  FRAME_HEADER_BYTES,
  HTTP2_ERROR,
  makeFrame,
  makeNumbersFrame,
  makeSettings,
  PREFACE,
  SETTING,
} from "./http2-frames.ts";
import { HTTPS_LIMITS } from "./limits.ts";

const FILL = new Array<number>(20).fill(0);
const NOTHING = Buffer.alloc(0);
const END = FRAME_FLAG.END_HEADERS | FRAME_FLAG.END_STREAM;
const HELLO = Buffer.concat([PREFACE, makeSettings([])]);

/** Fields in plain text, each new. */
function fields(given: Readonly<Record<string, string>>): Buffer {
  const text = (value: string) => {
    const bytes = Buffer.from(value, "latin1");
    assert.ok(bytes.length < 127);
    return Buffer.concat([Buffer.of(bytes.length), bytes]);
  };
  return Buffer.concat(
    Object.entries(given).map(([name, value]) => Buffer.concat([Buffer.of(0), text(name), text(value)])),
  );
}

function getFrame(stream: number, query: Buffer): Buffer {
  const path = `/dns-query?dns=${query.toString("base64url")}`;
  return makeFrame(FRAME.HEADERS, END, stream, fields({ ":method": "GET", ":path": path }));
}

const POST = fields({ ":method": "POST", ":path": "/dns-query", "content-type": "application/dns-message" });
const ECHO = testQuery(1, ACTION.ECHO, ...FILL);

type Frames = { readonly type: number; readonly flags: number; readonly stream: number; readonly payload: Buffer }[];

/** A connection of one's own making. */
type Raw = { readonly socket: TLSSocket; readonly frames: () => Frames; readonly isClosed: () => boolean };

async function openRaw(lab: HttpsLab, first: Buffer = HELLO): Promise<Raw> {
  const socket = await lab.connect();
  let received = NOTHING;
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
  });
  socket.write(first);
  const frames = () => {
    const found: Frames = [];
    for (let at = 0; at + FRAME_HEADER_BYTES <= received.length; ) {
      const end = at + FRAME_HEADER_BYTES + received.readUIntBE(at, 3);
      const stream = received.readUInt32BE(at + 5);
      const payload = received.subarray(at + FRAME_HEADER_BYTES, end);
      found.push({ type: received[at + 3] ?? -1, flags: received[at + 4] ?? 0, stream, payload });
      at = end;
    }
    return found;
  };
  return { socket, frames, isClosed: () => socket.destroyed || socket.readableEnded };
}

function errorsOf(raw: Raw): number[] {
  return raw
    .frames()
    .filter(({ type }) => type === FRAME.GOAWAY)
    .map(({ payload }) => payload.readUInt32BE(4));
}

async function isCutWith(lab: HttpsLab, raw: Raw, error: number): Promise<void> {
  const before = lab.counter(COUNTER.HTTPS_CUT);
  await waitFor("the connection is ended", 5_000, raw.isClosed);
  assert.deepEqual(errorsOf(raw), [error]);
  assert.ok(lab.counter(COUNTER.HTTPS_CUT) >= Math.max(before, 1));
}

/** Somebody else is answered. */
async function answersOthers(lab: HttpsLab): Promise<void> {
  const other = await openRaw(lab);
  other.socket.write(getFrame(1, ECHO));
  await waitFor("another client is answered", 5_000, () => other.frames().some(({ type }) => type === FRAME.DATA));
  other.socket.destroy();
}

const setting = (name: number, value: number) => makeSettings([[name, value]]);
const repeat = (frame: Buffer, times: number) => Buffer.concat(new Array<Buffer>(times).fill(frame));
const open = makeFrame(FRAME.HEADERS, FRAME_FLAG.END_HEADERS, 1, POST);

const BROKEN: readonly (readonly [what: string, bytes: Buffer, error: number])[] = [
  [
    "a frame of more than 16,384 bytes",
    makeFrame(FRAME.DATA, 0, 1, Buffer.alloc(16_385)),
    HTTP2_ERROR.FRAME_SIZE_ERROR,
  ],
  ["a stream with an even number", makeFrame(FRAME.HEADERS, END, 2, POST), HTTP2_ERROR.PROTOCOL_ERROR],
  ["fields of no stream", makeFrame(FRAME.HEADERS, END, 0, POST), HTTP2_ERROR.PROTOCOL_ERROR],
  ["a body of no request", makeFrame(FRAME.DATA, 0, 1, NOTHING), HTTP2_ERROR.PROTOCOL_ERROR],
  ["a reset of no request", makeNumbersFrame(FRAME.RST_STREAM, 1, 8), HTTP2_ERROR.PROTOCOL_ERROR],
  [
    "a reset of no length",
    Buffer.concat([open, makeFrame(FRAME.RST_STREAM, 0, 1, NOTHING)]),
    HTTP2_ERROR.FRAME_SIZE_ERROR,
  ],
  ["fields that cannot be decoded", makeFrame(FRAME.HEADERS, END, 1, Buffer.of(0x80)), HTTP2_ERROR.COMPRESSION_ERROR],
  [
    "padding longer than its frame",
    makeFrame(FRAME.HEADERS, END | FRAME_FLAG.PADDED, 1, Buffer.of(9, 1)),
    HTTP2_ERROR.PROTOCOL_ERROR,
  ],
  ["a continuation of nothing", makeFrame(FRAME.CONTINUATION, 4, 1, POST), HTTP2_ERROR.PROTOCOL_ERROR],
  [
    "another frame inside of fields",
    Buffer.concat([makeFrame(FRAME.HEADERS, 0, 1, POST), makeSettings([])]),
    HTTP2_ERROR.PROTOCOL_ERROR,
  ],
  ["a push", makeFrame(FRAME.PUSH_PROMISE, 4, 1, POST), HTTP2_ERROR.PROTOCOL_ERROR],
  ["settings of a stream", makeFrame(FRAME.SETTINGS, 0, 1, NOTHING), HTTP2_ERROR.PROTOCOL_ERROR],
  ["settings of five bytes", makeFrame(FRAME.SETTINGS, 0, 0, Buffer.alloc(5)), HTTP2_ERROR.FRAME_SIZE_ERROR],
  ["a window that is too large", setting(SETTING.INITIAL_WINDOW_SIZE, 2 ** 31), HTTP2_ERROR.FLOW_CONTROL_ERROR],
  ["frames that are too small", setting(SETTING.MAX_FRAME_SIZE, 16_383), HTTP2_ERROR.PROTOCOL_ERROR],
  ["a push neither on nor off", setting(SETTING.ENABLE_PUSH, 2), HTTP2_ERROR.PROTOCOL_ERROR],
  ["a ping of seven bytes", makeFrame(FRAME.PING, 0, 0, Buffer.alloc(7)), HTTP2_ERROR.FRAME_SIZE_ERROR],
  ["a window that is widened by nothing", makeNumbersFrame(FRAME.WINDOW_UPDATE, 0, 0), HTTP2_ERROR.PROTOCOL_ERROR],
  [
    "a window that is widened too far",
    makeNumbersFrame(FRAME.WINDOW_UPDATE, 0, 2 ** 31 - 1),
    HTTP2_ERROR.FLOW_CONTROL_ERROR,
  ],
];

test("what breaks the rules of HTTP/2 ends its connection with the error of RFC 9113", async () => {
  await using lab = await openHttpsLab();
  for (const [what, bytes, error] of BROKEN) {
    const raw = await openRaw(lab);
    raw.socket.write(bytes);
    await waitFor(`${what} ends the connection`, 5_000, raw.isClosed);
    assert.deepEqual(errorsOf(raw), [error], what);
  }
  assert.equal(lab.counter(COUNTER.HTTPS_CUT), BROKEN.length);
  await answersOthers(lab);
});

test("another protocol, or HTTP/2 without settings, is no connection", async () => {
  await using lab = await openHttpsLab();
  for (const first of [Buffer.from("GET / HTTP/1.1\r\n\r\n"), Buffer.concat([PREFACE, getFrame(1, ECHO)])]) {
    await isCutWith(lab, await openRaw(lab, first), HTTP2_ERROR.PROTOCOL_ERROR);
  }
});

const FLOODS: readonly (readonly [what: string, bytes: Buffer])[] = [
  ["pings", repeat(makeFrame(FRAME.PING, 0, 0, Buffer.alloc(8)), 1_000)],
  ["settings", repeat(makeSettings([]), 1_000)],
  ["priorities", repeat(makeFrame(FRAME.PRIORITY, 0, 1, Buffer.alloc(5)), 1_000)],
  ["frames that nobody knows", repeat(makeFrame(0x55, 0, 0, NOTHING), 1_000)],
  ["empty pieces of a body", Buffer.concat([open, repeat(makeFrame(FRAME.DATA, 0, 1, NOTHING), 1_000)])],
  ["windows widened byte by byte", repeat(makeNumbersFrame(FRAME.WINDOW_UPDATE, 0, 1), 1_000)],
  [
    "endless continuations",
    Buffer.concat([makeFrame(FRAME.HEADERS, 0, 1, NOTHING), repeat(makeFrame(FRAME.CONTINUATION, 0, 1, NOTHING), 100)]),
  ],
  [
    "fields of 17,000 bytes",
    Buffer.concat([
      makeFrame(FRAME.HEADERS, 0, 1, Buffer.alloc(16_000)),
      makeFrame(FRAME.CONTINUATION, 4, 1, Buffer.alloc(1_000)),
    ]),
  ],
  [
    "requests taken back at once",
    Buffer.concat(
      Array.from({ length: 1_000 }, (_, index) => [
        makeFrame(FRAME.HEADERS, FRAME_FLAG.END_HEADERS, index * 2 + 1, POST),
        makeNumbersFrame(FRAME.RST_STREAM, index * 2 + 1, 8),
      ]).flat(),
    ),
  ],
  [
    "more requests than may be open",
    Buffer.concat(
      Array.from({ length: 1_000 }, (_, index) =>
        makeFrame(FRAME.HEADERS, FRAME_FLAG.END_HEADERS, index * 2 + 1, POST),
      ),
    ),
  ],
];

test("floods end with ENHANCE_YOUR_CALM, and nobody else notices", async () => {
  await using lab = await openHttpsLab();
  for (const [what, bytes] of FLOODS) {
    const raw = await openRaw(lab);
    raw.socket.write(bytes);
    await waitFor(`${what} end the connection`, 5_000, raw.isClosed);
    assert.deepEqual(errorsOf(raw), [HTTP2_ERROR.ENHANCE_YOUR_CALM], what);
    await answersOthers(lab);
  }
});

test("a refused request is answered at the end of its body, so that nobody who still sends it is reset", async () => {
  await using lab = await openHttpsLab();
  const raw = await openRaw(lab);
  const wrong = fields({ ":method": "POST", ":path": "/dns-query", "content-type": "text/plain" });
  raw.socket.write(makeFrame(FRAME.HEADERS, FRAME_FLAG.END_HEADERS, 1, wrong));
  raw.socket.write(getFrame(3, ECHO));
  await waitFor("the next one is answered", 5_000, () => raw.frames().some(({ stream }) => stream === 3));
  assert.ok(raw.frames().every(({ stream }) => stream !== 1));
  raw.socket.write(makeFrame(FRAME.DATA, FRAME_FLAG.END_STREAM, 1, Buffer.from("x")));
  const ofFirst = () => raw.frames().filter(({ stream }) => stream === 1);
  await waitFor("it is answered", 5_000, () => ofFirst().length > 0);
  assert.deepEqual(
    ofFirst().map(({ type, flags }) => [type, flags]),
    [[FRAME.HEADERS, END]],
  );
  raw.socket.destroy();
});

test("a body that is too long is answered at its end, and where it has none for long the client is told to stop", async () => {
  await using lab = await openHttpsLab({ limits: { passedBytes: 32_768 } });
  const raw = await openRaw(lab);
  const of = (stream: number) =>
    raw
      .frames()
      .filter((frame) => frame.stream === stream)
      .map(({ type }) => type);
  const isAnswered = (stream: number) => waitFor("it is answered", 5_000, () => of(stream).length > 0);
  const piece = (stream: number, flags = 0) => makeFrame(FRAME.DATA, flags, stream, Buffer.alloc(16_384));
  const begin = (stream: number, more: Buffer = NOTHING) =>
    makeFrame(FRAME.HEADERS, FRAME_FLAG.END_HEADERS, stream, Buffer.concat([POST, more]));
  // The first 65,535 bytes could be a message; of the rest as many are passed over.
  raw.socket.write(Buffer.concat([begin(1), repeat(piece(1), 5), getFrame(3, ECHO)]));
  await isAnswered(3);
  assert.deepEqual(of(1), []);
  raw.socket.write(piece(1, FRAME_FLAG.END_STREAM));
  await isAnswered(1);
  // What says that it is longer is answered at once, and what becomes so when it does: one stops by itself, the other does not.
  raw.socket.write(begin(5, fields({ "content-length": "65536" })));
  raw.socket.write(Buffer.concat([begin(7), repeat(piece(7), 8)]));
  await isAnswered(5);
  await isAnswered(7);
  const pings = () => raw.frames().filter(({ type, flags }) => type === FRAME.PING && flags === 0).length;
  assert.equal(pings(), 0);
  raw.socket.write(makeFrame(FRAME.DATA, FRAME_FLAG.END_STREAM, 5, NOTHING));
  await waitFor("there is a frame behind its end", 5_000, () => pings() === 1);
  lab.pass(HTTPS_LIMITS.unheardMs);
  await waitFor("the other is told to stop", 5_000, () => of(7).includes(FRAME.RST_STREAM));
  assert.deepEqual([of(1), of(5), of(7)], [[FRAME.HEADERS], [FRAME.HEADERS], [FRAME.HEADERS, FRAME.RST_STREAM]]);
});

test("requests beyond those that may be open are refused, and the client may ask again", async () => {
  await using lab = await openHttpsLab({ limits: { maxStreams: 2 } });
  const raw = await openRaw(lab);
  for (const stream of [1, 3, 5]) raw.socket.write(makeFrame(FRAME.HEADERS, FRAME_FLAG.END_HEADERS, stream, POST));
  const resets = () => raw.frames().filter(({ type }) => type === FRAME.RST_STREAM);
  await waitFor("one is refused", 5_000, () => resets().length > 0);
  assert.deepEqual(
    resets().map(({ stream, payload }) => [stream, payload.readUInt32BE(0)]),
    [[5, HTTP2_ERROR.REFUSED_STREAM]],
  );
  raw.socket.write(makeFrame(FRAME.DATA, FRAME_FLAG.END_STREAM, 1, ECHO));
  await waitFor("the first is answered", 5_000, () =>
    raw.frames().some(({ type, stream }) => type === FRAME.DATA && stream === 1),
  );
  raw.socket.write(getFrame(7, ECHO));
  await waitFor("there is room again", 5_000, () =>
    raw.frames().some(({ type, stream }) => type === FRAME.DATA && stream === 7),
  );
});

async function isCutBy(lab: HttpsLab, raw: Raw, ms: number): Promise<void> {
  const cut = lab.counter(COUNTER.HTTPS_CUT);
  lab.pass(ms);
  await waitFor("the connection is cut", 5_000, raw.isClosed);
  assert.equal(lab.counter(COUNTER.HTTPS_CUT), cut + 1);
}

test("a body that does not come to its end is cut", async () => {
  await using lab = await openHttpsLab();
  const raw = await openRaw(lab, Buffer.concat([HELLO, open, makeFrame(FRAME.DATA, 0, 1, Buffer.alloc(5))]));
  await waitFor("the request has begun", 5_000, () => lab.counter(COUNTER.HTTP2_REQUESTS) === 1);
  lab.pass(HTTPS_LIMITS.requestMs - 2_000);
  await answersOthers(lab);
  assert.ok(!raw.isClosed());
  await isCutBy(lab, raw, 2_000);
});

test("an answer whose window stays shut is cut, whatever pings come", async () => {
  await using lab = await openHttpsLab();
  const shut = Buffer.concat([PREFACE, setting(SETTING.INITIAL_WINDOW_SIZE, 0), getFrame(1, ECHO)]);
  const raw = await openRaw(lab, shut);
  await waitFor("the fields have come", 5_000, () => raw.frames().some(({ type }) => type === FRAME.HEADERS));
  raw.socket.write(makeFrame(FRAME.PING, 0, 0, Buffer.alloc(8)));
  await waitFor("the ping is answered", 5_000, () => raw.frames().some(({ type }) => type === FRAME.PING));
  assert.ok(raw.frames().every(({ type }) => type !== FRAME.DATA));
  await isCutBy(lab, raw, HTTPS_LIMITS.requestMs);
});

test("who leaves too much untaken is refused more", async () => {
  await using lab = await openHttpsLab();
  const large = testQuery(1, ACTION.LONG, 0xff, 0xff, ...FILL);
  const asked = Array.from({ length: 40 }, (_, index) => getFrame(index * 2 + 1, large));
  const raw = await openRaw(lab, Buffer.concat([PREFACE, setting(SETTING.INITIAL_WINDOW_SIZE, 0), ...asked]));
  const answers = () => raw.frames().filter(({ type }) => type === FRAME.HEADERS);
  await waitFor("all are answered", 5_000, () => answers().length === 40);
  const refused = answers().filter(({ payload }) => payload.subarray(0, 5).toString("hex") === "0803353033");
  assert.ok(refused.length >= 20 && refused.length <= 25, String(refused.length));
});

test("who takes nothing from the socket is read from no more, and cut", async () => {
  await using lab = await openHttpsLab();
  const raw = await openRaw(lab, Buffer.concat([HELLO, makeNumbersFrame(FRAME.WINDOW_UPDATE, 0, 2 ** 30)]));
  raw.socket.pause();
  const large = testQuery(1, ACTION.LONG, 0xf0, 0x00, ...FILL);
  const asked = Array.from({ length: 5_000 }, (_, index) => getFrame(index * 2 + 1, large));
  for (const frame of asked) raw.socket.write(frame);
  let taken = -1;
  await waitFor(
    "nothing more is read",
    10_000,
    () => {
      const before = taken;
      taken = lab.counter(COUNTER.HTTP2_REQUESTS);
      return taken > 0 && taken === before;
    },
    200,
  );
  assert.ok(taken < asked.length, String(taken));
  await answersOthers(lab);
  lab.pass(HTTPS_LIMITS.requestMs);
  await waitFor("it is cut", 10_000, () => lab.counter(COUNTER.HTTPS_CUT) === 1);
});

test("without a request a connection is closed in peace after a time, over either version", async () => {
  await using lab = await openHttpsLab();
  const raw = await openRaw(lab);
  const plain = await lab.connect({ ALPNProtocols: ["http/1.1"] });
  plain.resume();
  await waitFor("both are open", 5_000, () => lab.counter(COUNTER.CONNECTIONS_OPEN) === 2);
  lab.pass(HTTPS_LIMITS.idleMs);
  await waitFor("both are closed", 5_000, () => raw.isClosed() && (plain.destroyed || plain.readableEnded));
  assert.deepEqual(errorsOf(raw), [HTTP2_ERROR.NO_ERROR]);
  assert.equal(lab.counter(COUNTER.HTTPS_CUT), 0);
});

test("HTTP/1.1: unfinished heads, endless fields and unfinished bodies are cut", async () => {
  await using lab = await openHttpsLab();
  const head = "POST /dns-query HTTP/1.1\r\nhost: x\r\ncontent-type: application/dns-message\r\n";
  const slow = ["GET /dns-query HTTP/1.1\r\nhost: x\r\nx: ", `${head}content-length: 100\r\n\r\nabc`];
  const sockets = await Promise.all(slow.map(() => lab.connect({ ALPNProtocols: ["http/1.1"] })));
  for (const [index, socket] of sockets.entries()) {
    socket.resume();
    socket.write(slow[index] ?? "");
  }
  const endless = await lab.connect({ ALPNProtocols: ["http/1.1"] });
  endless.resume();
  endless.write(`GET /dns-query HTTP/1.1\r\nhost: x\r\n${"x: yyyyyyyyyyyyyyyy\r\n".repeat(2_000)}\r\n`);
  await once(endless, "close");
  await waitFor("the body is waited for", 5_000, () => lab.counter(COUNTER.HTTP1_REQUESTS) === 1);
  lab.pass(HTTPS_LIMITS.idleMs);
  await waitFor("they are closed", 5_000, () => sockets.every(({ destroyed }) => destroyed));
  await answersOthers(lab);
});

test("a node that stops says so, and what is under way is answered", async () => {
  await using lab = await openHttpsLab();
  const raw = await openRaw(lab, Buffer.concat([HELLO, open]));
  await waitFor("the request has begun", 5_000, () => lab.counter(COUNTER.HTTP2_REQUESTS) === 1);
  const drained = lab.drain();
  await waitFor("the client is told", 5_000, () => errorsOf(raw).length === 1);
  raw.socket.write(makeFrame(FRAME.DATA, FRAME_FLAG.END_STREAM, 1, ECHO));
  await drained;
  await waitFor("the connection is closed", 5_000, raw.isClosed);
  assert.ok(raw.frames().some(({ type }) => type === FRAME.DATA));
});
