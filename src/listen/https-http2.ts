/**
 * DNS over HTTPS by HTTP/2 (RFC 9113), of which it speaks what one small request and one answer need: what a client may make
 * the node do is in the limits, and an answer costs little beside its encryption.
 */
import type { TLSSocket } from "node:tls";
import { COUNTER } from "../image/counters.ts";
import { type AnswerFieldName, encodeFields } from "./http2-fields.ts";
import {
  FRAME,
  HTTP2_ERROR,
  type Http2Error,
  makeFrame,
  makeNumbersFrame,
  makeSettings,
  SETTING,
} from "./http2-frames.ts";
import { createHttp2Input } from "./http2-input.ts";
import { createHttp2Output, type Http2Output } from "./http2-output.ts";
import { createUnheardStreams, type UnheardStreams } from "./http2-unheard.ts";
import type { DohAnswer, Reply } from "./https-answering.ts";
import {
  type Body,
  type Book,
  collectBody,
  type Exchange,
  freshness,
  type HttpsConnection,
  type HttpsContext,
  openBook,
  passOverBody,
} from "./https-connection.ts";
import { DOH_MEDIA_TYPE, DOH_METHODS, type RefusedStatus, readRequest } from "./https-request.ts";
import type { HttpsLimits } from "./limits.ts";

/** A body that is heard out fits into the first window of its stream, with usual padding: that is never made wider. */
const STREAM_WINDOW = 2 ** 21;
/** Frames that the client does not take, in bytes, above which nothing more is read. */
const OUTPUT_BYTES_MAX = 2 ** 17;

/** A request under way. */
type Request = {
  readonly exchange: Exchange;
  body: Body | undefined;
  isHeardOut: boolean;
};

type Session = {
  readonly context: HttpsContext;
  readonly output: Http2Output;
  readonly book: Book;
  readonly requests: Map<number, Request>;
  readonly unheard: UnheardStreams;
  readonly address: Uint8Array;
  readonly port: number;
  lastStream: number;
};

function ownSettings({ maxStreams, headerBytes }: HttpsLimits): Buffer {
  return makeSettings([
    [SETTING.MAX_CONCURRENT_STREAMS, maxStreams],
    [SETTING.INITIAL_WINDOW_SIZE, STREAM_WINDOW],
    [SETTING.MAX_HEADER_LIST_SIZE, headerBytes],
  ]);
}

/** Serves a connection until it is closed; `address` is the client's. */
export function serveHttp2(context: HttpsContext, socket: TLSSocket, address: Uint8Array): HttpsConnection {
  const { counters, limits, now } = context;
  /** No further request is taken; */
  let isLeaving = false;
  /** nothing is read any more. */
  let isOver = false;
  const leaveWhenDone = () => {
    if (isOver) socket.end();
    else if (isLeaving && session.book.isIdle() && output.waitingBytes() === 0 && !session.unheard.resetAll()) {
      socket.destroySoon();
    }
  };
  const output = createHttp2Output(socket, () => {
    if (socket.isPaused()) socket.resume();
    leaveWhenDone();
  });
  const session: Session = {
    ...{ context, output, address, port: socket.remotePort ?? 0, lastStream: 0 },
    book: openBook(context),
    requests: new Map(),
    unheard: createUnheardStreams({
      reset: (stream) => output.control(makeNumbersFrame(FRAME.RST_STREAM, stream, HTTP2_ERROR.NO_ERROR)),
      waitMs: limits.unheardMs,
      max: limits.maxStreams,
      now,
    }),
  };
  const input = createHttp2Input({
    output,
    requests: {
      onRequest: (stream, fields, isLast) => !isLeaving && takeRequest(session, stream, fields, isLast),
      onBody: (stream, chunk, isLast) => takeBody(session, stream, chunk, isLast),
      onReset: (stream) => forget(session, stream),
    },
    headerBytes: limits.headerBytes,
    idleBurst: limits.idleBurst,
    idlePerSecond: limits.idlePerSecond,
    now,
  });
  const say = (error: Http2Error) => output.control(makeNumbersFrame(FRAME.GOAWAY, 0, session.lastStream, error));
  const cut = () => {
    counters[COUNTER.HTTPS_CUT]! += 1;
    socket.destroy();
  };
  const leave = () => {
    if (isLeaving || isOver) return;
    isLeaving = true;
    say(HTTP2_ERROR.NO_ERROR);
    leaveWhenDone();
  };
  output.control(ownSettings(limits));
  socket.on("data", (chunk: Buffer) => {
    if (isOver) return;
    const outcome = input(chunk);
    if (outcome === "left") return leave();
    if (outcome === undefined) return void (output.waitingBytes() > OUTPUT_BYTES_MAX && socket.pause());
    counters[COUNTER.HTTPS_CUT]! += 1;
    isOver = true;
    say(outcome);
    // Closed at once, with bytes unread, the connection would be reset before the client has heard why.
    setTimeout(() => socket.destroy(), limits.lingerMs).unref();
  });
  socket.once("close", () => {
    for (const stream of [...session.requests.keys()]) forget(session, stream);
  });
  return {
    sweep: (nowMs) => {
      session.unheard.sweep(nowMs);
      const verdict = session.book.verdict(nowMs);
      if (verdict === "overdue") cut();
      else if (verdict === "idle" && isLeaving) socket.destroy();
      else if (verdict === "idle") leave();
    },
    queuedBytes: () => session.book.queuedBytes() + output.waitingBytes(),
    cut,
    retire: leave,
  };
}

