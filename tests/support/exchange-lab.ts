/** Exchanges with upstreams as a node makes them, for tests: real sockets, either implementation of them. */
import { ipFromText } from "../../src/base/ip.ts";
import type { OpenUdpSockets } from "../../src/base/udp-sockets.ts";
import { openLibc } from "../../src/listen/linux/libc.ts";
import { openLinuxUdpSockets } from "../../src/listen/linux/upstream-sockets.ts";
import { createChance } from "../../src/resolve/chance.ts";
import type { ExchangeOutcome, Exchanger, Question, Rejection, Server } from "../../src/resolve/exchange.ts";
import { createExchanger } from "../../src/resolve/exchanger.ts";
import type { Hardening } from "../../src/resolve/settings.ts";
import type { Streams } from "../../src/resolve/stream.ts";
import { createTcpStreams } from "../../src/resolve/tcp.ts";
import { createTimers, type Timers } from "../../src/resolve/timers.ts";
import { createTlsStreams } from "../../src/resolve/tls.ts";
import { openPortableUdpSockets } from "../../src/resolve/udp-portable.ts";
import { wireName } from "./scripted-replies.ts";

export const NO_HARDENING: Hardening = {
  caseRandomization: false,
  cookies: false,
  bailiwick: true,
  rebindingProtection: false,
  rebindingExceptions: [],
  maxUdpSize: 1232,
  minTtl: undefined,
  maxTtl: undefined,
  serveStaleSeconds: 0,
  refuseAny: false,
};

export type Asked = {
  readonly outcome: ExchangeOutcome;
  readonly rejections: readonly Rejection[];
  readonly tookMs: number;
};

export type ExchangeLab = Disposable & {
  readonly exchanger: Exchanger;
  readonly timers: Timers;
  readonly tcp: Streams;
  readonly tls: Streams;
  /** Asks and waits for what comes of it. */
  readonly ask: (server: Server, question: Question, timeoutMs?: number) => Promise<Asked>;
};

export type ExchangeLabOptions = {
  readonly sockets?: "linux" | "portable";
  readonly socketsMax?: number;
  readonly ca?: string;
  readonly nowMs?: () => number;
};

/** Both, where this system has both. */
export function socketKinds(): readonly ("linux" | "portable")[] {
  return openLibc() === undefined ? ["portable"] : ["linux", "portable"];
}

export function openExchangeLab({ sockets, socketsMax = 64, ca, nowMs }: ExchangeLabOptions = {}): ExchangeLab {
  const timers = createTimers(nowMs);
  const chance = createChance();
  const libc = sockets === "portable" ? undefined : openLibc();
  const openSockets: OpenUdpSockets =
    libc === undefined ? openPortableUdpSockets : (options) => openLinuxUdpSockets(libc, options);
  const tcp = createTcpStreams(timers, chance);
  const tls = createTlsStreams(timers, chance, ca);
  const exchanger = createExchanger({ openSockets, socketsMax, tcp, tls, timers, chance });
  return {
    exchanger,
    timers,
    tcp,
    tls,
    ask: (server, question, timeoutMs = 20_000) => {
      const rejections: Rejection[] = [];
      const startedMs = performance.now();
      return new Promise((resolve) => {
        exchanger.ask(
          server,
          question,
          timeoutMs,
          (outcome) => resolve({ outcome, rejections, tookMs: performance.now() - startedMs }),
          (rejection) => rejections.push(rejection),
        );
      });
    },
    [Symbol.dispose]: exchanger.close,
  };
}

export function serverAt(address: string, port: number, tls?: { readonly tlsName?: string }): Server {
  const bytes = ipFromText(address);
  if (bytes === undefined) throw new Error(`no address: ${address}`);
  return { transport: tls === undefined ? "dns" : "tls", address: bytes, port, tlsName: tls?.tlsName };
}

export function questionFor(name: string, type = 1, hardening?: Partial<Hardening>, flags = 0): Question {
  return {
    name: wireName(name),
    type,
    flags,
    recursionDesired: true,
    hardening: hardening === undefined ? undefined : { ...NO_HARDENING, ...hardening },
  };
}

/** `ADDRESS ...`, an rcode, or the fault, in one line. */
export function outcomeText({ outcome }: Pick<Asked, "outcome">): string {
  if (outcome.kind === "fault") return outcome.fault;
  const { answers, rcode } = outcome.message;
  return rcode === 0 ? answers.map(({ rdata }) => [...rdata].join(".")).join(" ") : `rcode ${rcode}`;
}
