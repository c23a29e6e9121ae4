/**
 * Takes in what a refused request still sends, within bounds. A client that is in the middle of its body reads the answer
 * only then, and over HTTP/2 bytes that nobody takes use up the window of the whole connection.
 */
import { Readable } from "node:stream";
import { DRAIN_BYTES_MAX, DRAIN_MS } from "./limits.ts";

export type DrainBounds = { readonly bytesMax: number; readonly timeoutMs: number };

/** What of a request is asked here; it is an IncomingMessage of either HTTP. */
export type DrainedRequest = Readable & { readonly complete: boolean; readonly httpVersionMajor: number };

const BOUNDS: DrainBounds = { bytesMax: DRAIN_BYTES_MAX, timeoutMs: DRAIN_MS };

/** Resolves when the request has ended, or has been ended because it is beyond the bounds; never rejects. */
export function drain(raw: DrainedRequest, { bytesMax, timeoutMs }: DrainBounds = BOUNDS): Promise<void> {
  if (raw.complete || raw.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    // A connection that broke after its answer tells the request nothing, and the timer must not hold up the end of the process.
    const timer = setTimeout(() => raw.destroy(), timeoutMs).unref();
    const end = (): void => {
      clearTimeout(timer);
      resolve();
    };
    let bytes = 0;
    raw.once("close", end);
    raw.once("end", end);
    raw.on("error", () => {});
    raw.on("data", (chunk: Uint8Array) => {
      bytes += chunk.length;
      if (bytes > bytesMax) raw.destroy();
    });
    raw.resume();
  });
}

/**
 * The answer to a refused request whose body is still on its way over HTTP/1: all of it is written at once, and it ends
 * when the body has been taken in. Node closes the socket of `Connection: close` at the end of the answer, and a socket
 * that is closed with bytes unread is reset, which takes the answer from the client (RFC 9112 section 9.6).
 */
export function answerUntilDrained(text: string, drained: Promise<void>): Readable {
  return Readable.from(
    (async function* () {
      yield Buffer.from(text);
      await drained;
    })(),
    { objectMode: false },
  );
}
