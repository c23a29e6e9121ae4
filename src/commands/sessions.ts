/** Sessions: they begin by a sign-in, go on by refresh tokens that each hold once, and end. */
import { SESSIONS_PER_USER_MAX } from "../model/limits.ts";
import type { SessionBody, UserBody } from "../model/objects.ts";
import { Refusal } from "../model/refusal.ts";
import {
  ACCESS_TOKEN_SECONDS,
  type LoginRequest,
  refreshOutcome,
  type SessionView,
  sessionHolds,
} from "../model/session.ts";
import { canonicalUsername, isUsername, viewOfUser } from "../model/user.ts";
import type { StoreTransaction } from "../store/store.ts";
import { authenticateHeaders, type Headers } from "./authenticate.ts";
import { type Actor, type Caller, type CommandContext, newId, runCommand } from "./run.ts";
import { actorOfUser, failedSignIn, type SignIn } from "./sign-in.ts";

/** Signs in with name and password. Whatever is wrong, the answer and the time it takes are the same: `not_authenticated`. */
export async function login(signIn: SignIn, caller: Caller, given: LoginRequest): Promise<SessionView> {
  const { context, passwords } = signIn;
  const username = canonicalUsername(given.username);
  const user = isUsername(username) ? context.store.get("user", [username])?.body : undefined;
  const hash = user?.enabled === true ? user.password_hash : undefined;
  const isRight = await passwords.verify(given.password, hash);
  if (user === undefined || !isRight) throw await refusedLogin(signIn, caller, username);
  const opened = await runCommand(context, callerAs(caller, user), (tx) => {
    const now = tx.byId("user", user.id)?.body;
    // The password may have been changed, or the user disabled, while it was checked.
    if (now === undefined || !now.enabled || now.password_hash !== hash) return undefined;
    const session = openSession(signIn, tx, now, tx.nowMs);
    tx.note({ action: "login", resource: "session", resource_id: session.id, resource_name: now.username });
    return { session, user: now };
  });
  if (opened === undefined) throw await refusedLogin(signIn, caller, username);
  if (caller.dryRun) await noteRehearsedLogin(context, caller, user);
  return sessionView(signIn, caller, opened.session, opened.user);
}

function callerAs(caller: Caller, user: UserBody, sessionId?: string): Caller {
  return { ...caller, actor: actorOfUser(user, sessionId) };
}

/** Whoever holds a session's token acts as its user, as the audit log names it. */
function callerAsOwner({ context }: SignIn, caller: Caller, sessionId: string): Caller {
  const session = context.store.byId("session", sessionId)?.body;
  const user = session === undefined ? undefined : context.store.byId("user", session.user_id)?.body;
  return user === undefined ? caller : callerAs(caller, user, sessionId);
}

function refusedLogin(signIn: SignIn, caller: Caller, username: string): Promise<Refusal> {
  const shown = isUsername(username) ? username : "";
  const entry = { action: "login", resource_id: "", resource_name: shown };
  return failedSignIn(
    signIn,
    caller,
    entry,
    new Refusal("not_authenticated", "the user name or the password is wrong"),
  );
}

/** A dry run opens no session, but it told that the password is right. */
function noteRehearsedLogin(context: CommandContext, caller: Caller, user: UserBody): Promise<void> {
  return runCommand(context, { ...callerAs(caller, user), dryRun: false }, (tx) => {
    tx.note({ action: "login", resource: "session", resource_id: "", resource_name: user.username, detail: "dry run" });
  });
}

/** Begins a session. Those of the user that have ended are removed, and the least lately used where there are too many. */
export function openSession(signIn: SignIn, tx: StoreTransaction, user: UserBody, nowMs: number): SessionBody {
  const { sessionsOfUser } = signIn;
  const known: SessionBody[] = [];
  for (const id of sessionsOfUser.idsOf(user.id)) {
    const session = tx.byId("session", id)?.body;
    if (session === undefined) sessionsOfUser.forget(user.id, id);
    else known.push(session);
  }
  const held = known.filter((session) => sessionHolds(session, user, nowMs));
  const lasting = held.toSorted((one, other) => other.rotated_at - one.rotated_at).slice(0, SESSIONS_PER_USER_MAX - 1);
  const kept = new Set(lasting.map(({ id }) => id));
  for (const { id } of known) if (!kept.has(id)) tx.delete("session", [id]);
  const session: SessionBody = {
    id: newId("session"),
    user_id: user.id,
    generation: 1,
    rotated_at: nowMs,
    revoked: false,
    ...(user.session_epoch === undefined ? {} : { epoch: user.session_epoch }),
  };
  tx.put("session", session);
  sessionsOfUser.expect(user.id, session.id);
  return session;
}

