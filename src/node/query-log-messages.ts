/** What the thread that writes the query log is begun with, and what it and the control thread say to each other. */
import type { LogLevel } from "../base/log.ts";
import type { SharedImage } from "../image/shared.ts";

export type QueryLogData = {
  readonly shared: SharedImage;
  readonly nodeId: string;
  readonly version: string;
  /** Path of the log; "": standard output; undefined: no lines are wanted. */
  readonly file: string | undefined;
  /** Path of the socket of a receiver of dnstap; undefined: none. */
  readonly dnstapSocket: string | undefined;
  /** Float64 places: QUERY_LOG_FIGURE. It outlives the thread. */
  readonly figures: SharedArrayBuffer;
};

/** Events written to and lost by each sink. Writer: the thread that writes the query log. */
export const QUERY_LOG_FIGURE = { LINES: 0, LINES_LOST: 1, DNSTAP: 2, DNSTAP_LOST: 3, COUNT: 4 } as const;

export type ToQueryLog =
  /** The lines sent were taken; the next ones may come. */
  | { readonly kind: "taken" }
  | { readonly kind: "reopen" }
  /** Write what there is, and end. */
  | { readonly kind: "stop" };

export type FromQueryLog =
  /** Lines that debug capture wanted, the newest last; so many before them were given up. */
  | { readonly kind: "lines"; readonly lines: readonly string[]; readonly lost: number }
  | { readonly kind: "log"; readonly level: LogLevel; readonly message: string };
