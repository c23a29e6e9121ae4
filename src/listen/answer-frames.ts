/**
 * Answers on their way from the thread that resolves to one that sends them, several in one message: of each its token and
 * its length as little-endian words, then its bytes.
 */

const HEAD_BYTES = 8;
const FIRST_BYTES = 4_096;

/** Collects answers for one thread. */
export type AnswerFrames = {
  /** An answer of no bytes is silence. */
  readonly add: (token: number, answer: Uint8Array) => void;
  /** Of what was added since the last time. */
  readonly bytes: () => number;
  /** What was added since the last time; undefined for nothing. */
  readonly take: () => Uint8Array<ArrayBuffer> | undefined;
};

export function createAnswerFrames(): AnswerFrames {
  let bytes = new Uint8Array(FIRST_BYTES);
  let filled = 0;
  return {
    add: (token, answer) => {
      const end = filled + HEAD_BYTES + answer.length;
      if (end > bytes.length) {
        const larger = new Uint8Array(end * 2);
        larger.set(bytes.subarray(0, filled));
        bytes = larger;
      }
      const view = new DataView(bytes.buffer);
      view.setInt32(filled, token, true);
      view.setInt32(filled + 4, answer.length, true);
      bytes.set(answer, filled + HEAD_BYTES);
      filled = end;
    },
    bytes: () => filled,
    take: () => {
      if (filled === 0) return undefined;
      const taken = bytes.slice(0, filled);
      filled = 0;
      if (bytes.length > FIRST_BYTES) bytes = new Uint8Array(FIRST_BYTES);
      return taken;
    },
  };
}

/** Calls `onAnswer` for each answer in turn; the bytes belong to whoever is called. */
export function readAnswerFrames(frames: Uint8Array, onAnswer: (token: number, answer: Uint8Array) => void): void {
  const view = new DataView(frames.buffer, frames.byteOffset, frames.byteLength);
  for (let at = 0; at + HEAD_BYTES <= frames.length; ) {
    const end = at + HEAD_BYTES + view.getInt32(at + 4, true);
    onAnswer(view.getInt32(at, true), frames.subarray(at + HEAD_BYTES, end));
    at = end;
  }
}
