/** /nodes: the members of the cluster. */
import { Type } from "typebox";
import type { ClusterView } from "../../commands/cluster-view.ts";
import { deleteNode, listNodes, requireNode } from "../../commands/nodes.ts";
import type { CommandContext } from "../../commands/run.ts";
import { type NodeListeners, NodeSelfView, NodeView } from "../../model/node.ts";
import { LIST_PAGE_MAX } from "../../store/store.ts";
import { keyOfCursor, listOf, PAGE_QUERY, pageOf } from "../paging.ts";
import { type Route, route } from "../route.ts";
import { DeletedView, deletedReply } from "./object-reply.ts";
import { ID_PARAMS } from "./parameters.ts";

const TAG = "cluster";
const NODES_QUERY = Type.Object(PAGE_QUERY, { additionalProperties: false });

function readRoutes({ store }: CommandContext, cluster: ClusterView, listeners: () => NodeListeners): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/nodes",
      summary: "List the nodes of the cluster",
      tag: TAG,
      access: "readonly",
      query: NODES_QUERY,
      response: listOf(NodeView),
      handle: ({ query: { limit = LIST_PAGE_MAX, cursor } }) => {
        const [after = ""] = keyOfCursor(cursor) ?? [];
        const left = listNodes(store, cluster).filter(({ id }) => id > after);
        const shown = left.slice(0, limit);
        const last = shown.at(-1);
        return { body: pageOf(shown, last !== undefined && left.length > limit ? [last.id] : undefined) };
      },
    }),
    route({
      method: "GET",
      path: "/nodes/self",
      summary: "Get the node that is asked",
      tag: TAG,
      access: "readonly",
      response: NodeSelfView,
      handle: () => ({
        body: {
          ...requireNode(store, cluster, store.nodeId),
          instance_id: store.instanceId,
          clustered: cluster.isEnabled,
          peers_alive: cluster.peersAlive(),
          listeners: listeners(),
        },
      }),
    }),
  ];
}

/** The routes of /nodes. `listeners`: where this node listens. */
export function nodeRoutes(
  context: CommandContext,
  cluster: ClusterView,
  listeners: () => NodeListeners,
): readonly Route[] {
  return [
    ...readRoutes(context, cluster, listeners),
    route({
      method: "DELETE",
      path: "/nodes/:id",
      summary: "Remove a node that has stopped; it comes back when it starts again",
      tag: TAG,
      access: "admin",
      find: ({ id }) => void requireNode(context.store, cluster, id),
      params: ID_PARAMS,
      response: DeletedView,
      handle: async ({ params, caller }) => deletedReply(await deleteNode(context, cluster, caller, params.id)),
    }),
  ];
}
