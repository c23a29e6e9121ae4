/**
 * The bytes of answers that are under way: made, or about to be, and not yet taken by their clients. A client that reads
 * nothing holds what it asked for; together such clients must not hold the node's memory, and one address not that of all.
 */
import { Refusal } from "../model/refusal.ts";
import { ANSWERS_BYTES_MAX, ANSWERS_BYTES_PER_ADDRESS_MAX, STREAM_BYTES_HELD } from "./limits.ts";

/** What one answer holds. Nothing is counted any more once it has ended. */
export type AnswerShare = {
  /** Throws `not_ready` where there is no room at all, before anything is read for the answer. */
  readonly requireRoom: () => void;
  /** The answer is a stream: counts what one holds to its end. Throws `not_ready` where there is no room for that. */
  readonly reserve: () => void;
  /** The answer is made, and so long: it is counted, whether or not there is room. */
  readonly settle: (bytes: number) => void;
  /** The answer has been taken, or its client has gone. */
  readonly end: () => void;
};

export type AnswerBudget = {
  /** `key`: what the client's address is counted under. */
  readonly open: (key: string) => AnswerShare;
  readonly usedBytes: () => number;
};

export function createAnswerBudget(): AnswerBudget {
  let used = 0;
  const byKey = new Map<string, number>();
  const add = (key: string, bytes: number) => {
    used += bytes;
    const own = (byKey.get(key) ?? 0) + bytes;
    if (own === 0) byKey.delete(key);
    else byKey.set(key, own);
  };
  return {
    usedBytes: () => used,
    open: (key) => {
      let held = 0;
      let hasEnded = false;
      const settle = (bytes: number) => {
        if (hasEnded) return;
        add(key, bytes - held);
        held = bytes;
      };
      const require = (bytes: number) => {
        const own = (byKey.get(key) ?? 0) + bytes;
        if (used + bytes <= ANSWERS_BYTES_MAX && own <= ANSWERS_BYTES_PER_ADDRESS_MAX) return;
        throw new Refusal("not_ready", "too many answers wait for their clients", [], { retry_after: 1 });
      };
      return {
        requireRoom: () => require(1),
        reserve: () => {
          require(STREAM_BYTES_HELD);
          settle(STREAM_BYTES_HELD);
        },
        settle,
        end: () => {
          settle(0);
          hasEnded = true;
        },
      };
    },
  };
}
