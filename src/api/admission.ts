/** Who may ask what: the refusals that come before the body of a request is read, in their order. */
import type { IncomingHttpHeaders } from "node:http";
import { mayWriteZone } from "../commands/permit.ts";
import type { Actor, Caller, CommandContext } from "../commands/run.ts";
import { ROLES, type Role } from "../model/objects.ts";
import { Refusal } from "../model/refusal.ts";
import { checkShape } from "../model/shape.ts";
import { type RateClass, type RateLimiter, rateKey } from "./rate-limiter.ts";
import type { Route } from "./route.ts";

/** The caller behind the credentials among the headers; undefined where there are none. Throws `not_authenticated` for bad ones. */
export type Authenticate = (headers: IncomingHttpHeaders) => Actor | undefined | Promise<Actor | undefined>;

/** Who calls a public route. */
export const ANONYMOUS: Actor = { kind: "system", id: "anonymous", name: "anonymous", role: "readonly" };

export type Door = {
  readonly context: CommandContext;
  readonly authenticate: Authenticate;
  readonly limiter: RateLimiter;
};

export type Knock = {
  readonly headers: IncomingHttpHeaders;
  readonly params: unknown;
  readonly address: string;
  readonly requestId: string;
};

/** Whether the row changes something, and so needs the CSRF header and takes `dry_run`. */
export function isMutating(row: Route): boolean {
  return row.method !== "GET";
}

export function rateClassOf(row: Route): RateClass {
  return row.rateClass ?? (isMutating(row) ? "write" : "read");
}

/** The caller, or the first of the refusals: 401, 429, 403 role, 403 zone, 403 CSRF, 404. */
export async function admit(door: Door, row: Route, knock: Knock): Promise<Omit<Caller, "dryRun">> {
  const actor = await actorOf(door, row, knock.headers);
  takeToken(door.limiter, rateClassOf(row), rateKey(knock.address));
  if (row.access !== "public") requireRole(actor, row.access);
  requireZones(door.context, actor, row, knock.params);
  if ((isMutating(row) || row.sensitive === true) && knock.headers["x-svc-csrf"] !== "1") {
    throw new Refusal("csrf_header_missing", "this request needs the header X-SVC-CSRF: 1");
  }
  if (row.params !== undefined && checkShape(row.params, knock.params).length > 0) {
    throw new Refusal("not_found", "there is nothing at this path");
  }
  row.find?.(knock.params);
  const ifMatch = knock.headers["if-match"];
  return { actor, address: knock.address, requestId: knock.requestId, ...(ifMatch === undefined ? {} : { ifMatch }) };
}

/** The credentials of a public route are none of its business, good or bad. */
async function actorOf(door: Door, row: Route, headers: IncomingHttpHeaders): Promise<Actor> {
  if (row.access === "public") return ANONYMOUS;
  const actor = await door.authenticate(headers);
  if (actor === undefined) throw new Refusal("not_authenticated", "this request needs a bearer token or a session");
  return actor;
}

/** Throws `rate_limited` when the key has used up its requests of that class; it has `factor` times the limit. */
export function takeToken(limiter: RateLimiter, rateClass: RateClass, key: string, factor = 1): void {
  const seconds = limiter.take(rateClass, key, factor);
  if (seconds === 0) return;
  throw new Refusal("rate_limited", `too many requests of the class ${rateClass}`, [], { retry_after: seconds });
}

function requireRole(actor: Actor, least: Role): void {
  if (ROLES.indexOf(actor.role) >= ROLES.indexOf(least)) return;
  throw new Refusal("role_insufficient", `this needs the role ${least}, and the caller has ${actor.role}`);
}

/** A confined token writes to its zones only; what lies outside any zone it does not write at all. */
function requireZones(context: CommandContext, actor: Actor, row: Route, params: unknown): void {
  if (actor.zoneIds === undefined || !isMutating(row) || row.access === "public") return;
  const { store } = context;
  const hasZone = actor.zoneIds.some((id) => store.byId("zone", id) !== undefined);
  if (hasZone && mayTouch(context, actor, row, params)) return;
  throw new Refusal("zone_not_permitted", "the token is confined to other zones");
}

function mayTouch({ store }: CommandContext, actor: Actor, { confinedTo }: Route, params: unknown): boolean {
  if (confinedTo === undefined || confinedTo === "body") return confinedTo === "body";
  // An id that is none is the business of `find`: it cannot be written to.
  const touched = confinedTo(params).map((id) => store.byId("zone", id)?.body.id ?? id);
  return touched.every((id) => mayWriteZone(store, actor, id));
}
