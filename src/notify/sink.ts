/** Where events go, and how an attempt to bring one there ends. */
import type { Notice } from "./notice.ts";

export const SINK_NAMES = ["webhook", "eventgrid"] as const;
export type SinkName = (typeof SINK_NAMES)[number];

export type Attempt =
  | { readonly kind: "delivered" }
  /** Another attempt may go well. */
  | { readonly kind: "failed"; readonly reason: string }
  /** Another attempt would end the same way. */
  | { readonly kind: "refused"; readonly reason: string };

export type Sink = {
  readonly name: SinkName;
  /** One attempt; may reject, which is as "failed". */
  readonly attempt: (notice: Notice, signal: AbortSignal) => Promise<Attempt>;
  /** Gives up what it holds open. */
  readonly close: () => void;
};

/** What an answer's status means. A redirect is not followed: an event, and what proves who sends it, go nowhere else. */
export function attemptOf(status: number): Attempt {
  if (status >= 200 && status <= 299) return { kind: "delivered" };
  const reason = `answered ${status}`;
  return status >= 500 ? { kind: "failed", reason } : { kind: "refused", reason };
}
