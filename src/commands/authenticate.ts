/** Who sends a request. Every request is checked against session and user, or account, as they are now. */
import type { UserBody } from "../model/objects.ts";
import { Refusal } from "../model/refusal.ts";
import { hasExpired, isSecretOf, isServiceAccountToken, parseToken } from "../model/service-account.ts";
import { SESSION_COOKIE, sessionHolds } from "../model/session.ts";
import type { Actor } from "./run.ts";
import { actorOfUser, type SignIn } from "./sign-in.ts";

/** A token as it came: an access token (from a bearer header or the cookie) or one of a service account. */
export type Credentials = { readonly kind: "bearer" | "cookie"; readonly token: string };

/** Of a request, names in lower case. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The credentials of a request's headers; an Authorization header goes before a cookie. Throws `not_authenticated` for a malformed one. */
export function credentialsOf(headers: Headers): Credentials | undefined {
  const { authorization, cookie } = headers;
  if (authorization !== undefined) {
    const [, token] =
      (typeof authorization === "string" ? /^Bearer +([\x21-\x7E]+) *$/i.exec(authorization) : null) ?? [];
    if (token === undefined) throw new Refusal("not_authenticated", "the Authorization header must read: Bearer TOKEN");
    return { kind: "bearer", token };
  }
  const token = cookieOf(cookie, SESSION_COOKIE);
  return token === undefined || token === "" ? undefined : { kind: "cookie", token };
}

/** The value of the first cookie of that name (RFC 6265 section 5.4), as it came. */
export function cookieOf(header: string | readonly string[] | undefined, name: string): string | undefined {
  const text = typeof header === "string" ? header : (header ?? []).join("; ");
  for (const pair of text.split(";")) {
    const equals = pair.indexOf("=");
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim();
  }
  return undefined;
}

/** The actor that the headers of a request show, undefined where they hold no credentials. Throws `not_authenticated`. */
export async function authenticateHeaders(signIn: SignIn, headers: Headers): Promise<Actor | undefined> {
  const credentials = credentialsOf(headers);
  return credentials === undefined ? undefined : authenticate(signIn, credentials);
}

/** The actor behind a token. Throws `not_authenticated`, with the issuing node where a token belongs to another one. */
export async function authenticate(signIn: SignIn, { kind, token }: Credentials): Promise<Actor> {
  if (isServiceAccountToken(token) && kind === "bearer") return serviceAccountOf(signIn, token);
  const { store, now } = signIn.context;
  const claims = await signIn.tokens.readAccess(token);
  const session = claims === undefined ? undefined : store.byId("session", claims.sessionId)?.body;
  if (session === undefined) throw new Refusal("not_authenticated", "the access token is not valid or has expired");
  const user: UserBody | undefined = store.byId("user", session.user_id)?.body;
  if (user === undefined || !sessionHolds(session, user, now())) {
    throw new Refusal("not_authenticated", "the session has ended; sign in again");
  }
  return actorOfUser(user, session.id);
}

function serviceAccountOf({ context, serviceAccountScope }: SignIn, token: string): Actor {
  const { store, now } = context;
  const parsed = parseToken(token);
  const account = parsed === undefined ? undefined : store.byId("service-account", parsed.accountId)?.body;
  if (parsed === undefined || account === undefined || !isSecretOf(account, parsed.secret)) {
    throw new Refusal("not_authenticated", "the service account token is not valid");
  }
  if (account.revoked) throw new Refusal("not_authenticated", "the service account was revoked");
  if (hasExpired(account, now())) throw new Refusal("not_authenticated", "the service account has expired");
  if (serviceAccountScope === "issuing-node" && account.issuing_node !== store.nodeId) {
    const detail = `only the node ${account.issuing_node} takes this token; address that node`;
    throw new Refusal("not_authenticated", detail, [], { issuing_node: account.issuing_node });
  }
  const { id, name, role, zone_ids } = account;
  return { kind: "service-account", id, name, role, ...(zone_ids === undefined ? {} : { zoneIds: zone_ids }) };
}
