/** What the membership protocol needs of a network; sockets.ts has the real one, tests have one in memory. */
import type { Endpoint } from "./messages.ts";

/** One exchange over TCP: sealed frames, each whole, and its length checked before it is read. */
export type Exchange = {
  readonly send: (frame: Uint8Array) => void;
  /** The next frame of the peer; rejects when it ends, resets or takes longer than the exchange may. */
  readonly receive: () => Promise<Uint8Array>;
  readonly close: () => void;
};

export type TransportHandlers = {
  readonly onPacket: (packet: Uint8Array, from: Endpoint) => void;
  readonly onExchange: (exchange: Exchange, from: Endpoint) => void;
};

export type Transport = AsyncDisposable & {
  /** Where it listens. */
  readonly local: Endpoint;
  readonly start: (handlers: TransportHandlers) => void;
  /** Lost without a word where it cannot be sent. */
  readonly sendPacket: (packet: Uint8Array, to: Endpoint) => void;
  /** Rejects where nobody accepts within the time; the whole exchange ends when it has passed. */
  readonly dial: (to: Endpoint, timeoutMs: number) => Promise<Exchange>;
};

/** Time as the protocol sees it; the simulation has its own. */
export type Timers = {
  /** Milliseconds of a clock that never runs backwards. */
  readonly now: () => number;
  /** Runs something once after so long; what is returned calls it off. */
  readonly after: (delayMs: number, run: () => void) => () => void;
};
