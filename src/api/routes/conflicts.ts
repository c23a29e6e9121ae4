/** /conflicts: edits that lost to one that had not seen them, and the one call that puts such an edit back. */
import { Type } from "typebox";
import { getConflict, listConflicts } from "../../commands/conflicts.ts";
import { type ReapplyContext, reapplyConflict } from "../../commands/reapply-conflict.ts";
import type { CommandContext } from "../../commands/run.ts";
import { CONFLICT_ID_MAX, NAME_TEXT_MAX } from "../../model/limits.ts";
import { anyFullName } from "../../model/names.ts";
import { type Kind, NATURAL_KEYS } from "../../model/objects.ts";
import { Refusal } from "../../model/refusal.ts";
import { type JournalOptions, LIST_PAGE_MAX } from "../../store/store.ts";
import { CURSOR_LENGTH_MAX } from "../limits.ts";
import { jsonReply, listOf, PAGE_QUERY, type Turns } from "../paging.ts";
import { type Route, route } from "../route.ts";

const TAG = "cluster";
const KINDS = Object.keys(NATURAL_KEYS).filter((kind): kind is Kind => Object.hasOwn(NATURAL_KEYS, kind));
/** Entries of one turn: each is joined with what the audit log and the store know of it. */
const TURN = 50;

const CONFLICT_QUERY = Type.Object(
  {
    ...PAGE_QUERY,
    cursor: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: CURSOR_LENGTH_MAX,
        pattern: "^[A-Za-z0-9_-]+$",
        description: "`next_cursor` of the page before.",
      }),
    ),
    kind: Type.Optional(Type.Enum([...KINDS], { description: "of objects of that kind" })),
    zone: Type.Optional(
      Type.String({ maxLength: NAME_TEXT_MAX, description: "of the zone of that name, and of its records" }),
    ),
  },
  { additionalProperties: false },
);

const CONFLICT_PARAMS = Type.Object({
  id: Type.String({ maxLength: CONFLICT_ID_MAX, examples: ["AQFjb3JwAAAxOTlhYjAwMDAwMDAwMDAwLW5vZGUtMg"] }),
});

const ConflictView = Type.Object({
  id: CONFLICT_PARAMS.properties.id,
  kind: Type.Enum([...KINDS]),
  key: Type.Array(Type.String(), { description: "what makes it unique in its kind", examples: [["corp.example."]] }),
  reason: Type.Enum(["replaced", "renamed", "zone-deleted", "stale"], {
    description:
      "replaced: a later edit won that had not seen it; renamed: its id lives elsewhere; zone-deleted: its zone was; stale: its node had to begin anew",
  }),
  edited_at: Type.String({ format: "date-time" }),
  node_id: Type.String({ description: "the node that took the edit", examples: ["node-2"] }),
  user_name: Type.Optional(Type.String({ description: "where the audit log still has it" })),
  source_address: Type.Optional(Type.String({ examples: ["192.0.2.100"] })),
  body: Type.Optional(Type.Unknown({ description: "what lost, secrets masked; absent: a deletion" })),
  present: Type.Optional(Type.Unknown({ description: "what is there now; absent: nothing" })),
  present_stamp: Type.Optional(Type.String({ description: "the version of that" })),
  reapplicable: Type.Boolean({ description: "whether /reapply can put it back" }),
});

function zoneName(text: string): string {
  const name = anyFullName(text);
  if (name.kind === "name") return name.text;
  throw new Refusal("invalid_request", `?zone ${name.detail}`, [{ pointer: "?zone", detail: name.detail }]);
}

/** Entries a turn at a time, until the page or the journal is at its end. */
function conflictTurns(
  { store }: CommandContext,
  filter: Pick<JournalOptions, "kind" | "zone">,
  { limit, cursor }: { readonly limit: number; readonly cursor: string | undefined },
): Turns {
  let left = limit;
  let next = cursor;
  return (isFull) => {
    if (isFull) return { items: [], end: { next } };
    const page = { ...filter, limit: Math.min(TURN, left), ...(next === undefined ? {} : { cursor: next }) };
    const { items, next: behind } = listConflicts(store, page);
    left -= items.length;
    next = behind;
    return behind === undefined || left === 0 ? { items, end: { next } } : { items };
  };
}

/** The routes of /conflicts. */
export function conflictRoutes(context: ReapplyContext): readonly Route[] {
  const { store } = context;
  const find = ({ id }: { readonly id: string }) => void getConflict(store, id);
  return [
    route({
      method: "GET",
      path: "/conflicts",
      summary: "List edits that lost to one that had not seen them",
      tag: TAG,
      access: "editor",
      query: CONFLICT_QUERY,
      response: listOf(ConflictView),
      handle: ({ query: { limit, cursor, kind, zone }, signal }) => {
        const filter = {
          ...(kind === undefined ? {} : { kind }),
          ...(zone === undefined ? {} : { zone: zoneName(zone) }),
        };
        const isPage = limit !== undefined || cursor !== undefined;
        return jsonReply(
          conflictTurns(context, filter, {
            limit: limit ?? (isPage ? LIST_PAGE_MAX : Number.POSITIVE_INFINITY),
            cursor,
          }),
          { isPage, signal },
        );
      },
    }),
    route({
      method: "GET",
      path: "/conflicts/:id",
      summary: "Get an edit that lost, and what is there instead",
      tag: TAG,
      access: "editor",
      find,
      params: CONFLICT_PARAMS,
      response: ConflictView,
      handle: ({ params }) => ({ body: getConflict(store, params.id) }),
    }),
    route({
      method: "POST",
      path: "/conflicts/:id/reapply",
      summary: "Put an edit that lost back, or delete what a lost deletion meant, as a new edit of the caller's",
      tag: TAG,
      access: "editor",
      find,
      params: CONFLICT_PARAMS,
      response: ConflictView,
      handle: async ({ params, caller }) => {
        await reapplyConflict(context, caller, params.id);
        return { body: getConflict(store, params.id) };
      },
    }),
  ];
}
