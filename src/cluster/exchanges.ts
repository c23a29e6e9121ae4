/** What goes over TCP: push/pull in both directions, the ping of a member whose packets are lost, payloads that are sent so. */
import { ipToText } from "../base/ip.ts";
import type { Codec } from "./codec.ts";
import type { Counters } from "./counters.ts";
import type { Delegate } from "./member.ts";
import { endpointText, type MemberStates } from "./member-states.ts";
import type { Endpoint, PingMessage, PushPullMessage, StreamMessage } from "./messages.ts";
import type { Node } from "./node-table.ts";
import type { Notes } from "./notes.ts";
import {
  EXCHANGES_IN_MAX,
  type MembershipSettings,
  PINGS_OUT_MAX,
  PUSH_PULLS_OUT_MAX,
  USER_STATE_BYTES_MAX,
} from "./settings.ts";
import type { Exchange, Transport } from "./transport.ts";

export type Exchanges = {
  /** Rejects where the address does not answer, or not as a member of this cluster. */
  readonly pushPull: (to: Endpoint, isJoin: boolean) => Promise<void>;
  /** Whether the member answered within the time. Never rejects. */
  readonly ping: (node: Node, ping: PingMessage, timeoutMs: number) => Promise<boolean>;
  /** For the transport. Never rejects. */
  readonly onExchange: (exchange: Exchange, from: Endpoint) => Promise<void>;
  /** Ends those that run, and waits for them; what is still being dialed ends when it is there, or with the transport. */
  readonly stop: () => Promise<void>;
};

export type ExchangesOptions = {
  readonly selfName: string;
  readonly codec: Codec;
  readonly transport: Transport;
  readonly settings: MembershipSettings;
  readonly counters: Counters;
  readonly states: Pick<MemberStates, "states" | "merge">;
  readonly delegate: Delegate;
  readonly notes: Notes;
};

type Context = ExchangesOptions & {
  /** Those that run. */
  readonly open: Set<Exchange>;
  readonly counts: { incoming: number; pushPulls: number; pings: number };
  /** What is under way on an open exchange. */
  readonly running: Set<Promise<void>>;
  isStopped: boolean;
};

function local({ states, delegate }: Context, isJoin: boolean): PushPullMessage {
  return { type: "push-pull", isJoin, nodes: states.states(), userState: delegate.localState(isJoin) };
}

function merge(context: Context, { nodes, userState, isJoin }: PushPullMessage, from: Endpoint): void {
  const { states, delegate, counters } = context;
  if (context.isStopped) return;
  states.merge(nodes);
  if (userState.length > USER_STATE_BYTES_MAX) counters.dropped.oversized++;
  else if (userState.length > 0) delegate.mergeState(userState, isJoin, from);
}

async function read(context: Context, exchange: Exchange, from: Endpoint): Promise<StreamMessage> {
  const { codec, counters, notes } = context;
  const unpacked = codec.unpackFrame(await exchange.receive());
  // Who dials does so from any port.
  const host = ipToText(from.address);
  if (!("fault" in unpacked)) {
    notes.mended(host);
    return unpacked.message;
  }
  counters.dropped[unpacked.fault]++;
  if (unpacked.fault === "sealed")
    notes.note("warn", `${host} has another replication.encrypt_key than this node`, host);
  throw new Error(unpacked.fault === "sealed" ? "it has another key" : `what it sends is ${unpacked.fault}`);
}

const OTHER_CLUSTER =
  "does not answer as a member of this cluster, as a node with another replication.encrypt_key would";

/** As `read`, of a push/pull. Who has another key cannot say so: it ends the exchange. */
async function readAnswer(context: Context, exchange: Exchange, to: Endpoint): Promise<StreamMessage> {
  const about = `dialled ${endpointText(to)}`;
  try {
    const answer = await read(context, exchange, to);
    context.notes.mended(about);
    return answer;
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error);
    if (!context.isStopped) context.notes.note("warn", `${ipToText(to.address)} ${OTHER_CLUSTER}: ${fault}`, about);
    throw new Error(`it ${OTHER_CLUSTER}: ${fault}`);
  }
}

