/** /tsig-keys: the keys that sign transfers and updates. A secret is shown once, where the server made it. */
import Type from "typebox";
import {
  createTsigKey,
  deleteTsigKey,
  requireTsigKey,
  type TsigKeyContext,
  updateTsigKey,
} from "../../commands/tsig-keys.ts";
import { viewTimes } from "../../commands/view-times.ts";
import { NAME_TEXT_MAX } from "../../model/limits.ts";
import { TsigKeyCreate, TsigKeyUpdate, TsigKeyView, tsigKeyView } from "../../model/tsig-key.ts";
import type { Stored } from "../../store/store.ts";
import { listOf, PAGE_QUERY } from "../paging.ts";
import { type Route, route } from "../route.ts";
import { listReply } from "./list-reply.ts";
import { DeletedView, deletedReply, objectReply } from "./object-reply.ts";

const TAG = "tsig-keys";
const NAME_PARAMS = Type.Object({
  name: Type.String({ maxLength: NAME_TEXT_MAX, description: "With or without its last dot." }),
});

function viewOf(stored: Stored<"tsig-key">): Record<string, unknown> {
  return tsigKeyView(stored.body, viewTimes(stored));
}

/** The routes of /tsig-keys. */
export function tsigKeyRoutes(context: TsigKeyContext): readonly Route[] {
  const { store } = context;
  const find = ({ name }: { readonly name: string }) => void requireTsigKey(store, name);
  return [
    route({
      method: "GET",
      path: "/tsig-keys",
      summary: "List TSIG keys, without their secrets",
      tag: TAG,
      access: "readonly",
      query: Type.Object(PAGE_QUERY),
      response: listOf(TsigKeyView),
      handle: ({ query, signal }) => listReply(store, { kind: "tsig-key", scan: {}, query, signal, view: viewOf }),
    }),
    route({
      method: "POST",
      path: "/tsig-keys",
      summary: "Create a TSIG key; a secret that is left out is made, and shown in this answer only",
      tag: TAG,
      access: "admin",
      body: TsigKeyCreate,
      response: TsigKeyView,
      handle: async ({ body, caller }) => {
        const { stored, secret } = await createTsigKey(context, caller, body);
        const view = secret === undefined ? viewOf(stored) : { ...viewOf(stored), secret };
        return objectReply(view, stored, caller, `/tsig-keys/${encodeURIComponent(stored.body.name)}`);
      },
    }),
    route({
      method: "GET",
      path: "/tsig-keys/:name",
      summary: "Get a TSIG key, without its secret",
      tag: TAG,
      access: "readonly",
      find,
      params: NAME_PARAMS,
      response: TsigKeyView,
      handle: ({ params, caller }) => {
        const stored = requireTsigKey(store, params.name);
        return objectReply(viewOf(stored), stored, caller);
      },
    }),
    route({
      method: "PUT",
      path: "/tsig-keys/:name",
      summary: "Change the fields given of a TSIG key",
      tag: TAG,
      access: "admin",
      find,
      params: NAME_PARAMS,
      body: TsigKeyUpdate,
      response: TsigKeyView,
      handle: async ({ params, body, caller }) => {
        const stored = await updateTsigKey(context, caller, params.name, body);
        return objectReply(viewOf(stored), stored, caller);
      },
    }),
    route({
      method: "DELETE",
      path: "/tsig-keys/:name",
      summary: "Delete a TSIG key",
      tag: TAG,
      access: "admin",
      find,
      params: NAME_PARAMS,
      response: DeletedView,
      handle: async ({ params, caller }) => deletedReply(await deleteTsigKey(context, caller, params.name)),
    }),
  ];
}
