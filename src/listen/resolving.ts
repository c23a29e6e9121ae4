/**
 * The queries of a thread with an event loop that the thread that resolves has in hand: each is known by a token, and its
 * answer comes back over a port. What was handed over to a thread that died is given up after a time.
 */
import type { MessagePort } from "node:worker_threads";
import type { Transport } from "../image/counters.ts";
import type { SharedImage } from "../image/shared.ts";
import { PART, readAnswerFrames } from "./answer-frames.ts";
import { createFlows, type OnResolved } from "./flows.ts";
import { createHandover, type Handover } from "./handover.ts";
import { HANDED_OVER_MAX, HANDED_OVER_MS, HANDED_OVER_SWEEP_MS } from "./limits.ts";

export type Resolving = Pick<Handover, "admits" | "pushRefresh" | "wake"> & {
  /** The query is in bytes[at, at + length). False: there is no room for it, and `onResolved` is not called. */
  readonly handOver: (
    transport: Transport,
    address: Uint8Array,
    port: number,
    bytes: Uint8Array,
    at: number,
    length: number,
    onResolved: OnResolved,
  ) => boolean;
  /** Another thread resolves from now on. */
  readonly connect: (port: MessagePort) => void;
  /** Gives up what is under way; the thread can end. */
  readonly close: () => void;
};

export type ResolvingOptions = {
  readonly shared: SharedImage;
  readonly thread: number;
  /** How often the thread was started before: an answer to its predecessor's token is nobody's. */
  readonly start: number;
  readonly port: MessagePort;
  readonly now: () => number;
};

const TOKEN_BITS = 24;
const STARTS_MASK = 0x7f;

type Waiting = { readonly sinceMs: number; readonly onResolved: OnResolved };

export function createResolving({ shared, thread, start, port, now }: ResolvingOptions): Resolving {
  const handover = createHandover(shared, thread);
  /** In the order in which they were handed over. */
  const waiting = new Map<number, Waiting>();
  const ofStart = (start & STARTS_MASK) << TOKEN_BITS;
  let last = 0;
  let current = port;

  const flows = createFlows(
    (message) => current.postMessage(message),
    (token) => {
      const known = waiting.get(token);
      waiting.delete(token);
      return known?.onResolved;
    },
  );
  const settle = (token: number, answer: Uint8Array | undefined) => {
    const known = waiting.get(token);
    waiting.delete(token);
    known?.onResolved(answer);
  };
  const listen = (to: MessagePort) =>
    to.on("message", (frames: Uint8Array) => {
      readAnswerFrames(frames, (token, answer, part) => {
        if (part === PART.ONLY) settle(token, answer.length === 0 ? undefined : answer);
        else flows.pass(token, answer, part);
      });
      // Nothing more is sent before what was sent has been taken.
      to.postMessage(frames.length);
    });
  const giveUp = (untilMs: number) => {
    for (const [token, { sinceMs }] of waiting) {
      if (sinceMs > untilMs) return;
      settle(token, undefined);
    }
  };
  const timer = setInterval(() => giveUp(now() - HANDED_OVER_MS), HANDED_OVER_SWEEP_MS);
  timer.unref();
  listen(current);
  return {
    admits: handover.admits,
    pushRefresh: handover.pushRefresh,
    wake: handover.wake,
    handOver: (transport, address, clientPort, bytes, at, length, onResolved) => {
      if (waiting.size >= HANDED_OVER_MAX) return false;
      last = (last + 1) & ((1 << TOKEN_BITS) - 1);
      const token = ofStart | last;
      if (!handover.pushMessage(token, transport, address, clientPort, bytes, at, length)) return false;
      waiting.set(token, { sinceMs: now(), onResolved });
      return true;
    },
    connect: (next) => {
      current.close();
      flows.cutAll();
      current = next;
      listen(current);
    },
    close: () => {
      clearInterval(timer);
      current.close();
      flows.cutAll();
      giveUp(Number.POSITIVE_INFINITY);
    },
  };
}
