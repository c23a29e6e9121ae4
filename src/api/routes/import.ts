/** POST /zones/import and /zones/{id}/import. */
import Type from "typebox";
import { IMPORT_MEDIA_TYPES } from "../../commands/import-parse.ts";
import { type ImportTools, importIntoZone, importZones } from "../../commands/import-zones.ts";
import { type CommandContext, requireById } from "../../commands/run.ts";
import { IMPORT_BYTES_MAX, ZONE_IMPORT_BYTES_MAX } from "../../model/limits.ts";
import { Refusal } from "../../model/refusal.ts";
import { type Route, route } from "../route.ts";
import { ID_PARAMS } from "./parameters.ts";

const Count = Type.Integer({ minimum: 0 });
const Skipped = Type.Object({
  zone: Type.String(),
  record_id: Type.String(),
  name: Type.String(),
  type: Type.String(),
});
const MissingSecret = Type.Object({
  zone: Type.String(),
  name: Type.String(),
  type: Type.String(),
  field: Type.String({ description: "JSON pointer into the record" }),
});
const ParseError = Type.Object({
  file: Type.String(),
  line: Type.Integer(),
  column: Type.Integer(),
  detail: Type.String(),
});

const COUNTS = {
  created: Count,
  updated: Count,
  unchanged: Count,
  protected_skipped: Type.Array(Skipped),
  secrets_missing: Type.Array(MissingSecret),
  parse_errors: Type.Array(ParseError),
  errors: Type.Array(Type.String(), { description: "what an import into one zone has cut off" }),
  warnings: Type.Array(Type.String()),
};

export const ImportView = Type.Object({
  dry_run: Type.Boolean(),
  format: Type.Enum(["json", "csv", "zone-file"]),
  zones_created: Count,
  ...COUNTS,
  zones: Type.Array(
    Type.Object({
      zone: Type.String(),
      zone_id: Type.Optional(Type.String()),
      zone_created: Type.Boolean(),
      ...COUNTS,
    }),
  ),
});

/** The routes of imports. `tools.parse` reads bodies, beside the control thread where it matters. */
export function importRoutes(context: CommandContext, tools: ImportTools): readonly Route[] {
  return [
    route({
      method: "POST",
      path: "/zones/import",
      summary: "Import zones from a JSON bundle, CSV or zone files",
      tag: "import and export",
      access: "editor",
      confinedTo: "body",
      rawBody: IMPORT_MEDIA_TYPES,
      bodyLimitBytes: IMPORT_BYTES_MAX,
      response: ImportView,
      handle: async ({ body, caller, headers, signal }) => ({
        body: await importZones(context, caller, tools, sourceOf(body, headers), signal),
      }),
    }),
    route({
      method: "POST",
      path: "/zones/:id/import",
      summary: "Import records into a zone from a JSON bundle, CSV or a zone file",
      tag: "import and export",
      access: "editor",
      confinedTo: ({ id }) => [id],
      find: ({ id }) => void requireById(context.store, "zone", id),
      params: ID_PARAMS,
      rawBody: IMPORT_MEDIA_TYPES,
      bodyLimitBytes: ZONE_IMPORT_BYTES_MAX,
      response: ImportView,
      handle: async ({ params, body, caller, headers, signal }) => ({
        body: await importIntoZone(context, caller, tools, params.id, sourceOf(body, headers), signal),
      }),
    }),
  ];
}

function sourceOf(body: unknown, headers: Readonly<Record<string, string | string[] | undefined>>) {
  if (!(body instanceof Uint8Array)) {
    throw new Refusal("invalid_request", "a body is needed", [{ pointer: "", detail: "is missing" }]);
  }
  return { body, contentType: String(headers["content-type"] ?? "") };
}
