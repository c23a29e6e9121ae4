/** Overrides: answers for one full name each, without hosting its zone. Their values follow the rules of records. */
import { type Static, Type } from "typebox";
import {
  ANSWER_UPDATE,
  ANSWER_VIEW,
  CommentShape,
  completeAnswer,
  NameShape,
  orNull,
  READ_ONLY_TEXT,
  TypeShape,
  withFields,
} from "./answer-fields.ts";
import { ID_MAX, OVERRIDE_DEFAULT_TTL } from "./limits.ts";
import { anyFullName } from "./names.ts";
import type { OverrideBody } from "./objects.ts";
import { readOnlyFaults } from "./put.ts";
import type { ViewTimes } from "./record.ts";
import { type FieldFault, refuseFaults } from "./refusal.ts";
import { maskSecrets, restoreSecrets, unrestoredFaults } from "./secrets.ts";

const Time = Type.String({ format: "date-time" });

export const OverrideCreate = Type.Object(
  {
    name: NameShape,
    type: TypeShape,
    ...ANSWER_UPDATE,
    enabled: Type.Optional(Type.Boolean()),
    expires_at: Type.Optional(orNull(Time)),
  },
  {
    additionalProperties: false,
    examples: [{ name: "db.partner.example.", type: "A", values: [{ value: "10.0.0.9" }], comment: "until the move" }],
  },
);
export type OverrideCreate = Static<typeof OverrideCreate>;

export const OverrideUpdate = Type.Object(
  {
    name: Type.Optional(NameShape),
    ...ANSWER_UPDATE,
    enabled: Type.Optional(Type.Boolean()),
    expires_at: Type.Optional(orNull(Time)),
    type: READ_ONLY_TEXT,
    id: READ_ONLY_TEXT,
    created_at: READ_ONLY_TEXT,
    updated_at: READ_ONLY_TEXT,
  },
  { additionalProperties: false, examples: [{ enabled: false }] },
);
export type OverrideUpdate = Static<typeof OverrideUpdate>;

export const OverrideView = Type.Object({
  id: Type.String({ maxLength: ID_MAX }),
  name: Type.String(),
  ...ANSWER_VIEW,
  // Here the document of the API promises text, and no words.
  tag: Type.Optional(Type.String()),
  enabled: Type.Boolean(),
  comment: Type.Optional(CommentShape),
  expires_at: Type.Optional(Time),
  created_at: Time,
  updated_at: Time,
});

export function overrideView(override: OverrideBody, details: ViewTimes): Record<string, unknown> {
  return { ...maskSecrets("override", override), created_at: details.createdAt, updated_at: details.updatedAt };
}

/** The body of a new override. Throws `invalid_request` with every fault. */
export function overrideFromCreate(given: OverrideCreate, id: string): OverrideBody {
  const restored = restoreSecrets("override", given, undefined);
  refuseFaults(unrestoredFaults(restored));
  const start: OverrideBody = {
    id,
    name: given.name,
    type: given.type,
    ttl: OVERRIDE_DEFAULT_TTL,
    values: [],
    enabled: given.enabled ?? true,
  };
  return completeOverride(withExpiry(withFields(start, restored.body), given.expires_at));
}

/** The body after an update. Throws `invalid_request` with every fault, of read-only fields too. */
export function overrideWithUpdate(current: OverrideBody, given: OverrideUpdate, details?: ViewTimes): OverrideBody {
  const readOnly = ["id", "type", ...(details === undefined ? [] : ["created_at", "updated_at"])];
  const view = overrideView(current, details ?? { createdAt: "", updatedAt: "" });
  refuseFaults(readOnlyFaults(view, given, readOnly));
  const restored = restoreSecrets("override", given, current);
  refuseFaults(unrestoredFaults(restored));
  const changed: OverrideBody = {
    ...withFields(current, restored.body),
    name: given.name ?? current.name,
    enabled: given.enabled ?? current.enabled,
  };
  return completeOverride(withExpiry(changed, given.expires_at));
}

function withExpiry(body: OverrideBody, given: string | null | undefined): OverrideBody {
  if (given === undefined) return body;
  const { expires_at: _, ...rest } = body;
  return given === null ? rest : { ...rest, expires_at: new Date(given).toISOString() };
}

function completeOverride(body: OverrideBody): OverrideBody {
  const name = anyFullName(body.name);
  const faults: FieldFault[] = name.kind === "fault" ? [{ pointer: "/name", detail: name.detail }] : [];
  if (body.values.length === 0) faults.push({ pointer: "/values", detail: "at least one value is needed" });
  const complete = completeAnswer(body, faults);
  refuseFaults(faults);
  return { ...complete, name: name.kind === "name" ? name.text : body.name };
}
