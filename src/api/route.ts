/** What a route is: a row that names its door, its key and its work. The server turns rows into Fastify routes and OpenAPI. */
import type { Static, TSchema } from "typebox";
import type { Caller } from "../commands/run.ts";
import type { Role } from "../model/objects.ts";

/** What a handler gives back besides a plain JSON body (status 200). */
export type Reply = {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** JSON value, or bytes / a stream of them with `content-type` among the headers. */
  readonly body: unknown;
};

export type RouteInput<Params extends TSchema, Query extends TSchema, Body extends TSchema> = {
  readonly params: Static<Params>;
  readonly query: Static<Query>;
  /** As the schema has it; with `rawBody` the bytes as they came. */
  readonly body: Static<Body>;
  readonly caller: Caller;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
};

export type Route<Params extends TSchema = TSchema, Query extends TSchema = TSchema, Body extends TSchema = TSchema> = {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Below /api/v1, parameters with a colon: "/zones/:id". */
  readonly path: string;
  readonly summary: string;
  /** Heading in the documentation. */
  readonly tag: string;
  /** The least role; "public": no token. */
  readonly access: "public" | Role;
  /** A GET that needs the CSRF header as well; every other method needs it anyway. */
  readonly sensitive?: true;
  /** Default: `write` for mutating methods, `read` for GET. */
  readonly rateClass?: "auth" | "upload";
  /**
   * Which zones a write touches, for tokens confined to some: ids of zones, known before the body is read. Absent on a
   * write: confined tokens are refused. "body": the handler itself checks (imports).
   */
  readonly confinedTo?: ((params: Static<Params>) => readonly string[]) | "body";
  /** Throws `not_found` before the body is read. */
  readonly find?: (params: Static<Params>) => void;
  readonly params?: Params;
  /** Query parameters arrive as text; integers and booleans are converted by the server. `dry_run` is added by itself to mutating routes. */
  readonly query?: Query;
  readonly body?: Body;
  /** Media types that arrive as a Buffer in `body`, unparsed; a schema in `body` is for the documentation then. */
  readonly rawBody?: readonly string[];
  /** Bytes; default 1 MiB. */
  readonly bodyLimitBytes?: number;
  /** Schema of the 200 response, for the documentation. */
  readonly response: TSchema;
  readonly handle: (input: RouteInput<Params, Query, Body>) => Promise<Reply> | Reply;
};

/** Keeps the schemas' types for the handler, and forgets them for the table. */
export function route<Params extends TSchema, Query extends TSchema, Body extends TSchema>(
  row: Route<Params, Query, Body>,
): Route {
  // The server checks params, query and body against the row's own schemas before it calls `handle`.
  return row as unknown as Route;
}
