/** The API with real sign-in: its routes, a first admin, a clock that tests move. */
import assert from "node:assert/strict";
import { authRoutes } from "../../src/api/routes/auth.ts";
import { idpRoutes } from "../../src/api/routes/idp.ts";
import { serviceAccountRoutes } from "../../src/api/routes/service-accounts.ts";
import { userRoutes } from "../../src/api/routes/users.ts";
import { authenticateHeaders } from "../../src/commands/authenticate.ts";
import { ensureAdmin } from "../../src/commands/first-admin.ts";
import { createIdp, type Idp } from "../../src/commands/idp.ts";
import type { CommandContext } from "../../src/commands/run.ts";
import { createSignIn, type SignIn } from "../../src/commands/sign-in.ts";
import type { Role } from "../../src/model/objects.ts";
import type { AuditEntry } from "../../src/store/store.ts";
import { type ApiReply, startApi, type TestApi } from "./api.ts";

export const ADMIN_PASSWORD = "first admin's password";
export const SIGNING_KEY = new Uint8Array(32).fill(7);

export type Tokens = { readonly access: string; readonly refresh: string };

export type SignInApi = TestApi & {
  readonly signIn: SignIn;
  readonly idp: Idp;
  /** Milliseconds by which the clock of sessions runs ahead. */
  readonly clock: { aheadMs: number };
  readonly login: (username: string, password: string) => Promise<ApiReply>;
  /** The tokens of a login that has to succeed. */
  readonly tokensOf: (username: string, password?: string) => Promise<Tokens>;
  readonly status: (token: string) => Promise<number>;
  /** Makes a user with the password of `passwordOf` and gives its id. */
  readonly makeUser: (username: string, role: Role) => Promise<string>;
  readonly audit: (action: string) => readonly AuditEntry[];
};

export function passwordOf(username: string): string {
  return username === "admin" ? ADMIN_PASSWORD : `${username}'s long password`;
}

export async function startSignInApi(scope: "issuing-node" | "cluster" = "issuing-node"): Promise<SignInApi> {
  const clock = { aheadMs: 0 };
  const made: { signIn?: SignIn; idp?: Idp } = {};
  const signInOf = (context: CommandContext): SignIn => {
    made.signIn ??= createSignIn({
      context: { ...context, now: () => Date.now() + clock.aheadMs },
      signingKey: SIGNING_KEY,
      serviceAccountScope: scope,
    });
    return made.signIn;
  };
  const api = await startApi(
    (context) => {
      const signIn = signInOf(context);
      made.idp = createIdp(signIn);
      return [...authRoutes(signIn), ...userRoutes(signIn), ...serviceAccountRoutes(signIn), ...idpRoutes(made.idp)];
    },
    { authenticateWith: (context) => (headers) => authenticateHeaders(signInOf(context), headers) },
  );
  const { signIn, idp } = made;
  assert.ok(signIn !== undefined && idp !== undefined);
  await ensureAdmin(api.context, { initialPassword: ADMIN_PASSWORD });
  const login = (username: string, password: string) =>
    api.ask("POST", "/auth/login", { as: null, json: { username, password } });
  const tokensOf = async (username: string, password = passwordOf(username)): Promise<Tokens> => {
    const { status, body, text } = await login(username, password);
    assert.equal(status, 200, text);
    return { access: body.access_token, refresh: body.refresh_token };
  };
  const admin = (await tokensOf("admin")).access;
  return {
    ...api,
    ask: (method, path, options = {}) =>
      api.ask(method, path, {
        ...options,
        as: options.as === undefined || options.as === "admin" ? admin : options.as,
      }),
    signIn,
    idp,
    clock,
    login,
    tokensOf,
    status: async (token) => (await api.ask("GET", "/users", { as: token })).status,
    makeUser: async (username, role) => {
      const json = { username, password: passwordOf(username), role };
      const { status, body, text } = await api.ask("POST", "/users", { as: admin, json });
      assert.equal(status, 200, text);
      return body.id;
    },
    audit: (action) => api.store.auditPage({ action }, { limit: 100 }).entries,
    [Symbol.asyncDispose]: async () => {
      signIn.close();
      await api[Symbol.asyncDispose]();
    },
  };
}
