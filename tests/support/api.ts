/**
 * The API over a real store and real TLS, without the rest of a node: a token for each role, and a small client. Tests
 * that need sign-in give the real `authenticate` and its routes.
 */
import { mkdtemp, rm } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, request } from "undici";
import type { Authenticate } from "../../src/api/admission.ts";
import type { Route } from "../../src/api/route.ts";
import { type ApiServer, type ApiServerOptions, startApiServer } from "../../src/api/server.ts";
import type { Log } from "../../src/base/log.ts";
import type { Actor, CommandContext } from "../../src/commands/run.ts";
import type { Role } from "../../src/model/objects.ts";
import { Refusal } from "../../src/model/refusal.ts";
import type { NodeStore } from "../../src/store/open-store.ts";
import { temporaryStore } from "./store.ts";

export type ApiReply = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Parsed, where the answer is JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever came back.
  readonly body: any;
  readonly text: string;
};

export type ApiRequest = {
  /** A role's token, or any text; default "admin"; null: none. */
  readonly as?: Role | (string & {}) | null;
  readonly json?: unknown;
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Leaves out X-SVC-CSRF. */
  readonly noCsrf?: true;
  readonly http2?: true;
};

export type TestApi = AsyncDisposable & {
  readonly context: CommandContext;
  readonly store: CommandContext["store"];
  /** The same with what other nodes ask of it. */
  readonly nodeStore: NodeStore;
  readonly server: ApiServer;
  readonly url: string;
  readonly directory: string;
  /** Asks `path` below /api/v1, or a whole path that begins with "//": "//healthz". */
  readonly ask: (method: string, path: string, options?: ApiRequest) => Promise<ApiReply>;
  /** A token for any actor, for example one confined to zones. */
  readonly tokenFor: (actor: Actor) => string;
};

export type TestApiOptions = Partial<Omit<ApiServerOptions, "routes" | "context">> & {
  readonly authenticateWith?: (context: CommandContext) => Authenticate;
  readonly log?: Log;
};

/** Starts the API on a free port of 127.0.0.1 with the routes that `routesOf` makes for its store. */
export async function startApi(
  routesOf: (context: CommandContext) => readonly Route[],
  options: TestApiOptions = {},
): Promise<TestApi> {
  const temporary = await temporaryStore();
  const { log, authenticateWith, ...serverOptions } = options;
  const context = { ...temporary.context, ...(log === undefined ? {} : { log }) };
  const directory = await mkdtemp(join(tmpdir(), "signpost-api-"));
  const actors = new Map<string, Actor>();
  for (const role of ["readonly", "editor", "admin"] as const) {
    actors.set(role, { kind: "user", id: `usr_${role}`, name: role, role });
  }
  const server = await startApiServer({
    context,
    routes: routesOf(context),
    authenticate: authenticateWith?.(context) ?? ((headers) => actorOf(actors, headers.authorization)),
    listen: { host: "127.0.0.1", port: 0 },
    certificate: { kind: "self-made", directory, names: ["localhost", "127.0.0.1"] },
    rateLimit: () => 10_000_000,
    ...serverOptions,
  });
  const agents = { one: agentOf(false), two: agentOf(true) };
  return {
    context,
    store: context.store,
    nodeStore: temporary.store,
    server,
    url: server.url,
    directory,
    ask: (method, path, asked = {}) => ask(server.url, asked.http2 ? agents.two : agents.one, method, path, asked),
    tokenFor: (actor) => {
      const token = `token-${actors.size}`;
      actors.set(token, actor);
      return token;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([agents.one.destroy(), agents.two.destroy()]);
      await server.close();
      await temporary[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function agentOf(allowH2: boolean): Agent {
  return new Agent({ allowH2, connect: { rejectUnauthorized: false }, pipelining: 1 });
}

function actorOf(actors: ReadonlyMap<string, Actor>, authorization: string | undefined): Actor | undefined {
  if (authorization === undefined) return undefined;
  const actor = actors.get(authorization.replace(/^Bearer /, ""));
  if (actor === undefined) throw new Refusal("not_authenticated", "the token is not valid");
  return actor;
}

async function ask(url: string, agent: Agent, method: string, path: string, asked: ApiRequest): Promise<ApiReply> {
  const token = asked.as === undefined ? "admin" : asked.as;
  const headers: Record<string, string> = {
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    ...(asked.noCsrf ? {} : { "x-svc-csrf": "1" }),
    ...(asked.json === undefined ? {} : { "content-type": "application/json" }),
    ...asked.headers,
  };
  const body = asked.json === undefined ? asked.body : JSON.stringify(asked.json);
  const target = path.startsWith("//") ? path.slice(1) : `/api/v1${path}`;
  // undici names the common methods; the server has to take any.
  const response = await request(url + target, {
    method: method as "GET",
    headers,
    body: body ?? null,
    dispatcher: agent,
  });
  const text = await response.body.text();
  const isJson =
    /json/.test(String(response.headers["content-type"])) && !/ndjson/.test(String(response.headers["content-type"]));
  return {
    status: response.statusCode,
    headers: response.headers,
    body: isJson && text !== "" ? JSON.parse(text) : undefined,
    text,
  };
}
