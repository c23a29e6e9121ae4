/**
 * Zones and questions in one process, in the words of the domain: zone text in, a question such as `www.example.test. A`,
 * and the answer as lines of text.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Answerer, type AnswererOptions, createAnswerer, TAKEN } from "../../src/answer/answerer.ts";
import { cidrFromText } from "../../src/base/ip.ts";
import { CLASS, FLAG, RCODE } from "../../src/dns/codes.ts";
import { type EdnsOption, extendedErrorsOf } from "../../src/dns/edns.ts";
import { decodeMessage, encodeMessage, type Message, type ResourceRecord } from "../../src/dns/message.ts";
import { nameFromText, nameToText } from "../../src/dns/name.ts";
import { typeFromText, typeToText } from "../../src/dns/type-names.ts";
import { recordToText } from "../../src/dns/zone-print.ts";
import type { CacheWriter } from "../../src/image/cache.ts";
import { createCacheWriter } from "../../src/image/cache-writer.ts";
import { TRANSPORT, type Transport } from "../../src/image/counters.ts";
import { createNameKey, type NameKey, readNameKey } from "../../src/image/name-key.ts";
import { offerRecursion } from "../../src/image/recursion.ts";
import { CONTROL, createSharedImage, type SharedImage } from "../../src/image/shared.ts";
import { openImageWriter, setDefaultRoute, setRoute } from "../../src/image/writer.ts";
import type { ImageWriter } from "../../src/image/writer-state.ts";
import { publishZoneFile } from "../../src/publish/zone-file-source.ts";
import { blockNames } from "./blocked-names.ts";
import { type CachedText, cachedText } from "./cached-text.ts";
import { publishOverrides } from "./override-text.ts";

export type LabOptions = {
  readonly nodeId?: string;
  readonly maxUdpSize?: number;
  readonly tcpIdleSeconds?: number;
  /** Start value of the name hashes of this image. */
  readonly hashSeed?: number;
  /** Milliseconds since 1970. */
  readonly nowSeconds?: number;
  /** What else the answerer is given. */
  readonly answerer?: Pick<
    AnswererOptions,
    "chance" | "clientSubnetSources" | "forwards" | "isFrozen" | "isResolver" | "trace"
  >;
};

export type AskOptions = {
  /** `false`: no OPT record. Left out: one that takes 1232 bytes. */
  readonly edns?:
    | false
    | {
        readonly udpSize?: number;
        readonly version?: number;
        readonly wantsDnssec?: boolean;
        readonly options?: readonly EdnsOption[];
      };
  readonly transport?: Transport;
  /** Header flags such as FLAG.RD. */
  readonly flags?: number;
  readonly opcode?: number;
  readonly class?: number;
  /** IPv4 or IPv6 address of the client, in bytes. */
  readonly client?: Uint8Array;
};

export type ZoneLab = {
  readonly shared: SharedImage;
  readonly writer: ImageWriter;
  readonly answerer: Answerer;
  /** Publishes zone texts in turn. Throws where one has an error. */
  readonly publish: (...texts: readonly string[]) => void;
  /** Lets these overrides answer and no others: records as in a zone file, with full names and a TTL of 300 for none. */
  readonly override: (text: string) => void;
  /** Number of a route for the names at and below one, 0 to take it away; for the root's it is the default forwarder's. */
  readonly route: (name: string, route: number) => void;
  /** Lets these names be on the blocklist, and no others. */
  readonly block: (...names: readonly string[]) => void;
  /** Lets the cache have an answer. */
  readonly cached: (question: string, answer: CachedText) => void;
  /** Seconds since 1970, from now on. */
  readonly clock: (seconds: number) => void;
  readonly cache: CacheWriter;
  readonly key: (name: string) => NameKey;
  /** Sends bytes as they are and returns the answer's, undefined for silence. Throws where others were written over. */
  readonly send: (packet: Uint8Array, options?: AskOptions) => Uint8Array | undefined;
  /** As `send`, of a query for which the cache may lack something: "taken". */
  readonly sendOrLack: (packet: Uint8Array, options?: AskOptions) => Uint8Array | "taken" | undefined;
  /** Asks a question that cannot be answered from what is there: what is lacking, as `ROUTE NAME TYPE FLAGS`. */
  readonly lack: (question: string, options?: AskOptions) => string;
  /** As `ask`, of an answer that waits for nobody: see Answerer.answerNow. */
  readonly askNow: (question: string, extendedError: number, options?: AskOptions) => readonly string[];
  /** Asks a question and decodes the answer, which must be there and whole. */
  readonly message: (question: string, options?: AskOptions) => Message;
  /** Asks a question and returns the answer's lines: see `answerLines`. */
  readonly ask: (question: string, options?: AskOptions) => readonly string[];
};

