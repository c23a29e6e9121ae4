/** /auth/idp: single sign-on through an OpenID Connect provider. */
import Type from "typebox";
import { cookieOf } from "../../commands/authenticate.ts";
import { beginSignOn, finishSignOn, type Idp, putIdpSettings, readIdpSettings } from "../../commands/idp.ts";
import { etagOf } from "../../commands/run.ts";
import { effectiveIdp, IDP_DOCUMENT, IdpStatus, IdpUpdate, IdpView, viewOfIdp } from "../../model/idp.ts";
import { IDP_PARAMETER_CHARACTERS_MAX, IDP_RETURN_CHARACTERS_MAX, IDP_SIGN_IN_SECONDS } from "../../model/limits.ts";
import { type Route, route } from "../route.ts";
import { NO_STORE, sessionCookie } from "./auth.ts";

const TAG = "single sign-on";
const ATTEMPT_COOKIE = "svc_sign_in";
/** The provider's redirect comes from another site, so this cookie must be Lax; it opens nothing by itself. */
const ATTEMPT_ATTRIBUTES = "Path=/api/v1/auth/idp; HttpOnly; Secure; SameSite=Lax";

const LoginQuery = Type.Object({
  return_to: Type.Optional(
    Type.String({
      maxLength: IDP_RETURN_CHARACTERS_MAX,
      description: "path of this server to go to afterwards",
      examples: ["/"],
    }),
  ),
});

const Parameter = Type.Optional(Type.String({ maxLength: IDP_PARAMETER_CHARACTERS_MAX }));
/** What providers add of their own is not looked at (RFC 6749 section 4.1.2). */
const CallbackQuery = Type.Object(
  {
    code: Parameter,
    state: Parameter,
    iss: Parameter,
    error: Parameter,
    error_description: Parameter,
    error_uri: Parameter,
    session_state: Parameter,
    scope: Parameter,
  },
  { additionalProperties: true },
);

/**
 * The browser goes on from a page of this server: a redirect would still count as coming from the provider's site, and
 * the Strict cookie would stay away from it.
 */
function onwardPage(path: string): string {
  const escaped = path.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Signed in</title>',
    `<meta http-equiv="refresh" content="0;url=${escaped}"></head>`,
    `<body><p>Signed in. <a href="${escaped}">Go on</a></p></body></html>`,
  ].join("\n");
}

function flowRoutes(idp: Idp): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/auth/idp/login",
      summary: "Begin a sign-in: redirects to the identity provider",
      tag: TAG,
      access: "public",
      rateClass: "auth",
      query: LoginQuery,
      response: Type.Unknown(),
      handle: async ({ query }) => {
        const { url, sealed } = await beginSignOn(idp, query.return_to);
        const cookie = `${ATTEMPT_COOKIE}=${sealed}; Max-Age=${IDP_SIGN_IN_SECONDS}; ${ATTEMPT_ATTRIBUTES}`;
        return { status: 302, headers: { ...NO_STORE, location: url, "set-cookie": cookie }, body: undefined };
      },
    }),
    route({
      method: "GET",
      path: "/auth/idp/callback",
      summary: "End a sign-in: the identity provider sends the browser here",
      tag: TAG,
      access: "public",
      rateClass: "auth",
      query: CallbackQuery,
      response: Type.Unknown(),
      handle: async ({ query, caller, headers }) => {
        const parameters = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined));
        const sealed = cookieOf(headers.cookie, ATTEMPT_COOKIE);
        const { accessToken, returnTo } = await finishSignOn(idp, caller, parameters, sealed);
        const attemptEnds = `${ATTEMPT_COOKIE}=; Max-Age=0; ${ATTEMPT_ATTRIBUTES}`;
        return {
          headers: {
            ...NO_STORE,
            "content-type": "text/html; charset=utf-8",
            "referrer-policy": "no-referrer",
            "set-cookie": [sessionCookie(accessToken), attemptEnds],
          },
          body: onwardPage(returnTo),
        };
      },
    }),
  ];
}

export function idpRoutes(idp: Idp): readonly Route[] {
  const { store } = idp.signIn.context;
  const etag = (): Record<string, string> => {
    const stored = store.get("config", [IDP_DOCUMENT]);
    return stored === undefined ? {} : { etag: etagOf(stored) };
  };
  return [
    route({
      method: "GET",
      path: "/auth/idp/status",
      summary: "Whether single sign-on is turned on",
      tag: TAG,
      access: "public",
      response: IdpStatus,
      handle: () => ({ body: { enabled: effectiveIdp(readIdpSettings(store)).enabled } }),
    }),
    ...flowRoutes(idp),
    route({
      method: "GET",
      path: "/auth/idp/config",
      summary: "Settings of single sign-on, the secret masked",
      tag: TAG,
      access: "admin",
      response: IdpView,
      handle: () => ({ headers: etag(), body: viewOfIdp(readIdpSettings(store)) }),
    }),
    route({
      method: "PUT",
      path: "/auth/idp/config",
      summary: "Change settings of single sign-on",
      tag: TAG,
      access: "admin",
      body: IdpUpdate,
      response: IdpView,
      handle: async ({ body, caller }) => {
        const settings = await putIdpSettings(idp.signIn, caller, body);
        return { headers: caller.dryRun ? {} : etag(), body: viewOfIdp(settings) };
      },
    }),
  ];
}
