/** /users: who may sign in. */
import Type from "typebox";
import { requireById } from "../../commands/run.ts";
import type { SignIn } from "../../commands/sign-in.ts";
import { createUser, deleteUser, updateUser } from "../../commands/users.ts";
import { UserCreate, UserUpdate, UserView, viewOfUser } from "../../model/user.ts";
import { listOf, PAGE_QUERY } from "../paging.ts";
import { type Route, route } from "../route.ts";
import { listReply } from "./list-reply.ts";
import { DeletedView, deletedReply, objectReply } from "./object-reply.ts";
import { ID_PARAMS } from "./parameters.ts";

const COMMON = { tag: "users", access: "admin" } as const;

export function userRoutes(signIn: SignIn): readonly Route[] {
  const { store } = signIn.context;
  const find = ({ id }: { readonly id: string }): void => void requireById(store, "user", id);
  return [
    route({
      ...COMMON,
      method: "GET",
      path: "/users",
      summary: "List users",
      query: Type.Object(PAGE_QUERY),
      response: listOf(UserView),
      handle: ({ query, signal }) =>
        listReply(store, { kind: "user", scan: {}, query, signal, view: ({ body }) => viewOfUser(body) }),
    }),
    route({
      ...COMMON,
      method: "POST",
      path: "/users",
      summary: "Create a local user",
      body: UserCreate,
      response: UserView,
      handle: async ({ body, caller }) => {
        const { stored } = await createUser(signIn, caller, body);
        return objectReply(viewOfUser(stored.body), stored, caller, `/users/${stored.body.id}`);
      },
    }),
    route({
      ...COMMON,
      method: "GET",
      path: "/users/:id",
      summary: "Get a user",
      find,
      params: ID_PARAMS,
      response: UserView,
      handle: ({ params, caller }) => {
        const stored = requireById(store, "user", params.id);
        return objectReply(viewOfUser(stored.body), stored, caller);
      },
    }),
    route({
      ...COMMON,
      method: "PUT",
      path: "/users/:id",
      summary: "Change a user's role, password, or whether it may sign in",
      params: ID_PARAMS,
      find,
      body: UserUpdate,
      response: UserView,
      handle: async ({ params, body, caller }) => {
        const { stored } = await updateUser(signIn, caller, params.id, body);
        return objectReply(viewOfUser(stored.body), stored, caller);
      },
    }),
    route({
      ...COMMON,
      method: "DELETE",
      path: "/users/:id",
      summary: "Delete a user",
      params: ID_PARAMS,
      find,
      response: DeletedView,
      handle: async ({ params, caller }) => deletedReply(await deleteUser(signIn, caller, params.id)),
    }),
  ];
}
