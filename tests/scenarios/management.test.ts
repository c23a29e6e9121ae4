import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { test } from "node:test";
import { waitFor } from "../support/wait.ts";
import { dig } from "./dig.ts";
import { startNode } from "./running-node.ts";

const { version }: { version: string } = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
);

test("health, readiness and metrics over HTTP", async () => {
  await using node = await startNode({ listen: "127.0.0.1:0,[::1]:0" });
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  assert.equal((await node.get("/healthz")).status, 200);
  const ready = await node.get("/readyz");
  assert.equal(ready.status, 200);
  const readiness: { ready: boolean; components: object } = JSON.parse(await ready.text());
  assert.equal(readiness.ready, true);
  assert.deepEqual(Object.keys(readiness.components), ["store", "zones", "api", "threads", "lifecycle"]);

  await dig(endpoint, "www.example.test", "A");
  await dig(endpoint, "missing.example.test", "AAAA", "+tcp");
  await dig(endpoint, "example.test", "TYPE65399");
  const response = await node.get("/metrics?x=y");
  assert.equal(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  const lines = (await response.text()).split("\n");
  for (const line of [
    'svc_dns_queries_total{transport="udp",type="A",rcode="NOERROR"} 1',
    'svc_dns_queries_total{transport="udp",type="other",rcode="NOERROR"} 1',
    'svc_dns_query_duration_seconds_bucket{le="+Inf"} 3',
    "svc_dns_query_duration_seconds_count 3",
    "svc_dns_connections_accepted_total 1",
    "svc_image_zones 1",
    'svc_store_objects{kind="zone"} 1',
    'svc_store_objects{kind="user"} 1',
    "svc_publish_waiting_zones 0",
    "svc_publish_failed_zones 0",
    'svc_thread_restarts_total{thread="stream"} 0',
    `svc_build_info{version="${version}",node="${process.version}"} 1`,
  ]) {
    assert.ok(lines.includes(line), `${line}\n${lines.filter((found) => found.startsWith("svc_")).join("\n")}`);
  }
  assert.equal(lines.filter((line) => line.startsWith("svc_dns_queries_total{")).length, 3, "only series with a count");
  const names = lines.filter((line) => /^[a-z]/.test(line)).map((line) => line.split(" ")[0]);
  assert.equal(new Set(names).size, names.length, "no series twice");
});

test("other paths, methods and slow clients get nothing", async () => {
  await using node = await startNode();
  assert.equal((await node.get("/")).status, 404);
  assert.equal((await node.get("/metrics/")).status, 404);
  const refused = await node.get("/readyz", { method: "POST", body: "x" });
  assert.equal(refused.status, 405);
  assert.equal(refused.headers.get("allow"), "GET, HEAD");
  const head = await node.get("/healthz", { method: "HEAD" });
  assert.equal(head.status, 200);
  assert.equal(await head.text(), "");

  const { hostname, port } = new URL((await node.get("/healthz")).url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write("GET /metrics HTTP/1.1\r\nHost: x\r\nX: ");
  socket.resume();
  const closed = once(socket, "close");
  await waitFor("a header that does not end is cut off", 15_000, () => socket.destroyed);
  await closed;
});
