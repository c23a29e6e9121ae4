import assert from "node:assert/strict";
import { test } from "node:test";
import { Registry } from "prom-client";
import { startCollector } from "../../tests/support/event-collector.ts";
import { recordingLog } from "../../tests/support/notify-lab.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { IN_FLIGHT_MAX, QUEUE_MAX } from "../notify/limits.ts";
import { loadConfig } from "./config.ts";
import { openNotifier } from "./notify-plane.ts";

const SECRET = "planted";

function open(settings: Readonly<Record<string, string>>) {
  const environment = Object.entries(settings).map(([name, value]) => [`SVC_NOTIFICATIONS_${name}`, value]);
  const registry = new Registry();
  const { log, lines } = recordingLog();
  const config = loadConfig(Object.fromEntries(environment), undefined);
  const notifier = openNotifier({ config, nodeId: "n1", registry, log });
  const series = async (name: string): Promise<string[]> => {
    const text = await registry.metrics();
    return text.split("\n").filter((line) => line.startsWith(name));
  };
  return { notifier, series, lines };
}

test("without notifications nobody is connected to, and the figures are there", async () => {
  await using collector = await startCollector();
  const { notifier, series, lines } = open({ WEBHOOK_URL: `http://127.0.0.1:${collector.port}/` });
  notifier.emit({ type: "backup.failed", subject: "backup" });
  await notifier.close();
  assert.equal(collector.posted.length, 0);
  assert.deepEqual(await series("svc_notify_"), ["svc_notify_dropped_total 0", "svc_notify_suppressed_total 0"]);
  assert.deepEqual(lines, []);
});

test("events about one outage wait for a slow sink up to the limit; the rest is dropped and counted, and no caller waits", async () => {
  const held: (() => void)[] = [];
  await using collector = await startCollector((_, response) => void held.push(() => response.writeHead(204).end()));
  const { notifier, series } = open({
    ENABLED: "true",
    WEBHOOK_URL: `http://127.0.0.1:${collector.port}/`,
    WEBHOOK_SECRET: SECRET,
  });
  const over = 7;
  for (let index = 0; index < IN_FLIGHT_MAX + QUEUE_MAX + over; index += 1) {
    notifier.emit({ type: "health.check_transition", subject: `record-${index}` });
  }
  // All of it in one turn of the event loop: nothing can have been sent yet.
  assert.equal(collector.posted.length, 0);
  assert.deepEqual(await series("svc_notify_"), [
    'svc_notify_delivered_total{sink="webhook"} 0',
    'svc_notify_failed_total{sink="webhook"} 0',
    `svc_notify_dropped_total ${over}`,
    "svc_notify_suppressed_total 0",
    `svc_notify_queue{sink="webhook"} ${IN_FLIGHT_MAX + QUEUE_MAX}`,
  ]);
  await waitFor("the first have arrived", 5_000, () => held.length === IN_FLIGHT_MAX);
  for (const answer of held.splice(0)) answer();
  await waitFor("the next have arrived", 5_000, () => held.length === IN_FLIGHT_MAX);
  const closing = notifier.close();
  for (const answer of held.splice(0)) answer();
  await closing;
  const { lanes, dropped } = notifier.stats();
  const delivered = lanes[0]?.delivered ?? 0;
  assert.ok(delivered >= IN_FLIGHT_MAX, `${delivered} delivered`);
  assert.equal(delivered + dropped, QUEUE_MAX + IN_FLIGHT_MAX + over);
});

test("the log names the sinks, and neither URL nor secret", async () => {
  await using collector = await startCollector((_, response) => void response.writeHead(404).end());
  const { notifier, lines } = open({
    ENABLED: "true",
    WEBHOOK_URL: `http://127.0.0.1:${collector.port}/planted?planted`,
    WEBHOOK_SECRET: SECRET,
  });
  notifier.emit({ type: "backup.failed", subject: "backup" });
  await notifier.close();
  assert.deepEqual(lines, [
    { level: "info", message: "events are sent", fields: { sinks: "webhook" } },
    { level: "warn", message: "events could not be delivered: answered 404", fields: { sink: "webhook", events: 1 } },
  ]);
});
