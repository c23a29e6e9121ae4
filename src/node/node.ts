/**
 * The composition root. The supervisor that runs here owns the lock on the data directory, every socket and every
 * shared buffer; it starts the threads, replaces one that dies, and ends them in order.
 */
import { randomBytes } from "node:crypto";
import { availableParallelism } from "node:os";
import { OperatorError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { CONTROL, createSharedImage, type SharedImage } from "../image/shared.ts";
import { type Address, addressToText } from "../listen/address.ts";
import { takeInheritedSockets } from "../listen/inherited.ts";
import { type Libc, openLibc } from "../listen/linux/libc.ts";
import { closeListeners, type Listener, openListeners } from "../listen/sockets.ts";
import { probeListeners } from "../listen/sockets-portable.ts";
import type { ZoneArgument } from "./arguments.ts";
import type { Config } from "./config.ts";
import type { ControlCommand, ControlData, ControlMessage, ServedZones } from "./control-thread.ts";
import { renewCookieSecrets } from "./cookie-secret.ts";
import { openDataDirectory } from "./data-directory.ts";
import { type HealthSupervision, startHealth } from "./health-supervision.ts";
import { type NodeKeys, nodeKeys } from "./keys.ts";
import {
  ANSWER_THREADS_MAX,
  CONTROL_HEAP_MB,
  CONTROL_YOUNG_MB,
  HEALTH_LIFELESS_AFTER_MS,
  LIFELESS_AFTER_MS,
  RESOLVE_LIFELESS_AFTER_MS,
  SECURE_LIFELESS_AFTER_MS,
  STOP_DEADLINE_MS,
} from "./limits.ts";
import type { LinkedThreadCommand } from "./linked-thread.ts";
import { answerOptions, clearEpoch, type ListenerThread, planListeners, startListener } from "./listener-threads.ts";
import { nodeIdOf } from "./node-id.ts";
import { type ResolveSupervision, startResolve } from "./resolve-supervision.ts";
import { startRunner } from "./script-runner.ts";
import { type SecureSupervision, superviseSecure } from "./secure-supervision.ts";
import {
  countRestart,
  createNodeStatus,
  giveLifeSign,
  isAlive,
  type NodeStatus,
  setRunning,
  setStopping,
} from "./status.ts";
import { type SupervisedThread, superviseThread } from "./supervised-thread.ts";
import { readAuthorities } from "./upstream-authorities.ts";

/** The modules that the threads run, and what `control` may take. A test puts threads with faults in their place. */
export type ThreadPlan = {
  readonly control: URL;
  readonly batch: URL;
  readonly dgram: URL;
  readonly stream: URL;
  readonly health: URL;
  readonly resolve: URL;
  readonly secure: URL;
  readonly controlHeapMb: number;
  /** Without a sign of life for this long, `control` is ended and replaced. */
  readonly controlLifelessMs: number;
  /** The same of `health`. */
  readonly healthLifelessMs: number;
  /** The same of `resolve`. */
  readonly resolveLifelessMs: number;
  /** The same of `secure`. */
  readonly secureLifelessMs: number;
};

export const THREAD_PLAN: ThreadPlan = {
  control: new URL("./control-entry.ts", import.meta.url),
  batch: new URL("../listen/udp-entry.ts", import.meta.url),
  dgram: new URL("../listen/dgram-entry.ts", import.meta.url),
  stream: new URL("../listen/stream-entry.ts", import.meta.url),
  health: new URL("./health-entry.ts", import.meta.url),
  resolve: new URL("./resolve-entry.ts", import.meta.url),
  secure: new URL("./secure-entry.ts", import.meta.url),
  controlHeapMb: CONTROL_HEAP_MB,
  controlLifelessMs: LIFELESS_AFTER_MS,
  healthLifelessMs: HEALTH_LIFELESS_AFTER_MS,
  resolveLifelessMs: RESOLVE_LIFELESS_AFTER_MS,
  secureLifelessMs: SECURE_LIFELESS_AFTER_MS,
};

export type NodeOptions = {
  readonly config: Config;
  readonly zones: readonly ZoneArgument[];
  readonly version: string;
  readonly log: Log;
  /** LISTEN_FDS and its companions are taken out of it. */
  readonly environment: NodeJS.ProcessEnv;
  readonly plan: ThreadPlan;
  /** Called with the admin's password at the very first start, where the node has drawn it. */
  readonly onAdminPassword: (password: string) => void;
  /** Called when the control thread holds the store and will never let go of it: only a new process can open it. */
  readonly onStuck: () => void;
};

export type RunningNode = {
  readonly listeners: readonly Listener[];
  readonly management: Address;
  readonly api: Address;
  readonly served: ServedZones;
  readonly udp: "batch" | "dgram";
  readonly answerThreads: number;
  /** Looks at the files of certificates at once. */
  readonly reload: () => void;
  /** Answers what is under way, ends every thread and gives up sockets and lock, within STOP_DEADLINE_MS. */
  readonly stop: () => Promise<void>;
};

/** What every thread of the node is built from. */
type Frame = NodeOptions & {
  readonly shared: SharedImage;
  readonly status: NodeStatus;
  readonly nodeId: string;
  readonly keys: NodeKeys;
  /** Where DNS is answered, with the ports in use. */
  readonly dns: readonly Address[];
};

/** Starts a node; it serves when this returns. Throws OperatorError, with everything undone. */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const { config, log } = options;
  await using undo = new AsyncDisposableStack();
  const libc = openLibc();
  const udp = udpMode(config, libc);
  const answerThreads = answerThreadCount(config, libc);
  const authorities = config["forwarders.ca_file"];
  const caPem = authorities === undefined ? undefined : readAuthorities(authorities);
  const data = openDataDirectory(config["node.data_dir"], libc);
  undo.defer(data.release);
  const keys = nodeKeys(data.key, config["replication.encrypt_key"]);
  const nodeId = nodeIdOf(data.path, config["node.id"]);
  const listeners = await openSockets(libc, options, answerThreads);
  if (libc !== undefined) undo.defer(() => closeListeners(libc, listeners));

  const shared = createSharedImage(randomBytes(4).readInt32LE());
  undo.use(renewCookieSecrets(shared, keys.cookies));
  const answerNames = Array.from({ length: answerThreads }, (_, index) => `answer-${index}`);
  const status = createNodeStatus(["control", "health", "resolve", "stream", "secure", ...answerNames]);
  const dns = listeners.map(({ address }) => address);
  const frame: Frame = { ...options, shared, status, nodeId, keys, dns };

  const published = Promise.withResolvers<void>();
  const runner = startRunner(config, data.path, log);
  if (runner !== undefined) undo.use(runner);
  const health = startHealth({
    ...frame,
    runnerSocket: runner?.socketPath,
    entry: frame.plan.health,
    lifelessMs: frame.plan.healthLifelessMs,
    thread: answerThreads + 2,
  });
  undo.defer(() => health.thread.terminate());
  const answers = answerOptions(config);
  const plan = planListeners(udp, listeners, answerNames);
  const resolve = startResolve({
    ...frame,
    options: answers,
    entry: frame.plan.resolve,
    lifelessMs: frame.plan.resolveLifelessMs,
    thread: answerThreads + 4,
    ownThread: answerThreads + 5,
    // Behind them is the place of `secure`, which sends its answers itself.
    sockets: [...plan.map(({ sockets }) => sockets.map(({ descriptor }) => descriptor)), []],
    caPem,
  });
  undo.defer(() => resolve.thread.terminate());
  const secure = superviseSecure({ ...frame, options: answers, thread: plan.length, resolve });
  undo.defer(() => secure.thread.terminate());
  const starting = startControl(frame, { health, resolve, secure }, answerThreads + 3, published.resolve);
  // The API may open while DNS answers already.
  await Promise.race([published.promise, starting]);
  const listenerFrame = { ...frame, options: answers, entries: frame.plan, resolve };
  const threads = await Promise.all(plan.map((one, thread) => startListener(listenerFrame, one, thread)));
  undo.defer(async () => {
    Atomics.store(new Int32Array(shared.control), CONTROL.STOP, 1);
    await Promise.all(threads.map((thread) => thread.terminate()));
  });
  const control = await starting;
  undo.defer(() => control.thread.terminate());
  const kept = undo.move();
  return {
    listeners,
    management: control.management,
    api: control.api,
    served: control.served,
    udp,
    answerThreads,
    reload: () => {
      control.thread.post({ kind: "reload" });
      secure.reload();
    },
    stop: async () => {
      setStopping(status);
      await endThreads(frame, [...threads, secure.thread], [resolve.thread, health.thread], control.thread);
      await kept.disposeAsync();
      log("info", "stopped");
    },
  };
}

