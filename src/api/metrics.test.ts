import assert from "node:assert/strict";
import test from "node:test";
import { Registry } from "prom-client";
import Type from "typebox";
import { startApi } from "../../tests/support/api.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { createApiMetrics } from "./metrics.ts";
import { route } from "./route.ts";

test("requests are counted by route and class of status, and strangers' paths and methods make no series", async () => {
  const registry = new Registry();
  const metrics = createApiMetrics(registry);
  const row = route({
    method: "GET",
    path: "/things/:id",
    summary: "Get",
    tag: "t",
    access: "readonly",
    response: Type.Unknown(),
    handle: () => ({ body: {} }),
  });
  await using api = await startApi(() => [row], { observe: metrics.observe, rateLimit: () => 20 });
  metrics.follow(api.server);
  for (let index = 0; index < 3; index++) await api.ask("GET", `/things/${index}`);
  await api.ask("GET", "/things/1", { as: "nobody" });
  for (let index = 0; index < 30; index++) await api.ask("GET", `/strange/${index}`);
  const text = await waitFor("all are counted", 5_000, async () => {
    const figures = await registry.metrics();
    return /status="4xx"} 30\b/.test(figures) && figures;
  });
  const lines = text.split("\n").filter((line) => line.startsWith("svc_api_requests_total"));
  assert.deepEqual(lines.sort(), [
    'svc_api_requests_total{method="GET",route="/api/v1/things/:id",status="2xx"} 3',
    'svc_api_requests_total{method="GET",route="/api/v1/things/:id",status="4xx"} 1',
    'svc_api_requests_total{method="GET",route="none",status="4xx"} 30',
  ]);
  assert.match(text, /svc_api_rate_limited_total 1\d\b/);
  assert.match(text, /svc_api_connections [1-9]/);
  assert.match(text, /svc_api_request_duration_seconds_count\{method="GET"\} 34/);
});
