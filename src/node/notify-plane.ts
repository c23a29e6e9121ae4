/** Events of this node: the notifier that its settings ask for, and its figures. */
import { setTimeout as sleep } from "node:timers/promises";
import { Counter, Gauge, type Registry } from "prom-client";
import type { Log } from "../base/log.ts";
import { createManagedIdentity } from "../base/managed-identity.ts";
import { createEventTopicSink } from "../notify/event-topic.ts";
import type { Clock } from "../notify/lane.ts";
import { createNotifier, type Notifier } from "../notify/notifier.ts";
import { createPoster } from "../notify/post.ts";
import type { Sink } from "../notify/sink.ts";
import { createWebhookSink } from "../notify/webhook.ts";
import type { Config } from "./config.ts";
import { registerCounters } from "./counters.ts";

export type NotifyPlaneOptions = {
  readonly config: Pick<
    Config,
    | "notifications.enabled"
    | "notifications.webhook_url"
    | "notifications.webhook_secret"
    | "notifications.eventgrid_topic_endpoint"
    | "notifications.event_types"
    | "notifications.min_interval_seconds"
    | "cloud.metadata_url"
  >;
  readonly nodeId: string;
  readonly registry: Registry;
  readonly log: Log;
};

const CLOCK: Clock = {
  nowMs: Date.now,
  elapsedMs: () => performance.now(),
  // The signal ends a pause; that is no error.
  pause: (pauseMs, signal) => sleep(pauseMs, undefined, { signal }).catch(() => {}),
};

/** Without notifications, a notifier that sends nothing and connects to nobody. */
export function openNotifier({ config, nodeId, registry, log }: NotifyPlaneOptions): Notifier {
  const sinks = config["notifications.enabled"] ? sinksOf(config, log) : [];
  const notifier = createNotifier({
    sinks,
    nodeId,
    eventTypes: config["notifications.event_types"],
    minIntervalMs: config["notifications.min_interval_seconds"] * 1_000,
    clock: CLOCK,
    log,
  });
  registerNotifier(notifier, registry);
  if (sinks.length > 0) log("info", "events are sent", { sinks: sinks.map(({ name }) => name).join(", ") });
  return notifier;
}

function sinksOf(config: NotifyPlaneOptions["config"], log: Log): readonly Sink[] {
  const sinks: Sink[] = [];
  const url = config["notifications.webhook_url"];
  const secret = config["notifications.webhook_secret"];
  if (url !== undefined) sinks.push(createWebhookSink({ url, secret, poster: createPoster() }));
  if (url !== undefined && secret === undefined) {
    log("warn", "events go to the webhook unsigned: notifications.webhook_secret is not set");
  }
  const endpoint = config["notifications.eventgrid_topic_endpoint"];
  if (endpoint !== undefined) {
    const identity = createManagedIdentity({ metadataUrl: config["cloud.metadata_url"], now: Date.now });
    sinks.push(createEventTopicSink({ endpoint, identity, poster: createPoster() }));
  }
  return sinks;
}

function registerNotifier({ stats }: Notifier, registry: Registry): void {
  const registers = [registry];
  const bySink = [
    ["svc_notify_delivered_total", "Events delivered, by sink.", "delivered"],
    ["svc_notify_failed_total", "Events given up after the last attempt, by sink.", "failed"],
  ] as const;
  for (const [name, help, figure] of bySink) {
    new Counter({
      name,
      help,
      labelNames: ["sink"],
      registers,
      collect() {
        this.reset();
        for (const lane of stats().lanes) this.inc({ sink: lane.sink }, lane[figure]);
      },
    });
  }
  registerCounters(registry, [
    ["svc_notify_dropped_total", "Events dropped because too many waited for a sink.", () => stats().dropped],
    [
      "svc_notify_suppressed_total",
      "Events not sent because they repeated one that had just been.",
      () => stats().suppressed,
    ],
  ]);
  new Gauge({
    name: "svc_notify_queue",
    help: "Events waiting or under way, by sink.",
    labelNames: ["sink"],
    registers,
    collect() {
      for (const { sink, queued } of stats().lanes) this.set({ sink }, queued);
    },
  });
}
