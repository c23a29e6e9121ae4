/** What records and overrides have in common: the fields that say what a name answers with, and the rules between them. */
import { type Static, type TObject, type TSchema, Type } from "typebox";
import { completeTemplate, HealthCheckTemplateShape, templateFaults } from "./health-template.ts";
import { LbPolicyShape, policyFaults, REGION_PATTERN } from "./lb-policy.ts";
import {
  COMMENT_MAX,
  NAME_TEXT_MAX,
  RECORD_BYTES_MAX,
  REGION_MAX,
  TTL_MAX,
  UINT16_MAX,
  VALUE_TEXT_MAX,
  VALUES_MAX,
} from "./limits.ts";
import { type AnswerBody, RECORD_TYPES } from "./objects.ts";
import { CAA_TAGS, checkValues } from "./record-values.ts";
import type { FieldFault } from "./refusal.ts";

const UINT16 = Type.Integer({ minimum: 0, maximum: UINT16_MAX });
const Tag = Type.Enum([...CAA_TAGS]);

export function orNull<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()]);
}

const ValueShape = Type.Object(
  {
    value: Type.String({ maxLength: VALUE_TEXT_MAX }),
    region: Type.Optional(Type.String({ maxLength: REGION_MAX, pattern: `^$|${REGION_PATTERN}` })),
    priority: Type.Optional(UINT16),
    weight: Type.Optional(UINT16),
    port: Type.Optional(UINT16),
    tag: Type.Optional(Tag),
  },
  { additionalProperties: false },
);
const ValuesShape = Type.Array(ValueShape, { maxItems: VALUES_MAX });
const TtlShape = Type.Integer({ minimum: 0, maximum: TTL_MAX });
export const CommentShape = Type.String({ maxLength: COMMENT_MAX });

/** As an update has them: null takes away. */
export const ANSWER_UPDATE = {
  ttl: Type.Optional(TtlShape),
  values: Type.Optional(ValuesShape),
  priority: Type.Optional(orNull(UINT16)),
  weight: Type.Optional(orNull(UINT16)),
  port: Type.Optional(orNull(UINT16)),
  tag: Type.Optional(orNull(Tag)),
  lb_policy: Type.Optional(orNull(LbPolicyShape)),
  health_check_template: Type.Optional(orNull(HealthCheckTemplateShape)),
  comment: Type.Optional(orNull(CommentShape)),
};

export const TypeShape = Type.Enum([...RECORD_TYPES]);
export const NameShape = Type.String({ maxLength: NAME_TEXT_MAX });

/** The same fields as a GET shows them, but for the comment, which each has in a place of its own. */
export const ANSWER_VIEW = {
  type: TypeShape,
  ttl: TtlShape,
  values: ValuesShape,
  priority: Type.Optional(UINT16),
  weight: Type.Optional(UINT16),
  port: Type.Optional(UINT16),
  tag: Type.Optional(Tag),
  lb_policy: Type.Optional(LbPolicyShape),
  health_check_template: Type.Optional(HealthCheckTemplateShape),
};

/** For what an update may send back as it was shown. */
export const READ_ONLY_TEXT = Type.Optional(Type.String({ maxLength: NAME_TEXT_MAX, readOnly: true }));

type AnswerUpdate = Static<TObject<typeof ANSWER_UPDATE>>;

const REMOVABLE = ["priority", "weight", "port", "tag", "lb_policy", "health_check_template", "comment"] as const;

/** `current` with the fields given: each replaced whole, taken away where it is null. */
export function withFields<Body extends AnswerBody>(current: Body, given: AnswerUpdate): Body {
  const changed: Body = { ...current };
  const removable: Record<string, unknown> = {};
  for (const field of REMOVABLE) if (given[field] !== undefined) removable[field] = given[field];
  const merged = { ...changed, ...removable, ttl: given.ttl ?? current.ttl, values: given.values ?? current.values };
  for (const field of REMOVABLE) if (given[field] === null) delete merged[field];
  return merged;
}

/** Values, policy and template in canonical spelling; what is wrong with them is added to `faults`. */
export function completeAnswer<Body extends AnswerBody>(body: Body, faults: FieldFault[]): Body {
  const { type, lb_policy, health_check_template: template } = body;
  const checked = checkValues(type, body);
  faults.push(...checked.faults);
  if (lb_policy !== undefined) faults.push(...policyFaults(lb_policy, type, checked.values));
  if (template !== undefined) faults.push(...templateFaults(template, type));
  const complete: Body = {
    ...body,
    values: checked.values,
    ...(template === undefined ? {} : { health_check_template: completeTemplate(template, type) }),
  };
  if (Buffer.byteLength(JSON.stringify(complete)) > RECORD_BYTES_MAX) {
    faults.push({ pointer: "/values", detail: `the record is longer than ${RECORD_BYTES_MAX} bytes in all` });
  }
  return complete;
}
