/** /cluster: joining others, and whether all nodes hold the same. */
import { Type } from "typebox";
import { joinCluster, readConsistency, zonesToCompare } from "../../commands/cluster.ts";
import type { ClusterView } from "../../commands/cluster-view.ts";
import type { CommandContext } from "../../commands/run.ts";
import { CONSISTENCY_ZONES_DEFAULT, CONSISTENCY_ZONES_MAX, NAME_TEXT_MAX } from "../../model/limits.ts";
import { anyFullName } from "../../model/names.ts";
import { ClusterJoin, ClusterJoinView, ConsistencyView } from "../../model/node.ts";
import { Refusal } from "../../model/refusal.ts";
import { cursorOf, PAGE_QUERY } from "../paging.ts";
import { type Route, route } from "../route.ts";
import { keyWithin } from "./list-reply.ts";

const TAG = "cluster";
const CONSISTENCY_QUERY = Type.Object(
  {
    ...PAGE_QUERY,
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: CONSISTENCY_ZONES_MAX,
        description: `Most zones of one page; ${CONSISTENCY_ZONES_DEFAULT} where it is left out.`,
      }),
    ),
    zone: Type.Optional(Type.String({ maxLength: NAME_TEXT_MAX, description: "the zone of that name only" })),
  },
  { additionalProperties: false },
);

/** The zone by name as asked for, whether or not it is here: others may have it. Throws `invalid_request`. */
function oneZone(text: string): string {
  const name = anyFullName(text);
  if (name.kind === "name") return name.text;
  throw new Refusal("invalid_request", `?zone ${name.detail}`, [{ pointer: "?zone", detail: name.detail }]);
}

/** The routes of /cluster. */
export function clusterRoutes(context: CommandContext, cluster: ClusterView): readonly Route[] {
  const { store } = context;
  return [
    route({
      method: "POST",
      path: "/cluster/join",
      summary: "Have the node join the cluster of others",
      tag: TAG,
      access: "admin",
      body: ClusterJoin,
      response: ClusterJoinView,
      handle: async ({ body, caller }) => ({ body: await joinCluster(context, cluster, caller, body) }),
    }),
    route({
      method: "GET",
      path: "/cluster/consistency",
      summary: "Compare what all nodes hold, as a whole and zone by zone",
      tag: TAG,
      access: "readonly",
      query: CONSISTENCY_QUERY,
      response: ConsistencyView,
      handle: async ({ query: { limit, cursor, zone } }) => {
        const after = keyWithin("zone", undefined, cursor);
        const { zones, next } =
          zone === undefined
            ? zonesToCompare(store, { after, ...(limit === undefined ? {} : { limit }) })
            : { zones: [oneZone(zone)], next: undefined };
        const compared = await readConsistency(store, cluster, zones);
        return { body: { ...compared, next_cursor: next === undefined ? null : cursorOf(next) } };
      },
    }),
  ];
}
