/** An open stream: messages, and small pings that tell whether the peer lives and how far its clock is off. */
import type { Timers } from "../cluster/transport.ts";
import {
  type ChannelHandlers,
  type ChannelOpened,
  MESSAGE_BYTES_MAX,
  type Peer,
  UNTAKEN_BYTES_MAX,
} from "./channel.ts";
import { bestSkewMs, SKEW_SAMPLES, type SkewSample, skewSample } from "./identity.ts";
import { decodeReason, decodeTimes, encodeReason, encodeTimes } from "./identity-exchange.ts";
import { FRAME, type Wire, type WireListener } from "./peers-wire.ts";

/** Who ended a stream: this end, the peer in good order, or neither (the connection broke, or nothing came any more). */
export type StreamEnd = { readonly by: "us" | "peer" | "reset"; readonly reason: string };

export type StreamFigures = {
  readonly peer: Peer;
  /** Of the timers' clock. */
  readonly openedAtMs: number;
  /** How far the peer's clock is ahead of ours now. */
  readonly skewMs: number;
  readonly untakenBytes: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
};

export type Stream = {
  readonly peer: Peer;
  readonly figures: () => StreamFigures;
  readonly close: (reason: string) => void;
};

export type StreamOptions = {
  readonly wire: Wire;
  readonly peer: Peer;
  readonly skew: SkewSample;
  readonly timers: Timers;
  readonly wallMs: () => number;
  readonly limits: {
    readonly pingMs: number;
    /** So many pings in a row without a byte from the peer, and it is gone; twice as many without one that it took of what waits. */
    readonly silentPings: number;
    /** What a stream may carry, both ways together. */
    readonly renewBytes: number;
  };
  readonly opened: ChannelOpened;
  /** Called once, after the handlers' `onClose`. */
  readonly onEnd: (end: StreamEnd) => void;
};

/** Gives the stream and what listens on its wire from now on. */
export function openStream(options: StreamOptions): { readonly stream: Stream; readonly listener: WireListener } {
  const { wire, peer, timers, opened } = options;
  const openedAtMs = timers.now();
  const pulse = createPulse(options, {
    onSilent: () => finish({ by: "reset", reason: "nothing came from the peer any more" }),
    onWorn: () => close("its keys have been used for long enough"),
    onStuck: () => finish({ by: "reset", reason: "the peer takes nothing of what it is sent" }),
  });
  let isOpen = true;
  let handlers: ChannelHandlers | undefined;
  const conclude = (end: StreamEnd) => {
    pulse.stop();
    if (end.by === "us") {
      wire.send(FRAME.CLOSE, encodeReason(end.reason));
      wire.finish();
    } else {
      wire.destroy();
    }
    handlers?.onClose(end.reason);
    options.onEnd(end);
  };
  const finish = (end: StreamEnd) => {
    if (!isOpen) return;
    isOpen = false;
    // Whoever is being told of the channel may close it: first both have to know what they have.
    if (handlers === undefined) queueMicrotask(() => conclude(end));
    else conclude(end);
  };
  const close = (reason: string) => finish({ by: "us", reason });
  const send = (message: Uint8Array) => {
    if (message.length > MESSAGE_BYTES_MAX) {
      throw new RangeError(`a message of ${message.length} bytes; at most ${MESSAGE_BYTES_MAX} may be sent`);
    }
    if (!isOpen) return;
    wire.send(FRAME.MESSAGE, message);
    if (wire.untakenBytes() > UNTAKEN_BYTES_MAX) close("the peer does not take what it is sent");
  };
  const malformed = () => close("the peer sent a malformed message");
  const onFrame = (kind: number, body: Uint8Array) => {
    if (!isOpen) return;
    if (kind === FRAME.MESSAGE) return handlers?.onMessage(body);
    if (kind === FRAME.CLOSE) return finish({ by: "peer", reason: decodeReason(body) });
    if (kind === FRAME.PING) return pulse.answer(body) ? undefined : malformed();
    if (kind === FRAME.PONG) return pulse.hear(body) ? undefined : malformed();
    malformed();
  };
  const figures = (): StreamFigures => ({
    peer,
    openedAtMs,
    skewMs: pulse.skewMs(),
    untakenBytes: isOpen ? wire.untakenBytes() : 0,
    bytesIn: wire.bytesIn(),
    bytesOut: wire.bytesOut(),
  });
  handlers = opened({
    peer,
    send,
    untakenBytes: () => (isOpen ? wire.untakenBytes() : 0),
    skewMs: pulse.skewMs,
    close,
  });
  return {
    stream: { peer, figures, close },
    listener: {
      bodyBytesMax: MESSAGE_BYTES_MAX,
      onFrame,
      onDrain: () => (isOpen ? handlers.onDrain() : undefined),
      onEnd: (kind, detail) => finish({ by: kind === "reset" ? "reset" : "us", reason: detail }),
    },
  };
}

/** Pings, their answers, and what both tell. */
function createPulse(
  { wire, skew, timers, wallMs, limits }: StreamOptions,
  { onSilent, onWorn, onStuck }: Readonly<Record<"onSilent" | "onWorn" | "onStuck", () => void>>,
) {
  const { pingMs, silentPings, renewBytes } = limits;
  let samples: SkewSample[] = [skew];
  let heardBytes = wire.bytesIn();
  let silent = 0;
  let takenBytes = wire.bytesOut();
  let stuck = 0;
  let sent: { readonly wallMs: number; readonly atMs: number } | undefined;
  // Counted in pings rather than by the clock: a process that stood still itself blames nobody for its silence.
  const beat = () => {
    callOff = timers.after(pingMs, beat);
    const heard = wire.bytesIn();
    silent = heard === heardBytes ? silent + 1 : 0;
    heardBytes = heard;
    const taken = wire.bytesOut();
    // Who talks and takes nothing would hold what waits for it, and whoever waits for room, for ever.
    stuck = taken === takenBytes && wire.untakenBytes() > 0 ? stuck + 1 : 0;
    takenBytes = taken;
    if (silent >= silentPings) return onSilent();
    if (stuck >= 2 * silentPings) return onStuck();
    if (heard + wire.bytesOut() >= renewBytes) return onWorn();
    sent = { wallMs: wallMs(), atMs: timers.now() };
    wire.send(FRAME.PING, encodeTimes(sent.wallMs));
  };
  let callOff = timers.after(pingMs, beat);
  return {
    stop: () => callOff(),
    skewMs: () => bestSkewMs(samples),
    /** A ping has the sender's time of day, and its answer has it again and the answerer's. False: it is malformed. */
    answer: (body: Uint8Array): boolean => {
      const asked = decodeTimes(body, 1)?.[0];
      if (asked === undefined) return false;
      wire.send(FRAME.PONG, encodeTimes(asked, wallMs()));
      return true;
    },
    hear: (body: Uint8Array): boolean => {
      const times = decodeTimes(body, 2);
      if (times === undefined) return false;
      if (sent === undefined || times[0] !== sent.wallMs) return true;
      samples = [...samples, skewSample(timers.now() - sent.atMs, wallMs(), times[1] ?? 0)].slice(-SKEW_SAMPLES);
      sent = undefined;
      return true;
    },
  };
}
