/** The thread of DNS over TLS and HTTPS as the supervisor has it: started when one of them is switched on for the first time. */
import { type CertificateSource, selfMadeFiles } from "../api/certificate.ts";
import type { Log } from "../base/log.ts";
import { threadCounters } from "../image/counters.ts";
import type { SharedImage } from "../image/shared.ts";
import { clearOpen } from "../listen/secure-server.ts";
import type { AnswerOptions } from "../listen/threads.ts";
import type { Config } from "./config.ts";
import { LISTENER_HEAP_MB } from "./limits.ts";
import { clearEpoch, type ListenerThread } from "./listener-threads.ts";
import type { ResolveSupervision } from "./resolve-supervision.ts";
import type { SecureCommand, SecureData, SecureMessage, SecureWish } from "./secure-thread.ts";
import { countRestart, giveLifeSign, isAlive, type NodeStatus, setRunning } from "./status.ts";
import { type SupervisedThread, superviseThread } from "./supervised-thread.ts";

export type SecureSupervisionOptions = {
  readonly plan: {
    readonly secure: URL;
    /** Without a sign of life for this long, the thread is ended and replaced. */
    readonly secureLifelessMs: number;
  };
  readonly shared: SharedImage;
  readonly status: NodeStatus;
  /** Its place among the readers of the image. */
  readonly thread: number;
  readonly options: AnswerOptions;
  readonly config: CertificateConfig;
  readonly resolve: Pick<ResolveSupervision, "connectListener">;
  readonly log: Log;
};

type CertificateConfig = Pick<
  Config,
  "transport.cert_file" | "transport.key_file" | "api.tls_cert_file" | "api.tls_key_file" | "node.data_dir"
>;

export type SecureSupervision = {
  /** What `control` says, also after it was replaced; the latest holds, for every thread that is started. */
  readonly apply: (wish: SecureWish) => void;
  /** `listener` hears the number of each wish that has become so. */
  readonly onSettled: (listener: (number: number) => void) => void;
  readonly reload: () => void;
  /** To end it as a listener thread, whether or not it was ever started. */
  readonly thread: Pick<ListenerThread, "ended" | "terminate"> & { readonly post: (command: { kind: "stop" }) => void };
};

const NAME = "secure";

export function superviseSecure(options: SecureSupervisionOptions): SecureSupervision {
  let wish: SecureWish = { settings: { dot: undefined, doh: undefined }, number: 0 };
  let onSettled: (number: number) => void = () => {};
  let thread: SupervisedThread<SecureCommand> | undefined;
  let isEnding = false;
  return {
    apply: (next) => {
      wish = next;
      if (isEnding) return;
      if (thread !== undefined) return thread.post({ kind: "wish", wish });
      const { dot, doh } = wish.settings;
      if (dot === undefined && doh === undefined) return onSettled(wish.number);
      const links = { wish: () => wish, onSettled: (number: number) => onSettled(number) };
      thread = startSecure(options, links);
    },
    onSettled: (listener) => {
      onSettled = listener;
    },
    reload: () => thread?.post({ kind: "reload" }),
    thread: {
      post: (command) => thread?.post(command),
      ended: async () => {
        isEnding = true;
        await thread?.ended();
      },
      terminate: async () => {
        isEnding = true;
        await thread?.terminate();
      },
    },
  };
}

function startSecure(
  { plan, shared, status, thread, options, config, resolve, log }: SecureSupervisionOptions,
  { wish, onSettled }: { readonly wish: () => SecureWish; readonly onSettled: (number: number) => void },
): SupervisedThread<SecureCommand> {
  const certificate = certificateFiles(config);
  let start = 0;
  const supervised = superviseThread<SecureMessage, SecureCommand>({
    name: NAME,
    entry: plan.secure,
    log,
    isAlive: () => isAlive(status, NAME, plan.secureLifelessMs),
    workerOptions: () => {
      giveLifeSign(status, NAME);
      const resolvePort = resolve.connectListener(thread, (port) =>
        supervised.post({ kind: "resolve-port", port }, [port]),
      );
      const workerData: SecureData = {
        ...{ shared, status, thread, options, start, resolvePort, certificate },
        wish: wish(),
      };
      start += 1;
      return {
        workerData,
        transferList: [resolvePort],
        resourceLimits: { maxOldGenerationSizeMb: LISTENER_HEAP_MB },
      };
    },
    onMessage: (message) => {
      switch (message.kind) {
        case "serving":
          return setRunning(status, NAME, true);
        case "settled":
          return onSettled(message.number);
        case "log":
          return log(message.line.level, message.line.message, message.line.fields);
        case "failure":
          return log("error", `answering a query failed: ${message.detail}`, {
            thread: NAME,
            query: Buffer.from(message.query).toString("hex"),
          });
      }
    },
    onDeath: () => {
      setRunning(status, NAME, false);
      countRestart(status, NAME);
      clearEpoch(shared, thread);
      // Until its replacement listens, nobody does.
      clearOpen(threadCounters(shared, thread));
    },
  });
  return supervised;
}

/** Of its own, else the API's, which is self-made where none is configured. */
export function certificateFiles(config: CertificateConfig): CertificateSource & { readonly kind: "files" } {
  const pairs = [
    [config["transport.cert_file"], config["transport.key_file"]],
    [config["api.tls_cert_file"], config["api.tls_key_file"]],
  ] as const;
  for (const [certFile, keyFile] of pairs) {
    if (certFile !== undefined && keyFile !== undefined) return { kind: "files", certFile, keyFile };
  }
  return { kind: "files", ...selfMadeFiles(config["node.data_dir"]) };
}
