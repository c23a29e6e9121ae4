/** /service-accounts: tokens for automation. */
import Type from "typebox";
import { type Caller, requireById } from "../../commands/run.ts";
import {
  createServiceAccount,
  deleteServiceAccount,
  revokeServiceAccount,
  rotateServiceAccount,
  type ServiceAccountOutcome,
} from "../../commands/service-accounts.ts";
import type { SignIn } from "../../commands/sign-in.ts";
import { viewTimes } from "../../commands/view-times.ts";
import {
  ServiceAccountCreate,
  ServiceAccountRotate,
  ServiceAccountView,
  viewOfServiceAccount,
} from "../../model/service-account.ts";
import type { Stored } from "../../store/store.ts";
import { listOf, PAGE_QUERY } from "../paging.ts";
import { type Reply, type Route, route } from "../route.ts";
import { NO_STORE } from "./auth.ts";
import { listReply } from "./list-reply.ts";
import { DeletedView, deletedReply, objectReply } from "./object-reply.ts";
import { ID_PARAMS } from "./parameters.ts";

const COMMON = { tag: "service accounts", access: "admin" } as const;
const KIND = "service-account";

function viewOf(stored: Stored<"service-account">, token?: string): ServiceAccountView {
  return viewOfServiceAccount(stored.body, viewTimes(stored), token);
}

function reply({ stored, token }: ServiceAccountOutcome, caller: Caller, location?: string): Reply {
  const { headers, body } = objectReply(viewOf(stored, token), stored, caller, location);
  return { headers: { ...headers, ...NO_STORE }, body };
}

function readRoutes({ context: { store } }: SignIn): readonly Route[] {
  return [
    route({
      ...COMMON,
      method: "GET",
      path: "/service-accounts",
      summary: "List service accounts",
      query: Type.Object(PAGE_QUERY),
      response: listOf(ServiceAccountView),
      handle: ({ query, signal }) =>
        listReply(store, { kind: KIND, scan: {}, query, signal, view: (stored) => viewOf(stored) }),
    }),
    route({
      ...COMMON,
      method: "GET",
      path: "/service-accounts/:id",
      summary: "Get a service account",
      find: ({ id }) => void requireById(store, KIND, id),
      params: ID_PARAMS,
      response: ServiceAccountView,
      handle: ({ params, caller }) => {
        const stored = requireById(store, KIND, params.id);
        return objectReply(viewOf(stored), stored, caller);
      },
    }),
  ];
}

export function serviceAccountRoutes(signIn: SignIn): readonly Route[] {
  const { store } = signIn.context;
  const one = {
    ...COMMON,
    params: ID_PARAMS,
    find: ({ id }: { readonly id: string }) => void requireById(store, KIND, id),
  };
  return [
    ...readRoutes(signIn),
    route({
      ...COMMON,
      method: "POST",
      path: "/service-accounts",
      summary: "Create a service account; the answer has its token, once",
      body: ServiceAccountCreate,
      response: ServiceAccountView,
      handle: async ({ body, caller }) => {
        const outcome = await createServiceAccount(signIn, caller, body);
        return reply(outcome, caller, `/service-accounts/${outcome.stored.body.id}`);
      },
    }),
    route({
      ...one,
      method: "POST",
      path: "/service-accounts/:id/revoke",
      summary: "End the token of a service account; it stays listed",
      response: ServiceAccountView,
      handle: async ({ params, caller }) => reply(await revokeServiceAccount(signIn, caller, params.id), caller),
    }),
    route({
      ...one,
      method: "POST",
      path: "/service-accounts/:id/rotate",
      summary: "Make a new token; the old one ends at once",
      body: Type.Optional(ServiceAccountRotate),
      response: ServiceAccountView,
      handle: async ({ params, body, caller }) =>
        reply(await rotateServiceAccount(signIn, caller, params.id, body?.version), caller),
    }),
    route({
      ...one,
      method: "DELETE",
      path: "/service-accounts/:id",
      summary: "Delete a service account",
      response: DeletedView,
      handle: async ({ params, caller }) => deletedReply(await deleteServiceAccount(signIn, caller, params.id)),
    }),
  ];
}
