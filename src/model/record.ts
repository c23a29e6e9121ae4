/** Records: what a client may send, the rules between the fields, and what it gets to see. */
import { type Static, Type } from "typebox";
import {
  ANSWER_UPDATE,
  ANSWER_VIEW,
  CommentShape,
  completeAnswer,
  NameShape,
  READ_ONLY_TEXT,
  TypeShape,
  withFields,
} from "./answer-fields.ts";
import { ID_MAX } from "./limits.ts";
import { APEX, absoluteName, relativeName } from "./names.ts";
import type { RecordBody, ZoneBody } from "./objects.ts";
import { readOnlyFaults } from "./put.ts";
import { type FieldFault, refuseFaults } from "./refusal.ts";
import { maskSecrets, restoreSecrets, unrestoredFaults } from "./secrets.ts";

export const RecordCreate = Type.Object(
  {
    name: NameShape,
    type: TypeShape,
    ...ANSWER_UPDATE,
    protected: Type.Optional(Type.Boolean()),
    auto_populate: Type.Optional(Type.Boolean()),
  },
  {
    additionalProperties: false,
    examples: [{ name: "www", type: "A", ttl: 300, values: [{ value: "10.0.0.1" }] }],
  },
);
export type RecordCreate = Static<typeof RecordCreate>;

export const RecordUpdate = Type.Object(
  {
    name: Type.Optional(NameShape),
    ...ANSWER_UPDATE,
    protected: Type.Optional(Type.Boolean()),
    auto_populate: Type.Optional(Type.Boolean()),
    type: READ_ONLY_TEXT,
    id: READ_ONLY_TEXT,
    zone_id: READ_ONLY_TEXT,
    zone_name: READ_ONLY_TEXT,
    fqdn: READ_ONLY_TEXT,
    created_at: READ_ONLY_TEXT,
    updated_at: READ_ONLY_TEXT,
    shadowed_by: READ_ONLY_TEXT,
  },
  { additionalProperties: false, examples: [{ ttl: 60, values: [{ value: "10.0.0.2" }] }] },
);
export type RecordUpdate = Static<typeof RecordUpdate>;

const Id = Type.String({ maxLength: ID_MAX });
const Time = Type.String({ format: "date-time" });

export const RecordView = Type.Object({
  id: Id,
  zone_id: Id,
  zone_name: Type.String(),
  name: Type.String(),
  fqdn: Type.String(),
  ...ANSWER_VIEW,
  protected: Type.Boolean(),
  auto_populate: Type.Boolean(),
  comment: Type.Optional(CommentShape),
  created_at: Time,
  updated_at: Time,
  shadowed_by: Type.Optional(
    Type.String({
      description:
        "id of the record that hides this one, both made on nodes that did not know of the other; absent: in effect",
      examples: ["rec_zyxwvutsrqponmlk2345"],
    }),
  ),
});

/** What a view shows that the body does not have. Times are RFC 3339. */
export type ViewTimes = { readonly createdAt: string; readonly updatedAt: string };
export type RecordViewDetails = ViewTimes & { readonly shadowedBy?: string | undefined };

type ZoneName = Pick<ZoneBody, "id" | "name">;

/** The full name of a record, canonical. */
export function fqdnOf(record: Pick<RecordBody, "name" | "zone">): string {
  return absoluteName(record.name, record.zone);
}

export function recordView(record: RecordBody, zone: ZoneName, details: RecordViewDetails): Record<string, unknown> {
  const { id, zone: zone_name, name, ...rest } = maskSecrets("record", record);
  return {
    id,
    zone_id: zone.id,
    zone_name,
    name,
    fqdn: fqdnOf(record),
    ...rest,
    created_at: details.createdAt,
    updated_at: details.updatedAt,
    ...(details.shadowedBy === undefined ? {} : { shadowed_by: details.shadowedBy }),
  };
}

/** The body of a new record. Throws `invalid_request` with every fault. */
export function recordFromCreate(given: RecordCreate, zone: ZoneName, id: string): RecordBody {
  const restored = restoreSecrets("record", given, undefined);
  refuseFaults(unrestoredFaults(restored));
  return newRecord(restored.body, zone, id);
}

export type ImportedRecord = {
  readonly body: RecordBody;
  /** Pointers to the "***" that no stored secret could take the place of; what they stood for is left out. */
  readonly secretsMissing: readonly string[];
};

/**
 * As `recordFromCreate`, but "***" takes the secret of the incumbent; where there is none, or it would be sent elsewhere,
 * it is left out and named.
 */
export function recordFromImport(
  given: RecordCreate,
  zone: ZoneName,
  id: string,
  incumbent: RecordBody | undefined,
): ImportedRecord {
  const { body, missing, moved } = restoreSecrets("record", given, incumbent);
  return { body: newRecord(body, zone, id), secretsMissing: [...missing, ...moved] };
}

function newRecord(given: RecordCreate, zone: ZoneName, id: string): RecordBody {
  const start: RecordBody = {
    id,
    zone: zone.name,
    name: given.name,
    type: given.type,
    ttl: 0,
    values: [],
    protected: given.protected ?? false,
    auto_populate: given.auto_populate ?? false,
  };
  return completeRecord(withFields(start, given));
}

/** The body after an update. Throws `invalid_request` with every fault, of read-only fields too. */
export function recordWithUpdate(
  current: RecordBody,
  given: RecordUpdate,
  zone: ZoneName,
  details?: RecordViewDetails,
): RecordBody {
  const readOnly = ["id", "type", "zone_id", "zone_name", "fqdn", ...(details === undefined ? [] : VIEW_DETAILS)];
  const view = recordView(current, zone, details ?? { createdAt: "", updatedAt: "" });
  refuseFaults(readOnlyFaults(view, given, readOnly));
  const restored = restoreSecrets("record", given, current);
  refuseFaults(unrestoredFaults(restored));
  const changed: RecordBody = {
    ...withFields(current, restored.body),
    name: given.name ?? current.name,
    protected: given.protected ?? current.protected,
    auto_populate: given.auto_populate ?? current.auto_populate,
  };
  return completeRecord(changed);
}

const VIEW_DETAILS = ["created_at", "updated_at", "shadowed_by"];

/** Everything in canonical spelling. Throws `invalid_request` with every fault. */
function completeRecord(body: RecordBody): RecordBody {
  const name = relativeName(body.name, body.zone);
  const faults: FieldFault[] = name.kind === "fault" ? [{ pointer: "/name", detail: name.detail }] : [];
  if (name.kind === "name" && name.text === APEX && body.type === "CNAME") {
    faults.push({ pointer: "/name", detail: "the apex of a zone cannot be a CNAME; ALIAS is for that" });
  }
  if (body.values.length === 0 && !body.auto_populate) {
    faults.push({ pointer: "/values", detail: "at least one value is needed, unless auto_populate is true" });
  }
  const complete = completeAnswer(body, faults);
  refuseFaults(faults);
  return { ...complete, name: name.kind === "name" ? name.text : body.name };
}
