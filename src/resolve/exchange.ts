/** One question to one upstream and its answer: what carries it, and what can go wrong. */
import type { Message } from "../dns/message.ts";
import type { Hardening } from "./settings.ts";

/** An address of an upstream, once its name is resolved. */
export type Server = {
  readonly transport: "dns" | "tls";
  /** 4 or 16 bytes. */
  readonly address: Uint8Array;
  readonly port: number;
  readonly tlsName: string | undefined;
};

export type Question = {
  /** Wire name as it is to be asked; its letters' case is the exchange's business. */
  readonly name: Uint8Array;
  readonly type: number;
  /** Bits of QUESTION_FLAG. */
  readonly flags: number;
  readonly recursionDesired: boolean;
  /** Undefined: of a route without hardening. */
  readonly hardening: Hardening | undefined;
};

export type ExchangeFault =
  | "timeout"
  /** Refused, unreachable, reset, closed in the middle. */
  | "network"
  | "tls"
  /** It answered, and what it said is no message, or none to this question. */
  | "garbage"
  /** The server is this node itself. */
  | "loop"
  /** Nobody was asked: no room for another exchange, or this side ends. It says nothing about the server. */
  | "closed";

export type ExchangeOutcome =
  | { readonly kind: "answer"; readonly message: Message; readonly rttMs: number; readonly bytes: number }
  | { readonly kind: "fault"; readonly fault: ExchangeFault };

/** Why a message that came was not the answer that is waited for. */
export type Rejection = "id" | "question" | "case" | "cookie" | "garbage";

export type Exchanger = {
  /**
   * Asks one server one question and waits `timeoutMs` at most, over UDP with TCP where the answer has no room, or over
   * TLS. `onDone` is called once, never before this returns. `onRejected` is called for each message that was passed
   * over. What is returned ends it without a call.
   */
  readonly ask: (
    server: Server,
    question: Question,
    timeoutMs: number,
    onDone: (outcome: ExchangeOutcome) => void,
    onRejected?: (rejection: Rejection) => void,
  ) => () => void;
  /**
   * Whether a client of this node is this node itself: one of its open exchanges sends from that port of a local address,
   * and asks that question.
   */
  readonly isOurs: (address: Uint8Array, port: number, name: Uint8Array, type: number) => boolean;
  /** Where this node listens: no server there is asked. A wildcard stands for all addresses of the machine. */
  readonly setListens: (listens: readonly { readonly address: Uint8Array; readonly port: number }[]) => void;
  /** Exchanges that are open, those that wait for a socket among them. */
  readonly inFlight: () => number;
  /** Ends all of them with "closed", before this returns; nothing is asked any more. */
  readonly close: () => void;
};
