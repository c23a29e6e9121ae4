/**
 * The thread that serves DNS over TLS and DNS over HTTPS: handshakes are its own work, and those who flood it keep nobody
 * else from an answer. It may die; its replacement binds the addresses anew.
 */
import type { MessagePort } from "node:worker_threads";
import { createAnswerer } from "../answer/answerer.ts";
import { type CertificateSource, watchIdentity } from "../api/certificate.ts";
import type { Log } from "../base/log.ts";
import { TRANSPORT, threadCounters } from "../image/counters.ts";
import { createFailureReporter } from "../listen/failure-reports.ts";
import { createHttpsService } from "../listen/https-service.ts";
import { HTTPS_LIMITS, SECURE_LIMITS, STREAM_LIMITS } from "../listen/limits.ts";
import { createResolving } from "../listen/resolving.ts";
import { openSecureServer, SECURE_KIND } from "../listen/secure-server.ts";
import { createSecureSwitch, type SecureSettings } from "../listen/secure-switch.ts";
import { createStreamService } from "../listen/stream.ts";
import type { ListenerThreadMessage, LoopThreadData, SupervisorMessage } from "../listen/threads.ts";
import { giveLifeSigns, type NodeStatus } from "./status.ts";

/** What the thread is to make so, and the number by which it says that it is. */
export type SecureWish = { readonly settings: SecureSettings; readonly number: number };

export type SecureMessage =
  | ListenerThreadMessage
  /** What was wished by that number is so, as far as it can be. */
  | { readonly kind: "settled"; readonly number: number };

/** `workerData` of the thread. */
export type SecureData = Omit<LoopThreadData, "sockets"> & {
  readonly status: NodeStatus;
  readonly wish: SecureWish;
  /** Files: a self-made certificate is the control thread's to make. */
  readonly certificate: CertificateSource & { readonly kind: "files" };
};

export type SecureCommand =
  | SupervisorMessage
  | { readonly kind: "wish"; readonly wish: SecureWish }
  /** Look at the certificate's files at once. */
  | { readonly kind: "reload" };

/** Names of ALPN (RFC 7301): RFC 7858 has none of its own, the registry has "dot". */
const DOT_PROTOCOLS = ["dot"];
const DOH_PROTOCOLS = ["h2", "http/1.1"];

/** Serves what the settings say, until "stop". */
export function runSecureThread(data: SecureData, port: MessagePort): void {
  const { shared, thread, options, status } = data;
  const say = (message: SecureMessage) => port.postMessage(message);
  const log: Log = (level, message, fields = {}) => say({ kind: "log", line: { level, message, fields } });
  const now = () => performance.now();
  const lifeSigns = giveLifeSigns(status, "secure");
  const counters = threadCounters(shared, thread);
  const resolving = createResolving({ ...data, port: data.resolvePort, now });
  const context = {
    answerer: createAnswerer(shared, { thread, forwards: true, logs: "addresses", ...options }),
    resolving,
    counters,
    onFailure: createFailureReporter(port),
    now,
  };
  const streams = createStreamService({ ...context, limits: STREAM_LIMITS });
  const https = createHttpsService({ ...context, limits: HTTPS_LIMITS, wallMs: Date.now });
  const listeners = createSecureSwitch({
    open: (kind, address, identity) => {
      const isDot = kind === SECURE_KIND.DOT;
      const protocols = isDot ? DOT_PROTOCOLS : DOH_PROTOCOLS;
      const onConnection = isDot
        ? (socket: Parameters<typeof https.accept>[0]) => streams.accept(socket, TRANSPORT.DOT)
        : https.accept;
      return openSecureServer({ kind, address, identity, protocols, limits: SECURE_LIMITS, counters, onConnection });
    },
    retryMs: SECURE_LIMITS.bindRetryMs,
    log,
  });
  const watch = watchIdentity(data.certificate, undefined, listeners.setIdentity, {
    now: Date.now,
    log,
    name: "DNS over TLS and HTTPS",
  });
  watch.reload();
  const apply = ({ settings, number }: SecureWish) =>
    void listeners.apply(settings).then(() => say({ kind: "settled", number }));
  apply(data.wish);
  const stop = async () => {
    listeners.close();
    watch.stop();
    port.unref();
    await Promise.all([streams.drain(), https.drain()]);
    resolving.close();
    lifeSigns[Symbol.dispose]();
  };
  port.on("message", (command: SecureCommand) => {
    switch (command.kind) {
      case "resolve-port":
        return resolving.connect(command.port);
      case "wish":
        return apply(command.wish);
      case "reload":
        return watch.reload();
      case "stop":
        return void stop();
    }
  });
  say({ kind: "serving" });
}
