/** The TLS listener: HTTP/2 and HTTP/1.1 on one port, with bounds on everything that a client can open or leave open. */
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from "node:http2";
import type { Socket } from "node:net";
import { type Identity, TLS } from "../base/tls.ts";
import { watchAnswers } from "./answer-deadline.ts";
import { plainAddress } from "./client-address.ts";
import * as limits from "./limits.ts";
import { rateKey } from "./rate-limiter.ts";

export type Listener = {
  readonly server: Http2SecureServer;
  readonly openConnections: () => number;
  /** Connections closed because there were too many. */
  readonly refusedConnections: () => number;
  /** Asks every HTTP/2 client to leave and ends what is idle; what is under way may end. */
  readonly retire: () => void;
  /** Ends every connection at once. */
  readonly cut: () => void;
};

export type ListenerLimits = {
  readonly connectionsMax: number;
  readonly connectionsPerAddressMax: number;
  /** From the connection to the end of the TLS handshake. */
  readonly handshakeMs: number;
  readonly headersMs: number;
  readonly requestMs: number;
  readonly idleMs: number;
  /** For a client that takes no more of its answer. */
  readonly answerStallMs: number;
  /** For a client that has its answer over HTTP/2 and still sends its request. */
  readonly lingerMs: number;
};

export const LISTENER_LIMITS: ListenerLimits = {
  connectionsMax: limits.CONNECTIONS_MAX,
  connectionsPerAddressMax: limits.CONNECTIONS_PER_ADDRESS_MAX,
  handshakeMs: limits.HANDSHAKE_MS,
  headersMs: limits.HEADERS_MS,
  requestMs: limits.REQUEST_MS,
  idleMs: limits.IDLE_MS,
  answerStallMs: limits.ANSWER_STALL_MS,
  lingerMs: limits.LINGER_MS,
};

type Handler = (request: Http2ServerRequest, response: Http2ServerResponse) => void;

export function createListener(identity: Identity, handler: Handler, bounds: ListenerLimits): Listener {
  const http1Options = {
    connectionsCheckingInterval: Math.min(limits.CONNECTIONS_CHECK_MS, bounds.headersMs / 4),
    keepAliveTimeout: limits.KEEP_ALIVE_MS,
    headersTimeout: bounds.headersMs,
    requestTimeout: bounds.requestMs,
    // Node would answer and then still hand on what is pipelined behind; the server refuses it itself.
    requireHostHeader: false,
  };
  const answers = watchAnswers({ stallMs: bounds.answerStallMs, lingerMs: bounds.lingerMs }, () => performance.now());
  const server = createSecureServer(
    {
      ...identity,
      allowHTTP1: true,
      // A list that is streamed ends in a small segment, which otherwise waits for the client's acknowledgement (40 ms).
      noDelay: true,
      ...TLS,
      handshakeTimeout: bounds.handshakeMs,
      maxSessionMemory: limits.SESSION_MEMORY_MB,
      maxSessionInvalidFrames: 100,
      maxSessionRejectedStreams: 100,
      streamResetBurst: limits.STREAM_RESET_BURST,
      streamResetRate: limits.STREAM_RESETS_PER_SECOND,
      settings: {
        enablePush: false,
        maxConcurrentStreams: limits.STREAMS_MAX,
        maxHeaderListSize: limits.HEADER_BYTES,
      },
      http1Options,
    },
    (request, response) => {
      answers.watch(request, response);
      handler(request, response);
    },
  );
  server.once("close", answers.stop);
  server.setTimeout(bounds.idleMs);
  const connections = trackConnections(server, bounds);
  return {
    server,
    openConnections: () => connections.sockets.size,
    refusedConnections: () => connections.refused(),
    retire: () => {
      for (const session of connections.sessions) session.close();
    },
    cut: () => {
      for (const socket of connections.sockets) socket.destroy();
    },
  };
}

/** Keeps the connections of `server`, and destroys those beyond the bounds. */
export function trackConnections(
  server: Pick<Http2SecureServer, "on">,
  bounds: Pick<ListenerLimits, "connectionsMax" | "connectionsPerAddressMax" | "idleMs">,
) {
  const sockets = new Set<Socket>();
  const sessions = new Set<{ readonly close: () => void }>();
  const perAddress = new Map<string, number>();
  let refused = 0;
  server.on("connection", (socket: Socket) => {
    const address = rateKey(plainAddress(socket.remoteAddress ?? "") ?? "");
    const already = perAddress.get(address) ?? 0;
    if (sockets.size >= bounds.connectionsMax || already >= bounds.connectionsPerAddressMax) {
      refused++;
      socket.destroy();
      return;
    }
    sockets.add(socket);
    perAddress.set(address, already + 1);
    socket.once("close", () => {
      sockets.delete(socket);
      const left = (perAddress.get(address) ?? 1) - 1;
      if (left === 0) perAddress.delete(address);
      else perAddress.set(address, left);
    });
  });
  server.on("session", (session) => {
    sessions.add(session);
    // A session whose streams all wait ends too: idle means that no byte moved, not even those of a PING.
    session.setTimeout(bounds.idleMs, () => session.destroy());
    session.once("close", () => sessions.delete(session));
    // What a client breaks ends its own session, which the event has done already.
    session.on("error", () => {});
  });
  return { sockets, sessions, refused: () => refused };
}
