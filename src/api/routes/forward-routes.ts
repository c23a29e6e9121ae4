/** What /forwarders and /stub-zones have in common: a list, and objects that are found by id and written by commands. */
import Type, { type Static, type TSchema } from "typebox";
import {
  deleteForwardRoute,
  type ForwardContext,
  type ForwardKind,
  type ForwardOutcome,
} from "../../commands/forward-routes.ts";
import type { DomainFilter } from "../../commands/list-filters.ts";
import { type Caller, requireById } from "../../commands/run.ts";
import type { ScanOptions } from "../../commands/scan.ts";
import { viewTimes } from "../../commands/view-times.ts";
import { routeView } from "../../model/forward-domain.ts";
import { NAME_TEXT_MAX } from "../../model/limits.ts";
import type { Stored } from "../../store/store.ts";
import { listOf, PAGE_QUERY } from "../paging.ts";
import { type Route, route } from "../route.ts";
import { listReply } from "./list-reply.ts";
import { DeletedView, deletedReply, objectReply } from "./object-reply.ts";
import { ID_PARAMS } from "./parameters.ts";

export type ForwardRoutes<K extends ForwardKind, Create extends TSchema, Update extends TSchema> = {
  readonly kind: K;
  /** Also the heading in the documentation, and with a slash before it the path. */
  readonly tag: string;
  /** As sentences have it: "stub zone". */
  readonly noun: string;
  /** What its servers are called: "a hint". */
  readonly server: string;
  readonly shapes: { readonly create: Create; readonly update: Update; readonly view: TSchema };
  readonly scan: (filter: DomainFilter) => ScanOptions<K> | undefined;
  readonly create: (context: ForwardContext, caller: Caller, given: Static<Create>) => Promise<ForwardOutcome<K>>;
  readonly update: (
    context: ForwardContext,
    caller: Caller,
    id: string,
    given: Static<Update>,
  ) => Promise<ForwardOutcome<K>>;
};

function listQuery(server: string) {
  return Type.Object(
    {
      ...PAGE_QUERY,
      domain: Type.Optional(Type.String({ maxLength: NAME_TEXT_MAX, description: "the one of that domain" })),
      q: Type.Optional(
        Type.String({ maxLength: NAME_TEXT_MAX, description: `part of the domain, of ${server} or of the comment` }),
      ),
    },
    { additionalProperties: false },
  );
}

function viewOf(stored: Stored<ForwardKind>): Record<string, unknown> {
  return routeView(stored.body, viewTimes(stored));
}

export function forwardRoutes<K extends ForwardKind, Create extends TSchema, Update extends TSchema>(
  context: ForwardContext,
  definition: ForwardRoutes<K, Create, Update>,
): readonly Route[] {
  return [...readRoutes(context, definition), ...writeRoutes(context, definition)];
}

function readRoutes<K extends ForwardKind, Create extends TSchema, Update extends TSchema>(
  { store }: ForwardContext,
  { kind, tag, noun, server, shapes, scan }: ForwardRoutes<K, Create, Update>,
): readonly Route[] {
  return [
    route({
      method: "GET",
      path: `/${tag}`,
      summary: `List ${noun}s`,
      tag,
      access: "readonly",
      query: listQuery(server),
      response: listOf(shapes.view),
      handle: ({ query, signal }) => listReply(store, { kind, scan: scan(query), query, signal, view: viewOf }),
    }),
    route({
      method: "GET",
      path: `/${tag}/:id`,
      summary: `Get a ${noun}`,
      tag,
      access: "readonly",
      find: ({ id }) => void requireById(store, kind, id),
      params: ID_PARAMS,
      response: shapes.view,
      handle: ({ params, caller }) => {
        const stored = requireById(store, kind, params.id);
        return objectReply(viewOf(stored), stored, caller);
      },
    }),
  ];
}

function writeRoutes<K extends ForwardKind, Create extends TSchema, Update extends TSchema>(
  context: ForwardContext,
  { kind, tag, noun, shapes, create, update }: ForwardRoutes<K, Create, Update>,
): readonly Route[] {
  const find = ({ id }: { readonly id: string }) => void requireById(context.store, kind, id);
  return [
    route({
      method: "POST",
      path: `/${tag}`,
      summary: `Create a ${noun}`,
      tag,
      access: "editor",
      body: shapes.create,
      response: shapes.view,
      handle: async ({ body, caller }) => {
        const { stored, warnings } = await create(context, caller, body);
        return objectReply({ ...viewOf(stored), warnings }, stored, caller, `/${tag}/${stored.body.id}`);
      },
    }),
    route({
      method: "PUT",
      path: `/${tag}/:id`,
      summary: `Change the fields given of a ${noun}; another domain moves it`,
      tag,
      access: "editor",
      find,
      params: ID_PARAMS,
      body: shapes.update,
      response: shapes.view,
      handle: async ({ params, body, caller }) => {
        const { stored, warnings } = await update(context, caller, params.id, body);
        return objectReply({ ...viewOf(stored), warnings }, stored, caller);
      },
    }),
    route({
      method: "DELETE",
      path: `/${tag}/:id`,
      summary: `Delete a ${noun}`,
      tag,
      access: "editor",
      find,
      params: ID_PARAMS,
      response: DeletedView,
      handle: async ({ params, caller }) => deletedReply(await deleteForwardRoute(context, caller, kind, params.id)),
    }),
  ];
}
