/** How health is shown: what a node knows of the values and checks that it probes. */
import { type Static, Type } from "typebox";
import { CheckProtocolShape } from "./health-check.ts";
import { ID_MAX } from "./limits.ts";
import { RECORD_TYPES } from "./objects.ts";

export const HealthStateShape = Type.Enum(["unknown", "healthy", "unhealthy"], {
  description: "unknown: not yet judged; it counts as healthy.",
});
export const HealthKindShape = Type.Enum(["check", "value"]);
/** Records that one item names; `count` has them all. */
export const GATED_RECORDS_SHOWN = 20;

const Time = Type.String({ format: "date-time" });
const Count = Type.Integer({ minimum: 0 });
const Milliseconds = Type.Number({ minimum: 0 });

const ProbeShape = Type.Object({
  at: Time,
  result: Type.Enum(["success", "failure"]),
  latency_ms: Milliseconds,
  error: Type.Optional(Type.String({ description: "Class of the failure.", examples: ["connect_timeout"] })),
  detail: Type.Optional(Type.String()),
});

const GATED_RECORD = {
  record_id: Type.String({ maxLength: ID_MAX, examples: ["rec_abcdefghij2345672345"] }),
  zone: Type.Optional(Type.String({ description: "Absent for an override.", examples: ["corp.example."] })),
  name: Type.String({ examples: ["www"] }),
  type: Type.Enum([...RECORD_TYPES]),
};

/** Without an answer of the thread that probes, times, counters and probes are left out. */
const PROBED = {
  protocol: Type.Optional(CheckProtocolShape),
  target: Type.Optional(Type.String({ examples: ["192.0.2.1:443"] })),
  interval_seconds: Type.Optional(Type.Integer()),
  timeout_seconds: Type.Optional(Type.Integer()),
  probed: Type.Boolean({ description: "False: this node does not probe it." }),
  state: HealthStateShape,
  since: Type.Optional(Time),
  checked_at: Type.Optional(Time),
  next_probe_at: Type.Optional(Time),
  stale: Type.Boolean({ description: "Its last probe is three intervals late, or the node's prober does not answer." }),
  failures: Type.Optional(Count),
  failure_threshold: Type.Optional(Count),
  successes: Type.Optional(Count),
  recovery_threshold: Type.Optional(Count),
  latency_ms: Type.Optional(Milliseconds),
  probes: Type.Array(ProbeShape, { description: "The last 20, oldest first." }),
};

export const ValueHealthShape = Type.Object({
  kind: Type.Literal("value"),
  ...GATED_RECORD,
  value: Type.String({ examples: ["192.0.2.1"] }),
  region: Type.Optional(Type.String()),
  ...PROBED,
  record_status: Type.Enum(["healthy", "degraded", "unhealthy"]),
  failing_open: Type.Boolean({ description: "All values of the record are unhealthy, so that all are answered." }),
  gates: Type.Object({
    count: Count,
    records: Type.Array(Type.Object(GATED_RECORD), { description: `At most ${GATED_RECORDS_SHOWN}.` }),
  }),
});

export const CheckHealthShape = Type.Object({
  kind: Type.Literal("check"),
  check_id: Type.String({ maxLength: ID_MAX, examples: ["chk_abcdefghij2345672345"] }),
  check_name: Type.String({ examples: ["billing database"] }),
  ...PROBED,
});

export const HealthItemShape = Type.Union([CheckHealthShape, ValueHealthShape]);

export type ProbeView = Static<typeof ProbeShape>;
export type ValueHealth = Static<typeof ValueHealthShape>;
export type CheckHealth = Static<typeof CheckHealthShape>;
export type HealthItem = ValueHealth | CheckHealth;
export type HealthState = Static<typeof HealthStateShape>;
