/** The figures of health. Series of checks and values are bounded; what is left out is counted. */
import { Counter, Gauge, type Registry } from "prom-client";
import { RECORD_STATUSES } from "../health/aggregate.ts";
import type { Book } from "../health/book.ts";
import type { Checks } from "../health/checks.ts";
import type { HealthGates } from "../health/gates.ts";
import type { Outbox } from "../health/outbox.ts";
import { LATENESS_QUANTILES, PROBE_ERRORS, type ProbeFigures, type ProbeState } from "../health/probe.ts";
import { HEALTH_CHECK_SERIES_MAX, HEALTH_FIGURES_MS, HEALTH_VALUE_SERIES_MAX } from "./limits.ts";

const STATUS_VALUE: { readonly [State in ProbeState]: number } = { healthy: 1, unhealthy: 0, unknown: -1 };
const STATUS_HELP = "1 healthy, 0 unhealthy, -1 not yet judged or not probed here";

export type HealthMetricsParts = {
  readonly checks: Checks;
  readonly gates: HealthGates;
  readonly outbox: Outbox;
  /** Milliseconds from any moment on. */
  readonly clock: () => number;
};

/** The first of them is the state of each standalone check. */
export function registerHealth(parts: HealthMetricsParts, registry: Registry): void {
  registerChecks(parts, registry);
  registerValues(parts, registry);
  registerRecords(parts, registry);
  registerProbes(parts, registry);
}

function registerChecks({ checks }: HealthMetricsParts, registry: Registry): void {
  new Gauge({
    name: "svc_health_check_status",
    help: `State of each standalone health check: ${STATUS_HELP}. At most ${HEALTH_CHECK_SERIES_MAX} checks.`,
    labelNames: ["id", "name"],
    registers: [registry],
    collect() {
      this.reset();
      let left = HEALTH_CHECK_SERIES_MAX;
      for (const [id, { body, state }] of checks.byId) {
        if (left-- === 0) break;
        this.set({ id, name: body.name }, STATUS_VALUE[state]);
      }
    },
  });
}

function registerValues({ checks, gates: { book } }: HealthMetricsParts, registry: Registry): void {
  const registers = [registry];
  new Gauge({
    name: "svc_health_value_status",
    help: `State of each value that a health check gates: ${STATUS_HELP}. At most ${HEALTH_VALUE_SERIES_MAX} values.`,
    labelNames: ["zone", "name", "type", "value"],
    registers,
    collect() {
      this.reset();
      let left = HEALTH_VALUE_SERIES_MAX;
      for (const { zone, name, type, values } of entriesOf(book)) {
        for (const { value, probe } of values) {
          if (left-- <= 0) return;
          // SRV may name one host with several ports, and each is probed by itself.
          const label = type === "SRV" && probe !== undefined ? `${value}:${probe.spec.port}` : value;
          this.set({ zone, name, type, value: label }, STATUS_VALUE[probe?.state ?? "unknown"]);
        }
      }
    },
  });
  new Gauge({
    name: "svc_health_series_left_out",
    help: "Checks and values beyond those that have a series of their own.",
    registers,
    collect() {
      let values = 0;
      for (const entry of entriesOf(book)) values += entry.values.length;
      const left = Math.max(0, values - HEALTH_VALUE_SERIES_MAX);
      this.set(left + Math.max(0, checks.byId.size - HEALTH_CHECK_SERIES_MAX));
    },
  });
}

function* entriesOf(book: Book) {
  for (const { entries } of book.zones.values()) yield* entries.values();
}

function registerRecords({ gates }: HealthMetricsParts, registry: Registry): void {
  const registers = [registry];
  new Gauge({
    name: "svc_health_records",
    help: "Gated records by status: healthy, degraded (some values are unhealthy), unhealthy (all are).",
    labelNames: ["status"],
    registers,
    collect() {
      const counts = { healthy: 0, degraded: 0, unhealthy: 0 };
      for (const { status } of entriesOf(gates.book)) counts[status] += 1;
      for (const status of RECORD_STATUSES) this.set({ status }, counts[status]);
    },
  });
  new Gauge({
    name: "svc_health_records_failing_open",
    help: "Gated records of which all values are unhealthy, so that all are candidates.",
    registers,
    collect() {
      let count = 0;
      for (const { status } of entriesOf(gates.book)) if (status === "unhealthy") count += 1;
      this.set(count);
    },
  });
  new Gauge({
    name: "svc_health_slots_missing",
    help: "Values that are not probed, because no health slot was left for them.",
    registers,
    collect() {
      let count = 0;
      for (const { values } of entriesOf(gates.book)) for (const { lacksSlot } of values) if (lacksSlot) count += 1;
      this.set(count);
    },
  });
}

/** Figures that the health thread tells. Those of a moment ago do; where it does not answer, the last ones stand. */
function figuresOf({ outbox, clock }: HealthMetricsParts): () => Promise<ProbeFigures | undefined> {
  let last: ProbeFigures | undefined;
  let asked: Promise<ProbeFigures | undefined> | undefined;
  let askedMs = 0;
  return () => {
    if (asked !== undefined && clock() - askedMs < HEALTH_FIGURES_MS) return asked;
    askedMs = clock();
    asked = outbox.askFigures().then((figures) => {
      last = figures ?? last;
      return last;
    });
    return asked;
  };
}

function registerProbes(parts: HealthMetricsParts, registry: Registry): void {
  const registers = [registry];
  const read = figuresOf(parts);
  new Gauge({
    name: "svc_health_probes",
    help: "Distinct probes by state.",
    labelNames: ["state"],
    registers,
    async collect() {
      const { probes } = (await read()) ?? {};
      if (probes === undefined) return;
      for (const state of ["unknown", "healthy", "unhealthy"] as const) this.set({ state }, probes[state]);
    },
  });
  new Counter({
    name: "svc_health_probe_failures_total",
    help: "Probes that failed, by class of the failure.",
    labelNames: ["error"],
    registers,
    async collect() {
      const { failed } = (await read()) ?? {};
      this.reset();
      for (const error of PROBE_ERRORS) this.inc({ error }, failed?.[error] ?? 0);
    },
  });
  new Counter({
    name: "svc_health_probes_done_total",
    help: "Probes that ended, well or badly.",
    registers,
    async collect() {
      const figures = await read();
      this.reset();
      this.inc(figures?.done ?? 0);
    },
  });
  new Gauge({
    name: "svc_health_probe_lateness_seconds",
    help: "How late probes began in the last minute; quantile 1 is the latest.",
    labelNames: ["quantile"],
    registers,
    async collect() {
      const figures = await read();
      if (figures === undefined) return;
      for (const quantile of LATENESS_QUANTILES) this.set({ quantile }, figures.latenessMs[quantile] / 1000);
    },
  });
  const gauges = [
    ["svc_health_probes_stale", "Probes that are three intervals late.", ({ stale }: ProbeFigures) => stale],
    ["svc_health_probes_in_flight", "Probes under way.", ({ inFlight }: ProbeFigures) => inFlight],
  ] as const;
  for (const [name, help, pick] of gauges) {
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        const figures = await read();
        if (figures !== undefined) this.set(pick(figures));
      },
    });
  }
}
