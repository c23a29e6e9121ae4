/** GET /zones/export and /zones/{id}/export: streamed, a page of records at a time. */
import { Readable } from "node:stream";
import Type from "typebox";
import { bundleText } from "../../commands/export-bundle.ts";
import { zoneFileText } from "../../commands/export-zone-file.ts";
import { Bundle } from "../../commands/import-bundle.ts";
import { type CommandContext, requireById } from "../../commands/run.ts";
import { type Reply, type Route, route } from "../route.ts";
import { ID_PARAMS } from "./parameters.ts";

function streamed(text: AsyncIterable<string>, contentType: string, file: string): Reply {
  return {
    headers: {
      "content-type": contentType,
      "content-disposition": `attachment; filename="${file.replaceAll(/[^A-Za-z0-9._-]/g, "_")}"`,
    },
    // As bytes, of which a client that does not read holds few; of objects it would hold sixteen, however long.
    body: Readable.from(text, { objectMode: false }),
  };
}

/** The routes of exports. */
export function exportRoutes({ store, now }: CommandContext): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/zones/export",
      summary: "Export all zones as a JSON bundle",
      tag: "import and export",
      access: "readonly",
      sensitive: true,
      response: Bundle,
      handle: ({ signal }) =>
        streamed(bundleText(store, now(), signal), "application/json; charset=utf-8", "zones.json"),
    }),
    route({
      method: "GET",
      path: "/zones/:id/export",
      summary: "Export a zone as a zone file (RFC 1035)",
      tag: "import and export",
      access: "readonly",
      sensitive: true,
      find: ({ id }) => void requireById(store, "zone", id),
      params: ID_PARAMS,
      response: Type.String({ description: "text/dns" }),
      handle: ({ params, signal }) => {
        const zone = requireById(store, "zone", params.id).body;
        return streamed(zoneFileText(store, zone, signal), "text/dns; charset=utf-8", `${zone.name}zone`);
      },
    }),
  ];
}
