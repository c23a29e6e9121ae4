/** Frames over a TLS connection; who listens to them changes once, when both ends know each other. */
import type { TLSSocket } from "node:tls";
import { errorCode } from "../base/errors.ts";
import type { Timers } from "../cluster/transport.ts";
import { FEW_UNTAKEN_BYTES } from "./channel.ts";
import { createFrameReader, createFrameWriter } from "./framing.ts";

/** Kinds of frames. Hello to refused come before a stream is open, the others after. */
export const FRAME = { HELLO: 1, CONFIRM: 2, REFUSED: 3, MESSAGE: 4, PING: 5, PONG: 6, CLOSE: 7 } as const;

/** For what was sent last to reach the peer. */
const LINGER_MS = 1_000;

export type WireListener = {
  readonly bodyBytesMax: number;
  readonly onFrame: (kind: number, body: Uint8Array) => void;
  readonly onDrain: () => void;
  /**
   * Called once, unless this end has called `finish` or `destroy`: the connection broke, or what came was too long. In the second
   * case the listener finishes the wire, after it has said why where that helps.
   */
  readonly onEnd: (kind: "reset" | "malformed", detail: string) => void;
};

export type Wire = {
  readonly listen: (listener: WireListener) => void;
  readonly send: (kind: number, body: Uint8Array) => void;
  readonly untakenBytes: () => number;
  /** Bytes of frames. */
  readonly bytesIn: () => number;
  readonly bytesOut: () => number;
  /** Hears nothing more; ends the connection when what was sent is on its way, or after a second. */
  readonly finish: () => void;
  readonly destroy: () => void;
};

/** The handshake is over and nothing has been read. */
export function createWire(socket: TLSSocket, timers: Timers, first: (wire: Wire) => WireListener): Wire {
  let isOver = false;
  let bytesIn = 0;
  let failure: string | undefined;
  const end = (kind: "reset" | "malformed", detail: string) => {
    if (isOver) return;
    if (kind === "reset") wire.destroy();
    listener.onEnd(kind, detail);
  };
  const writer = createFrameWriter({
    write: (bytes, onTaken) => {
      socket.write(bytes, (error) => {
        if (error === undefined || error === null) onTaken();
      });
    },
    onTaken: (before, after) => {
      if (!isOver && before > FEW_UNTAKEN_BYTES && after <= FEW_UNTAKEN_BYTES) listener.onDrain();
    },
  });
  const reader = createFrameReader({
    bodyBytesMax: () => listener.bodyBytesMax,
    onFrame: (kind, body) => {
      listener.onFrame(kind, body);
      return !isOver;
    },
    onOversized: (bytes) => end("malformed", `a message of ${bytes} bytes; at most ${listener.bodyBytesMax} may come`),
  });
  const wire: Wire = {
    listen: (next) => {
      listener = next;
    },
    send: writer.send,
    untakenBytes: writer.untakenBytes,
    bytesIn: () => bytesIn,
    bytesOut: writer.takenBytes,
    finish: () => {
      if (isOver) return;
      isOver = true;
      const callOff = timers.after(LINGER_MS, () => socket.destroy());
      socket.once("close", callOff);
      writer.whenTaken(() => socket.end());
    },
    destroy: () => {
      isOver = true;
      writer.stop();
      socket.destroy();
    },
  };
  let listener = first(wire);
  socket.on("data", (chunk: Buffer) => {
    if (isOver) return;
    bytesIn += chunk.length;
    reader.push(chunk);
  });
  socket.on("error", (error) => {
    failure = errorCode(error);
  });
  socket.once("end", () => end("reset", "the peer's end is gone"));
  socket.once("close", () => {
    writer.stop();
    end("reset", `the connection broke${failure === undefined ? "" : `: ${failure}`}`);
  });
  return wire;
}
