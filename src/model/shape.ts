/**
 * Checks a JSON value against the shape that a typebox schema describes, and says in sentences what is wrong where.
 * It knows exactly the keywords below and refuses a schema with any other when it is first used, so that no rule of a
 * schema goes unheard. Lengths of strings count code points, as JSON Schema has it; the validator of typebox counts
 * what a reader sees as one character, which puts no bound on the bytes.
 */
import { IsOptional, type TSchema } from "typebox";
import { FAULTS_MAX } from "./limits.ts";
import type { FieldFault } from "./refusal.ts";

/** Where a value lies: the name of the member, and where what holds it lies. Text is made of it for faults only. */
type Place = { readonly parent: Place; readonly member: string | number } | undefined;
type Check = (value: unknown, place: Place, faults: FieldFault[]) => void;
type JsonObject = Readonly<Record<string, unknown>>;

const compiled = new WeakMap<object, Check>();

/** What is wrong with `value`, at most FAULTS_MAX faults; none: it has the shape. Pointers are those of RFC 6901. */
export function checkShape(schema: TSchema, value: unknown): FieldFault[] {
  const faults: FieldFault[] = [];
  checkOf(schema)(value, undefined, faults);
  return faults;
}

/** `member` as it stands in an RFC 6901 pointer. */
export function pointerToken(member: string | number): string {
  return String(member).replaceAll("~", "~0").replaceAll("/", "~1");
}

function pointerOf(place: Place): string {
  return place === undefined ? "" : `${pointerOf(place.parent)}/${pointerToken(place.member)}`;
}

function addFault(faults: FieldFault[], place: Place, detail: string): void {
  if (faults.length < FAULTS_MAX) faults.push({ pointer: pointerOf(place), detail });
}

function checkOf(schema: unknown): Check {
  if (!isObject(schema)) throw new Error("a schema is an object");
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const check = compile(schema);
  compiled.set(schema, check);
  return check;
}

/** Keywords that describe and never refuse. */
const ANNOTATIONS = ["title", "description", "default", "examples", "readOnly", "writeOnly", "deprecated"];
const KEYWORDS = new Set([
  ...ANNOTATIONS,
  ...["type", "const", "enum", "anyOf", "pattern", "format", "minLength", "maxLength", "minimum", "maximum"],
  ...["properties", "required", "additionalProperties", "patternProperties", "maxProperties", "minProperties"],
  ...["items", "minItems", "maxItems", "uniqueItems"],
]);

function compile(schema: JsonObject): Check {
  for (const keyword of Object.keys(schema)) {
    if (!KEYWORDS.has(keyword) && !keyword.startsWith("~")) throw new Error(`shapes know no keyword ${keyword}`);
  }
  if (Array.isArray(schema.anyOf)) return anyOf(schema.anyOf);
  if ("const" in schema) return oneOf([schema.const]);
  if (Array.isArray(schema.enum)) return oneOf(schema.enum);
  switch (schema.type) {
    case undefined:
      return () => {};
    case "null":
      return (value, place, faults) => {
        if (value !== null) addFault(faults, place, "must be null");
      };
    case "boolean":
      return (value, place, faults) => {
        if (typeof value !== "boolean") addFault(faults, place, `must be true or false, not ${kindOf(value)}`);
      };
    case "integer":
    case "number":
      return numberCheck(schema);
    case "string":
      return stringCheck(schema);
    case "array":
      return arrayCheck(schema);
    case "object":
      return objectCheck(schema);
    default:
      throw new Error(`shapes know no type ${String(schema.type)}`);
  }
}

function oneOf(allowed: readonly unknown[]): Check {
  const words = allowed.map((word) => JSON.stringify(word)).join(", ");
  return (value, place, faults) => {
    if (!allowed.includes(value))
      addFault(faults, place, allowed.length === 1 ? `must be ${words}` : `must be one of ${words}`);
  };
}

/** The faults of the alternative that was most likely meant: of the value's own kind, then with the fewest faults. */
function anyOf(alternatives: readonly unknown[]): Check {
  const flat = alternatives.flatMap(alternativesOf);
  const words = flat.map(wordsOf);
  if (words.every((each) => each !== undefined)) return oneOf(words.flat());
  const branches = flat.map((schema) => ({ check: checkOf(schema), kind: kindOfSchema(schema) }));
  return (value, place, faults) => {
    let best: { readonly faults: readonly FieldFault[]; readonly isKind: boolean } | undefined;
    for (const { check, kind } of branches) {
      const own: FieldFault[] = [];
      check(value, place, own);
      if (own.length === 0) return;
      const isKind = kind === kindOf(value);
      const isBetter = best === undefined || (isKind && !best.isKind);
      if (isBetter || (isKind === best?.isKind && own.length < best.faults.length)) best = { faults: own, isKind };
    }
    if (best?.isKind === true) faults.push(...best.faults.slice(0, FAULTS_MAX - faults.length));
    else
      addFault(
        faults,
        place,
        `must be ${[...new Set(branches.map(({ kind }) => kind))].join(" or ")}, not ${kindOf(value)}`,
      );
  };
}

