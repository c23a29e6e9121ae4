/** Signing in: what is sent and answered, how long tokens hold, and what a refresh token of some generation does. */
import { type Static, Type } from "typebox";
import { PASSWORD_CHARACTERS_MAX, TOKEN_CHARACTERS_MAX, USERNAME_CHARACTERS_MAX } from "./limits.ts";
import type { SessionBody, UserBody } from "./objects.ts";
import { UserView } from "./user.ts";

/** Of access tokens and of the cookie. */
export const ACCESS_TOKEN_SECONDS = 86_400;
/** A session whose refresh token was not used for so long has ended. */
export const SESSION_IDLE_MS = 7 * 86_400_000;
/** So long the refresh token before the newest is taken for one whose answer was lost, not for a stolen one. */
export const REFRESH_GRACE_MS = 60_000;
/** Name of the cookie that holds an access token. */
export const SESSION_COOKIE = "svc_session";

export const LoginRequest = Type.Object(
  {
    username: Type.String({ minLength: 1, maxLength: USERNAME_CHARACTERS_MAX, examples: ["admin"] }),
    password: Type.String({ minLength: 1, maxLength: PASSWORD_CHARACTERS_MAX, examples: ["a long enough password"] }),
  },
  { additionalProperties: false },
);
export type LoginRequest = Static<typeof LoginRequest>;

const RefreshToken = Type.String({ minLength: 1, maxLength: TOKEN_CHARACTERS_MAX });

export const RefreshRequest = Type.Object({ refresh_token: RefreshToken }, { additionalProperties: false });

/** Without a token the session of the request's own cookie or bearer token ends. */
export const LogoutRequest = Type.Object(
  { refresh_token: Type.Optional(RefreshToken) },
  { additionalProperties: false },
);

/** A dry run checks everything and hands out no tokens. */
export const SessionView = Type.Object({
  access_token: Type.Optional(Type.String({ description: "a JWT, for Authorization: Bearer; not in a dry run" })),
  token_type: Type.Literal("Bearer"),
  expires_in: Type.Integer({ description: "seconds", examples: [ACCESS_TOKEN_SECONDS] }),
  refresh_token: Type.Optional(Type.String({ description: "for one use; not in a dry run" })),
  user: UserView,
});
export type SessionView = Static<typeof SessionView>;

export const LogoutView = Type.Object({ ended: Type.Boolean({ examples: [true] }) });

/** Whether the session still holds: neither ended, nor idle, nor older than what ended all sessions of its user. */
export function sessionHolds(session: SessionBody, user: UserBody, nowMs: number): boolean {
  if (session.revoked || !user.enabled || session.epoch !== user.session_epoch) return false;
  return nowMs - session.rotated_at <= SESSION_IDLE_MS;
}

/**
 * What a refresh token of that generation does: `rotate` begins a new generation; `repeat` hands out the newest again;
 * `reuse` shows that two hold the session's tokens, and ends it. A generation ahead of ours was handed out by another
 * node whose write has not come here yet.
 */
export function refreshOutcome(session: SessionBody, generation: number, nowMs: number): "rotate" | "repeat" | "reuse" {
  if (generation >= session.generation) return "rotate";
  const isLast = generation === session.generation - 1;
  return isLast && nowMs - session.rotated_at <= REFRESH_GRACE_MS ? "repeat" : "reuse";
}
