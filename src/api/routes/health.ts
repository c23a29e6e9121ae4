/** /health/status and /healthchecks/{id}/status: what this node's probes have found. */
import Type from "typebox";
import type { HealthView } from "../../commands/health-view.ts";
import { type CommandContext, requireById } from "../../commands/run.ts";
import { CheckHealthShape, HealthItemShape, HealthKindShape, HealthStateShape } from "../../model/health-status.ts";
import { ID_MAX, NAME_TEXT_MAX } from "../../model/limits.ts";
import { anyFullName } from "../../model/names.ts";
import { Refusal } from "../../model/refusal.ts";
import { LIST_PAGE_MAX } from "../../store/store.ts";
import { cursorOf, jsonReply, keyOfCursor, PAGE_QUERY, type Turns } from "../paging.ts";
import { type Route, route } from "../route.ts";
import { ID_PARAMS } from "./parameters.ts";

const TAG = "health";
const NodeId = Type.String({ description: "The node that answers: health is each node's own." });

const STATUS_QUERY = Type.Object({
  ...PAGE_QUERY,
  state: Type.Optional(HealthStateShape),
  kind: Type.Optional(HealthKindShape),
  zone: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: NAME_TEXT_MAX,
      description: "The whole name, with or without its last dot.",
    }),
  ),
  record_id: Type.Optional(Type.String({ minLength: 1, maxLength: ID_MAX })),
});

const StatusList = Type.Object({
  node_id: NodeId,
  items: Type.Array(HealthItemShape),
  next_cursor: Type.Union([Type.String(), Type.Null()]),
});

type StatusQuery = Type.Static<typeof STATUS_QUERY>;

/** The routes of health. */
export function healthRoutes({ store }: CommandContext, health: HealthView): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/health/status",
      summary: "Health of every gated value and every standalone check, as this node sees it",
      tag: TAG,
      access: "readonly",
      query: STATUS_QUERY,
      response: StatusList,
      handle: ({ query, signal }) => {
        const isPage = query.limit !== undefined || query.cursor !== undefined;
        const turns = turnsOf(health, query, isPage);
        return jsonReply(turns, { isPage, signal, before: { node_id: health.nodeId } });
      },
    }),
    route({
      method: "GET",
      path: "/healthchecks/:id/status",
      summary: "Health of one standalone check, as this node sees it",
      tag: TAG,
      access: "readonly",
      find: ({ id }) => void requireById(store, "healthcheck", id),
      params: ID_PARAMS,
      response: Type.Object({ node_id: NodeId, ...CheckHealthShape.properties }),
      handle: async ({ params }) => {
        const { id } = requireById(store, "healthcheck", params.id).body;
        const item = await health.check(id);
        if (item === undefined)
          throw new Refusal("not_found", `there is no healthcheck with the id ${JSON.stringify(id)}`);
        return { body: { node_id: health.nodeId, ...item } };
      },
    }),
  ];
}

function turnsOf(health: HealthView, { limit, cursor, zone, ...rest }: StatusQuery, isPage: boolean): Turns {
  const name = zone === undefined ? undefined : anyFullName(zone);
  const after = keyOfCursor(cursor);
  // A name that no zone can have is one that no zone has.
  if (name?.kind === "fault") return () => ({ items: [], end: { next: undefined } });
  const filter = name === undefined ? rest : { ...rest, zone: name.text };
  const next = health.open(filter, after, isPage ? (limit ?? LIST_PAGE_MAX) : Number.POSITIVE_INFINITY);
  if (next === undefined) {
    const detail = "is a cursor of another list";
    throw new Refusal("invalid_request", `?cursor ${detail}`, [{ pointer: "?cursor", detail }]);
  }
  return async (isFull) => {
    const { items, end } = await next(isFull);
    return end === undefined ? { items } : { items, end: { next: end.next && cursorOf(end.next) } };
  };
}
