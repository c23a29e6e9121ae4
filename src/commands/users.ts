/** Users: administrators make, change and delete them; whatever takes rights away takes effect at once. */
import { randomBytes } from "node:crypto";
import { USERS_MAX } from "../model/limits.ts";
import type { UserBody } from "../model/objects.ts";
import { Refusal, refuseFaults } from "../model/refusal.ts";
import {
  canonicalUsername,
  isLocalAdmin,
  type UserCreate,
  type UserUpdate,
  userCreateFaults,
  userUpdateFaults,
} from "../model/user.ts";
import { LIST_PAGE_MAX, type StoreReader, type StoreTransaction } from "../store/store.ts";
import { noteDelete, noteWrite, type WriteOutcome } from "./audit-outcome.ts";
import { permitUnconfined } from "./permit.ts";
import { type Caller, newId, requireById, requireMatch, runCommand } from "./run.ts";
import type { SignIn } from "./sign-in.ts";

/** Creates a local user. A name that is taken is a `conflict` that names its user: a user is never replaced. */
export async function createUser(signIn: SignIn, caller: Caller, given: UserCreate): Promise<WriteOutcome<"user">> {
  const { context, passwords } = signIn;
  refuseFaults(userCreateFaults(given));
  const username = canonicalUsername(given.username);
  refuseTaken(context.store, username);
  const hash = await passwords.hash(given.password);
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write users");
    refuseTaken(tx, username);
    refuseFull(tx);
    const body: UserBody = {
      id: newId("user"),
      username,
      role: given.role,
      enabled: given.enabled ?? true,
      password_hash: hash,
      session_epoch: newEpoch(),
    };
    const outcome = { stored: tx.put("user", body), before: undefined };
    noteWrite(tx, "create", outcome, username);
    return outcome;
  });
}

function refuseTaken(reader: Pick<StoreReader, "get">, username: string): void {
  const other = reader.get("user", [username])?.body;
  if (other === undefined) return;
  const faults = [{ pointer: "/username", detail: "is taken" }];
  throw new Refusal("conflict", `there is a user ${username} already`, faults, { user_id: other.id });
}

/** Throws `conflict` where no further user may be made. */
export function refuseFull(reader: Pick<StoreReader, "count">): void {
  if (reader.count("user") >= USERS_MAX)
    throw new Refusal("conflict", `there are ${USERS_MAX} users, and no more can be`);
}

/** A new `session_epoch`: all sessions that began under another one have ended. */
export function newEpoch(): string {
  return randomBytes(9).toString("base64url");
}

/** Changes role, enabled or password. A new password, and disabling, end the user's sessions. */
export async function updateUser(
  signIn: SignIn,
  caller: Caller,
  id: string,
  given: UserUpdate,
): Promise<WriteOutcome<"user">> {
  const { context, passwords } = signIn;
  refuseFaults(userUpdateFaults(requireById(context.store, "user", id).body, given));
  const hash = given.password === undefined ? undefined : await passwords.hash(given.password);
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write users");
    const before = requireById(tx, "user", id);
    refuseFaults(userUpdateFaults(before.body, given));
    requireMatch(caller, before);
    const { role, enabled } = { ...before.body, ...withoutUndefined(given) };
    const endsSessions = hash !== undefined || (before.body.enabled && !enabled);
    const body: UserBody = {
      ...before.body,
      role,
      enabled,
      ...(hash === undefined ? {} : { password_hash: hash }),
      ...(endsSessions ? { session_epoch: newEpoch() } : {}),
    };
    if (isLocalAdmin(before.body) && !isLocalAdmin(body)) refuseLastAdmin(tx, before.body.id);
    if (endsSessions) deleteSessions(signIn, tx, before.body.id);
    const outcome = { stored: tx.put("user", body), before };
    noteWrite(tx, "update", outcome, body.username, hash === undefined ? undefined : "with a new password");
    return outcome;
  });
}

function withoutUndefined({ role, enabled }: UserUpdate): Partial<Pick<UserBody, "role" | "enabled">> {
  return { ...(role === undefined ? {} : { role }), ...(enabled === undefined ? {} : { enabled }) };
}

/** Deletes a user and ends its sessions. Returns its own id. */
export function deleteUser(signIn: SignIn, caller: Caller, id: string): Promise<string> {
  return runCommand(signIn.context, caller, (tx) => {
    permitUnconfined(caller, "write users");
    const stored = requireById(tx, "user", id);
    requireMatch(caller, stored);
    if (isLocalAdmin(stored.body)) refuseLastAdmin(tx, stored.body.id);
    deleteSessions(signIn, tx, stored.body.id);
    tx.delete("user", stored.key);
    noteDelete(tx, stored, stored.body.username);
    return stored.body.id;
  });
}

function deleteSessions(signIn: SignIn, tx: StoreTransaction, userId: string): void {
  for (const id of signIn.sessionsOfUser.idsOf(userId)) tx.delete("session", [id]);
}

/** There is always somebody who can sign in and mend things, with the identity provider out of reach as well. */
function refuseLastAdmin(tx: Pick<StoreReader, "list">, id: string): void {
  const detail = "this is the last enabled admin with a password; make another one first";
  if (!usersOf(tx).some((user) => user.id !== id && isLocalAdmin(user))) throw new Refusal("conflict", detail);
}

function* usersOf(reader: Pick<StoreReader, "list">): Generator<UserBody> {
  let page = reader.list("user", { limit: LIST_PAGE_MAX });
  for (;;) {
    for (const { body } of page) yield body;
    const last = page.at(-1);
    if (last === undefined || page.length < LIST_PAGE_MAX) return;
    page = reader.list("user", { limit: LIST_PAGE_MAX, after: last.key });
  }
}
