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
  | "closed";

export type ExchangeOutcome =
  | { readonly kind: "answer"; readonly message: Message; readonly rttMs: number; readonly bytes: number }
  | { readonly kind: "fault"; readonly fault: ExchangeFault };
