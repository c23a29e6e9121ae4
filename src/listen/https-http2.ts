/** DNS over HTTPS by HTTP/2 (RFC 9113). */
import { constants, performServerHandshake, type ServerHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";
import { COUNTER } from "../image/counters.ts";
import type { Reply } from "./https-answering.ts";
import {
  answerFields,
  collectBody,
  type HttpsConnection,
  type HttpsContext,
  openBook,
  refusalFields,
} from "./https-connection.ts";
import { readRequest } from "./https-request.ts";
import type { HttpsLimits } from "./limits.ts";

const { NGHTTP2_NO_ERROR } = constants;

function sessionOptions(limits: HttpsLimits) {
  return {
    maxSessionMemory: limits.sessionMemoryMb,
    maxSessionInvalidFrames: limits.maxFaults,
    maxSessionRejectedStreams: limits.maxFaults,
    streamResetBurst: limits.resetBurst,
    streamResetRate: limits.resetsPerSecond,
    settings: {
      enablePush: false,
      maxConcurrentStreams: limits.maxStreams,
      maxHeaderListSize: limits.headerBytes,
    },
  };
}

/** Serves a connection until it is closed; `address` is the client's. */
export function serveHttp2(context: HttpsContext, socket: TLSSocket, address: Uint8Array): HttpsConnection {
  const { counters, limits, answering } = context;
  const port = socket.remotePort ?? 0;
  const book = openBook(context);
  const session = performServerHandshake(socket, sessionOptions(limits));
  const cut = () => {
    counters[COUNTER.HTTPS_CUT]! += 1;
    session.destroy();
    socket.destroy();
  };
  // The library ends a session whose client breaks the rules or floods it.
  session.on("error", () => {
    counters[COUNTER.HTTPS_CUT]! += 1;
    socket.destroy();
  });
  session.on("stream", (stream, headers, flags) => {
    counters[COUNTER.HTTP2_REQUESTS]! += 1;
    const exchange = book.begin();
    stream.on("error", () => {});
    stream.once("close", () => book.end(exchange));
    const hasEnded = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    const reply: Reply = (answer) => {
      if (stream.destroyed || stream.headersSent) return;
      if (typeof answer === "number") {
        stream.respond({ ":status": answer, ...refusalFields(counters, answer) }, { endStream: true });
      } else {
        book.hold(exchange, answer.length);
        stream.respond({ ":status": 200, ...answerFields(answer) });
        stream.end(answer);
      }
      // RFC 9113 section 8.1: the client is asked to send no more of its request.
      if (!hasEnded && !stream.readableEnded) stream.once("finish", () => stream.close(NGHTTP2_NO_ERROR));
    };
    const asked = readRequest({
      method: headers[":method"] ?? "",
      target: headers[":path"] ?? "",
      contentType: headers["content-type"],
      contentLength: headers["content-length"],
    });
    if (asked.kind === "refused") return reply(asked.status);
    if (book.isFull()) return reply(503);
    if (asked.kind === "message") return answering.answer(asked.message, address, port, reply);
    takeBody(stream, collectBody(book, exchange), reply, (message) => answering.answer(message, address, port, reply));
  });
  return {
    sweep: (nowMs) => {
      const verdict = book.verdict(nowMs);
      if (verdict === "overdue") cut();
      else if (verdict === "idle") session.close();
    },
    queuedBytes: book.queuedBytes,
    cut,
    retire: () => session.close(),
  };
}

function takeBody(
  stream: ServerHttp2Stream,
  body: ReturnType<typeof collectBody>,
  reply: Reply,
  onMessage: (message: Buffer) => void,
): void {
  let isOver = false;
  stream.on("data", (chunk: Buffer) => {
    if (isOver || body.add(chunk)) return;
    isOver = true;
    reply(413);
  });
  stream.on("end", () => {
    if (isOver) return;
    const message = body.end();
    if (typeof message === "number") reply(message);
    else onMessage(message);
  });
}
