/**
 * Answers on their way from the thread that resolves to one that sends them, several in one message: of each its token, its
 * length and what it is among the messages of its query as little-endian words, then its bytes.
 */

/** What a message is among those that answer one query. */
export const PART = {
  /** The only one. Of no bytes: there is none. */
  ONLY: 0,
  /** Others follow; of no bytes it only says so. */
  MORE: 1,
  LAST: 2,
  /** No message: others should have followed and will not, so the connection is to be closed. */
  CUT: 3,
} as const;
export type Part = (typeof PART)[keyof typeof PART];

/** What the thread that sends answers says to the one that resolves. */
export type FromSender =
  /** So many bytes of frames were taken. */
  | number
  /** The client of an answer of several messages has taken so many bytes of them. */
  | { readonly kind: "taken"; readonly token: number; readonly bytes: number }
  /** It has gone, or never was. */
  | { readonly kind: "gone"; readonly token: number };

const HEAD_BYTES = 12;
const FIRST_BYTES = 4_096;

/** Collects answers for one thread. */
export type AnswerFrames = {
  readonly add: (token: number, answer: Uint8Array, part?: Part) => void;
  /** Of what was added since the last time. */
  readonly bytes: () => number;
  /** What was added since the last time; undefined for nothing. */
  readonly take: () => Uint8Array<ArrayBuffer> | undefined;
};

export function createAnswerFrames(): AnswerFrames {
  let bytes = new Uint8Array(FIRST_BYTES);
  let filled = 0;
  return {
    add: (token, answer, part = PART.ONLY) => {
      const end = filled + HEAD_BYTES + answer.length;
      if (end > bytes.length) {
        const larger = new Uint8Array(end * 2);
        larger.set(bytes.subarray(0, filled));
        bytes = larger;
      }
      const view = new DataView(bytes.buffer);
      view.setInt32(filled, token, true);
      view.setInt32(filled + 4, answer.length, true);
      view.setInt32(filled + 8, part, true);
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

const PARTS: readonly Part[] = Object.values(PART);

/** Calls `onAnswer` for each answer in turn; the bytes belong to whoever is called. */
export function readAnswerFrames(
  frames: Uint8Array,
  onAnswer: (token: number, answer: Uint8Array, part: Part) => void,
): void {
  const view = new DataView(frames.buffer, frames.byteOffset, frames.byteLength);
  for (let at = 0; at + HEAD_BYTES <= frames.length; ) {
    const end = at + HEAD_BYTES + view.getInt32(at + 4, true);
    const part = PARTS[view.getInt32(at + 8, true)] ?? PART.ONLY;
    onAnswer(view.getInt32(at, true), frames.subarray(at + HEAD_BYTES, end), part);
    at = end;
  }
}