function alternativesOf(schema: unknown): readonly unknown[] {
  return isObject(schema) && Array.isArray(schema.anyOf) ? schema.anyOf.flatMap(alternativesOf) : [schema];
}

/** The only values that there are; undefined: the schema does not name them. */
function wordsOf(schema: unknown): readonly unknown[] | undefined {
  if (!isObject(schema)) return undefined;
  if ("const" in schema) return [schema.const];
  if (Array.isArray(schema.enum)) return schema.enum;
  return schema.type === "null" ? [null] : undefined;
}

function numberCheck(schema: JsonObject): Check {
  const least = numberOf(schema.minimum) ?? Number.NEGATIVE_INFINITY;
  const most = numberOf(schema.maximum) ?? Number.POSITIVE_INFINITY;
  const kind = schema.type === "integer" ? "an integer" : "a number";
  return (value, place, faults) => {
    // JSON.parse makes Infinity of 1e999, and rounds what is beyond 2^53.
    const isNumber =
      typeof value === "number" && (schema.type === "integer" ? Number.isSafeInteger(value) : Number.isFinite(value));
    if (!isNumber) addFault(faults, place, `must be ${kind}, not ${kindOf(value)}`);
    else if (value < least || value > most) addFault(faults, place, boundsText(schema));
  };
}

function boundsText({ minimum, maximum }: JsonObject): string {
  if (minimum === undefined) return `must be at most ${String(maximum)}`;
  if (maximum === undefined) return `must be at least ${String(minimum)}`;
  return `must be from ${String(minimum)} to ${String(maximum)}`;
}

function stringCheck(schema: JsonObject): Check {
  const least = numberOf(schema.minLength) ?? 0;
  const most = numberOf(schema.maxLength) ?? Number.POSITIVE_INFINITY;
  const pattern = typeof schema.pattern === "string" ? new RegExp(schema.pattern, "u") : undefined;
  if (schema.format !== undefined && schema.format !== "date-time")
    throw new Error("shapes know the format date-time only");
  return (value, place, faults) => {
    if (typeof value !== "string") return addFault(faults, place, `must be a string, not ${kindOf(value)}`);
    if (!value.isWellFormed()) return addFault(faults, place, "holds half of a surrogate pair");
    if (isLonger(value, most)) return addFault(faults, place, `must not be longer than ${most} characters`);
    if (least > 0 && !isLonger(value, least - 1)) {
      return addFault(faults, place, least === 1 ? "must not be empty" : `must have at least ${least} characters`);
    }
    if (pattern !== undefined && !pattern.test(value)) addFault(faults, place, `must match ${String(schema.pattern)}`);
    if (schema.format === "date-time" && !isDateTime(value)) {
      addFault(faults, place, "must be a time of RFC 3339, for example 2026-01-31T12:00:00Z");
    }
  };
}

/** More code points than `most`. A code point is one or two code units, so most strings need no counting. */
function isLonger(text: string, most: number): boolean {
  if (text.length <= most) return false;
  if (text.length > 2 * most) return true;
  let points = 0;
  for (const _ of text) points++;
  return points > most;
}

