/** /forwarders: who is asked for names that this node does not hold; the default forwarder and its hardening are documents of settings. */
import Type from "typebox";
import {
  createForwarder,
  deleteForwardRoute,
  type ForwardContext,
  updateForwarder,
} from "../../commands/forward-routes.ts";
import { forwarderScan } from "../../commands/list-filters.ts";
import { requireById } from "../../commands/run.ts";
import { viewTimes } from "../../commands/view-times.ts";
import { ownSocketFaults } from "../../model/forward-domain.ts";
import { ForwarderCreate, ForwarderUpdate, ForwarderView, forwarderView } from "../../model/forwarder.ts";
import { NAME_TEXT_MAX } from "../../model/limits.ts";
import type { Stored } from "../../store/store.ts";
import { listOf, PAGE_QUERY } from "../paging.ts";
import { type Route, route } from "../route.ts";
import { documentRoutes } from "./config.ts";
import { listReply } from "./list-reply.ts";
import { DeletedView, deletedReply, objectReply } from "./object-reply.ts";
import { ID_PARAMS } from "./parameters.ts";

const TAG = "forwarders";
const LIST_QUERY = Type.Object(
  {
    ...PAGE_QUERY,
    domain: Type.Optional(Type.String({ maxLength: NAME_TEXT_MAX, description: "the one of that domain" })),
    q: Type.Optional(
      Type.String({ maxLength: NAME_TEXT_MAX, description: "part of the domain, of an upstream or of the comment" }),
    ),
  },
  { additionalProperties: false },
);

function viewOf(stored: Stored<"forwarder">): Record<string, unknown> {
  return forwarderView(stored.body, viewTimes(stored));
}

function readRoutes({ store }: ForwardContext): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/forwarders",
      summary: "List conditional forwarders",
      tag: TAG,
      access: "readonly",
      query: LIST_QUERY,
      response: listOf(ForwarderView),
      handle: ({ query, signal }) =>
        listReply(store, { kind: "forwarder", scan: forwarderScan(query), query, signal, view: viewOf }),
    }),
    route({
      method: "GET",
      path: "/forwarders/:id",
      summary: "Get a conditional forwarder",
      tag: TAG,
      access: "readonly",
      find: ({ id }) => void requireById(store, "forwarder", id),
      params: ID_PARAMS,
      response: ForwarderView,
      handle: ({ params, caller }) => {
        const stored = requireById(store, "forwarder", params.id);
        return objectReply(viewOf(stored), stored, caller);
      },
    }),
  ];
}

/** The routes of /forwarders. */
export function forwarderRoutes(context: ForwardContext): readonly Route[] {
  const find = ({ id }: { readonly id: string }) => void requireById(context.store, "forwarder", id);
  return [
    // Where a node's addresses have changed, the forwarder must still be able to be disabled.
    ...documentRoutes(context, "default-forwarder", {
      faultsOf: ({ enabled, upstreams }) =>
        enabled ? ownSocketFaults("/upstreams", upstreams, context.isOwnSocket) : [],
    }),
    ...documentRoutes(context, "hardening"),
    ...readRoutes(context),
    route({
      method: "POST",
      path: "/forwarders",
      summary: "Create a conditional forwarder",
      tag: TAG,
      access: "editor",
      body: ForwarderCreate,
      response: ForwarderView,
      handle: async ({ body, caller }) => {
        const { stored, warnings } = await createForwarder(context, caller, body);
        return objectReply({ ...viewOf(stored), warnings }, stored, caller, `/forwarders/${stored.body.id}`);
      },
    }),
    route({
      method: "PUT",
      path: "/forwarders/:id",
      summary: "Change the fields given of a conditional forwarder; another domain moves it",
      tag: TAG,
      access: "editor",
      find,
      params: ID_PARAMS,
      body: ForwarderUpdate,
      response: ForwarderView,
      handle: async ({ params, body, caller }) => {
        const { stored, warnings } = await updateForwarder(context, caller, params.id, body);
        return objectReply({ ...viewOf(stored), warnings }, stored, caller);
      },
    }),
    route({
      method: "DELETE",
      path: "/forwarders/:id",
      summary: "Delete a conditional forwarder",
      tag: TAG,
      access: "editor",
      find,
      params: ID_PARAMS,
      response: DeletedView,
      handle: async ({ params, caller }) =>
        deletedReply(await deleteForwardRoute(context, caller, "forwarder", params.id)),
    }),
  ];
}
