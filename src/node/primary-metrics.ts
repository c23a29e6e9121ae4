/** The figures of updates, transfers and signatures. Labels are RCODEs and outcomes, of which there are few. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { UpdateOutcome } from "../commands/dynamic-update.ts";
import { RCODE } from "../dns/codes.ts";
import type { PrimaryFigures } from "../primary/messages.ts";
import { registerCounters } from "./counters.ts";
import { PRIMARY_FIGURES_MS } from "./primary-limits.ts";
import type { TransferPool } from "./transfer-pool.ts";

export type PrimaryMetricsParts = {
  /** Undefined: the thread that answers updaters and secondaries says nothing. */
  readonly figures: () => Promise<PrimaryFigures | undefined>;
  readonly pool: Pick<TransferPool, "stats">;
  readonly updatesUnderWay: () => number;
};

const UPDATE_BOUNDS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

type Read = () => Promise<PrimaryFigures | undefined>;

/** Times updates from the request in `control` to the RCODE, durable and published. */
export function observeUpdates(registry: Registry): (outcome: UpdateOutcome, seconds: number) => void {
  const durations = new Histogram({
    name: "svc_update_duration_seconds",
    help: "Dynamic updates, from the request to its RCODE: on the disk and published.",
    buckets: UPDATE_BOUNDS_SECONDS,
    registers: [registry],
  });
  const records = new Counter({
    name: "svc_update_records_changed_total",
    help: "Records that dynamic updates created, changed or deleted.",
    registers: [registry],
  });
  return ({ recordsChanged }, seconds) => {
    durations.observe(seconds);
    records.inc(recordsChanged);
  };
}

export function registerPrimary(parts: PrimaryMetricsParts, registry: Registry): void {
  const read = remembered(parts.figures);
  registerSignatures(read, registry);
  registerUpdates(read, parts, registry);
  registerTransfers(read, registry);
  registerPool(parts.pool, registry);
}

/** Where the thread says nothing, the last figures stand. One scrape asks once. */
function remembered(ask: Read): Read {
  let last: PrimaryFigures | undefined;
  let asked: Promise<PrimaryFigures | undefined> | undefined;
  let askedMs = 0;
  return () => {
    if (asked !== undefined && performance.now() - askedMs < PRIMARY_FIGURES_MS) return asked;
    askedMs = performance.now();
    asked = ask().then((told) => {
      last = told ?? last;
      return last;
    });
    return asked;
  };
}

/** A counter with one label, whose totals the other thread keeps. */
function labelled(
  registry: Registry,
  [name, help, label]: readonly [name: string, help: string, label: string],
  read: Read,
  totals: (figures: PrimaryFigures) => Iterable<readonly [value: string, total: number]>,
): void {
  new Counter({
    ...{ name, help, labelNames: [label], registers: [registry] },
    async collect() {
      const figures = await read();
      this.reset();
      if (figures === undefined) return;
      for (const [value, total] of totals(figures)) this.inc({ [label]: value }, total);
    },
  });
}

function gauge(registry: Registry, name: string, help: string, read: () => number | Promise<number>): void {
  new Gauge({
    ...{ name, help, registers: [registry] },
    async collect() {
      this.set(await read());
    },
  });
}

function registerSignatures(read: Read, registry: Registry): void {
  labelled(
    registry,
    ["svc_tsig_messages_total", "Messages with a TSIG record, by what its signature came to.", "outcome"],
    read,
    ({ signatures }) => Object.entries(signatures),
  );
}

function registerUpdates(read: Read, { updatesUnderWay }: PrimaryMetricsParts, registry: Registry): void {
  const names = new Map<number, string>(Object.entries(RCODE).map(([name, rcode]) => [rcode, name]));
  labelled(registry, ["svc_updates_total", "Dynamic updates answered, by RCODE.", "rcode"], read, ({ updates }) =>
    updates.byRcode.map(({ rcode, count }) => [names.get(rcode) ?? `RCODE${rcode}`, count]),
  );
  labelled(
    registry,
    [
      "svc_updates_shed_total",
      "Dynamic updates not carried out for a limit, or that repeated one under way.",
      "reason",
    ],
    read,
    ({ updates: { joined, tooMany, late } }) => [
      ["repeated", joined],
      ["too_many", tooMany],
      ["too_late", late],
    ],
  );
  gauge(registry, "svc_updates_under_way", "Dynamic updates being carried out.", updatesUnderWay);
}

function registerTransfers(read: Read, registry: Registry): void {
  labelled(
    registry,
    ["svc_transfers_total", "Requests for the transfer of a zone, by what came of them.", "outcome"],
    read,
    ({ transfers: { done, cut, refused, failed, denied, malformed } }) => [
      ["done", done],
      ["cut", cut],
      ["too_many", refused],
      ["failed", failed],
      ["denied", denied],
      ["malformed", malformed],
    ],
  );
  new Counter({
    name: "svc_transfer_sent_bytes_total",
    help: "Bytes of the transfers that ended, whole or not.",
    registers: [registry],
    async collect() {
      const figures = await read();
      this.reset();
      this.inc(figures?.transfers.bytes ?? 0);
    },
  });
  const now = async (pick: (figures: PrimaryFigures) => number) => {
    const figures = await read();
    return figures === undefined ? 0 : pick(figures);
  };
  gauge(registry, "svc_transfers_running", "Transfers being sent.", () => now(({ transfers }) => transfers.running));
  gauge(registry, "svc_transfers_waiting", "Transfers that wait for their turn.", () =>
    now(({ transfers }) => transfers.waiting),
  );
}

function registerPool({ stats }: PrimaryMetricsParts["pool"], registry: Registry): void {
  registerCounters(registry, [
    ["svc_transfer_zones_encoded_total", "Zones read and encoded whole for a transfer.", () => stats().encoded],
    ["svc_transfer_zones_patched_total", "Encoded zones brought up to date with changes.", () => stats().patched],
    ["svc_transfer_zones_reused_total", "Transfers given what had been encoded before.", () => stats().reused],
  ]);
  gauge(registry, "svc_transfer_encoder_threads", "Threads that encode zones.", () => stats().threads);
  gauge(registry, "svc_transfer_kept_zones", "Encoded zones kept for the next secondary.", () => stats().keptZones);
  gauge(registry, "svc_transfer_kept_bytes", "Bytes of the encoded zones that are kept.", () => stats().keptBytes);
}
