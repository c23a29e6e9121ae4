/** The REST API's server: from a table of routes to answers over TLS. Nothing here knows a resource. */
import { randomBytes } from "node:crypto";
import type { Http2SecureServer, Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import fastify from "fastify";
import { OperatorError } from "../base/errors.ts";
import type { Cidr } from "../base/ip.ts";
import { TLS } from "../base/tls.ts";
import type { CommandContext } from "../commands/run.ts";
import { Refusal } from "../model/refusal.ts";
import { type Authenticate, takeToken } from "./admission.ts";
import { createAnswerBudget } from "./answer-budget.ts";
import { onAnswered } from "./answer-deadline.ts";
import { createBodyBudget } from "./body.ts";
import { type CertificateSource, loadIdentity, watchIdentity } from "./certificate.ts";
import { crossOrigin } from "./cross-origin.ts";
import { addDocumentation } from "./documentation.ts";
import * as limits from "./limits.ts";
import { createListener, LISTENER_LIMITS, type Listener, type ListenerLimits } from "./listener.ts";
import { openApiRoute } from "./openapi.ts";
import { problemOf } from "./problem.ts";
import { createRateLimiter, type RateClass, rateKey } from "./rate-limiter.ts";
import type { Route } from "./route.ts";
import {
  type ApiInstance,
  addressOf,
  type Counter,
  type Request,
  type Response,
  rowHandlers,
  sendProblem,
} from "./serve.ts";

export const API_PREFIX = "/api/v1";

/** The answers outside /api/v1 that need no token and count for no limit. */
export type ProbePath = "/healthz" | "/readyz" | "/metrics";
export type ProbeAnswer = { readonly status: number; readonly contentType: string; readonly body: string };

/** What became of a request. `route` is a path of the table, or "none"; so the values are few. */
export type Observation = {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
};

export type ApiServerOptions = {
  readonly context: CommandContext;
  readonly routes: readonly Route[];
  readonly authenticate: Authenticate;
  /** Port 0: any that is free. */
  readonly listen: { readonly host: string; readonly port: number };
  readonly certificate: CertificateSource;
  /** Requests a minute of one address, asked anew at every request. */
  readonly rateLimit: (rateClass: RateClass) => number;
  readonly trustedProxies?: readonly Cidr[];
  readonly allowedOrigins?: readonly string[];
  readonly probe?: (path: ProbePath) => ProbeAnswer | Promise<ProbeAnswer>;
  readonly observe?: (observation: Observation) => void;
  /** Of the product, as the documentation shows it. */
  readonly version?: string;
  readonly bounds?: Partial<ListenerLimits>;
};

export type ApiServer = AsyncDisposable & {
  readonly host: string;
  readonly port: number;
  /** "https://host:port", without a path. */
  readonly url: string;
  readonly openConnections: () => number;
  readonly refusedConnections: () => number;
  readonly requestsUnderWay: () => number;
  /** Looks at the certificate's files at once. */
  readonly reloadCertificate: () => void;
  /** Takes nothing new, lets what is under way end, and cuts it after CLOSE_MS. */
  readonly close: () => Promise<void>;
};

/** Resolves once it listens. Throws OperatorError where the certificate or the address cannot be used. */
export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const { context, listen } = options;
  const identity = loadIdentity(options.certificate, context.now());
  const counter: Counter = {
    door: {
      context,
      authenticate: options.authenticate,
      limiter: createRateLimiter(options.rateLimit, () => performance.now()),
    },
    budget: createBodyBudget(),
    answers: createAnswerBudget(),
    trustedProxies: options.trustedProxies ?? [],
  };
  let listener: Listener | undefined;
  const app = createApp((handler) => {
    listener = createListener(identity, handler, { ...LISTENER_LIMITS, ...options.bounds });
    return listener.server;
  }, counter);
  const underWay = countRequests(app, counter, options.observe);
  const origins = options.allowedOrigins ?? [];
  app.addHook("onRequest", async (request, response) => {
    void response.headers(crossOrigin(origins, request.method, request.headers).headers);
  });
  const rows = [...options.routes, openApiRoute(options.routes, options.version ?? "0")];
  addRows(app, counter, rows);
  addDocumentation(app, counter);
  addProbes(app, options.probe);
  addNotFound(app, counter, rows, origins);
  await listenAt(app, listen);
  if (listener === undefined) throw new Error("the app made no server");
  const { server, retire, cut, openConnections, refusedConnections } = listener;
  const watch = watchIdentity(
    options.certificate,
    identity,
    (next) => server.setSecureContext({ ...next, ...TLS }),
    context,
  );
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : listen.port;
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    watch.stop();
    const closed = app.close();
    retire();
    const deadline = performance.now() + limits.CLOSE_MS;
    while (underWay.open() > 0 && performance.now() < deadline) await sleep(10);
    cut();
    await closed;
  };
  const closeOnce = () => (closing ??= close());
  return {
    host: listen.host,
    port,
    url: `https://${listen.host.includes(":") ? `[${listen.host}]` : listen.host}:${port}`,
    openConnections,
    refusedConnections,
    requestsUnderWay: underWay.unanswered,
    reloadCertificate: watch.reload,
    close: closeOnce,
    [Symbol.asyncDispose]: closeOnce,
  };
}

