/**
 * Ends answers that their clients do not take. The time without a byte of a connection does not say it: a client that
 * leaves the window of a stream shut and sends a PING now and then is never idle, and holds the answer for ever.
 */
import { constants, type Http2ServerRequest, type Http2ServerResponse, type ServerHttp2Stream } from "node:http2";
import type { Writable } from "node:stream";

export type AnswerBounds = {
  /** Without any progress while bytes wait to be taken. */
  readonly stallMs: number;
  /** From the end of an answer to the reset of its stream, where the client still sends. */
  readonly lingerMs: number;
};

export type AnswerWatch = {
  readonly watch: (request: Http2ServerRequest, response: Http2ServerResponse) => void;
  readonly stop: () => void;
};

type Answer = {
  readonly writable: Writable;
  /** Whether it is its turn: of pipelined answers only the first one can move. */
  readonly isOnTheWire: () => boolean;
  readonly end: () => void;
  waitingBytes: number;
  movedAtMs: number;
};

/** `nowMs` must not go back. */
export function watchAnswers({ stallMs, lingerMs }: AnswerBounds, nowMs: () => number): AnswerWatch {
  const answers = new Set<Answer>();
  const timer = setInterval(
    () => {
      const now = nowMs();
      for (const answer of answers) {
        const waiting = answer.isOnTheWire() ? answer.writable.writableLength : 0;
        if (waiting === 0 || waiting !== answer.waitingBytes) answer.movedAtMs = now;
        answer.waitingBytes = waiting;
        if (now - answer.movedAtMs >= stallMs) answer.end();
      }
    },
    Math.max(10, stallMs / 8),
  ).unref();
  const watch = (request: Http2ServerRequest, response: Http2ServerResponse): void => {
    const stream = streamOf(response);
    const writable = stream ?? response;
    const answer: Answer = {
      writable,
      isOnTheWire: stream === undefined ? () => response.socket !== null : () => true,
      end: stream === undefined ? () => request.socket.destroy() : () => endStream(stream),
      waitingBytes: 0,
      movedAtMs: nowMs(),
    };
    answers.add(answer);
    const forget = (): void => void answers.delete(answer);
    // Pieces of one size leave as many bytes waiting as before; that they move is told by this event.
    writable.on("drain", () => {
      answer.movedAtMs = nowMs();
    });
    writable.once("finish", forget);
    writable.once("close", forget);
    if (stream !== undefined) stream.once("finish", () => resetLater(stream, lingerMs));
  };
  return { watch, stop: () => clearInterval(timer) };
}

/** Calls back once, when all of the answer has been handed to the connection, or the connection is gone. */
export function onAnswered(response: Http2ServerResponse, callback: () => void): void {
  let isCalled = false;
  const once = (): void => {
    if (!isCalled) callback();
    isCalled = true;
  };
  // The response itself says that it is finished only when the client, too, has ended its side of the stream.
  (streamOf(response) ?? response).once("finish", once);
  response.once("close", once);
}

/** Undefined for HTTP/1, whose responses come through the same door and have none. */
function streamOf(response: Http2ServerResponse): ServerHttp2Stream | undefined {
  return "stream" in response ? response.stream : undefined;
}

function endStream(stream: ServerHttp2Stream): void {
  stream.close(constants.NGHTTP2_CANCEL);
  stream.destroy();
}

/** RFC 9113 section 8.1: after a complete answer, NO_ERROR asks the client to send no more of its request. */
function resetLater(stream: ServerHttp2Stream, lingerMs: number): void {
  const timer = setTimeout(() => {
    if (!stream.destroyed) stream.close(constants.NGHTTP2_NO_ERROR);
  }, lingerMs).unref();
  stream.once("close", () => clearTimeout(timer));
}
