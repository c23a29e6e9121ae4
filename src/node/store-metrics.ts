/** The figures of the store and of publishing. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Kind } from "../model/objects.ts";
import type { StorePublisher } from "../publish/store-publisher.ts";
import type { NodeStore } from "../store/open-store.ts";
import { registerCounters } from "./counters.ts";

const KINDS: readonly Kind[] = [
  "zone",
  "record",
  "override",
  "user",
  "session",
  "service-account",
  "tsig-key",
  "subnet-mapping",
  "healthcheck",
  "forwarder",
  "stub-zone",
];
const WRITE_BOUNDS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** The same store, whose writes are timed from the call to the acknowledgement. */
export function timed(store: NodeStore, registry: Registry): NodeStore {
  const durations = new Histogram({
    name: "svc_store_write_duration_seconds",
    help: "From the call of a transaction to its acknowledgement, on the disk and published.",
    buckets: WRITE_BOUNDS_SECONDS,
    registers: [registry],
  });
  const time = async <T>(writing: Promise<T>): Promise<T> => {
    const end = durations.startTimer();
    const result = await writing;
    end();
    return result;
  };
  return {
    ...store,
    write: (work) => time(store.write(work)),
    writeInSlices: (work) => time(store.writeInSlices(work)),
  };
}

export function registerStore(store: NodeStore, publisher: StorePublisher, registry: Registry): void {
  const registers = [registry];
  new Gauge({
    name: "svc_store_objects",
    help: "Objects stored, by kind.",
    labelNames: ["kind"],
    registers,
    collect() {
      for (const kind of KINDS) this.set({ kind }, store.count(kind));
    },
  });
  const gauges = [
    ["svc_store_reader_age_seconds", "Age of the oldest open read transaction.", () => store.readerAgeMs() / 1000],
    [
      "svc_store_clock_ahead_seconds",
      "How far stamps run ahead of the clock.",
      () => Math.max(0, store.clockAheadMs()) / 1000,
    ],
    ["svc_publish_waiting_zones", "Zones that wait to be published.", () => publisher.stats().waitingZones],
    ["svc_publish_failed_zones", "Zones that could not be published.", () => publisher.stats().failedZones],
    ["svc_blocklist_domains", "Names on the blocklist in force.", () => publisher.stats().blocklistNames],
    ["svc_publish_slowest_seconds", "Longest from commit to image.", () => publisher.stats().slowestMs / 1000],
  ] as const;
  for (const [name, help, read] of gauges) {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  }
  const totals = [
    ["svc_publish_changes_total", "Changes of zones published.", () => publisher.stats().published],
    [
      "svc_publish_seconds_total",
      "Time from commit to image of all of them.",
      () => publisher.stats().publishedMs / 1000,
    ],
  ] as const;
  registerCounters(registry, totals);
  new Counter({
    name: "svc_replication_conflicts_total",
    help: "Edits that lost unseen to another node's and went to the conflict journal, by why.",
    labelNames: ["reason"],
    registers,
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(store.journalTotals())) this.inc({ reason }, count);
    },
  });
}
