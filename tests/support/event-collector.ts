/** A real HTTP or HTTPS server that events are posted to, and what it was sent. */
import { once } from "node:events";
import {
  createServer as createPlain,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { createServer as createTls } from "node:https";
import type { AddressInfo } from "node:net";
import type { TestCertificate } from "./certificates.ts";

export type Posted = {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly atMs: number;
};

export type Answer = (posted: Posted, response: ServerResponse, index: number) => void;

export type EventCollector = AsyncDisposable & {
  readonly port: number;
  readonly posted: readonly Posted[];
};

export const ok: Answer = (_, response) => void response.writeHead(204).end();

/** Answers on a loopback address, each request when its body is whole. */
export async function startCollector(answer: Answer = ok, tls?: TestCertificate): Promise<EventCollector> {
  const posted: Posted[] = [];
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const body = Buffer.concat(chunks).toString("utf8");
      const one = { method, url, headers, body, atMs: performance.now() };
      posted.push(one);
      answer(one, response, posted.length - 1);
    });
  };
  const server = tls === undefined ? createPlain(handle) : createTls({ cert: tls.cert, key: tls.key }, handle);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    posted,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
