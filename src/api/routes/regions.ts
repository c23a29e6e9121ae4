/** /regions: the regions of nodes, and those that anything is mapped to. */
import Type from "typebox";
import type { CommandContext } from "../../commands/run.ts";
import { listRegions } from "../../commands/subnet-mappings.ts";
import { listOf, pageOf } from "../paging.ts";
import { type Route, route } from "../route.ts";

/** The routes of /regions. `nodeRegion`: the region of this node, which exists without a mapping too. */
export function regionRoutes({ store }: CommandContext, nodeRegion?: string): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/regions",
      summary: "List the ids of all regions, each once",
      tag: "regions",
      access: "readonly",
      response: listOf(Type.String()),
      handle: async ({ signal }) => ({ body: pageOf(await listRegions(store, nodeRegion, signal), undefined) }),
    }),
  ];
}
