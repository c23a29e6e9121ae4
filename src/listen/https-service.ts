/** DNS over HTTPS (RFC 8484): one service for HTTP/2 and HTTP/1.1, held to its limits. */
import type { TLSSocket } from "node:tls";
import { COUNTER } from "../image/counters.ts";
import { type AnsweringContext, createAnswering } from "./https-answering.ts";
import { createHttpDate, type HttpsConnection, type HttpsContext } from "./https-connection.ts";
import { createHttp1 } from "./https-http1.ts";
import { serveHttp2 } from "./https-http2.ts";
import type { HttpsLimits } from "./limits.ts";
import { cutLargest } from "./stream.ts";

export type HttpsService = {
  /** Takes a connection whose handshake is done. */
  readonly accept: (socket: TLSSocket, address: Uint8Array) => void;
  /** Lets what is under way end; settles when no connection is left. */
  readonly drain: () => Promise<void>;
};

export type HttpsServiceOptions = AnsweringContext & {
  readonly limits: HttpsLimits;
  /** Milliseconds since 1970. */
  readonly wallMs: () => number;
};

export function createHttpsService(options: HttpsServiceOptions): HttpsService {
  const { limits, counters, now } = options;
  const date = createHttpDate(options.wallMs);
  const context: HttpsContext = { answering: createAnswering(options), counters, limits, now, date };
  const connections = new Set<HttpsConnection>();
  const acceptHttp1 = createHttp1(context);
  let isDraining = false;
  let onDrained = () => {};

  const sweep = () => {
    const nowMs = now();
    for (const connection of connections) connection.sweep(nowMs);
    cutLargest(connections, limits.maxQueuedBytesOfAll);
  };
  const timer = setInterval(sweep, limits.sweepMs);
  timer.unref();
  return {
    accept: (socket, address) => {
      if (isDraining) return void socket.destroy();
      const open = socket.alpnProtocol === "h2" ? serveHttp2 : acceptHttp1;
      const connection = open(context, socket, address);
      connections.add(connection);
      counters[COUNTER.CONNECTIONS_ACCEPTED]! += 1;
      counters[COUNTER.CONNECTIONS_OPEN]! += 1;
      socket.once("close", () => {
        connections.delete(connection);
        counters[COUNTER.CONNECTIONS_OPEN]! -= 1;
        if (isDraining && connections.size === 0) onDrained();
      });
    },
    drain: async () => {
      isDraining = true;
      clearInterval(timer);
      if (connections.size === 0) return;
      // A client that does not leave is cut by its listener.
      await new Promise<void>((resolve) => {
        onDrained = resolve;
        for (const connection of connections) connection.retire();
      });
    },
  };
}
