/** /stub-zones: domains that are resolved from their own name servers on. */
import Type from "typebox";
import {
  createStubZone,
  deleteForwardRoute,
  type ForwardContext,
  updateStubZone,
} from "../../commands/forward-routes.ts";
import { stubZoneScan } from "../../commands/list-filters.ts";
import { requireById } from "../../commands/run.ts";
import { viewTimes } from "../../commands/view-times.ts";
import { NAME_TEXT_MAX } from "../../model/limits.ts";
import { StubZoneCreate, StubZoneUpdate, StubZoneView, stubZoneView } from "../../model/stub-zone.ts";
import type { Stored } from "../../store/store.ts";
import { listOf, PAGE_QUERY } from "../paging.ts";
import { type Route, route } from "../route.ts";
import { listReply } from "./list-reply.ts";
import { DeletedView, deletedReply, objectReply } from "./object-reply.ts";
import { ID_PARAMS } from "./parameters.ts";

const TAG = "stub-zones";
const LIST_QUERY = Type.Object(
  {
    ...PAGE_QUERY,
    domain: Type.Optional(Type.String({ maxLength: NAME_TEXT_MAX, description: "the one of that domain" })),
    q: Type.Optional(
      Type.String({ maxLength: NAME_TEXT_MAX, description: "part of the domain, of a hint or of the comment" }),
    ),
  },
  { additionalProperties: false },
);

function viewOf(stored: Stored<"stub-zone">): Record<string, unknown> {
  return stubZoneView(stored.body, viewTimes(stored));
}

function readRoutes({ store }: ForwardContext): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/stub-zones",
      summary: "List stub zones",
      tag: TAG,
      access: "readonly",
      query: LIST_QUERY,
      response: listOf(StubZoneView),
      handle: ({ query, signal }) =>
        listReply(store, { kind: "stub-zone", scan: stubZoneScan(query), query, signal, view: viewOf }),
    }),
    route({
      method: "GET",
      path: "/stub-zones/:id",
      summary: "Get a stub zone",
      tag: TAG,
      access: "readonly",
      find: ({ id }) => void requireById(store, "stub-zone", id),
      params: ID_PARAMS,
      response: StubZoneView,
      handle: ({ params, caller }) => {
        const stored = requireById(store, "stub-zone", params.id);
        return objectReply(viewOf(stored), stored, caller);
      },
    }),
  ];
}

/** The routes of /stub-zones. */
export function stubZoneRoutes(context: ForwardContext): readonly Route[] {
  const find = ({ id }: { readonly id: string }) => void requireById(context.store, "stub-zone", id);
  return [
    ...readRoutes(context),
    route({
      method: "POST",
      path: "/stub-zones",
      summary: "Create a stub zone",
      tag: TAG,
      access: "editor",
      body: StubZoneCreate,
      response: StubZoneView,
      handle: async ({ body, caller }) => {
        const { stored, warnings } = await createStubZone(context, caller, body);
        return objectReply({ ...viewOf(stored), warnings }, stored, caller, `/stub-zones/${stored.body.id}`);
      },
    }),
    route({
      method: "PUT",
      path: "/stub-zones/:id",
      summary: "Change the fields given of a stub zone; another domain moves it",
      tag: TAG,
      access: "editor",
      find,
      params: ID_PARAMS,
      body: StubZoneUpdate,
      response: StubZoneView,
      handle: async ({ params, body, caller }) => {
        const { stored, warnings } = await updateStubZone(context, caller, params.id, body);
        return objectReply({ ...viewOf(stored), warnings }, stored, caller);
      },
    }),
    route({
      method: "DELETE",
      path: "/stub-zones/:id",
      summary: "Delete a stub zone",
      tag: TAG,
      access: "editor",
      find,
      params: ID_PARAMS,
      response: DeletedView,
      handle: async ({ params, caller }) =>
        deletedReply(await deleteForwardRoute(context, caller, "stub-zone", params.id)),
    }),
  ];
}