const CACHE_BYTES = 2 ** 20;
const HASH_SEED = 0x5eed;
const QUERY_ID = 0x1d0e;
/** The packet stands at an odd place, between bytes that must stay as they are. */
const OFFSET = 37;
const CANARY = 0xa5;
const CANARY_BYTES = 64;
const ROOM_BYTES = { udp: 4096, stream: 65_535 } as const;
/** Recursion is offered to them. */
export const EVERYBODY = ["0.0.0.0/0", "::/0"].map((text) => cidrFromText(text) ?? assert.fail(text));
const LOOPBACK = Uint8Array.of(127, 0, 0, 1);

export const COOKIE_SECRETS = {
  today: [0x11111111, 0x22222222, 0x33333333, 0x44444444],
  yesterday: [0x55555555, 0x66666666, 0x77777777, 0x7fffffff],
} as const;

/** A zone's text: a SOA whose negative answers live for 60 seconds, an NS, its address, and the records of `body`. */
export function zone(apex: string, body = ""): string {
  const below = apex === "." ? "" : apex;
  return `$ORIGIN ${apex}\n$TTL 300\n${soaRecord(apex, 300)}\n@ NS ns1.${below}\nns1.${below} A 192.0.2.53\n${body}\n`;
}

function soaRecord(apex: string, ttl: number): string {
  const below = apex === "." ? "" : apex;
  return `${apex} ${ttl} IN SOA ns1.${below} hostmaster.${below} 1 7200 900 1209600 60`;
}

/** The line of a negative answer from a zone made by `zone`. */
export function negative(apex: string): string {
  return `authority ${soaRecord(apex, 60)}`;
}

export function openLab(texts: readonly string[], options: LabOptions = {}): ZoneLab {
  const shared = createSharedImage(options.hashSeed ?? HASH_SEED);
  const control = new Int32Array(shared.control);
  control.set(COOKIE_SECRETS.today, CONTROL.COOKIE_SECRET);
  control.set(COOKIE_SECRETS.yesterday, CONTROL.COOKIE_SECRET_BEFORE);
  control[CONTROL.CLOCK_SECONDS] = options.nowSeconds ?? 0;
  const writer = openImageWriter(shared);
  const cache = createCacheWriter(shared, { nowSeconds: () => control[CONTROL.CLOCK_SECONDS]! });
  if (options.answerer?.forwards === true) cache.resize(CACHE_BYTES);
  const answerer = createAnswerer(shared, {
    thread: 0,
    nodeId: options.nodeId,
    maxUdpSize: options.maxUdpSize ?? 1232,
    tcpIdleSeconds: options.tcpIdleSeconds ?? 10,
    ...options.answerer,
  });
  offerRecursion(writer, EVERYBODY);
  const lab: ZoneLab = {
    shared,
    writer,
    answerer,
    publish(...zones) {
      for (const text of zones) assert.deepEqual(publishZoneFile(writer, Buffer.from(text)).errors, []);
    },
    override: (text) => publishOverrides(writer, text),
    route: (name, route) => {
      if (name === ".") setDefaultRoute(writer, route, 0);
      else setRoute(writer, lab.key(name), route);
    },
    block: (...names) => blockNames(writer, names.map(nameOf)),
    cached: (question, answer) => {
      const stored = { routing: control[CONTROL.ROUTING]!, nowSeconds: control[CONTROL.CLOCK_SECONDS]! };
      assert(cache.put(cachedText(question, answer, stored)));
    },
    clock: (seconds) => {
      control[CONTROL.CLOCK_SECONDS] = seconds;
    },
    cache,
    key: (name) => keyOf(nameOf(name), shared),
    send: (packet, ask = {}) => send(answerer, packet, ask),
    sendOrLack: (packet, ask = {}) => exchangeBytes(answerer, packet, ask),
    askNow: (question, extendedError, ask = {}) => {
      const bytes = exchangeBytes(answerer, queryBytes(question, ask), ask, extendedError);
      assert(bytes instanceof Uint8Array);
      return answerLines(decode(bytes));
    },
    lack: (question, ask = {}) => lack(answerer, queryBytes(question, ask), ask),
    message: (question, ask = {}) => exchange(lab, question, ask),
    ask: (question, ask = {}) => answerLines(exchange(lab, question, ask)),
  };
  lab.publish(...texts);
  return lab;
}

function keyOf(name: Uint8Array, shared: SharedImage): NameKey {
  const key = createNameKey();
  readNameKey(key, name, 0, name.length, new Int32Array(shared.control)[CONTROL.HASH_SEED]!);
  return key;
}

function lack(answerer: Answerer, packet: Uint8Array, options: AskOptions): string {
  assert.equal(exchangeBytes(answerer, packet, options), "taken");
  const { route, key, type, flags } = answerer.need;
  const name = nameToText(Uint8Array.from([...key.lower.subarray(0, key.length), 0]));
  return `${route} ${name} ${typeToText(type)} ${flags}`;
}

function send(answerer: Answerer, packet: Uint8Array, options: AskOptions): Uint8Array | undefined {
  const answer = exchangeBytes(answerer, packet, options);
  return answer === "taken" ? assert.fail("it lacks something") : answer;
}

