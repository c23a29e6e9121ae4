/** The figures of the API in the Prometheus text format. Labels come from the table of routes, so series are bounded. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { ApiServer, Observation } from "./server.ts";

const DURATION_BOUNDS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];
/** What a client makes up is one method. */
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"]);

export type ApiMetrics = {
  /** Goes into the options of the server. */
  readonly observe: (observation: Observation) => void;
  /** Shows connections and requests of that server from now on. */
  readonly follow: (server: Pick<ApiServer, "openConnections" | "refusedConnections" | "requestsUnderWay">) => void;
};

/** Registers the figures. */
export function createApiMetrics(registry: Registry): ApiMetrics {
  const registers = [registry];
  const requests = new Counter({
    name: "svc_api_requests_total",
    help: "Requests answered, by method, route and class of status.",
    labelNames: ["method", "route", "status"],
    registers,
  });
  const durations = new Histogram({
    name: "svc_api_request_duration_seconds",
    help: "From the head of a request to the end of its answer.",
    labelNames: ["method"],
    buckets: DURATION_BOUNDS_SECONDS,
    registers,
  });
  const limited = new Counter({
    name: "svc_api_rate_limited_total",
    help: "Requests refused for a rate limit.",
    registers,
  });
  return {
    observe: ({ method, route, status, seconds }) => {
      const known = METHODS.has(method) ? method : "other";
      requests.inc({ method: known, route, status: `${Math.floor(status / 100)}xx` });
      durations.observe({ method: known }, seconds);
      if (status === 429) limited.inc();
    },
    follow: (server) => {
      const gauges = [
        ["svc_api_connections", "Open connections.", server.openConnections],
        ["svc_api_requests_under_way", "Requests under way.", server.requestsUnderWay],
        ["svc_api_connections_refused", "Connections closed because there were too many.", server.refusedConnections],
      ] as const;
      for (const [name, help, read] of gauges) {
        registry.removeSingleMetric(name);
        new Gauge({
          name,
          help,
          registers,
          collect() {
            this.set(read());
          },
        });
      }
    },
  };
}
