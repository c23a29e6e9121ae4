/** What the API asks of health: this node's probes and what came of them. The composition root supplies it. */
import type { CheckHealth, HealthItem, HealthState } from "../model/health-status.ts";

export type HealthFilter = {
  readonly state?: HealthState;
  readonly kind?: "check" | "value";
  /** Name of a zone as it is stored. */
  readonly zone?: string;
  readonly record_id?: string;
};

export type HealthTurn = {
  readonly items: readonly HealthItem[];
  /** There at the end: the key to go on behind, or undefined where nothing follows. */
  readonly end?: { readonly next: readonly string[] | undefined };
};

export type HealthView = {
  readonly nodeId: string;
  /**
   * The first `limit` items behind a key, some at each call, and fewer once a call says that the page is full: standalone
   * checks by id, then gated values by zone, name, type and place. Undefined: the key is none of this list. Where the health
   * thread does not answer, an item has what this thread knows, and is stale.
   */
  readonly open: (
    filter: HealthFilter,
    after: readonly string[] | undefined,
    limit: number,
  ) => ((isFull: boolean) => Promise<HealthTurn>) | undefined;
  /** Undefined: there is no such check. */
  readonly check: (id: string) => Promise<CheckHealth | undefined>;
};
