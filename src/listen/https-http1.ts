/** DNS over HTTPS by HTTP/1.1 (RFC 9112). */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { COUNTER } from "../image/counters.ts";
import type { Reply } from "./https-answering.ts";
import {
  answerFields,
  type Book,
  collectBody,
  type HttpsConnection,
  type HttpsContext,
  openBook,
  refusalFields,
} from "./https-connection.ts";
import { readRequest } from "./https-request.ts";

type Served = { readonly book: Book; readonly address: Uint8Array };

/** Gives what serves connections, all of them by one server that listens nowhere. */
export function createHttp1(
  context: HttpsContext,
): (context: HttpsContext, socket: TLSSocket, address: Uint8Array) => HttpsConnection {
  const { counters, limits } = context;
  const served = new WeakMap<Socket, Served>();
  const server = createServer(
    // Times are looked at by `sweep`: the server's own begin when it listens.
    { maxHeaderSize: limits.headerBytes, keepAliveTimeout: limits.idleMs, requireHostHeader: true },
    (request, response) => {
      counters[COUNTER.HTTP1_REQUESTS]! += 1;
      const of = served.get(request.socket);
      if (of === undefined) request.socket.destroy();
      else serveRequest(context, of, request, response);
    },
  );
  server.on("clientError", (_, socket) => {
    counters[COUNTER.HTTPS_CUT]! += 1;
    socket.destroy();
  });
  return (_, socket, address) => {
    const book = openBook(context);
    served.set(socket, { book, address });
    const cut = () => {
      counters[COUNTER.HTTPS_CUT]! += 1;
      socket.destroy();
    };
    server.emit("connection", socket);
    return {
      sweep: (nowMs) => {
        const verdict = book.verdict(nowMs);
        if (verdict === "overdue") cut();
        else if (verdict === "idle") socket.destroy();
      },
      queuedBytes: () => book.queuedBytes() + socket.writableLength,
      cut,
      retire: () => void (book.queuedBytes() === 0 ? socket.destroySoon() : undefined),
    };
  };
}

function serveRequest(
  { counters, answering }: HttpsContext,
  { book, address }: Served,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const exchange = book.begin();
  response.once("close", () => book.end(exchange));
  request.on("error", () => {});
  response.on("error", () => {});
  const port = request.socket.remotePort ?? 0;
  const { headers } = request;
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  const reply: Reply = (answer) => {
    if (response.headersSent || response.destroyed) return;
    // A body that nobody reads must not keep the connection.
    if (hasBody && !request.complete) response.setHeader("connection", "close");
    if (typeof answer === "number") {
      response.writeHead(answer, refusalFields(counters, answer));
      return void response.end();
    }
    book.hold(exchange, answer.bytes.length);
    response.writeHead(200, answerFields(answer));
    response.end(answer.bytes);
  };
  const asked = readRequest({
    method: request.method ?? "",
    target: request.url ?? "",
    contentType: headers["content-type"],
    contentLength: headers["content-length"],
  });
  if (asked.kind === "refused") reply(asked.status);
  else if (book.isFull()) reply(503);
  else if (asked.kind === "message") answering.answer(asked.message, address, port, reply);
  if (asked.kind !== "body" || response.headersSent) return;
  const body = collectBody(book, exchange);
  let isOver = false;
  request.on("data", (chunk: Buffer) => {
    if (isOver || body.add(chunk)) return;
    isOver = true;
    reply(413);
  });
  request.on("end", () => {
    if (isOver) return;
    const message = body.end();
    if (typeof message === "number") reply(message);
    else answering.answer(message, address, port, reply);
  });
}