function udpMode(config: Config, libc: Libc | undefined): "batch" | "dgram" {
  if (config["dns.udp"] === "batch" && libc === undefined) {
    throw new OperatorError("SVC_DNS_UDP is batch, which needs Linux on x64 or arm64 and the koffi package");
  }
  return config["dns.udp"] === "dgram" || libc === undefined ? "dgram" : "batch";
}

/** Without descriptors to hand over only one thread can have an address. */
function answerThreadCount(config: Config, libc: Libc | undefined): number {
  if (libc === undefined) return 1;
  return Math.min(config["dns.threads"] || availableParallelism(), ANSWER_THREADS_MAX);
}

async function openSockets(
  libc: Libc | undefined,
  { config, environment, log }: NodeOptions,
  threads: number,
): Promise<readonly Listener[]> {
  if (libc === undefined) return await probeListeners(config["dns.listen"]);
  const { sockets, unusable } = takeInheritedSockets(libc, environment, process.pid);
  const listeners = openListeners(libc, config["dns.listen"], threads, sockets);
  for (const name of unusable) log("warn", `inherited descriptor ${name} is no UDP or listening TCP socket`);
  const used = listeners.flatMap(({ udp, tcp }) => [...udp, tcp]);
  for (const { descriptor, name, kind, address } of sockets) {
    const where = `${addressToText(address)} (${kind.toUpperCase()})`;
    if (used.includes(descriptor)) log("info", `took over the inherited socket ${name} on ${where}`);
    else log("warn", `inherited socket ${name} on ${where} matches no address of SVC_DNS_LISTEN`);
  }
  return listeners;
}