/** However the work ends, the exchange is over. */
async function use(context: Context, exchange: Exchange, work: () => Promise<void>): Promise<void> {
  const { open, running } = context;
  open.add(exchange);
  const done = context.isStopped ? Promise.resolve() : work();
  running.add(done);
  try {
    await done;
  } finally {
    running.delete(done);
    open.delete(exchange);
    exchange.close();
  }
}

/** Sends one frame to a member, and gives its answer to `onAnswer`. */
async function ask(
  context: Context,
  to: Endpoint,
  timeoutMs: number,
  request: () => StreamMessage,
  onAnswer: (answer: StreamMessage) => void,
  readOne = read,
): Promise<void> {
  const { codec, transport } = context;
  if (context.isStopped) throw new Error("the membership has ended");
  const exchange = await transport.dial(to, timeoutMs);
  await use(context, exchange, async () => {
    exchange.send(codec.packFrame(request(), "request"));
    onAnswer(await readOne(context, exchange, to));
  });
}

async function pushPull(context: Context, to: Endpoint, isJoin: boolean): Promise<void> {
  const { counters, settings, counts } = context;
  const request = (): StreamMessage => local(context, isJoin);
  const onAnswer = (answer: StreamMessage): void => {
    if (answer.type === "error") throw new Error(`it refuses: ${answer.text}`);
    if (answer.type !== "push-pull") throw new Error("its answer is no list of members");
    merge(context, answer, to);
  };
  if (counts.pushPulls >= PUSH_PULLS_OUT_MAX) throw new Error("too many exchanges are under way");
  counts.pushPulls++;
  try {
    await ask(context, to, settings.exchangeTimeoutMs, request, onAnswer, readAnswer);
    counters.pushPulls++;
  } catch (error) {
    counters.failedPushPulls++;
    throw error;
  } finally {
    counts.pushPulls--;
  }
}

async function ping(context: Context, node: Node, message: PingMessage, timeoutMs: number): Promise<boolean> {
  const { counts } = context;
  let isAlive = false;
  if (counts.pings >= PINGS_OUT_MAX) return false;
  const onAnswer = (answer: StreamMessage): void => {
    isAlive = answer.type === "ack" && answer.sequence === message.sequence;
  };
  counts.pings++;
  try {
    await ask(context, node.endpoint, timeoutMs, () => message, onAnswer);
  } catch {
    // Silence is the answer; why does not matter to the prober.
  } finally {
    counts.pings--;
  }
  return isAlive;
}

/** Answers what another member asks. */
async function serve(context: Context, exchange: Exchange, from: Endpoint): Promise<void> {
  const { codec, delegate, counters, selfName } = context;
  const message = await read(context, exchange, from);
  if (message.type === "push-pull") {
    exchange.send(codec.packFrame(local(context, message.isJoin), "reply"));
    merge(context, message, from);
  } else if (message.type === "ping") {
    if (message.node !== "" && message.node !== selfName) counters.dropped.misaddressed++;
    else {
      const { sequence } = message;
      exchange.send(codec.packFrame({ type: "ack", sequence, payload: new Uint8Array(0) }, "reply"));
    }
  } else if (message.type === "user") delegate.onUserMessage(message.payload);
}

export function createExchanges(options: ExchangesOptions): Exchanges {
  const counts = { incoming: 0, pushPulls: 0, pings: 0 };
  const context: Context = { ...options, open: new Set(), running: new Set(), counts, isStopped: false };
  return {
    pushPull: (to, isJoin) => pushPull(context, to, isJoin),
    ping: (node, message, timeoutMs) => ping(context, node, message, timeoutMs),
    onExchange: async (exchange, from) => {
      if (context.isStopped || counts.incoming >= EXCHANGES_IN_MAX) {
        if (!context.isStopped) options.counters.dropped.full++;
        exchange.close();
        return;
      }
      counts.incoming++;
      try {
        await use(context, exchange, () => serve(context, exchange, from));
      } catch {
        // A peer that sends no whole frame, or one of another key, which is counted.
      } finally {
        counts.incoming--;
      }
    },
    stop: async () => {
      context.isStopped = true;
      for (const exchange of context.open) exchange.close();
      await Promise.allSettled(context.running);
    },
  };
}
