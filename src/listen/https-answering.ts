/** A message of DNS that came over HTTP becomes its answer. */
import { type Answerer, TAKEN } from "../answer/answerer.ts";
import { EDE } from "../dns/codes.ts";
import { COUNTER, observeLatency, TRANSPORT } from "../image/counters.ts";
import type { RefusedStatus } from "./https-request.ts";
import { STREAM_MESSAGE_BYTES } from "./limits.ts";
import type { Resolving } from "./resolving.ts";

export type AnsweringContext = {
  readonly answerer: Answerer;
  /** Takes the queries that have to be resolved. */
  readonly resolving: Resolving;
  readonly counters: Float64Array;
  readonly onFailure: (query: Uint8Array, thrown: unknown) => void;
  /** Milliseconds of a clock that never runs backwards. */
  readonly now: () => number;
};

/** An answer of DNS, and who may keep it. */
export type DohAnswer = {
  readonly bytes: Uint8Array;
  /** It is, or may be, another one for other clients. */
  readonly isForClient: boolean;
};

/** A status stands for what is no answer of DNS. */
export type Reply = (answer: DohAnswer | RefusedStatus) => void;

export type Answering = {
  /** Calls `reply` once, at once or when the answer is resolved; the bytes are whoever's is called. */
  readonly answer: (query: Uint8Array, address: Uint8Array, port: number, reply: Reply) => void;
};

/** The message is no query: a response, or nothing that begins like a message. */
const NO_QUERY = 400;
/** There is no answer, and there will be none: who resolves has ended, or answering has failed. */
const NO_ANSWER = 503;

export function createAnswering({ answerer, resolving, counters, onFailure, now }: AnsweringContext): Answering {
  const scratch = new Uint8Array(STREAM_MESSAGE_BYTES);
  const room = STREAM_MESSAGE_BYTES;
  const transport = TRANSPORT.DOH;

  /** Its length, 0 for silence; TAKEN where `reply` will be called. */
  const answerHere = (query: Uint8Array, address: Uint8Array, port: number, reply: Reply): number => {
    const { length: received } = query;
    scratch.set(query);
    answerer.client.port = port;
    const length = answerer.answer(scratch, 0, received, room, address, 0, address.length, transport);
    if (answerer.refresh !== 0) resolving.pushRefresh(answerer.refresh);
    if (length !== TAKEN) return length;
    // Who resolves does not say whether a chain led to a choice for the client. The next one is answered here.
    const onResolved = (bytes: Uint8Array | undefined) =>
      reply(bytes === undefined ? NO_ANSWER : { bytes, isForClient: true });
    const isAdmitted = resolving.admits(answerer.need.route);
    if (isAdmitted && resolving.handOver(transport, address, port, scratch, 0, received, onResolved)) return TAKEN;
    counters[COUNTER.HANDOVER_FULL]! += 1;
    return answerer.answerNow(scratch, 0, received, room, address, 0, address.length, transport, EDE.OTHER);
  };
  return {
    answer: (query, address, port, reply) => {
      const beginMs = now();
      let length: number;
      answerer.enter();
      try {
        length = answerHere(query, address, port, reply);
      } catch (thrown) {
        counters[COUNTER.FAILED]! += 1;
        onFailure(query.slice(), thrown);
        return reply(NO_ANSWER);
      } finally {
        answerer.leave();
        resolving.wake();
      }
      if (length === TAKEN) return;
      observeLatency(counters, Math.round((now() - beginMs) * 1000), 1);
      reply(length === 0 ? NO_QUERY : { bytes: scratch.slice(0, length), isForClient: answerer.isForClient });
    },
  };
}
