/** /healthchecks: checks that watch a target and gate no answer. */
import Type from "typebox";
import {
  createHealthCheck,
  deleteHealthCheck,
  type HealthCheckContext,
  updateHealthCheck,
} from "../../commands/health-checks.ts";
import { healthCheckScan } from "../../commands/list-filters.ts";
import { requireById } from "../../commands/run.ts";
import { viewTimes } from "../../commands/view-times.ts";
import {
  CheckProtocolShape,
  HealthCheckCreate,
  HealthCheckUpdate,
  HealthCheckView,
  healthCheckView,
} from "../../model/health-check.ts";
import { HEALTH_CHECK_NAME_CHARACTERS_MAX, NAME_TEXT_MAX } from "../../model/limits.ts";
import type { Stored } from "../../store/store.ts";
import { listOf, PAGE_QUERY } from "../paging.ts";
import { type Route, route } from "../route.ts";
import { listReply } from "./list-reply.ts";
import { DeletedView, deletedReply, objectReply } from "./object-reply.ts";
import { ID_PARAMS } from "./parameters.ts";

const TAG = "health";
const LIST_QUERY = Type.Object({
  ...PAGE_QUERY,
  name: Type.Optional(
    Type.String({ maxLength: HEALTH_CHECK_NAME_CHARACTERS_MAX, description: "the check of that name" }),
  ),
  protocol: Type.Optional(CheckProtocolShape),
  q: Type.Optional(Type.String({ maxLength: NAME_TEXT_MAX, description: "part of a name, a target or a comment" })),
});

function viewOf(stored: Stored<"healthcheck">): Record<string, unknown> {
  return healthCheckView(stored.body, viewTimes(stored));
}

/** The routes of /healthchecks. */
export function healthCheckRoutes(context: HealthCheckContext): readonly Route[] {
  const { store } = context;
  const find = ({ id }: { readonly id: string }) => void requireById(store, "healthcheck", id);
  return [
    route({
      method: "GET",
      path: "/healthchecks",
      summary: "List health checks, without their secrets",
      tag: TAG,
      access: "readonly",
      query: LIST_QUERY,
      response: listOf(HealthCheckView),
      handle: ({ query, signal }) =>
        listReply(store, { kind: "healthcheck", scan: healthCheckScan(query), query, signal, view: viewOf }),
    }),
    route({
      method: "POST",
      path: "/healthchecks",
      summary: "Create a health check that gates no answer; the protocol script needs the role admin",
      tag: TAG,
      access: "editor",
      body: HealthCheckCreate,
      response: HealthCheckView,
      handle: async ({ body, caller }) => {
        const { stored } = await createHealthCheck(context, caller, body);
        return objectReply(viewOf(stored), stored, caller, `/healthchecks/${stored.body.id}`);
      },
    }),
    route({
      method: "GET",
      path: "/healthchecks/:id",
      summary: "Get a health check, without its secrets",
      tag: TAG,
      access: "readonly",
      find,
      params: ID_PARAMS,
      response: HealthCheckView,
      handle: ({ params, caller }) => {
        const stored = requireById(store, "healthcheck", params.id);
        return objectReply(viewOf(stored), stored, caller);
      },
    }),
    route({
      method: "PUT",
      path: "/healthchecks/:id",
      summary: "Change the fields given of a health check; what makes a script needs the role admin",
      tag: TAG,
      access: "editor",
      find,
      params: ID_PARAMS,
      body: HealthCheckUpdate,
      response: HealthCheckView,
      handle: async ({ params, body, caller }) => {
        const { stored } = await updateHealthCheck(context, caller, params.id, body);
        return objectReply(viewOf(stored), stored, caller);
      },
    }),
    route({
      method: "DELETE",
      path: "/healthchecks/:id",
      summary: "Delete a health check",
      tag: TAG,
      access: "editor",
      find,
      params: ID_PARAMS,
      response: DeletedView,
      handle: async ({ params, caller }) => deletedReply(await deleteHealthCheck(context, caller, params.id)),
    }),
  ];
}
