/** One exchange of frames over a TCP connection, bounded in time and in what it holds. */
import type { Socket } from "node:net";
import { type Cut, createFrameCutter } from "./sockets-frames.ts";
import type { Exchange } from "./transport.ts";

/** What an exchange counts; the port's figures are one. */
export type ExchangeCounts = {
  bytesIn: number;
  bytesOut: number;
  /** Exchanges that took longer than they may. */
  overdue: number;
  /** Exchanges whose bytes are no frame that may be. */
  unframed: number;
};

export type SocketExchange = {
  readonly exchange: Exchange;
  /** Bytes of a frame that has not come whole. */
  readonly heldBytes: () => number;
  /** Feeds what was read before the exchange began. */
  readonly feed: (chunk: Uint8Array) => void;
  /** Ends it at once; whoever waits for a frame is told why. */
  readonly cut: (reason: string) => void;
};

export type ExchangeOptions = {
  /** From now to its end. */
  readonly timeoutMs: number;
  readonly counts: ExchangeCounts;
  /** So many bytes more (or fewer) are held; it may cut this exchange. */
  readonly onHeld: (change: number) => void;
};

/** Without a figure: lines of the log that say why are left out where they are the same. */
const OVERDUE = "it took too long";

type Waiting = { readonly resolve: (frame: Uint8Array) => void; readonly reject: (error: Error) => void };

/**
 * Takes the socket over. It is read only while somebody waits for a frame, so that a peer can make us hold no more than one and
 * what came with it.
 */
export function createSocketExchange(socket: Socket, options: ExchangeOptions): SocketExchange {
  const { timeoutMs, counts, onHeld } = options;
  const cutter = createFrameCutter();
  let waiting: Waiting | undefined;
  let failure: string | undefined;

  let held = 0;

  const hold = (bytes: number) => {
    const change = bytes - held;
    held = bytes;
    onHeld(change);
  };
  const fail = (reason: string) => {
    failure ??= reason;
    waiting?.reject(new Error(failure));
    waiting = undefined;
    hold(0);
  };
  const cut = (reason: string) => {
    socket.destroy();
    fail(reason);
  };
  const deliver = () => {
    const next: Cut = waiting === undefined ? { kind: "more" } : cutter.next();
    if (next.kind === "fault") {
      counts.unframed += 1;
      cut(next.detail);
    } else if (next.kind === "frame") {
      socket.pause();
      waiting?.resolve(next.frame);
      waiting = undefined;
    }
    if (failure === undefined) hold(cutter.heldBytes());
  };
  const feed = (chunk: Uint8Array) => {
    counts.bytesIn += chunk.length;
    cutter.add(chunk);
    deliver();
  };
  const timer = setTimeout(() => {
    counts.overdue += 1;
    cut(OVERDUE);
  }, timeoutMs);

  socket.on("data", feed);
  socket.pause();
  socket.on("end", () => cut("the peer closed the connection"));
  socket.on("error", (error) => cut(error.message));
  socket.on("close", () => {
    clearTimeout(timer);
    cut("the connection is closed");
  });

  return {
    heldBytes: () => held,
    feed,
    cut,
    exchange: {
      send: (frame) => {
        if (failure !== undefined) return;
        counts.bytesOut += frame.length;
        socket.write(frame);
      },
      receive: () =>
        new Promise((resolve, reject) => {
          if (failure !== undefined) return reject(new Error(failure));
          if (waiting !== undefined) return reject(new Error("a frame is waited for already"));
          waiting = { resolve, reject };
          deliver();
          if (waiting !== undefined) socket.resume();
        }),
      close: () => {
        fail("the exchange is over");
        // What was sent still goes out; the timer ends a peer that does not take it.
        socket.destroySoon();
      },
    },
  };
}