type Fields = Parameters<Parameters<typeof createHttp2Input>[0]["requests"]["onRequest"]>[1];

/** False: there are too many. */
function takeRequest(session: Session, stream: number, fields: Fields, isLast: boolean): boolean {
  const { context, requests, book, address, port } = session;
  session.lastStream = stream;
  if (requests.size >= context.limits.maxStreams) return false;
  context.counters[COUNTER.HTTP2_REQUESTS]! += 1;
  const request: Request = { exchange: book.begin(), body: undefined, isHeardOut: isLast };
  requests.set(stream, request);
  const asked = readRequest({ ...fields, method: fields.method ?? "", target: fields.target ?? "" });
  const reply: Reply = (answer) => answerRequest(session, stream, answer);
  const isEndless = Number(fields.contentLength) > context.limits.passedBytes;
  if (asked.kind === "refused" && !isLast && !isEndless) request.body = passOverBody(asked.status, context.limits);
  else if (asked.kind === "refused") reply(asked.status);
  else if (book.isFull()) reply(503);
  else if (asked.kind === "message") context.answering.answer(asked.message, address, port, reply);
  else if (isLast) reply(400);
  else request.body = collectBody(book, request.exchange);
  return true;
}

function takeBody(session: Session, stream: number, chunk: Buffer, isLast: boolean): void {
  // curl 7.88 stops sending when it sees the status, and then waits for another frame, whichever, before it looks further.
  if (isLast && session.unheard.end(stream)) session.output.control(makeFrame(FRAME.PING, 0, 0, PING));
  const request = session.requests.get(stream);
  if (request === undefined) return;
  request.isHeardOut = isLast;
  const { body } = request;
  if (body === undefined) return;
  const reply: Reply = (answer) => answerRequest(session, stream, answer);
  const hasRoom = body.add(Buffer.from(chunk));
  if (hasRoom && !isLast) return;
  if (!hasRoom && !isLast && body.kind === "collected") {
    session.book.hold(request.exchange, 0);
    request.body = passOverBody(413, session.context.limits);
    return;
  }
  request.body = undefined;
  const message = hasRoom ? body.end() : 413;
  if (typeof message === "number") reply(message);
  else session.context.answering.answer(message, session.address, session.port, reply);
}

function answerRequest(
  { context, output, requests, unheard, book }: Session,
  stream: number,
  answer: DohAnswer | RefusedStatus,
) {
  const request = requests.get(stream);
  // The client has taken it back, or has gone.
  if (request === undefined) return;
  requests.delete(stream);
  const { exchange, isHeardOut } = request;
  if (!isHeardOut) unheard.begin(stream);
  const onSent = () => {
    unheard.sent(stream);
    book.end(exchange);
  };
  if (typeof answer === "number") {
    context.counters[COUNTER.HTTPS_REFUSED]! += 1;
    return output.answer(stream, refusalBlock(answer, context.date()), NOTHING, onSent);
  }
  book.hold(exchange, answer.bytes.length);
  output.answer(stream, answerBlock(answer, context.date()), answer.bytes, onSent);
}

const NOTHING = Buffer.alloc(0);
const PING = Buffer.alloc(8);

function forget({ requests, unheard, book }: Session, stream: number): void {
  unheard.end(stream);
  const request = requests.get(stream);
  requests.delete(stream);
  if (request !== undefined) book.end(request.exchange);
}

function answerBlock(answer: DohAnswer, date: string): Buffer {
  return encodeFields(200, {
    "content-type": DOH_MEDIA_TYPE,
    "content-length": String(answer.bytes.length),
    "cache-control": freshness(answer),
    date,
  });
}

function refusalBlock(status: RefusedStatus, date: string): Buffer {
  const fields: Partial<Record<AnswerFieldName, string>> = {
    "content-length": "0",
    "cache-control": "no-store",
    date,
  };
  if (status === 405) fields.allow = DOH_METHODS;
  return encodeFields(status, fields);
}
