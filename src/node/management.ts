/** The management listener: health, readiness and metrics over HTTP, for probes and scrapers on a trusted address. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { MANAGEMENT_CONNECTIONS, MANAGEMENT_HEADER_BYTES, MANAGEMENT_REQUEST_MS } from "./limits.ts";
import type { Metrics } from "./metrics.ts";
import { areZonesServed, isRunning, isStopping, type NodeStatus } from "./status.ts";

export type Readiness = {
  readonly ready: boolean;
  readonly components: Readonly<Record<string, { readonly ready: boolean; readonly detail: string }>>;
};

/** Ready: every zone is served, every thread runs, and the node is not about to end. */
export function readinessOf(status: NodeStatus): Readiness {
  const missing = status.threads.filter((thread) => !isRunning(status, thread));
  const components = {
    zones: areZonesServed(status)
      ? { ready: true, detail: "every zone is served" }
      : { ready: false, detail: "a zone file could not be used, and nothing was served before" },
    threads:
      missing.length === 0
        ? { ready: true, detail: `${status.threads.length} threads run` }
        : { ready: false, detail: `not running: ${missing.join(", ")}` },
    lifecycle: isStopping(status) ? { ready: false, detail: "stopping" } : { ready: true, detail: "running" },
  };
  return { ready: Object.values(components).every(({ ready }) => ready), components };
}

export type ManagementOptions = {
  readonly status: NodeStatus;
  readonly metrics: Metrics;
};

/** An HTTP server that is not yet listening. */
export function createManagementServer(options: ManagementOptions): Server {
  const server = createServer(
    {
      maxHeaderSize: MANAGEMENT_HEADER_BYTES,
      headersTimeout: MANAGEMENT_REQUEST_MS,
      requestTimeout: MANAGEMENT_REQUEST_MS,
      keepAliveTimeout: MANAGEMENT_REQUEST_MS,
      connectionsCheckingInterval: MANAGEMENT_REQUEST_MS / 5,
    },
    (request, response) => {
      answer(options, request, response).catch(() => response.destroy());
    },
  );
  server.maxConnections = MANAGEMENT_CONNECTIONS;
  // One request a connection: what is pipelined behind it is never answered, so that nobody can pile up responses.
  server.maxRequestsPerSocket = 1;
  // Neither may a client hold a connection by not reading.
  server.setTimeout(MANAGEMENT_REQUEST_MS, (socket) => socket.destroy());
  return server;
}

async function answer(options: ManagementOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = (request.url ?? "").split("?", 1)[0];
  if (path !== "/healthz" && path !== "/readyz" && path !== "/metrics") return sendJson(response, 404, { status: 404 });
  if (request.method !== "GET" && request.method !== "HEAD") {
    // A body that nobody reads must not keep the connection.
    response.setHeader("Connection", "close");
    response.setHeader("Allow", "GET, HEAD");
    return sendJson(response, 405, { status: 405 });
  }
  if (path === "/healthz") return sendJson(response, 200, { status: "ok" });
  if (path === "/readyz") {
    const readiness = readinessOf(options.status);
    return sendJson(response, readiness.ready ? 200 : 503, readiness);
  }
  const { text, contentType } = await options.metrics();
  send(response, 200, contentType, text);
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  send(response, status, "application/json; charset=utf-8", `${JSON.stringify(body)}\n`);
}

function send(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, {
    "Content-Type": contentType,
    "Content-Length": Buffer.byteLength(body),
    "Cache-Control": "no-store",
  });
  response.end(body);
}
