/** /audit: who did what, when and from where. */
import Type from "typebox";
import { auditFilter, openAudit } from "../../commands/audit.ts";
import type { CommandContext } from "../../commands/run.ts";
import { Refusal } from "../../model/refusal.ts";
import { CURSOR_LENGTH_MAX } from "../limits.ts";
import { jsonReply, linesReply, listOf, PAGE_QUERY } from "../paging.ts";
import { type Route, route } from "../route.ts";

const TAG = "audit";
const AUDIT_LIMIT_DEFAULT = 50;
const Text = Type.Optional(Type.String({ maxLength: 512 }));
const Moment = (description: string) => Type.Optional(Type.String({ maxLength: 40, description }));

const Most = Type.Optional(Type.Integer({ minimum: 1, description: "Most entries. Without it all that fit." }));

const FILTERS = {
  user_id: Text,
  user_name: Text,
  resource: Text,
  resource_id: Text,
  action: Text,
  from: Moment("Time of RFC 3339 or YYYY-MM-DD; entries at it are in."),
  to: Moment("The same; a day is in as a whole."),
};

const AuditEntryView = Type.Object({
  id: Type.String(),
  time: Type.String({ format: "date-time" }),
  node_id: Type.String(),
  user_id: Type.String(),
  user_name: Type.String(),
  source_address: Type.String(),
  request_id: Type.String(),
  action: Type.String(),
  resource: Type.String(),
  resource_id: Type.String(),
  resource_name: Type.String(),
  before: Type.Optional(Type.Unknown({ description: "Secrets are masked; a large one reads `{sha256, bytes}`." })),
  after: Type.Optional(Type.Unknown()),
  result: Type.String(),
  detail: Type.Optional(Type.String()),
});

/** The routes of /audit. */
export function auditRoutes({ store }: CommandContext): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/audit",
      summary: "Query the audit log, newest first",
      tag: TAG,
      access: "editor",
      query: Type.Object({ ...FILTERS, ...PAGE_QUERY }),
      response: listOf(AuditEntryView),
      handle: ({ query: { limit, cursor, ...filter }, signal }) => {
        const options = { limit: limit ?? AUDIT_LIMIT_DEFAULT, cursor: storeCursor(cursor) };
        return jsonReply(openAudit(store, auditFilter(filter), options), { isPage: true, signal });
      },
    }),
    route({
      method: "GET",
      path: "/audit/export",
      summary: "Stream the audit log, newest first, one JSON object a line",
      tag: TAG,
      access: "editor",
      sensitive: true,
      query: Type.Object({ ...FILTERS, limit: Most }),
      response: Type.String({ contentMediaType: "application/x-ndjson", description: "One entry a line." }),
      handle: ({ query: { limit, ...filter }, signal }) =>
        linesReply(openAudit(store, auditFilter(filter), limit === undefined ? {} : { limit }), { signal }),
    }),
  ];
}

/** The store's own cursor is opaque already: bytes of a key as base64url. */
function storeCursor(cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined;
  const bytes = Buffer.from(cursor, "base64url");
  if (cursor.length <= CURSOR_LENGTH_MAX && bytes.toString("base64url") === cursor && bytes.length > SEQUENCE_BYTES) {
    return cursor;
  }
  const detail = "is not a cursor that this list gave";
  throw new Refusal("invalid_request", `?cursor ${detail}`, [{ pointer: "?cursor", detail }]);
}

/** What every key of the log ends in. */
const SEQUENCE_BYTES = 6;
