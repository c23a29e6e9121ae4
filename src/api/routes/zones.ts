/** /zones: the zones themselves; their records are in records.ts. */
import Type from "typebox";
import { zoneScan } from "../../commands/list-filters.ts";
import { type CommandContext, requireById } from "../../commands/run.ts";
import {
  createZone,
  deleteZone,
  updateZone,
  type ZoneDetails,
  type ZonePeers,
  zoneDetails,
  zoneViewDetails,
} from "../../commands/zones.ts";
import { NAME_TEXT_MAX } from "../../model/limits.ts";
import { ZoneCreate, ZoneUpdate, ZoneView, zoneView } from "../../model/zone.ts";
import { listOf, PAGE_QUERY } from "../paging.ts";
import { type Route, route } from "../route.ts";
import { listReply } from "./list-reply.ts";
import { DeletedView, deletedReply, objectReply } from "./object-reply.ts";
import { ID_PARAMS } from "./parameters.ts";

const TAG = "zones";

const ZONE_QUERY = Type.Object(
  {
    ...PAGE_QUERY,
    name: Type.Optional(Type.String({ maxLength: NAME_TEXT_MAX, description: "the zone of that name" })),
    q: Type.Optional(Type.String({ maxLength: NAME_TEXT_MAX, description: "part of the name" })),
  },
  { additionalProperties: false },
);

function viewOf(details: ZoneDetails): Record<string, unknown> {
  return zoneView(details.stored.body, zoneViewDetails(details));
}

function readRoutes({ store }: CommandContext): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/zones",
      summary: "List zones",
      tag: TAG,
      access: "readonly",
      query: ZONE_QUERY,
      response: listOf(ZoneView),
      handle: ({ query, signal }) =>
        listReply(store, {
          kind: "zone",
          scan: zoneScan(query),
          query,
          signal,
          view: (stored) => viewOf(zoneDetails(store, stored)),
        }),
    }),
    route({
      method: "GET",
      path: "/zones/:id",
      summary: "Get a zone",
      tag: TAG,
      access: "readonly",
      find: ({ id }) => void requireById(store, "zone", id),
      params: ID_PARAMS,
      response: ZoneView,
      handle: ({ params, caller }) => {
        const stored = requireById(store, "zone", params.id);
        return objectReply(viewOf(zoneDetails(store, stored)), stored, caller);
      },
    }),
  ];
}

/** The routes of /zones. */
export function zoneRoutes(context: CommandContext, peers: ZonePeers): readonly Route[] {
  const { store } = context;
  const find = ({ id }: { readonly id: string }) => void requireById(store, "zone", id);
  return [
    ...readRoutes(context),
    route({
      method: "POST",
      path: "/zones",
      summary: "Create a zone",
      tag: TAG,
      access: "editor",
      body: ZoneCreate,
      response: ZoneView,
      handle: async ({ body, caller }) => {
        const outcome = await createZone(context, caller, peers, body);
        const { stored, warnings } = outcome;
        return objectReply({ ...viewOf(outcome), warnings }, stored, caller, `/zones/${stored.body.id}`);
      },
    }),
    route({
      method: "PUT",
      path: "/zones/:id",
      summary: "Change the fields given of a zone",
      tag: TAG,
      access: "editor",
      confinedTo: ({ id }) => [id],
      find,
      params: ID_PARAMS,
      body: ZoneUpdate,
      response: ZoneView,
      handle: async ({ params, body, caller }) => {
        const outcome = await updateZone(context, caller, params.id, body, peers);
        return objectReply({ ...viewOf(outcome), warnings: outcome.warnings }, outcome.stored, caller);
      },
    }),
    route({
      method: "DELETE",
      path: "/zones/:id",
      summary: "Delete a zone and all its records",
      tag: TAG,
      access: "editor",
      find,
      params: ID_PARAMS,
      response: DeletedView,
      handle: async ({ params, caller }) => deletedReply(await deleteZone(context, caller, params.id)),
    }),
  ];
}
