/** /auth: signing in with name and password, going on, and signing out. */
import Type from "typebox";
import { login, logout, refreshSession } from "../../commands/sessions.ts";
import type { SignIn } from "../../commands/sign-in.ts";
import {
  ACCESS_TOKEN_SECONDS,
  LoginRequest,
  LogoutRequest,
  LogoutView,
  RefreshRequest,
  SESSION_COOKIE,
  SessionView,
} from "../../model/session.ts";
import { SIGN_IN_BODY_BYTES_MAX } from "../limits.ts";
import { type Reply, type Route, route } from "../route.ts";

const TAG = "sessions";
/** Tokens are for who asked, not for caches (RFC 6749 section 5.1). */
export const NO_STORE = { "cache-control": "no-store" };

/** The cookie that holds an access token; no script reads it, and no other site's request carries it. */
export function sessionCookie(accessToken: string): string {
  return `${SESSION_COOKIE}=${accessToken}; Path=/; Max-Age=${ACCESS_TOKEN_SECONDS}; HttpOnly; Secure; SameSite=Strict`;
}

const NO_COOKIE = `${SESSION_COOKIE}=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Strict`;

function sessionReply(view: SessionView): Reply {
  const cookie = view.access_token === undefined ? {} : { "set-cookie": sessionCookie(view.access_token) };
  return { headers: { ...NO_STORE, ...cookie }, body: view };
}

export function authRoutes(signIn: SignIn): readonly Route[] {
  return [
    route({
      method: "POST",
      path: "/auth/login",
      summary: "Sign in with name and password",
      tag: TAG,
      access: "public",
      rateClass: "auth",
      bodyLimitBytes: SIGN_IN_BODY_BYTES_MAX,
      body: LoginRequest,
      response: SessionView,
      handle: async ({ body, caller }) => sessionReply(await login(signIn, caller, body)),
    }),
    route({
      method: "POST",
      path: "/auth/refresh",
      summary: "Exchange a refresh token for new tokens",
      tag: TAG,
      access: "public",
      rateClass: "auth",
      bodyLimitBytes: SIGN_IN_BODY_BYTES_MAX,
      body: RefreshRequest,
      response: SessionView,
      handle: async ({ body, caller }) => sessionReply(await refreshSession(signIn, caller, body.refresh_token)),
    }),
    route({
      method: "POST",
      path: "/auth/logout",
      summary: "End the session of a refresh token, or the request's own",
      tag: TAG,
      access: "public",
      rateClass: "auth",
      bodyLimitBytes: SIGN_IN_BODY_BYTES_MAX,
      body: Type.Optional(LogoutRequest),
      response: LogoutView,
      handle: async ({ body, caller, headers }) => {
        await logout(signIn, caller, body?.refresh_token, headers);
        return {
          headers: { ...NO_STORE, ...(caller.dryRun ? {} : { "set-cookie": NO_COOKIE }) },
          body: { ended: true },
        };
      },
    }),
  ];
}