async function sessionView(
  { tokens }: SignIn,
  caller: Caller,
  session: SessionBody,
  user: UserBody,
): Promise<SessionView> {
  const view: SessionView = { token_type: "Bearer", expires_in: ACCESS_TOKEN_SECONDS, user: viewOfUser(user) };
  if (caller.dryRun) return view;
  const [access, refresh] = await Promise.all([
    tokens.signAccess(user.id, session.id),
    tokens.signRefresh(session.id, session.generation),
  ]);
  return { access_token: access, refresh_token: refresh, ...view };
}

type Renewal =
  | { readonly kind: "ended" }
  | { readonly kind: "reuse"; readonly user: UserBody }
  | { readonly kind: "renewed"; readonly session: SessionBody; readonly user: UserBody };

/** Exchanges a refresh token for new tokens. One that was exchanged before ends the session: two hold it. */
export async function refreshSession(signIn: SignIn, caller: Caller, token: string): Promise<SessionView> {
  const claims = await signIn.tokens.readRefresh(token);
  if (claims === undefined) throw new Refusal("not_authenticated", "the refresh token is not valid or has expired");
  const { sessionId, generation } = claims;
  const owner = callerAsOwner(signIn, caller, sessionId);
  const renew = (dryRun: boolean): Promise<Renewal> =>
    runCommand(signIn.context, { ...owner, dryRun }, (tx) => {
      const session = tx.byId("session", sessionId)?.body;
      const user = session === undefined ? undefined : tx.byId("user", session.user_id)?.body;
      if (session === undefined || user === undefined || !sessionHolds(session, user, tx.nowMs))
        return { kind: "ended" };
      const entry = { resource: "session", resource_id: session.id, resource_name: user.username };
      const outcome = refreshOutcome(session, generation, tx.nowMs);
      if (outcome === "repeat") return { kind: "renewed", session, user };
      if (outcome === "reuse") {
        tx.put("session", { ...session, revoked: true });
        const detail = "a refresh token was used again; the session has ended";
        tx.note({ ...entry, action: "refresh-reuse", result: "failure", detail });
        return { kind: "reuse", user };
      }
      const renewed = { ...session, generation: generation + 1, rotated_at: tx.nowMs };
      tx.put("session", renewed);
      tx.note({ ...entry, action: "refresh" });
      return { kind: "renewed", session: renewed, user };
    });
  let renewal = await renew(caller.dryRun);
  // A stolen token ends its session even where the thief asks for a dry run.
  if (renewal.kind === "reuse" && caller.dryRun) renewal = await renew(false);
  if (renewal.kind === "renewed") return sessionView(signIn, caller, renewal.session, renewal.user);
  throw new Refusal("not_authenticated", "the session has ended; sign in again");
}

/**
 * Ends the session of the refresh token, or without one the session of the request's own credentials. A session that has
 * ended already stays so, and that is no error. Throws `role_insufficient` where the request's own credentials are another user's.
 */
export async function logout(
  signIn: SignIn,
  caller: Caller,
  token: string | undefined,
  headers: Headers,
): Promise<void> {
  const sessionId = token === undefined ? await ownSession(signIn, headers) : await sessionOf(signIn, token, headers);
  await runCommand(signIn.context, callerAsOwner(signIn, caller, sessionId), (tx) => {
    const session = tx.byId("session", sessionId)?.body;
    const user = session === undefined ? undefined : tx.byId("user", session.user_id)?.body;
    if (session === undefined || user === undefined || session.revoked) return;
    tx.put("session", { ...session, revoked: true });
    tx.note({ action: "logout", resource: "session", resource_id: session.id, resource_name: user.username });
  });
}

async function ownSession(signIn: SignIn, headers: Headers): Promise<string> {
  const actor = await authenticateHeaders(signIn, headers);
  if (actor === undefined) {
    const detail = "is missing, and there is no session cookie or bearer token";
    throw new Refusal("invalid_request", `/refresh_token: ${detail}`, [{ pointer: "/refresh_token", detail }]);
  }
  if (actor.sessionId === undefined) {
    throw new Refusal("conflict", "a service account has no session; revoke it instead");
  }
  return actor.sessionId;
}

async function sessionOf(signIn: SignIn, token: string, headers: Headers): Promise<string> {
  const claims = await signIn.tokens.readRefresh(token);
  if (claims === undefined) throw new Refusal("not_authenticated", "the refresh token is not valid or has expired");
  const actor = await goodActor(signIn, headers);
  const session = signIn.context.store.byId("session", claims.sessionId)?.body;
  if (actor !== undefined && session !== undefined && actor.id !== session.user_id) {
    throw new Refusal("role_insufficient", "the refresh token belongs to another user");
  }
  return claims.sessionId;
}

/** Who asks beside the refresh token, where that can be told; an access token that has expired is no reason to stay. */
async function goodActor(signIn: SignIn, headers: Headers): Promise<Actor | undefined> {
  try {
    return await authenticateHeaders(signIn, headers);
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}