type RunningControl = {
  readonly thread: SupervisedThread<ControlCommand>;
  readonly management: Address;
  readonly api: Address;
  readonly served: ServedZones;
};

/** What `control` speaks with, and is told of when it was replaced. */
type Links = {
  readonly health: HealthSupervision;
  readonly resolve: ResolveSupervision;
  readonly secure: SecureSupervision;
};

/** Starts `control` and waits until it serves; `onPublished` is called before that, when its zones can be answered. */
function startControl(
  frame: Frame,
  { health, resolve: resolver, secure }: Links,
  readingThread: number,
  onPublished: () => void,
): Promise<RunningControl> {
  const { config, zones, version, log, shared, status, nodeId, keys, dns } = frame;
  return new Promise((resolve, reject) => {
    let started: RunningControl | undefined;
    const fail = (error: Error) => void thread.terminate().then(() => reject(error));
    const thread = superviseThread<ControlMessage, ControlCommand>({
      name: "control",
      entry: frame.plan.control,
      log,
      // The first start may import large files in one go, and the operator is there.
      isAlive: () => started === undefined || isAlive(status, "control", frame.plan.controlLifelessMs),
      workerOptions: () => {
        giveLifeSign(status, "control");
        const healthPort = health.connect();
        const resolvePort = resolver.connect();
        const workerData: ControlData = {
          shared,
          thread: readingThread,
          status,
          config,
          nodeId,
          keys,
          // A replacement finds them in the store.
          zones: started === undefined ? zones : [],
          management: started?.management ?? config["management.listen"],
          api: started?.api ?? config["api.listen"],
          dns,
          version,
          isFirst: started === undefined,
          healthPort,
          resolvePort,
        };
        const resourceLimits = {
          maxOldGenerationSizeMb: frame.plan.controlHeapMb,
          maxYoungGenerationSizeMb: CONTROL_YOUNG_MB,
        };
        return { workerData, transferList: [healthPort, resolvePort], resourceLimits };
      },
      onMessage: (message) => {
        if (message.kind === "log") return log(message.line.level, message.line.message, message.line.fields);
        if (message.kind === "refused") return fail(new OperatorError(message.summary, message.faults));
        if (message.kind === "published") return onPublished();
        if (message.kind === "transport") return secure.apply(message.wish);
        if (message.kind === "admin-password") return frame.onAdminPassword(message.password);
        setRunning(status, "control", true);
        if (started !== undefined) return;
        const { management, api, served } = message;
        started = { thread, management, api, served };
        resolve(started);
      },
      onDeath: () => {
        setRunning(status, "control", false);
        countRestart(status, "control");
        clearEpoch(shared, readingThread);
        if (started === undefined) fail(new OperatorError("the node could not start: the control thread failed"));
      },
      onStuck: frame.onStuck,
    });
    secure.onSettled((number) => thread.post({ kind: "transport-settled", number }));
    health.onReplaced((port) => thread.post({ kind: "health-port", port }, [port]));
    resolver.onReplaced((port) => thread.post({ kind: "resolve-port", port }, [port]));
  });
}

/**
 * The API takes nothing new from the first moment on; `control` itself ends last, so that readiness and metrics can be
 * read to the end. What does not end in time is ended.
 */
async function endThreads(
  frame: Frame,
  listeners: readonly (SecureSupervision["thread"] | ListenerThread)[],
  besides: readonly SupervisedThread<LinkedThreadCommand>[],
  control: SupervisedThread<ControlCommand>,
): Promise<void> {
  const end = async () => {
    control.post({ kind: "drain" });
    const ended = listeners.map((thread) => thread.ended());
    Atomics.store(new Int32Array(frame.shared.control), CONTROL.STOP, 1);
    for (const thread of listeners) thread.post({ kind: "stop" });
    await Promise.all(ended);
    // Those that wait for the first are told so while the sockets are still there.
    for (const thread of besides) {
      const threadEnded = thread.ended();
      thread.post({ kind: "stop" });
      await threadEnded;
    }
    const controlEnded = control.ended();
    control.post({ kind: "stop" });
    await controlEnded;
  };
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, STOP_DEADLINE_MS);
  });
  await Promise.race([end(), deadline]);
  clearTimeout(timer);
  await Promise.all([...listeners, ...besides, control].map((thread) => thread.terminate()));
}