const DATE_TIME =
  /^(\d{4})-(\d\d)-(\d\d)[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

/** Whether the text is a time of RFC 3339 section 5.6 on a day that exists; leap seconds are not taken. */
export function isDateTime(text: string): boolean {
  const parts = DATE_TIME.exec(text);
  return parts !== null && isDay(Number(parts[1]), Number(parts[2]), Number(parts[3]));
}

/** Whether the day exists in the calendar; months count from 1. */
export function isDay(year: number, month: number, day: number): boolean {
  const date = new Date(Date.UTC(year, month - 1, day));
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
}

function arrayCheck(schema: JsonObject): Check {
  const least = numberOf(schema.minItems) ?? 0;
  const most = numberOf(schema.maxItems) ?? Number.POSITIVE_INFINITY;
  const checkItem = schema.items === undefined ? undefined : checkOf(schema.items);
  return (value, place, faults) => {
    if (!Array.isArray(value)) return addFault(faults, place, `must be an array, not ${kindOf(value)}`);
    if (value.length > most) return addFault(faults, place, `must not have more than ${most} entries`);
    if (value.length < least)
      return addFault(faults, place, `must have at least ${least} ${least === 1 ? "entry" : "entries"}`);
    if (checkItem !== undefined) {
      for (const [index, item] of value.entries()) {
        checkItem(item, { parent: place, member: index }, faults);
        if (faults.length >= FAULTS_MAX) return;
      }
    }
    if (schema.uniqueItems === true) addRepeats(value, place, faults);
  };
}

function addRepeats(items: readonly unknown[], place: Place, faults: FieldFault[]): void {
  const seen = new Set<string>();
  for (const [index, item] of items.entries()) {
    const text = JSON.stringify(item);
    if (seen.has(text)) addFault(faults, { parent: place, member: index }, "is there twice");
    seen.add(text);
  }
}

function objectCheck(schema: JsonObject): Check {
  const properties = new Map(Object.entries(isObject(schema.properties) ? schema.properties : {}));
  const checks = new Map([...properties].map(([name, property]) => [name, checkOf(property)]));
  const required = Array.isArray(schema.required) ? schema.required.map(String) : [];
  const most = numberOf(schema.maxProperties) ?? Number.POSITIVE_INFINITY;
  const least = numberOf(schema.minProperties) ?? 0;
  const others = otherMembers(schema);
  return (value, place, faults) => {
    if (!isObject(value)) return addFault(faults, place, `must be an object, not ${kindOf(value)}`);
    const names = Object.keys(value);
    if (names.length > most) return addFault(faults, place, `must not have more than ${most} members`);
    if (names.length < least)
      return addFault(faults, place, `must have at least ${least} ${least === 1 ? "member" : "members"}`);
    for (const name of required) {
      if (!Object.hasOwn(value, name) || value[name] === undefined) {
        addFault(faults, { parent: place, member: name }, "is missing");
      }
    }
    for (const name of names) {
      if (value[name] === undefined) continue;
      const check = checks.get(name) ?? others(name);
      if (check === undefined)
        addFault(faults, { parent: place, member: shortened(name) }, "is not a field of this object");
      else check(value[name], { parent: place, member: name }, faults);
      if (faults.length >= FAULTS_MAX) return;
    }
  };
}

const POINTER_MEMBER_MAX = 100;

/** A name that a client made up comes back in the answer: not all of it where it is long, and never half a pair. */
function shortened(name: string): string {
  return name.slice(0, POINTER_MEMBER_MAX).toWellFormed();
}

/** The check of a member that no property names; undefined: it may not be there. */
function otherMembers(schema: JsonObject): (name: string) => Check | undefined {
  const free: Check = () => {};
  if (isObject(schema.patternProperties)) {
    const [pattern, ...more] = Object.entries(schema.patternProperties);
    // Type.Record makes one pattern for all keys; its dot would let a key with a line break go unchecked.
    if (pattern === undefined || more.length > 0) throw new Error("shapes know one pattern of properties");
    const check = checkOf(pattern[1]);
    const isAny = pattern[0] === "^.*$";
    const expression = new RegExp(pattern[0], "u");
    return (name) =>
      name.isWellFormed() && name !== "__proto__" && (isAny || expression.test(name)) ? check : undefined;
  }
  if (schema.additionalProperties === false) return () => undefined;
  if (isObject(schema.additionalProperties)) {
    const check = checkOf(schema.additionalProperties);
    return (name) => (name.isWellFormed() && name !== "__proto__" ? check : undefined);
  }
  return () => free;
}

/** Whether the schema is marked optional, as the body of a request may be. */
export function isOptionalShape(schema: TSchema): boolean {
  return IsOptional(schema);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  return `a ${typeof value}`;
}

function kindOfSchema(schema: unknown): string {
  const type = isObject(schema) ? (schema.type ?? typeOfWords(schema)) : undefined;
  if (type === "null") return "null";
  if (type === "integer") return "a number";
  return typeof type === "string" ? `${type === "array" || type === "object" ? "an" : "a"} ${type}` : "anything";
}

/** The type of a list of words, which an enum of typebox does not name. */
function typeOfWords(schema: JsonObject): string | undefined {
  const words = Array.isArray(schema.enum) ? schema.enum : [schema.const];
  return words.every((word) => typeof word === "string") ? "string" : undefined;
}
