/** /stats: how much there is of everything. */
import Type from "typebox";
import type { ClusterView } from "../../commands/cluster-view.ts";
import type { CommandContext } from "../../commands/run.ts";
import { readStats } from "../../commands/stats.ts";
import { type Route, route } from "../route.ts";

const StatsView = Type.Object({
  zones: Type.Integer(),
  records: Type.Integer(),
  nodes: Type.Integer(),
  users: Type.Integer(),
});

/** The routes of /stats. */
export function statsRoutes({ store }: CommandContext, cluster: Pick<ClusterView, "nodes">): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/stats",
      summary: "Count zones, records, nodes and users",
      tag: "stats",
      access: "readonly",
      response: StatsView,
      handle: () => ({ body: readStats(store, cluster) }),
    }),
  ];
}
