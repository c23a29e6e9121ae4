/**
 * Explains answers: asks an answerer of its own, over the image that all answers come from, and puts what it told into words.
 * Nothing here decides anything.
 */

import { ipToText } from "../base/ip.ts";
import type { Explainer } from "../commands/explain.ts";
import { FLAG, RCODE } from "../dns/codes.ts";
import { extendedErrorsOf } from "../dns/edns.ts";
import { decodeMessage, encodeMessage, type Message, makeQuery, type ResourceRecord } from "../dns/message.ts";
import { nameToText } from "../dns/name.ts";
import { typeToText } from "../dns/type-names.ts";
import { recordToText } from "../dns/zone-print.ts";
import { STATUSES_ASKED_MAX } from "../health/messages.ts";
import type { Outbox } from "../health/outbox.ts";
import type { ProbeStatus } from "../health/probe.ts";
import { TRANSPORT, type Transport } from "../image/counters.ts";
import type { Explanation, Reason } from "../model/explanation.ts";
import type { ExplainNames } from "./explain-names.ts";
import { type ToldReasons, tellReasons } from "./explain-reasons.ts";
import type { AnswerTracer, TracedAnswer } from "./traced-answer.ts";

export type ExplainerOptions = {
  readonly trace: AnswerTracer;
  readonly names: ExplainNames;
  /** What the health thread knows of probes; undefined: it does not answer. */
  readonly ask: Outbox["ask"];
  readonly nodeId: string;
  /** The most bytes of an answer over UDP: what the client is taken to take. */
  readonly maxUdpSize: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
};

/** An explainer of the answers that this node gives. */
export function createExplainer(options: ExplainerOptions): Explainer {
  const { trace, names, ask, nodeId, maxUdpSize, now } = options;
  return async ({ name, type, client }) => {
    const at = new Date(now()).toISOString();
    const edns = { udpSize: maxUdpSize, version: 0, wantsDnssec: false, options: [] };
    const { bytes: query } = encodeMessage(makeQuery(0, name, type, FLAG.RD, edns));
    const answerOver = (transport: Transport): Told => toldOf(trace(query, client, transport));
    const udp = answerOver(TRANSPORT.UDP);
    const needsTcp = (udp.message.flags & FLAG.TC) !== 0;
    const { answer, message } = needsTcp ? answerOver(TRANSPORT.TCP) : udp;
    const typeText = typeToText(type);
    const told = tellReasons(answer.events, answer.isRepeated, { client, typeText, names });
    return {
      node_id: nodeId,
      at,
      question: { name: nameToText(name), type: typeText, client: ipToText(client) },
      reasons: await withTimes(told, ask),
      answer: answerView(message, needsTcp, answer),
    };
  };
}

type Told = { readonly answer: TracedAnswer; readonly message: Message };

function toldOf(answer: TracedAnswer): Told {
  const decoded = decodeMessage(answer.bytes);
  if (decoded.kind === "error") throw new Error(`an answer of our own cannot be read: ${decoded.reason}`);
  return { answer, message: decoded.message };
}

const RCODE_NAMES: ReadonlyMap<number, string> = new Map(Object.entries(RCODE).map(([name, code]) => [code, name]));
const SHOWN_FLAGS = ["AA", "TC", "RD", "RA"] as const;

function answerView(message: Message, needsTcp: boolean, { events }: TracedAnswer): Explanation["answer"] {
  const { rcode, flags, answers, authorities, additionals, edns } = message;
  const error = extendedErrorsOf(edns)[0];
  return {
    rcode: RCODE_NAMES.get(rcode) ?? `RCODE${rcode}`,
    flags: SHOWN_FLAGS.filter((name) => (flags & FLAG[name]) !== 0).map((name) => name.toLowerCase()),
    ...(error === undefined ? {} : { extended_error: error.code }),
    needs_upstream: events.some(({ kind }) => kind === "lack"),
    needs_tcp: needsTcp,
    answer: answers.map(lineOf),
    authority: authorities.map(lineOf),
    additional: additionals.map(lineOf),
  };
}

function lineOf({ name: owner, type, ttl, rdata }: ResourceRecord): string {
  return recordToText({ owner, type, ttl, rdata });
}

/** The reasons, with the times since which the states of candidates are as the answer saw them. */
async function withTimes({ reasons, probes }: ToldReasons, ask: Outbox["ask"]): Promise<Reason[]> {
  const statuses = await askFor(
    probes.map(({ key }) => key),
    ask,
  );
  if (statuses.size === 0) return [...reasons];
  const keys = new Map(probes.map(({ reason, candidate, key }) => [`${reason} ${candidate}`, key]));
  return reasons.map((reason, place): Reason => {
    if (reason.kind !== "selection") return reason;
    const candidates = reason.candidates.map((candidate, index) => {
      const status = statuses.get(keys.get(`${place} ${index}`) ?? "");
      const isSame = status?.state === candidate.state && status.sinceMs !== undefined;
      return isSame ? { ...candidate, since: new Date(status.sinceMs).toISOString() } : candidate;
    });
    return { ...reason, candidates };
  });
}

async function askFor(keys: readonly string[], ask: Outbox["ask"]): Promise<ReadonlyMap<string, ProbeStatus>> {
  const distinct = [...new Set(keys)];
  const statuses = new Map<string, ProbeStatus>();
  for (let at = 0; at < distinct.length; at += STATUSES_ASKED_MAX) {
    const told = await ask(distinct.slice(at, at + STATUSES_ASKED_MAX));
    // Whoever does not answer once is not waited for again.
    if (told === undefined) break;
    for (const status of told) statuses.set(status.key, status);
  }
  return statuses;
}
