/**
 * The thread that resolves: what answer threads cannot answer from image and cache comes here, is resolved into the cache, and
 * is answered from there by the same rules. It may die: those who waited hear nothing, and its replacement begins with an
 * empty cache.
 */
import { setPriority } from "node:os";
import type { MessagePort } from "node:worker_threads";
import { createAnswerer } from "../answer/answerer.ts";
import type { Log } from "../base/log.ts";
import { createCacheWriter } from "../image/cache-writer.ts";
import { COUNTER, threadCounters } from "../image/counters.ts";
import { CONTROL, type SharedImage } from "../image/shared.ts";
import { limitFailures } from "../listen/failure-reports.ts";
import { openHandoverInbox } from "../listen/handover.ts";
import { openLibc } from "../listen/linux/libc.ts";
import { createReplySender } from "../listen/linux/reply.ts";
import type { AnswerOptions } from "../listen/threads.ts";
import { createAskedOf } from "../resolve/cached-question.ts";
import type { Exchanger } from "../resolve/exchange.ts";
import { createResolver } from "../resolve/resolver.ts";
import type { AskServers, Pool } from "../resolve/resolver-options.ts";
import type { Route } from "../resolve/settings.ts";
import { CLIENT_SWEEP_MS, CLIENTS_TURN, RESOLVE_NICE } from "./limits.ts";
import type { LinkedThreadCommand, LinkedThreadMessage } from "./linked-thread.ts";
import { type AskOwn, createAskOwn } from "./own-answers.ts";
import { createPrimary, type Primary } from "./primary-gate-thread.ts";
import { type Clients, createClients } from "./resolve-clients.ts";
import { createControlWay } from "./resolve-control.ts";
import { createReplies, type Replies } from "./resolve-replies.ts";
import { createFindDelegation, createRouteName } from "./resolve-routing.ts";
import { giveLifeSigns, type NodeStatus } from "./status.ts";

/** `workerData` of the thread. */
export type ResolveData = {
  readonly shared: SharedImage;
  readonly status: NodeStatus;
  /** Its places among the readers of the image: for answers, and for its questions to our own zones. */
  readonly thread: number;
  readonly ownThread: number;
  /** By thread that hands queries over, the descriptors of its sockets; none where it sends answers itself. */
  readonly sockets: readonly (readonly (number | undefined)[])[];
  readonly options: AnswerOptions;
  /** Certificates in PEM form that upstreams over TLS may be vouched for by, besides the system's. */
  readonly caPem: string | undefined;
  /** One word for each socket that it may ask upstreams by, and one more: see UdpSocketsOptions. */
  readonly descriptors: SharedArrayBuffer;
  /** To the control thread, and to the threads that send answers themselves; transferred. */
  readonly port: MessagePort;
  readonly listenerPorts: readonly ListenerPort[];
};

export type ListenerPort = { readonly thread: number; readonly port: MessagePort };

/** A thread that sends answers itself was started, or started again. */
export type ResolveCommand = { readonly kind: "listener-port" } & ListenerPort;

/** What upstreams are asked by. */
export type Exchanges = {
  readonly makePool: (route: Route) => Pool;
  readonly askServers: AskServers;
  readonly isOurs: Exchanger["isOurs"];
  readonly setListens: Exchanger["setListens"];
  /** Runs something once after so long; what is returned calls it off. */
  readonly after: (delayMs: number, run: () => void) => () => void;
  readonly close: () => void;
};

export type OpenExchanges = (data: ResolveData) => Exchanges;

/** Port of the name servers that a zone cut or a referral names. */
const NAME_SERVER_PORT = 53;

/** Runs until "stop", which tells all that wait that there is no answer. */
export function runResolve(data: ResolveData, supervisor: MessagePort, openExchanges: OpenExchanges): void {
  const say = (message: LinkedThreadMessage) => supervisor.postMessage(message);
  const log: Log = (level, message, fields = {}) => say({ kind: "log", line: { level, message, fields } });
  const lifeSigns = giveLifeSigns(data.status, "resolve");
  giveWay();
  const work = openWork(data, openExchanges(data), log);
  work.connect(data.port);
  supervisor.on("message", (command: LinkedThreadCommand | ResolveCommand) => {
    switch (command.kind) {
      case "control-port":
        return work.connect(command.port);
      case "listener-port":
        return work.replies.connect(command.thread, command.port);
      case "stop":
        work.close();
        lifeSigns[Symbol.dispose]();
        supervisor.close();
    }
  });
  say({ kind: "running" });
}

/** Whoever asks what nobody can answer must not hold up what is answered at once, where both want the same processor. */
function giveWay(): void {
  // Elsewhere this would be the priority of the whole process.
  if (process.platform !== "linux") return;
  try {
    setPriority(0, RESOLVE_NICE);
  } catch {
    // Refused by the system: it goes on as it is.
  }
}

type Work = {
  readonly replies: Replies;
  /** The way to the control thread from now on. */
  readonly connect: (port: MessagePort) => void;
  readonly close: () => void;
};

