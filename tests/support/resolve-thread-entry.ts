/**
 * A thread that resolves whose upstreams answer any question with 192.0.2.1 but where the first label of its name says
 * otherwise: "silent" never, "late" after a moment, "kill" ends the thread and "hang" never gives it back.
 */
import { parentPort, workerData } from "node:worker_threads";
import { CLASS, FLAG, RRTYPE } from "../../src/dns/codes.ts";
import type { Message } from "../../src/dns/message.ts";
import { nameToText } from "../../src/dns/name.ts";
import { type Exchanges, runResolve } from "../../src/node/resolve-thread.ts";
import type { ExchangeOutcome, Question } from "../../src/resolve/exchange.ts";

const ADDRESS = Uint8Array.of(192, 0, 2, 1);
const LATE_MS = 50;
const TIMEOUT_MS = 2_000;

function answerTo({ name, type }: Question): Message {
  const isAddress = type === RRTYPE.A;
  return {
    id: 0,
    flags: FLAG.QR | FLAG.RD | FLAG.RA,
    opcode: 0,
    rcode: 0,
    questions: [{ name, type, class: CLASS.IN }],
    answers: isAddress ? [{ name, type, class: CLASS.IN, ttl: 300, rdata: ADDRESS }] : [],
    authorities: [],
    additionals: [],
    edns: undefined,
  };
}

function ask(question: Question, onDone: (outcome: ExchangeOutcome) => void): () => void {
  const [label] = nameToText(question.name).split(/[.-]/);
  if (label === "kill") process.exit(1);
  if (label === "hang") for (;;);
  const outcome: ExchangeOutcome =
    label === "silent"
      ? { kind: "fault", fault: "timeout" }
      : { kind: "answer", message: answerTo(question), rttMs: 1, bytes: 60 };
  const delayMs = label === "silent" ? TIMEOUT_MS : label === "late" ? LATE_MS : 0;
  const timer = setTimeout(onDone, delayMs, outcome);
  return () => clearTimeout(timer);
}

const exchanges: Exchanges = {
  makePool: () => ({ ask, figures: () => [], close: () => {} }),
  askServers: (_, question, __, onDone) => ask(question, onDone),
  isOurs: (_, __, name) => nameToText(name).startsWith("ours."),
  setListens: () => {},
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
  close: () => {},
};

if (parentPort !== null) runResolve(workerData, parentPort, () => exchanges);
