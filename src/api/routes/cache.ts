/** /cache: the forwarded answers that this node has in memory. Other nodes have caches of their own. */
import Type from "typebox";
import { type CacheView, flushCache, readCache } from "../../commands/cache.ts";
import type { CommandContext } from "../../commands/run.ts";
import { NAME_TEXT_MAX } from "../../model/limits.ts";
import { type Route, route } from "../route.ts";

const TAG = "cache";
const count = (description: string) => Type.Integer({ minimum: 0, description });

const CacheStateView = Type.Object({
  node_id: Type.String(),
  entries: count("Answers in the cache."),
  bytes: count("What they take."),
  capacity_bytes: count("What there is room for."),
  hits: count("Questions answered from it since the node's start."),
  misses: count("Questions that had to be resolved since the node's start."),
  stale: count("Of the hits, those with an answer whose time was over."),
  insertions: count("Answers put into it since it was last made."),
  evictions: count("Answers that made room for others before their time was over."),
  refreshes: count("Popular answers fetched anew before their end."),
  flushed: count("Answers taken out by a flush."),
});

const FlushBody = Type.Object(
  {
    name: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: NAME_TEXT_MAX,
        description: "The name whose answers go; left out: everything goes.",
        examples: ["www.partner.example."],
      }),
    ),
    subtree: Type.Optional(Type.Boolean({ description: "Whether answers of names below it go too." })),
  },
  { additionalProperties: false },
);

const FlushedView = Type.Object({ node_id: Type.String(), flushed: count("Answers that went.") });

/** The routes of /cache. */
export function cacheRoutes(context: CommandContext, view: CacheView): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/cache",
      summary: "Read the figures of this node's cache of forwarded answers",
      tag: TAG,
      access: "readonly",
      response: CacheStateView,
      handle: async () => ({ body: await readCache(view) }),
    }),
    route({
      method: "POST",
      path: "/cache/flush",
      summary: "Take answers out of this node's cache: all, or those of a name; other nodes keep theirs",
      tag: TAG,
      access: "editor",
      body: FlushBody,
      response: FlushedView,
      handle: async ({ body, caller }) => ({ body: await flushCache(context, view, caller, body) }),
    }),
  ];
}
