/** DNS over TLS and HTTPS on loopback with an answerer that does as its queries say, for tests of the listeners. */
import { once } from "node:events";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { MessageChannel } from "node:worker_threads";
import { makeSelfSigned } from "../../src/api/self-signed.ts";
import type { Identity } from "../../src/base/tls.ts";
import { TRANSPORT } from "../../src/image/counters.ts";
import { COUNTERS_STRIDE, createSharedImage } from "../../src/image/shared.ts";
import { createAnswerFrames } from "../../src/listen/answer-frames.ts";
import { openHandoverInbox } from "../../src/listen/handover.ts";
import { recordToken } from "../../src/listen/handover-record.ts";
import { createHttpsService } from "../../src/listen/https-service.ts";
import {
  HTTPS_LIMITS,
  type HttpsLimits,
  SECURE_LIMITS,
  type SecureLimits,
  STREAM_LIMITS,
} from "../../src/listen/limits.ts";
import { createResolving } from "../../src/listen/resolving.ts";
import { openSecureServer, SECURE_KIND, type SecureServer } from "../../src/listen/secure-server.ts";
import { createStreamService } from "../../src/listen/stream.ts";
import { createFakeAnswerer } from "./listen/fake-answerer.ts";

export type HttpsLab = {
  readonly server: SecureServer;
  readonly port: number;
  readonly counter: (place: number) => number;
  /** Moves the services' clock. */
  readonly pass: (ms: number) => void;
  /** What was handed over since the last time, and how it is answered. */
  readonly handedOver: () => Uint8Array[];
  readonly reply: (record: Uint8Array, answer: Uint8Array) => void;
  readonly drain: () => Promise<void>;
  readonly connect: (options?: ConnectionOptions) => Promise<TLSSocket>;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

export type HttpsLabOptions = {
  readonly kind?: "dot" | "doh";
  readonly limits?: Partial<HttpsLimits>;
  readonly secureLimits?: Partial<SecureLimits>;
};

export function makeIdentity(name = "localhost"): Identity {
  return makeSelfSigned([name], Date.now() - 60_000, Date.now() + 3_600_000);
}

export async function openHttpsLab(options: HttpsLabOptions = {}): Promise<HttpsLab> {
  const isDot = options.kind === "dot";
  const shared = createSharedImage(1);
  const counters = new Float64Array(COUNTERS_STRIDE);
  let passed = 0;
  const now = () => performance.now() + passed;
  const { port1, port2 } = new MessageChannel();
  const resolving = createResolving({ shared, thread: 0, start: 0, port: port1, now });
  const inbox = openHandoverInbox(shared, [0]);
  const context = { answerer: createFakeAnswerer(), resolving, counters, onFailure: () => {}, now };
  const https = createHttpsService({ ...context, limits: { ...HTTPS_LIMITS, ...options.limits }, wallMs: () => 0 });
  const streams = createStreamService({ ...context, limits: STREAM_LIMITS });
  const server = await openSecureServer({
    kind: isDot ? SECURE_KIND.DOT : SECURE_KIND.DOH,
    address: { bytes: Uint8Array.of(127, 0, 0, 1), port: 0 },
    identity: makeIdentity(),
    protocols: isDot ? ["dot"] : ["h2", "http/1.1"],
    limits: { ...SECURE_LIMITS, drainMs: 50, ...options.secureLimits },
    counters,
    onConnection: isDot ? (socket) => streams.accept(socket, TRANSPORT.DOT) : https.accept,
  });
  const { port } = server.address;
  const clients: TLSSocket[] = [];
  return {
    server,
    port,
    counter: (place) => counters[place] ?? 0,
    pass: (ms) => {
      passed += ms;
    },
    handedOver: () => {
      const records: Uint8Array[] = [];
      inbox.drain(1_000, (_, record) => records.push(record));
      return records;
    },
    reply: (record, answer) => {
      const frames = createAnswerFrames();
      frames.add(recordToken(record), answer);
      port2.postMessage(frames.take());
    },
    drain: https.drain,
    connect: async (more) => {
      const protocols = isDot ? ["dot"] : ["h2"];
      const socket = connect({ port, host: "127.0.0.1", ALPNProtocols: protocols, rejectUnauthorized: false, ...more });
      clients.push(socket);
      socket.on("error", () => {});
      // Who is refused is closed.
      const refused = once(socket, "close").catch(() => once(socket, "close"));
      await Promise.race([once(socket, "secureConnect").catch(() => refused), refused]);
      return socket;
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of clients) socket.destroy();
      server.retire();
      await Promise.all([https.drain(), streams.drain()]);
      resolving.close();
      port2.close();
    },
  };
}
