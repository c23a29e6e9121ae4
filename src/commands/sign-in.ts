/** What all of signing in shares: keys, the queue of password checks, and who has which sessions. */
import { SIGN_IN_FAILURES_PER_DAY, SIGN_IN_FAILURES_PER_MINUTE } from "../model/limits.ts";
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
    failures: { minute: 0, writtenInMinute: 0, hour: 0, day: 0, writtenInDay: 0, unwritten: 0 },
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

/** How many failed sign-ins were written down in the minute and the day, and how many since the last of them were not. */
type Failures = {
  /** Minutes, hours and days since 1970: those of the last entry. */
  minute: number;
  hour: number;
  day: number;
  writtenInMinute: number;
  writtenInDay: number;
  unwritten: number;
};

/**
 * Writes down a failed sign-in, in a dry run too: it told the caller something. A flood fills no disk: beyond so many a
 * minute and a day they are only counted, and the next entry, of the next minute or hour, says how many. Resolves with the
 * refusal to throw.
 */
export async function failedSignIn(
  { context, failures }: SignIn,
  caller: Caller,
  entry: Pick<Note, "action" | "resource_id" | "resource_name" | "detail">,
  refusal: Refusal,
): Promise<Refusal> {
  if (!mayWrite(failures, context.now())) {
    failures.unwritten += 1;
    return refusal;
  }
  const details = [entry.detail, ...unwrittenText(failures.unwritten)].filter((text) => text !== undefined);
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

/** Whether one more failure has a place in the audit log, which it takes. */
function mayWrite(failures: Failures, nowMs: number): boolean {
  const minute = Math.floor(nowMs / 60_000);
  const hour = Math.floor(nowMs / 3_600_000);
  const day = Math.floor(nowMs / 86_400_000);
  if (failures.minute !== minute) failures.writtenInMinute = 0;
  if (failures.day !== day) failures.writtenInDay = 0;
  const isNewHour = failures.hour !== hour;
  const isWithin =
    failures.writtenInDay < SIGN_IN_FAILURES_PER_DAY
      ? failures.writtenInMinute < SIGN_IN_FAILURES_PER_MINUTE
      : isNewHour;
  if (!isWithin) return false;
  Object.assign(failures, { minute, hour, day });
  failures.writtenInMinute += 1;
  failures.writtenInDay += 1;
  return true;
}

function unwrittenText(count: number): readonly string[] {
  return count === 0 ? [] : [`${count} failures before this one were too many to write down`];
}
