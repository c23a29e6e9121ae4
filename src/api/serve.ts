/** One request of one route: admitted, its query and body read, handled, replied to. */
import type { Http2SecureServer, Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteGenericInterface } from "fastify";
import { errorText } from "../base/errors.ts";
import type { Cidr } from "../base/ip.ts";
import type { Caller } from "../commands/run.ts";
import { Refusal } from "../model/refusal.ts";
import { admit, type Door, isMutating, takeToken } from "./admission.ts";
import type { AnswerBudget, AnswerShare } from "./answer-budget.ts";
import { type BodyBudget, readBody } from "./body.ts";
import { clientAddress } from "./client-address.ts";
import { answerUntilDrained, drain } from "./drain.ts";
import { REQUEST_MS, USER_LIMIT_FACTOR } from "./limits.ts";
import { PROBLEM_TYPE, problemOf, refusalOf } from "./problem.ts";
import { parseQuery, queryPlan } from "./query.ts";
import { rateKey } from "./rate-limiter.ts";
import type { Reply, Route } from "./route.ts";

export type ApiInstance = FastifyInstance<Http2SecureServer, Http2ServerRequest, Http2ServerResponse>;
export type Request = FastifyRequest<RouteGenericInterface, Http2SecureServer>;
export type Response = FastifyReply<RouteGenericInterface, Http2SecureServer>;

export type Counter = {
  readonly door: Door;
  readonly budget: BodyBudget;
  readonly answers: AnswerBudget;
  readonly trustedProxies: readonly Cidr[];
};

export type RowHandlers = {
  readonly onRequest: (request: Request, response: Response) => Promise<void>;
  readonly handler: (request: Request, response: Response) => Promise<unknown>;
};

/** The two halves of a route: who may come in is settled before the body is looked at. */
export function rowHandlers(counter: Counter, row: Route): RowHandlers {
  const admitted = new WeakMap<object, { readonly caller: Omit<Caller, "dryRun">; readonly share: AnswerShare }>();
  const plan = queryPlan(row.query, isMutating(row));
  const ownsDryRun =
    row.query !== undefined && "properties" in row.query && Object.hasOwn(Object(row.query.properties), "dry_run");
  return {
    onRequest: async (request, response) => {
      const address = addressOf(counter, request);
      const { headers, params, id } = request;
      const share = counter.answers.open(rateKey(address));
      response.raw.once("close", share.end);
      const caller = await admit(counter.door, row, { headers, params, address, requestId: id });
      admitted.set(request, { caller, share });
    },
    handler: async (request, response) => {
      const entry = admitted.get(request);
      if (entry === undefined) throw new Error("a request that nobody admitted");
      const { caller, share } = entry;
      const { dry_run, ...query } = parseQuery(plan, queryText(request.raw.url ?? ""));
      const body = isMutating(row)
        ? await readBody(row, request.headers, request.raw, counter.budget.of(rateKey(caller.address)), REQUEST_MS)
        : undefined;
      if (row.rateClass === "auth") countUser(counter, body);
      // A write has a short answer, and it is too late to refuse one when it is done.
      if (!isMutating(row)) share.requireRoom();
      const reply = await row.handle({
        params: request.params,
        query: ownsDryRun && dry_run !== undefined ? { ...query, dry_run } : query,
        body,
        caller: { ...caller, dryRun: dry_run === true },
        headers: request.headers,
        get signal() {
          return goneSignal(response);
        },
      });
      return sendReply(counter, request, response, { reply, share });
    },
  };
}

export function addressOf({ trustedProxies }: Counter, request: Request): string {
  return clientAddress(request.raw.socket.remoteAddress ?? "", request.headers["x-forwarded-for"], trustedProxies);
}

function queryText(url: string): string {
  const mark = url.indexOf("?");
  return mark < 0 ? "" : url.slice(mark + 1);
}

/**
 * Sign-ins are counted by user name too, so that many addresses cannot guess at one password together. It takes ten of
 * them, each at its limit, before anybody's guesses keep the user out.
 */
function countUser(counter: Counter, body: unknown): void {
  if (typeof body !== "object" || body === null || !("username" in body) || typeof body.username !== "string") return;
  takeToken(counter.door.limiter, "auth", `user ${body.username.toLowerCase()}`, USER_LIMIT_FACTOR);
}

function goneSignal(response: Response): AbortSignal {
  const controller = new AbortController();
  if (response.raw.destroyed) controller.abort();
  else response.raw.once("close", () => controller.abort());
  return controller.signal;
}

type SharedReply = { readonly reply: Reply; readonly share: AnswerShare };

function sendReply(counter: Counter, request: Request, response: Response, { reply, share }: SharedReply): Response {
  const { body } = reply;
  if (body instanceof Readable) reserve(share, body);
  response.code(reply.status ?? 200);
  for (const [name, value] of Object.entries(reply.headers ?? {})) {
    response.header(name, typeof value === "string" ? value : [...value]);
  }
  // A redirect has no body.
  if (body === undefined) return response.send("");
  if (body instanceof Readable) return sendStream(counter, request, response, body);
  const bytes = bytesOf(response, body);
  share.settle(bytes.length);
  return response.send(bytes);
}

function reserve(share: AnswerShare, body: Readable): void {
  try {
    share.reserve();
  } catch (error) {
    body.destroy();
    throw error;
  }
}

/** One copy, and not in the heap that everything else of this thread lives in. */
function bytesOf(response: Response, body: unknown): Buffer {
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (typeof body === "string" && response.hasHeader("content-type")) return Buffer.from(body);
  void response.header("content-type", "application/json; charset=utf-8");
  return Buffer.from(JSON.stringify(body));
}

function sendStream(counter: Counter, request: Request, response: Response, body: Readable): Response {
  if (request.method === "HEAD") {
    body.destroy();
    return response.send("");
  }
  body.once("error", (error) => {
    counter.door.context.log("error", `api: a stream ended early: ${errorText(error)}`, { request_id: request.id });
  });
  return response.send(body);
}

/** Whatever a request made throw, as a problem document. Faults of this program are logged, and the client learns the id only. */
export function sendProblem(counter: Counter, thrown: unknown, request: Request, response: Response): void {
  let refusal = refusalOf(thrown);
  if (refusal === undefined) {
    const stack = thrown instanceof Error ? thrown.stack : undefined;
    const fields = { request_id: request.id, method: request.method, ...(stack === undefined ? {} : { stack }) };
    counter.door.context.log("error", `api: a request failed: ${errorText(thrown)}`, fields);
    refusal = new Refusal("internal_error", "the node failed; its log says more under the request id", [], {
      request_id: request.id,
    });
  }
  const { status, headers, document } = problemOf(refusal);
  for (const name of ["etag", "location", "content-length"]) response.removeHeader(name);
  void response.code(status).headers(headers).header("content-type", PROBLEM_TYPE);
  const text = JSON.stringify(document);
  const { raw, method } = request;
  const isOnItsWay = !raw.complete && !raw.destroyed;
  const drained = drain(raw);
  if (!isOnItsWay || raw.httpVersionMajor !== 1 || method === "HEAD") return void response.send(text);
  response.header("content-length", Buffer.byteLength(text)).send(answerUntilDrained(text, drained));
}
