/** Settings of notifications that a node does not start with. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { startChild } from "../support/process.ts";
import { MAIN, nodeEnvironment, zoneArguments } from "./running-node.ts";

const directory = await mkdtemp(join(tmpdir(), "signpost-notify-refused-"));
after(() => rm(directory, { recursive: true, force: true }));

for (const [what, settings, pattern] of [
  ["no sink", {}, /^signpost: notifications\.enabled is true without a sink/],
  [
    "a webhook over plain HTTP",
    { WEBHOOK_URL: "http://collector.example/planted" },
    /^signpost: SVC_NOTIFICATIONS_WEBHOOK_URL must begin with https:\/\//,
  ],
  [
    "a topic with a query string",
    { EVENTGRID_TOPIC_ENDPOINT: "https://topic.example/api/events?sig=planted" },
    /^signpost: SVC_NOTIFICATIONS_EVENTGRID_TOPIC_ENDPOINT has a query string/,
  ],
  [
    "a topic over plain HTTP",
    { EVENTGRID_TOPIC_ENDPOINT: "http://127.0.0.1/planted" },
    /^signpost: SVC_NOTIFICATIONS_EVENTGRID_TOPIC_ENDPOINT is no https:\/\/ URL/,
  ],
  [
    "an unknown event",
    { WEBHOOK_URL: "http://127.0.0.1:9/", EVENT_TYPES: "failover.activate" },
    /^signpost: SVC_NOTIFICATIONS_EVENT_TYPES has "failover\.activate"; did you mean failover\.activated\?/,
  ],
] as const) {
  test(`a node with notifications and ${what} does not start, and says why in one line`, async () => {
    const env = {
      SVC_NOTIFICATIONS_ENABLED: "true",
      ...Object.fromEntries(Object.entries(settings).map(([key, value]) => [`SVC_NOTIFICATIONS_${key}`, value])),
    };
    const child = await startChild("refused", process.execPath, [MAIN, ...zoneArguments()], {
      env: nodeEnvironment(directory, { env }),
    });
    assert.deepEqual(await child.exited, { code: 1, signal: null }, child.output());
    const lines = child.output().trimEnd().split("\n");
    assert.equal(lines.length, 1, child.output());
    assert.match(lines[0] ?? "", pattern);
    assert.doesNotMatch(lines[0] ?? "", /planted/);
  });
}
