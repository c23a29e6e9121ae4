/** The addresses behind an ALIAS, for a transfer: as answers find them, from our own zones or by resolving, but all of them. */
import { createAnswerer } from "../answer/answerer.ts";
import { FLAG, RCODE } from "../dns/codes.ts";
import { decodeMessage, encodeMessage, makeQuery } from "../dns/message.ts";
import { TRANSPORT, threadCounters } from "../image/counters.ts";
import type { SharedImage } from "../image/shared.ts";
import { messageRecord, recordToken } from "../listen/handover-record.ts";
import type { AliasAnswer, AliasLookup } from "../primary/axfr-alias.ts";
import { type Clients, type ClientsOptions, createClients } from "./resolve-clients.ts";

export type AliasQuestions = Pick<Clients, "serve" | "sweep" | "endAll"> & { readonly lookUp: AliasLookup };

export type AliasQuestionsOptions = Pick<
  ClientsOptions,
  "resolver" | "position" | "knowsRoute" | "isOurs" | "now" | "onReady" | "onFailure"
> & {
  readonly shared: SharedImage;
  /** A place among the readers of the image where nobody else reads meanwhile; its counters are left empty. */
  readonly thread: number;
};

const ADDRESS = Uint8Array.of(127, 0, 0, 1);
const TOKENS = 2 ** 31;

export function createAliasQuestions({ shared, thread, ...options }: AliasQuestionsOptions): AliasQuestions {
  const answerer = createAnswerer(shared, {
    thread,
    forwards: true,
    offersToAll: true,
    isResolver: true,
    nodeId: undefined,
    maxUdpSize: 4_096,
    tcpIdleSeconds: 0,
  });
  const counters = threadCounters(shared, thread);
  const open = new Map<number, (answer: Uint8Array) => void>();
  let last = 0;
  const settle = (token: number, answer: Uint8Array) => {
    const give = open.get(token);
    open.delete(token);
    // These are no queries of clients.
    counters.fill(0);
    give?.(answer);
  };
  const replies: ClientsOptions["replies"] = {
    add: (_, record, answer) => settle(recordToken(record), answer),
    isFull: () => false,
  };
  const clients = createClients({ ...options, answerer, counters, replies });
  return {
    lookUp: (target, type) =>
      new Promise((resolve) => {
        last = (last + 1) % TOKENS;
        const { bytes } = encodeMessage(makeQuery(0, target, type, FLAG.RD));
        const record = messageRecord(last, TRANSPORT.TCP, ADDRESS, bytes);
        open.set(last, (answer) => resolve(aliasAnswer(answer, type)));
        const signing = { message: bytes, keyName: NO_KEY, bytes: 0, hasManagementView: true, sign: asItIs };
        clients.serveSigned({ thread, record, sinceMs: options.now(), signing });
      }),
    serve: clients.serve,
    sweep: clients.sweep,
    endAll: clients.endAll,
  };
}

/** What is nobody's is answered by the view of keys that see all: no health, no choice. */
const NO_KEY = Uint8Array.of(0);
const asItIs = (message: Uint8Array): Uint8Array => message;

/** The TTL is the smallest of the chain. */
function aliasAnswer(bytes: Uint8Array, type: number): AliasAnswer {
  const decoded = decodeMessage(bytes);
  if (decoded.kind === "error") return undefined;
  const { rcode, answers } = decoded.message;
  if (rcode === RCODE.NXDOMAIN) return { ttl: 0, rdatas: [] };
  if (rcode !== RCODE.NOERROR) return undefined;
  const rdatas = answers.flatMap((record) => (record.type === type ? [record.rdata.slice()] : []));
  return { ttl: Math.min(...answers.map(({ ttl }) => ttl), 2 ** 31 - 1), rdatas };
}
