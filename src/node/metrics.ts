/** The figures of the node in the Prometheus text format. Label values come from closed lists, so series are bounded. */
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import {
  COUNTER,
  LATENCY_BOUNDS_US,
  queryPlace,
  RCODE_CLASSES,
  sumCounter,
  TRANSPORTS,
  TYPE_CLASSES,
} from "../image/counters.ts";
import { CONTROL, type SharedImage } from "../image/shared.ts";
import { registerCounters } from "./counters.ts";
import { type NodeStatus, restartsOf } from "./status.ts";

/** A total whose name, help and place in the threads' counters are one row. */
const TOTALS = [
  ["svc_dns_silent_total", "Datagrams and messages that got no answer: too short, or no query.", COUNTER.SILENT],
  ["svc_dns_truncated_total", "Answers sent with the TC bit.", COUNTER.TRUNCATED],
  ["svc_dns_dropped_total", "Answers that the socket did not take.", COUNTER.DROPPED],
  ["svc_dns_failed_total", "Queries dropped because answering them failed.", COUNTER.FAILED],
  ["svc_dns_repeated_total", "Answers made again because their zone changed meanwhile.", COUNTER.REPEATED],
  ["svc_dns_udp_batches_total", "Batches of datagrams taken from the sockets.", COUNTER.BATCHES],
  [
    "svc_query_log_events_dropped_total",
    "Events for the query log or debug capture that a thread had no room for.",
    COUNTER.EVENTS_DROPPED,
  ],
  ["svc_dns_receive_errors_total", "Failed attempts to read a socket.", COUNTER.RECEIVE_ERRORS],
  ["svc_dns_connections_accepted_total", "Connections accepted.", COUNTER.CONNECTIONS_ACCEPTED],
  ["svc_dns_connections_cut_total", "Connections ended for a limit.", COUNTER.CONNECTIONS_CUT],
  ["svc_dns_connections_refused_total", "Connections refused for too many.", COUNTER.CONNECTIONS_REFUSED],
] as const;

const CONTROL_GAUGES = [
  ["svc_image_names", "Names in the image.", CONTROL.NAMES],
  ["svc_image_rrsets", "RRsets in the image.", CONTROL.RRSETS],
  ["svc_image_zones", "Zones in the image.", CONTROL.ZONES],
  ["svc_image_generation", "Times the image's memory has grown.", CONTROL.GENERATION],
] as const;

export type NodeMetrics = {
  /** Other parts of the control thread put their figures here. */
  readonly registry: Registry;
  /** Metrics in the text format that the registry cannot hold, gathered at each reading. */
  readonly addText: (read: () => Promise<string>) => void;
  readonly read: () => Promise<MetricsText>;
};

export type MetricsText = { readonly text: string; readonly contentType: string };

/** Gives the figures of the node; what a call gives was read after it. */
export function createMetrics(shared: SharedImage, status: NodeStatus, version: string): NodeMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  registerQueries(shared, registry);
  registerCounters(
    registry,
    TOTALS.map(([name, help, place]) => [name, help, () => sumCounter(shared, place)]),
  );
  registerImage(shared, registry);
  registerNode(status, version, registry);
  const texts: (() => Promise<string>)[] = [async () => latencyText(shared)];
  const read = async () => {
    const registered = await registry.metrics();
    const added = await Promise.all(texts.map((each) => each()));
    return { text: `${registered}\n${added.join("")}`, contentType: registry.contentType };
  };
  return { registry, addText: (each) => void texts.push(each), read: oneAtATime(read) };
}

/** However many ask at once: who asks while the figures are gathered, shares the next gathering with all the others. */
function oneAtATime(read: () => Promise<MetricsText>): () => Promise<MetricsText> {
  let current: Promise<MetricsText> | undefined;
  let next: Promise<MetricsText> | undefined;
  const begin = (): Promise<MetricsText> => {
    const reading = read().finally(() => {
      current = undefined;
    });
    current = reading;
    return reading;
  };
  return () => {
    if (current === undefined) return begin();
    next ??= current
      .catch(() => {})
      .then(() => {
        next = undefined;
        return current ?? begin();
      });
    return next;
  };
}

function registerQueries(shared: SharedImage, registry: Registry): void {
  new Counter({
    name: "svc_dns_queries_total",
    help: "Queries answered, by transport, query type and response code.",
    labelNames: ["transport", "type", "rcode"],
    registers: [registry],
    collect() {
      this.reset();
      for (const [transportIndex, transport] of TRANSPORTS.entries()) {
        for (const [typeIndex, type] of TYPE_CLASSES.entries()) {
          for (const [rcodeIndex, rcode] of RCODE_CLASSES.entries()) {
            const count = sumCounter(shared, queryPlace(transportIndex, typeIndex, RCODE_OF_CLASS[rcodeIndex] ?? 0));
            if (count > 0) this.inc({ transport, type, rcode }, count);
          }
        }
      }
    },
  });
}

/** A response code of each class, in the order of RCODE_CLASSES: the six of RFC 1035, BADVERS, and any other. */
const RCODE_OF_CLASS = [0, 1, 2, 3, 4, 5, 16, 4095];

/** The latency histogram, written by hand: the threads fill its buckets in shared memory, prom-client's only its own. */
function latencyText(shared: SharedImage): string {
  const name = "svc_dns_query_duration_seconds";
  const lines = [
    `# HELP ${name} From taking a query off its socket to handing over the answer.`,
    `# TYPE ${name} histogram`,
  ];
  let count = 0;
  for (const [bucket, bound] of [...LATENCY_BOUNDS_US, undefined].entries()) {
    count += sumCounter(shared, COUNTER.LATENCY_BUCKETS + bucket);
    lines.push(`${name}_bucket{le="${bound === undefined ? "+Inf" : bound / 1e6}"} ${count}`);
  }
  lines.push(`${name}_sum ${sumCounter(shared, COUNTER.LATENCY_SUM_SECONDS)}`, `${name}_count ${count}`, "");
  return lines.join("\n");
}

function registerImage(shared: SharedImage, registry: Registry): void {
  const control = new Int32Array(shared.control);
  const registers = [registry];
  new Gauge({
    name: "svc_image_bytes",
    help: "Bytes of the image in use.",
    registers,
    collect() {
      this.set((control[CONTROL.ARENA_BYTES_USED_KIB] ?? 0) * 1024);
    },
  });
  for (const [name, help, word] of CONTROL_GAUGES) {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(control[word] ?? 0);
      },
    });
  }
  new Gauge({
    name: "svc_dns_connections_open",
    help: "Open connections.",
    registers,
    collect() {
      this.set(sumCounter(shared, COUNTER.CONNECTIONS_OPEN));
    },
  });
}

function registerNode(status: NodeStatus, version: string, registry: Registry): void {
  const registers = [registry];
  new Counter({
    name: "svc_thread_restarts_total",
    help: "Threads that died and were replaced.",
    labelNames: ["thread"],
    registers,
    collect() {
      this.reset();
      for (const thread of status.threads) this.inc({ thread }, restartsOf(status, thread));
    },
  });
  new Gauge({
    name: "svc_build_info",
    help: "Always 1; the labels tell what runs.",
    labelNames: ["version", "node"],
    registers,
  }).set({ version, node: process.version }, 1);
}
