/** Events: what happened, for whoever listens. */

export const EVENT_TYPES = [
  "health.check_transition",
  "failover.activated",
  "failover.recovered",
  "cluster.node_joined",
  "cluster.node_left",
  "backup.failed",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

export type EventInput = {
  readonly type: EventType;
  /** Record id, check id, node id, or "backup". */
  readonly subject: string;
  /** What else is known, without secrets; `subject` is added. */
  readonly data?: Readonly<Record<string, unknown>>;
};

/** Takes an event and returns at once, whatever its sinks do. */
export type Emit = (event: EventInput) => void;