/** The answer's bytes, undefined for silence, "taken" where the cache lacks something. */
function exchangeBytes(
  answerer: Answerer,
  packet: Uint8Array,
  options: AskOptions,
  nowError?: number,
): Uint8Array | "taken" | undefined {
  const transport = options.transport ?? TRANSPORT.UDP;
  const room = transport === TRANSPORT.UDP ? ROOM_BYTES.udp : ROOM_BYTES.stream;
  const bytes = Buffer.alloc(OFFSET + room + CANARY_BYTES, CANARY);
  bytes.set(packet, OFFSET);
  const client = options.client ?? LOOPBACK;
  answerer.enter();
  let length = answerer.answer(bytes, OFFSET, packet.length, room, client, 0, client.length, transport);
  if (length === TAKEN && nowError !== undefined) {
    length = answerer.answerNow(bytes, OFFSET, packet.length, room, client, 0, client.length, transport, nowError);
  }
  answerer.leave();
  assert((length >= 0 || length === TAKEN) && length <= room, `an answer of ${length} bytes in a room of ${room}`);
  const around = [...bytes.subarray(0, OFFSET), ...bytes.subarray(OFFSET + room)];
  assert(
    around.every((byte) => byte === CANARY),
    "wrote outside its room",
  );
  if (length === TAKEN) {
    assert.deepEqual(bytes.subarray(OFFSET, OFFSET + packet.length), Buffer.from(packet), "the query was changed");
    return "taken";
  }
  return length === 0 ? undefined : bytes.subarray(OFFSET, OFFSET + length);
}

/** The bytes of a question such as `www.example.test. A`. */
export function queryBytes(question: string, options: AskOptions = {}): Uint8Array {
  const [owner = "", typeText = ""] = question.split(" ");
  const edns = options.edns ?? {};
  const message: Message = {
    id: QUERY_ID,
    flags: options.flags ?? 0,
    opcode: options.opcode ?? 0,
    rcode: RCODE.NOERROR,
    questions: [{ name: nameOf(owner), type: typeFromText(typeText)!, class: options.class ?? CLASS.IN }],
    answers: [],
    authorities: [],
    additionals: [],
    edns: edns === false ? undefined : { udpSize: 1232, version: 0, wantsDnssec: false, options: [], ...edns },
  };
  return encodeMessage(message).bytes;
}

/** The wire form of a name in text. Throws where it is none. */
export function nameOf(text: string): Uint8Array {
  const result = nameFromText(text);
  return result.kind === "name" ? result.name : assert.fail(`${text}: ${result.reason}`);
}

export function decode(bytes: Uint8Array): Message {
  const result = decodeMessage(bytes);
  if (result.kind === "error") return assert.fail(`${result.reason}: ${Buffer.from(bytes).toString("hex")}`);
  assert.equal(result.trailingBytes, 0);
  return result.message;
}

function exchange(lab: ZoneLab, question: string, options: AskOptions): Message {
  const query = queryBytes(question, options);
  const bytes = lab.send(query, options);
  if (bytes === undefined) return assert.fail(`no answer to ${question}`);
  const message = decode(bytes);
  assert.equal(message.id, QUERY_ID);
  assert.notEqual(message.flags & FLAG.QR, 0);
  assert.equal(message.opcode, options.opcode ?? 0);
  // The question comes back byte by byte, in the case in which it was asked.
  const questionEnd = 12 + nameOf(question.split(" ")[0] ?? "").length + 4;
  assert.deepEqual(Buffer.from(bytes.subarray(12, questionEnd)), Buffer.from(query.subarray(12, questionEnd)));
  return message;
}

const RCODE_TEXT: ReadonlyMap<number, string> = new Map(Object.entries(RCODE).map(([text, code]) => [code, text]));

/** First `NOERROR aa tc rd ede=20` as far as each is there; then `answer RECORD`, `authority RECORD`, `additional RECORD`. */
export function answerLines(message: Message): readonly string[] {
  const { flags, rcode, answers, authorities, additionals, edns } = message;
  const status = [RCODE_TEXT.get(rcode) ?? `RCODE${rcode}`];
  for (const [name, bit] of Object.entries(FLAG)) {
    if (name !== "QR" && (flags & bit) !== 0) status.push(name.toLowerCase());
  }
  for (const { code } of extendedErrorsOf(edns)) status.push(`ede=${code}`);
  return [
    status.join(" "),
    ...answers.map((record) => `answer ${recordLine(record)}`),
    ...authorities.map((record) => `authority ${recordLine(record)}`),
    ...additionals.map((record) => `additional ${recordLine(record)}`),
  ];
}

function recordLine(record: ResourceRecord): string {
  assert.equal(record.class, CLASS.IN);
  const { name: owner, type, ttl, rdata } = record;
  return recordToText({ owner, type, ttl, rdata });
}

/** One question, why it is asked, and the lines of its answer. */
export type Case = readonly [why: string, question: string, lines: readonly string[]];

/** Makes a test of each case. */
export function testAnswers(lab: ZoneLab, cases: readonly Case[], options: AskOptions = {}): void {
  for (const [why, question, lines] of cases) {
    test(`${why}: ${question}`, () => assert.deepEqual(lab.ask(question, options), lines));
  }
}