function openWork(data: ResolveData, exchanges: Exchanges, log: Log): Work {
  const { shared, thread, sockets, options } = data;
  const askOwn = createAskOwn(shared, data.ownThread);
  const { resolver, cache } = openResolver(data, exchanges, askOwn);
  const libc = openLibc();
  const sender = libc === undefined ? undefined : createReplySender(libc);
  const replies = createReplies(
    sender,
    (of, socket) => sockets[of]?.[socket],
    () => clients.relieve(),
    {
      onTaken: (of, token, bytes) => primary.flows.onTaken(of, token, bytes),
      onGone: (of, token) => primary.flows.onGone(of, token),
      onBegun: (of) => primary.flows.onBegun(of),
    },
  );
  const counters = threadCounters(shared, thread);
  const way = createControlWay({
    resolver,
    exchanges,
    primary: () => primary,
    completed: (figures) => ({
      ...figures,
      waiting: clients.waiting(),
      loops: figures.loops + clients.loops(),
      refusedFull: figures.refusedFull + clients.refusedFull(),
    }),
  });
  const resolving = { resolver, position: cache.position, knowsRoute: way.knowsRoute, isOurs: exchanges.isOurs };
  const clients = createClients({
    answerer: createAnswerer(shared, { thread, forwards: true, isResolver: true, logs: "addresses", ...options }),
    counters,
    ...resolving,
    replies,
    toPrimary: (asked) => primary.take(asked),
    now: () => performance.now(),
    onReady: () => turns.wake(),
    onFailure: limitFailures((query, detail) =>
      log("error", `answering a query failed: ${detail}`, {
        thread: "resolve",
        query: Buffer.from(query).toString("hex"),
      }),
    ),
  });
  const primary = createPrimary({
    ...{ shared, clients, replies, askOwn, resolving, log },
    ownThread: data.ownThread,
    maxUdpSize: options.maxUdpSize,
    tell: way.tell,
    hearControl: way.hearOne,
    onReady: () => turns.wake(),
  });
  for (const one of data.listenerPorts) replies.connect(one.thread, one.port);
  const send = () => {
    counters[COUNTER.DROPPED]! += replies.send();
  };
  const turns = startTurns(shared, [...sockets.keys()], clients, primary, send);
  const close = () => {
    turns.close();
    resolver.close();
    clients.serve(Number.POSITIVE_INFINITY);
    clients.endAll();
    primary.endAll();
    send();
    exchanges.close();
    replies.close();
    way.close();
  };
  return { replies, connect: way.connect, close };
}

function openResolver({ shared, thread }: ResolveData, exchanges: Exchanges, askOwn: AskOwn) {
  const words = new Int32Array(shared.control);
  const nowSeconds = () => Atomics.load(words, CONTROL.CLOCK_SECONDS);
  const cache = createCacheWriter(shared, { nowSeconds });
  const resolver = createResolver({
    cache,
    routeName: createRouteName(shared, thread),
    findDelegation: createFindDelegation(askOwn),
    askedOf: createAskedOf(shared, cache),
    makePool: exchanges.makePool,
    askServers: exchanges.askServers,
    routing: () => Atomics.load(words, CONTROL.ROUTING),
    hashSeed: words[CONTROL.HASH_SEED]!,
    nowSeconds,
    after: exchanges.after,
    nameServerPort: NAME_SERVER_PORT,
  });
  return { resolver, cache };
}

type Turns = {
  /** Something is to be done. */
  readonly wake: () => void;
  /** Takes what has been handed over, and no more from then on. */
  readonly close: () => void;
};

/** Work comes in turns, bounded so that sockets and timers are served between them; without work the thread sleeps. */
function startTurns(
  shared: SharedImage,
  threads: readonly number[],
  clients: Clients,
  primary: Pick<Primary, "serve" | "sweep">,
  send: () => void,
): Turns {
  const inbox = openHandoverInbox(shared, threads);
  let isDue = false;
  let isAsleep = false;
  let isClosed = false;
  const turn = () => {
    isDue = false;
    if (isClosed) return;
    const taken = inbox.drain(CLIENTS_TURN, clients.take);
    const isMore = clients.serve(CLIENTS_TURN);
    const isMoreOfPrimary = primary.serve(CLIENTS_TURN);
    send();
    if (taken > 0 || isMore || isMoreOfPrimary) return wake();
    if (isAsleep) return;
    isAsleep = true;
    inbox.sleep(() => {
      isAsleep = false;
      wake();
    });
  };
  const wake = () => {
    if (isDue) return;
    isDue = true;
    setImmediate(turn);
  };
  const timer = setInterval(() => {
    clients.sweep();
    primary.sweep();
    send();
  }, CLIENT_SWEEP_MS);
  wake();
  return {
    wake,
    close: () => {
      clearInterval(timer);
      inbox.drain(Number.POSITIVE_INFINITY, clients.take);
      isClosed = true;
    },
  };
}