type ServerFactory = (
  handler: (request: Http2ServerRequest, response: Http2ServerResponse) => void,
) => Http2SecureServer;

function createApp(serverFactory: ServerFactory, counter: Counter): ApiInstance {
  const app: ApiInstance = fastify({
    http2: true,
    https: {},
    serverFactory,
    logger: false,
    bodyLimit: Number.MAX_SAFE_INTEGER,
    forceCloseConnections: false,
    genReqId: (request) => requestId(request.headers["x-request-id"]),
    frameworkErrors: (error, request, response) => {
      setCommonHeaders(request, response);
      sendProblem(counter, refusedPath(counter, error, request), request, response);
    },
    clientErrorHandler: answerBrokenRequest,
    routerOptions: {
      maxParamLength: limits.PATH_PARAMETER_LENGTH_MAX,
      querystringParser: () => ({}),
    },
  });
  // Bodies are read by the handler of the route, which knows its limit and its media types.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  app.addHook("onRequest", async (request, response) => setCommonHeaders(request, response));
  app.addHook("onRequest", async ({ raw }) => requireOneHost(raw));
  app.setErrorHandler((error, request, response) => sendProblem(counter, error, request, response));
  return app;
}

/** A path that no row can have is one that is not there: Fastify says 400 and 414 of it. It counts like other unknown ones. */
function refusedPath(counter: Counter, error: Error & { readonly code?: string }, request: Request): unknown {
  if (error.code !== "FST_ERR_BAD_URL" && error.code !== "FST_ERR_MAX_PARAM_LENGTH") return error;
  try {
    takeToken(counter.door.limiter, "read", rateKey(addressOf(counter, request)));
  } catch (refusal) {
    return refusal;
  }
  return new Refusal("not_found", "there is nothing at this path");
}

const REQUEST_ID = /^[A-Za-z0-9._:/+=-]{1,128}$/;

/** The client's id where it is harmless in a header and in a log, else one of ours. */
function requestId(given: string | readonly string[] | undefined): string {
  return typeof given === "string" && REQUEST_ID.test(given) ? given : randomBytes(12).toString("base64url");
}

/** RFC 9112 section 3.2: a request of HTTP/1.1 has the header Host exactly once. */
function requireOneHost({ httpVersion, rawHeaders }: Http2ServerRequest): void {
  if (httpVersion !== "1.1") return;
  const count = rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === "host").length;
  if (count !== 1)
    throw new Refusal("invalid_request", "the request line or a header is not valid: Host must be there once");
}

function setCommonHeaders(request: Request, response: Response): void {
  void response.headers({
    "x-request-id": request.id,
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
  });
}

