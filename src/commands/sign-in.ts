/** What all of signing in shares: keys, the queue of password checks, and who has which sessions. */
import { SIGN_IN_FAILURES_PER_MINUTE } from "../model/limits.ts";
import type { SessionBody, UserBody } from "../model/objects.ts";
import type { Refusal } from "../model/refusal.ts";
import { createPasswords, type Passwords } from "./passwords.ts";
import { type Actor, type Caller, type CommandContext, type Note, runCommand } from "./run.ts";
import { createStoreIndex, type StoreIndex } from "./store-index.ts";
import { createTokens, type Tokens } from "./tokens.ts";

export type SignInOptions = {
  readonly context: CommandContext;
  /** At least 32 bytes, the same on all nodes of a cluster; each use gets a key of its own derived from it. */
  readonly signingKey: Uint8Array;
  /** Which nodes take a service account's token: the one that made it, or every one. */
  readonly serviceAccountScope: "issuing-node" | "cluster";
};

export type SignIn = SignInOptions & {
  readonly passwords: Passwords;
  readonly tokens: Tokens;
  /** Ids of sessions by id of their user. */
  readonly sessionsOfUser: StoreIndex;
  /** Ids of users by issuer and subject of the identity provider. */
  readonly usersOfSubject: StoreIndex;
  readonly failures: Failures;
  readonly close: () => void;
};

const SIGNING_KEY_BYTES_MIN = 32;

export function createSignIn(options: SignInOptions): SignIn {
  const { context, signingKey } = options;
  if (signingKey.length < SIGNING_KEY_BYTES_MIN) throw new Error("the signing key is too short");
  const sessionsOfUser = createStoreIndex(context.store, "session", ({ user_id }: SessionBody) => user_id);
  const usersOfSubject = createStoreIndex(context.store, "user", ({ idp_subject }: UserBody) => idp_subject);
  return {
    ...options,
    passwords: createPasswords(),
    tokens: createTokens(signingKey, context.now),
    sessionsOfUser,
    usersOfSubject,
    failures: { minute: 0, written: 0, unwritten: 0 },
    close: () => {
      sessionsOfUser.close();
      usersOfSubject.close();
    },
  };
}

export function actorOfUser(user: UserBody, sessionId?: string): Actor {
  const { id, username, role } = user;
  return { kind: "user", id, name: username, role, ...(sessionId === undefined ? {} : { sessionId }) };
}

/** How many failed sign-ins were written down in the minute, and how many since then were not. */
type Failures = { minute: number; written: number; unwritten: number };

/**
 * Writes down a failed sign-in, in a dry run too: it told the caller something. A flood fills no disk: beyond so many a
 * minute they are only counted, and the next entry says how many. Resolves with the refusal to throw.
 */
export async function failedSignIn(
  { context, failures }: SignIn,
  caller: Caller,
  entry: Pick<Note, "action" | "resource_id" | "resource_name" | "detail">,
  refusal: Refusal,
): Promise<Refusal> {
  const minute = Math.floor(context.now() / 60_000);
  if (failures.minute !== minute) Object.assign(failures, { minute, written: 0 });
  if (failures.written >= SIGN_IN_FAILURES_PER_MINUTE) {
    failures.unwritten += 1;
    return refusal;
  }
  const details = [entry.detail, ...unwrittenText(failures.unwritten)].filter((text) => text !== undefined);
  failures.written += 1;
  failures.unwritten = 0;
  await runCommand(context, { ...caller, dryRun: false }, (tx) => {
    tx.note({
      ...entry,
      resource: "session",
      result: "failure",
      ...(details.length === 0 ? {} : { detail: details.join("; ") }),
    });
  });
  return refusal;
}

function unwrittenText(count: number): readonly string[] {
  return count === 0 ? [] : [`${count} failures before this one were too many to write down`];
}
