/** The management listener: health, readiness and metrics over HTTP, for probes and scrapers on a trusted address. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { ProbeAnswer, ProbePath } from "../api/server.ts";
import { MANAGEMENT_CONNECTIONS, MANAGEMENT_HEADER_BYTES, MANAGEMENT_REQUEST_MS } from "./limits.ts";
import type { NodeMetrics } from "./metrics.ts";
import { isRunning, isStopping, type NodeStatus } from "./status.ts";

export type Component = { readonly ready: boolean; readonly detail: string };
/** Without them DNS answers on: from the last states that are known, and from zones and cache, over UDP and TCP. */
const NOT_NEEDED = ["health", "resolve", "secure"];

export type Readiness = { readonly ready: boolean; readonly components: Readonly<Record<string, Component>> };

/**
 * Ready: what the control thread has opened is ready, every thread that answers runs, and the node is not about to end.
 */
export function readinessOf(status: NodeStatus, opened: Readonly<Record<string, Component>>): Readiness {
  const running = status.threads.filter((thread) => isRunning(status, thread));
  const missing = status.threads.filter((thread) => !running.includes(thread) && !NOT_NEEDED.includes(thread));
  const components = {
    ...opened,
    threads:
      missing.length === 0
        ? { ready: true, detail: `${running.length} threads run` }
        : { ready: false, detail: `not running: ${missing.join(", ")}` },
    lifecycle: isStopping(status) ? { ready: false, detail: "stopping" } : { ready: true, detail: "running" },
  };
  return { ready: Object.values(components).every(({ ready }) => ready), components };
}

/** A store whose disk failed is read and not written: what this node answers falls behind the other nodes. */
export function storeComponent(failure: string | undefined, zones: number, records: number): Component {
  if (failure === undefined) return { ready: true, detail: `${zones} zones, ${records} records` };
  return { ready: false, detail: `nothing is written until the service starts again: ${failure}` };
}

export type Probe = (path: ProbePath) => Promise<ProbeAnswer>;

/** The answers that need no token, the same on both listeners. `opened` tells of the store, the zones and the API. */
export function createProbe(
  status: NodeStatus,
  metrics: NodeMetrics,
  opened: () => Readonly<Record<string, Component>>,
): Probe {
  return async (path) => {
    if (path === "/healthz") return jsonAnswer(200, { status: "ok" });
    if (path === "/readyz") {
      const readiness = readinessOf(status, opened());
      return jsonAnswer(readiness.ready ? 200 : 503, readiness);
    }
    const { text, contentType } = await metrics.read();
    return { status: 200, contentType, body: text };
  };
}

function jsonAnswer(status: number, body: object): ProbeAnswer {
  return { status, contentType: "application/json; charset=utf-8", body: `${JSON.stringify(body)}\n` };
}

/** An HTTP server that is not yet listening. */
export function createManagementServer(probe: Probe): Server {
  const server = createServer(
    {
      maxHeaderSize: MANAGEMENT_HEADER_BYTES,
      headersTimeout: MANAGEMENT_REQUEST_MS,
      requestTimeout: MANAGEMENT_REQUEST_MS,
      keepAliveTimeout: MANAGEMENT_REQUEST_MS,
      connectionsCheckingInterval: MANAGEMENT_REQUEST_MS / 5,
    },
    (request, response) => {
      answer(probe, request, response).catch(() => response.destroy());
    },
  );
  server.maxConnections = MANAGEMENT_CONNECTIONS;
  // One request a connection: what is pipelined behind it is never answered, so that nobody can pile up responses.
  server.maxRequestsPerSocket = 1;
  // Neither may a client hold a connection by not reading.
  server.setTimeout(MANAGEMENT_REQUEST_MS, (socket) => socket.destroy());
  return server;
}

async function answer(probe: Probe, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = (request.url ?? "").split("?", 1)[0];
  if (path !== "/healthz" && path !== "/readyz" && path !== "/metrics") {
    return send(response, jsonAnswer(404, { status: 404 }));
  }
  if (request.method !== "GET" && request.method !== "HEAD") {
    // A body that nobody reads must not keep the connection.
    response.setHeader("Connection", "close");
    response.setHeader("Allow", "GET, HEAD");
    return send(response, jsonAnswer(405, { status: 405 }));
  }
  send(response, await probe(path));
}

function send(response: ServerResponse, { status, contentType, body }: ProbeAnswer): void {
  response.writeHead(status, {
    "Content-Type": contentType,
    "Content-Length": Buffer.byteLength(body),
    "Cache-Control": "no-store",
  });
  response.end(body);
}
