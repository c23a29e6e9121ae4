/** /debug: capture of every query that the answering node gets for a while. Other nodes have theirs. */
import Type from "typebox";
import { clearDebug, type DebugView, disableDebug, enableDebug } from "../../commands/debug.ts";
import type { CommandContext } from "../../commands/run.ts";
import { DEBUG_WINDOW_SECONDS_DEFAULT, DEBUG_WINDOW_SECONDS_MAX } from "../../model/limits.ts";
import { type Route, route } from "../route.ts";
import { DeletedView, deletedReply } from "./object-reply.ts";

const TAG = "debug";

const Dropped = Type.Integer({
  minimum: 0,
  description:
    "Lines that came in a window and are not kept: newer ones pushed them out, or there was no time for them.",
});
const Capacity = Type.Integer({ minimum: 0, description: "How many lines are kept at most." });

const DebugStatusView = Type.Object({
  node_id: Type.String(),
  enabled: Type.Boolean({ description: "Whether the window is open." }),
  expires_at: Type.Union([Type.String(), Type.Null()], { description: "When it closes by itself, RFC 3339." }),
  lines: Type.Integer({ minimum: 0, description: "Lines that are kept." }),
  dropped: Dropped,
  capacity: Capacity,
});

const DebugTailView = Type.Object({
  node_id: Type.String(),
  dropped: Dropped,
  capacity: Capacity,
  lines: Type.Array(Type.String(), { description: "Oldest first, each as the query log has it: a JSON text." }),
});

const EnableBody = Type.Optional(
  Type.Object(
    {
      duration_seconds: Type.Optional(
        Type.Integer({ minimum: 1, maximum: DEBUG_WINDOW_SECONDS_MAX, default: DEBUG_WINDOW_SECONDS_DEFAULT }),
      ),
    },
    { additionalProperties: false },
  ),
);

/** The routes of /debug. */
export function debugRoutes(context: CommandContext, view: DebugView): readonly Route[] {
  return [
    route({
      method: "POST",
      path: "/debug/enable",
      summary: "Open the window of debug capture on this node, or give an open one another end",
      tag: TAG,
      access: "admin",
      body: EnableBody,
      response: DebugStatusView,
      handle: async ({ body, caller }) => ({ body: await enableDebug(context, view, caller, body ?? {}) }),
    }),
    route({
      method: "POST",
      path: "/debug/disable",
      summary: "Close the window; what was captured stays",
      tag: TAG,
      access: "admin",
      response: DebugStatusView,
      handle: async ({ caller }) => ({ body: await disableDebug(context, view, caller) }),
    }),
    route({
      method: "GET",
      path: "/debug/status",
      summary: "Read whether the window is open on this node",
      tag: TAG,
      access: "readonly",
      response: DebugStatusView,
      handle: () => ({ body: view.status() }),
    }),
    route({
      method: "GET",
      path: "/debug/tail",
      summary: "Read the lines captured on this node, the last 1,000",
      tag: TAG,
      access: "admin",
      sensitive: true,
      response: DebugTailView,
      handle: () => ({ body: view.tail() }),
    }),
    route({
      method: "DELETE",
      path: "/debug/tail",
      summary: "Discard the lines captured on this node",
      tag: TAG,
      access: "admin",
      response: DeletedView,
      handle: async ({ caller }) => {
        await clearDebug(context, view, caller);
        return deletedReply(view.nodeId);
      },
    }),
  ];
}
