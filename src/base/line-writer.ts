import { write } from "node:fs";
import { errorCode } from "./errors.ts";

export type LineWriter = {
  readonly write: (line: string) => void;
  /** Settles when every line is written, or after `timeoutMs`. */
  readonly flush: (timeoutMs: number) => Promise<void>;
};

const RETRY_MS = 50;

/**
 * Writes to a file descriptor in the background, one write at a time and in order, so that a reader that does not read
 * never stops the caller. More than `maxWaiting` characters waiting, a full disk or a reader that has gone costs lines.
 */
export function createLineWriter(descriptor: number, maxWaiting: number): LineWriter {
  let waiting: string[] = [];
  let waitingLength = 0;
  let isWriting = false;
  let onIdle = () => {};

  const writeNext = () => {
    isWriting = waiting.length > 0;
    if (!isWriting) return onIdle();
    const chunk = Buffer.from(waiting.join(""));
    waiting = [];
    waitingLength = 0;
    writeAll(chunk);
  };
  const writeAll = (chunk: Buffer) => {
    write(descriptor, chunk, 0, chunk.length, null, (error, written) => {
      if (errorCode(error) === "EAGAIN") setTimeout(writeAll, RETRY_MS, chunk);
      else if (error === null && written < chunk.length) writeAll(chunk.subarray(written));
      else writeNext();
    });
  };
  return {
    write: (line) => {
      if (waitingLength + line.length > maxWaiting) return;
      waiting.push(line);
      waitingLength += line.length;
      if (!isWriting) writeNext();
    },
    flush: (timeoutMs) =>
      new Promise((resolve) => {
        if (!isWriting) return resolve();
        const timer = setTimeout(resolve, timeoutMs);
        onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      }),
  };
}
