/** /subnet-mappings: which region a client's subnet lies in. */
import Type from "typebox";
import { type CommandContext, requireById } from "../../commands/run.ts";
import { createSubnetMapping, deleteSubnetMapping } from "../../commands/subnet-mappings.ts";
import { viewTimes } from "../../commands/view-times.ts";
import { REGION_MAX } from "../../model/limits.ts";
import { SubnetMappingCreate, SubnetMappingView, subnetMappingView } from "../../model/subnet-mapping.ts";
import type { Stored } from "../../store/store.ts";
import { listOf, PAGE_QUERY } from "../paging.ts";
import { type Route, route } from "../route.ts";
import { listReply } from "./list-reply.ts";
import { DeletedView, deletedReply, objectReply } from "./object-reply.ts";
import { ID_PARAMS } from "./parameters.ts";

const TAG = "subnet-mappings";
const LIST_QUERY = Type.Object({
  ...PAGE_QUERY,
  region_id: Type.Optional(Type.String({ maxLength: REGION_MAX, description: "the mappings to that region" })),
});

function viewOf(stored: Stored<"subnet-mapping">): Record<string, unknown> {
  return subnetMappingView(stored.body, viewTimes(stored));
}

/** The routes of /subnet-mappings. */
export function subnetMappingRoutes(context: CommandContext): readonly Route[] {
  const { store } = context;
  const find = ({ id }: { readonly id: string }) => void requireById(store, "subnet-mapping", id);
  return [
    route({
      method: "GET",
      path: "/subnet-mappings",
      summary: "List subnet mappings",
      tag: TAG,
      access: "readonly",
      query: LIST_QUERY,
      response: listOf(SubnetMappingView),
      handle: ({ query, signal }) => {
        const { region_id } = query;
        const accept =
          region_id === undefined ? undefined : ({ body }: Stored<"subnet-mapping">) => body.region_id === region_id;
        return listReply(store, { kind: "subnet-mapping", scan: { accept }, query, signal, view: viewOf });
      },
    }),
    route({
      method: "POST",
      path: "/subnet-mappings",
      summary: "Map a subnet to a region, in the place of what it was mapped to",
      tag: TAG,
      access: "editor",
      body: SubnetMappingCreate,
      response: SubnetMappingView,
      handle: async ({ body, caller }) => {
        const { stored } = await createSubnetMapping(context, caller, body);
        return objectReply(viewOf(stored), stored, caller, `/subnet-mappings/${stored.body.id}`);
      },
    }),
    route({
      method: "GET",
      path: "/subnet-mappings/:id",
      summary: "Get a subnet mapping",
      tag: TAG,
      access: "readonly",
      find,
      params: ID_PARAMS,
      response: SubnetMappingView,
      handle: ({ params, caller }) => {
        const stored = requireById(store, "subnet-mapping", params.id);
        return objectReply(viewOf(stored), stored, caller);
      },
    }),
    route({
      method: "DELETE",
      path: "/subnet-mappings/:id",
      summary: "Delete a subnet mapping",
      tag: TAG,
      access: "editor",
      find,
      params: ID_PARAMS,
      response: DeletedView,
      handle: async ({ params, caller }) => deletedReply(await deleteSubnetMapping(context, caller, params.id)),
    }),
  ];
}