/** What is no HTTP gets one answer in plain bytes, and the connection ends. */
function answerBrokenRequest(error: Error & { readonly code?: string }, socket: Socket): void {
  // Words for a client that has not ended its handshake would wait for it for ever, and hold its place.
  const isHttp = error.code === "ERR_HTTP_REQUEST_TIMEOUT" || error.code?.startsWith("HPE_") === true;
  if (!isHttp || socket.destroyed || !socket.writable) return void socket.destroy();
  const [status, reason] =
    error.code === "ERR_HTTP_REQUEST_TIMEOUT"
      ? [408, "Request Timeout"]
      : error.code === "HPE_HEADER_OVERFLOW"
        ? [431, "Request Header Fields Too Large"]
        : [400, "Bad Request"];
  const { document } = problemOf(new Refusal("invalid_request", "the request is no HTTP that this server takes"));
  const body = JSON.stringify({ ...document, status, title: reason });
  const head = `HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\nContent-Type: application/problem+json\r\n`;
  socket.end(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

type RequestCounts = {
  /** Requests whose answers are not complete yet. */
  readonly unanswered: () => number;
  /** Those too whose answers may not have reached the wire, or whose clients still send. */
  readonly open: () => number;
};

/** Counts what is under way, refuses what is too much, and reports what became of each. */
function countRequests(app: ApiInstance, counter: Counter, observe: ApiServerOptions["observe"]): RequestCounts {
  let underWay = 0;
  let open = 0;
  const byAddress = new Map<string, number>();
  app.addHook("onRequest", async (request, response) => {
    const key = rateKey(addressOf(counter, request));
    const own = (byAddress.get(key) ?? 0) + 1;
    byAddress.set(key, own);
    underWay++;
    open++;
    response.raw.once("close", () => open--);
    onAnswered(response.raw, () => {
      underWay--;
      const left = (byAddress.get(key) ?? 1) - 1;
      if (left === 0) byAddress.delete(key);
      else byAddress.set(key, left);
    });
    const isProbe = PROBE_PATHS.some((path) => path === request.routeOptions.url);
    const most = limits.REQUESTS_MAX + (isProbe ? limits.PROBE_REQUESTS_RESERVED : 0);
    if (underWay > most || own > limits.REQUESTS_PER_ADDRESS_MAX) {
      throw new Refusal("not_ready", "too many requests are under way", [], { retry_after: 1 });
    }
  });
  if (observe !== undefined) {
    app.addHook("onResponse", async (request, response) => {
      const route = request.routeOptions.url ?? "none";
      observe({ method: request.method, route, status: response.statusCode, seconds: response.elapsedTime / 1000 });
    });
  }
  return { unanswered: () => underWay, open: () => open };
}

function addRows(app: ApiInstance, counter: Counter, rows: readonly Route[]): void {
  for (const row of rows) {
    const { onRequest, handler } = rowHandlers(counter, row);
    app.route({ method: row.method, url: API_PREFIX + row.path, onRequest, handler });
  }
}

const PROBE_PATHS = ["/healthz", "/readyz", "/metrics"] as const;

function addProbes(app: ApiInstance, probe: ApiServerOptions["probe"]): void {
  if (probe === undefined) return;
  for (const path of PROBE_PATHS) {
    app.get(path, async (_request, response) => {
      const { status, contentType, body } = await probe(path);
      return response.code(status).header("content-type", contentType).send(body);
    });
  }
}

function addNotFound(app: ApiInstance, counter: Counter, rows: readonly Route[], origins: readonly string[]): void {
  const patterns = rows.map(({ method, path }) => ({ method, path, pattern: patternOf(API_PREFIX + path) }));
  const methodsAt = (path: string) => {
    const matching = patterns.filter(({ pattern }) => pattern.test(path));
    const own = matching.filter((row) => API_PREFIX + row.path === path);
    return new Set((own.length > 0 ? own : matching).map(({ method }) => method));
  };
  // A path that the table spells out is no id of another: what it does not take itself, nothing takes.
  for (const url of new Set(rows.map(({ path }) => API_PREFIX + path))) {
    const taken = methodsAt(url);
    const others = new Set(patterns.filter(({ pattern }) => pattern.test(url)).map(({ method }) => method));
    for (const method of others.difference(taken)) {
      app.route({ method, url, handler: (_request, response) => response.callNotFound() });
    }
  }
  app.setNotFoundHandler((request, response) => {
    try {
      takeToken(counter.door.limiter, "read", rateKey(addressOf(counter, request)));
      if (crossOrigin(origins, request.method, request.headers).isPreflight) return void response.code(204).send();
      const path = (request.raw.url ?? "").split("?", 1)[0] ?? "";
      const methods = methodsAt(path);
      if (methods.size === 0) throw new Refusal("not_found", "there is nothing at this path");
      const allow = [...methods, ...(methods.has("GET") ? ["HEAD"] : [])].sort().join(", ");
      throw new Refusal("method_not_allowed", `this path takes ${allow}`, [], { allow });
    } catch (error) {
      sendProblem(counter, error, request, response);
    }
  });
}

/** A path of the table as a pattern of whole paths: a parameter is anything up to the next slash. */
function patternOf(path: string): RegExp {
  const parts = path.split("/").map((part) => (part.startsWith(":") ? "[^/]+" : RegExp.escape(part)));
  return new RegExp(`^${parts.join("/")}$`);
}

async function listenAt(app: ApiInstance, { host, port }: ApiServerOptions["listen"]): Promise<void> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    await app.close();
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (code === "" || code.startsWith("FST_")) throw error;
    throw new OperatorError(`cannot listen for the API on ${host} port ${port}: ${code}`);
  }
}
