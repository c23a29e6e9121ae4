/** /overrides: answers for single full names whose zones are not hosted. */
import { overrideScan } from "../../commands/list-filters.ts";
import { createOverride, deleteOverride, updateOverride } from "../../commands/overrides.ts";
import { type CommandContext, requireById } from "../../commands/run.ts";
import { viewTimes } from "../../commands/view-times.ts";
import { OverrideCreate, OverrideUpdate, OverrideView, overrideView } from "../../model/override.ts";
import type { Stored } from "../../store/store.ts";
import { listOf } from "../paging.ts";
import { type Route, route } from "../route.ts";
import { listReply } from "./list-reply.ts";
import { DeletedView, deletedReply, objectReply } from "./object-reply.ts";
import { ID_PARAMS } from "./parameters.ts";
import { RECORD_QUERY } from "./records.ts";

const TAG = "overrides";

function viewOf(stored: Stored<"override">): Record<string, unknown> {
  return overrideView(stored.body, viewTimes(stored));
}

function readRoutes({ store }: CommandContext): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/overrides",
      summary: "List overrides",
      tag: TAG,
      access: "readonly",
      query: RECORD_QUERY,
      response: listOf(OverrideView),
      handle: ({ query, signal }) =>
        listReply(store, { kind: "override", scan: overrideScan(query), query, signal, view: viewOf }),
    }),
    route({
      method: "GET",
      path: "/overrides/:id",
      summary: "Get an override",
      tag: TAG,
      access: "readonly",
      find: ({ id }) => void requireById(store, "override", id),
      params: ID_PARAMS,
      response: OverrideView,
      handle: ({ params, caller }) => {
        const stored = requireById(store, "override", params.id);
        return objectReply(viewOf(stored), stored, caller);
      },
    }),
  ];
}

/** The routes of /overrides. */
export function overrideRoutes(context: CommandContext): readonly Route[] {
  const find = ({ id }: { readonly id: string }) => void requireById(context.store, "override", id);
  return [
    ...readRoutes(context),
    route({
      method: "POST",
      path: "/overrides",
      summary: "Create an override, in the place of one of the same name and type",
      tag: TAG,
      access: "editor",
      body: OverrideCreate,
      response: OverrideView,
      handle: async ({ body, caller }) => {
        const { stored } = await createOverride(context, caller, body);
        return objectReply(viewOf(stored), stored, caller, `/overrides/${stored.body.id}`);
      },
    }),
    route({
      method: "PUT",
      path: "/overrides/:id",
      summary: "Change the fields given of an override; a new name moves it",
      tag: TAG,
      access: "editor",
      find,
      params: ID_PARAMS,
      body: OverrideUpdate,
      response: OverrideView,
      handle: async ({ params, body, caller }) => {
        const { stored } = await updateOverride(context, caller, params.id, body);
        return objectReply(viewOf(stored), stored, caller);
      },
    }),
    route({
      method: "DELETE",
      path: "/overrides/:id",
      summary: "Delete an override",
      tag: TAG,
      access: "editor",
      find,
      params: ID_PARAMS,
      response: DeletedView,
      handle: async ({ params, caller }) => deletedReply(await deleteOverride(context, caller, params.id)),
    }),
  ];
}
