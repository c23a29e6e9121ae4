/** Records: lists and creation below their zone, the rest by their own id. */
import Type from "typebox";
import { bulkDelete } from "../../commands/bulk-delete.ts";
import { recordScan } from "../../commands/list-filters.ts";
import { createRecord, deleteRecord, requireRecord, updateRecord } from "../../commands/records.ts";
import { type CommandContext, requireById } from "../../commands/run.ts";
import { viewTimes } from "../../commands/view-times.ts";
import { TypeShape } from "../../model/answer-fields.ts";
import { BULK_IDS_MAX, ID_MAX, NAME_TEXT_MAX } from "../../model/limits.ts";
import type { ZoneBody } from "../../model/objects.ts";
import { RecordCreate, RecordUpdate, RecordView, recordView } from "../../model/record.ts";
import type { Stored } from "../../store/store.ts";
import { listOf, PAGE_QUERY } from "../paging.ts";
import { type Route, route } from "../route.ts";
import { listReply } from "./list-reply.ts";
import { DeletedView, deletedReply, objectReply } from "./object-reply.ts";
import { ID_PARAMS } from "./parameters.ts";

const TAG = "records";

const ZONE_PARAMS = Type.Object({ zoneId: Type.String({ maxLength: ID_MAX }) });

/** What lists of records and of overrides can be asked for. */
export const RECORD_QUERY = Type.Object(
  {
    ...PAGE_QUERY,
    name: Type.Optional(Type.String({ maxLength: NAME_TEXT_MAX, description: "the records of that name" })),
    type: Type.Optional(TypeShape),
    q: Type.Optional(Type.String({ maxLength: NAME_TEXT_MAX, description: "part of a name, a value or a comment" })),
  },
  { additionalProperties: false },
);

const BulkDelete = Type.Object(
  {
    // More than the cap is another refusal than a wrong shape; how many there are at all the bound of the body says.
    ids: Type.Array(Type.String({ maxLength: ID_MAX }), {
      description: "ids of records of this zone; at most bulk_delete_cap of /config/delete-guardrails",
    }),
    force: Type.Optional(Type.Boolean({ description: "deletes protected records too" })),
  },
  { additionalProperties: false, examples: [{ ids: ["rec_mfrggzdfmztwq2lknnwg"], force: false }] },
);

/** Quotation marks, a comma and a blank. */
const BESIDE_ID_BYTES = 4;
const BULK_DELETE_BYTES_MAX = BULK_IDS_MAX * (ID_MAX + BESIDE_ID_BYTES);

const COUNT = Type.Integer({ minimum: 0 });
const BulkDeleteView = Type.Object({ deleted: COUNT, protected_skipped: COUNT, not_found: COUNT });

function viewOf(stored: Stored<"record">, zone: ZoneBody): Record<string, unknown> {
  return recordView(stored.body, zone, viewTimes(stored));
}

function readRoutes({ store }: CommandContext): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/zones/:zoneId/records",
      summary: "List the records of a zone",
      tag: TAG,
      access: "readonly",
      find: ({ zoneId }) => void requireById(store, "zone", zoneId),
      params: ZONE_PARAMS,
      query: RECORD_QUERY,
      response: listOf(RecordView),
      handle: ({ params, query, signal }) => {
        const zone = requireById(store, "zone", params.zoneId).body;
        const view = (stored: Stored<"record">) => viewOf(stored, zone);
        return listReply(store, { kind: "record", scan: recordScan(zone.name, query), query, signal, view });
      },
    }),
    route({
      method: "GET",
      path: "/records/:id",
      summary: "Get a record",
      tag: TAG,
      access: "readonly",
      find: ({ id }) => void requireRecord(store, id),
      params: ID_PARAMS,
      response: RecordView,
      handle: ({ params, caller }) => {
        const { stored, zone } = requireRecord(store, params.id);
        return objectReply(viewOf(stored, zone), stored, caller);
      },
    }),
  ];
}

/** Writes below a zone. */
function zoneWriteRoutes(context: CommandContext): readonly Route[] {
  const find = ({ zoneId }: { readonly zoneId: string }) => void requireById(context.store, "zone", zoneId);
  return [
    route({
      method: "POST",
      path: "/zones/:zoneId/records",
      summary: "Create a record, in the place of an unprotected one of the same name and type",
      tag: TAG,
      access: "editor",
      confinedTo: ({ zoneId }) => [zoneId],
      find,
      params: ZONE_PARAMS,
      body: RecordCreate,
      response: RecordView,
      handle: async ({ params, body, caller }) => {
        const { stored, zone } = await createRecord(context, caller, params.zoneId, body);
        return objectReply(viewOf(stored, zone), stored, caller, `/records/${stored.body.id}`);
      },
    }),
    route({
      method: "POST",
      path: "/zones/:zoneId/records/bulk-delete",
      summary: "Delete many records of a zone",
      tag: TAG,
      access: "editor",
      confinedTo: ({ zoneId }) => [zoneId],
      find,
      params: ZONE_PARAMS,
      body: BulkDelete,
      bodyLimitBytes: BULK_DELETE_BYTES_MAX,
      response: BulkDeleteView,
      handle: async ({ params, body, caller }) => ({
        body: await bulkDelete(context, caller, params.zoneId, body),
      }),
    }),
  ];
}

/** The routes of records. */
export function recordRoutes(context: CommandContext): readonly Route[] {
  const { store } = context;
  const find = ({ id }: { readonly id: string }) => void requireRecord(store, id);
  const zoneOf = ({ id }: { readonly id: string }) => {
    const record = store.byId("record", id)?.body;
    const zone = record === undefined ? undefined : store.get("zone", [record.zone]);
    // A record that is not there touches no zone: not found is all that there is to say about it.
    return zone === undefined ? [] : [zone.body.id];
  };
  return [
    ...readRoutes(context),
    ...zoneWriteRoutes(context),
    route({
      method: "PUT",
      path: "/records/:id",
      summary: "Change the fields given of a record; a new name moves it",
      tag: TAG,
      access: "editor",
      confinedTo: zoneOf,
      find,
      params: ID_PARAMS,
      body: RecordUpdate,
      response: RecordView,
      handle: async ({ params, body, caller }) => {
        const { stored, zone } = await updateRecord(context, caller, params.id, body);
        return objectReply(viewOf(stored, zone), stored, caller);
      },
    }),
    route({
      method: "DELETE",
      path: "/records/:id",
      summary: "Delete a record",
      tag: TAG,
      access: "editor",
      confinedTo: zoneOf,
      find,
      params: ID_PARAMS,
      query: Type.Object(
        { force: Type.Optional(Type.Boolean({ description: "deletes a protected record too" })) },
        { additionalProperties: false },
      ),
      response: DeletedView,
      handle: async ({ params, query, caller }) =>
        deletedReply(await deleteRecord(context, caller, params.id, query.force ?? false)),
    }),
  ];
}
