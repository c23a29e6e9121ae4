/**
 * Query parameters: strict percent-encoding, each once, text made into its type. A name that the route does not
 * know is refused, but where the route says otherwise.
 */
import type { TSchema } from "typebox";
import Type from "typebox";
import { nearestWord } from "../base/nearest.ts";
import { type FieldFault, Refusal } from "../model/refusal.ts";
import { checkShape } from "../model/shape.ts";
import { QUERY_LENGTH_MAX, QUERY_PARAMETERS_MAX } from "./limits.ts";

export type QueryPlan = {
  readonly schema: TSchema;
  readonly types: ReadonlyMap<string, string>;
  /** What the schema does not name is left out instead of refused: others make these links (RFC 6749 section 4.1.2). */
  readonly ignoresUnknown: boolean;
};

/** The plan of a route's query parameters; `dry_run` belongs to every route that changes something. */
export function queryPlan(query: TSchema | undefined, isMutating: boolean): QueryPlan {
  const own = query !== undefined && Type.IsObject(query) ? query.properties : {};
  const properties = { ...own, ...(isMutating ? { dry_run: Type.Optional(Type.Boolean()) } : {}) };
  const schema = Type.Object(properties, { additionalProperties: false });
  const types = Object.entries(properties).map(([name, property]) => [name, typeOf(property)] as const);
  const ignoresUnknown = query !== undefined && "additionalProperties" in query && query.additionalProperties === true;
  return { schema, types: new Map(types), ignoresUnknown };
}

function typeOf(schema: TSchema): string {
  if (Type.IsInteger(schema)) return "integer";
  return Type.IsBoolean(schema) ? "boolean" : "string";
}

/** The parameters as the schema has them. Throws `invalid_request` with pointers like "?limit". */
export function parseQuery(plan: QueryPlan, text: string): Readonly<Record<string, unknown>> {
  if (text === "") return checked(plan, {});
  if (text.length > QUERY_LENGTH_MAX) throw queryRefusal([{ pointer: "?", detail: "the query is too long" }]);
  const pairs = text.split("&").filter((pair) => pair !== "");
  if (pairs.length > QUERY_PARAMETERS_MAX) throw queryRefusal([{ pointer: "?", detail: "too many parameters" }]);
  const values: Record<string, unknown> = {};
  const faults: FieldFault[] = [];
  for (const pair of pairs) {
    const equals = pair.indexOf("=");
    const name = decoded(equals < 0 ? pair : pair.slice(0, equals));
    const value = decoded(equals < 0 ? "" : pair.slice(equals + 1));
    const pointer = `?${name ?? ""}`.slice(0, 100).toWellFormed();
    if (name === undefined || value === undefined)
      faults.push({ pointer, detail: "is not valid percent-encoded UTF-8" });
    else if (!plan.types.has(name)) {
      if (!plan.ignoresUnknown) faults.push({ pointer, detail: unknownText(name, plan) });
    } else if (Object.hasOwn(values, name)) faults.push({ pointer, detail: "is there more than once" });
    else values[name] = converted(plan.types.get(name), value);
  }
  if (faults.length > 0) throw queryRefusal(faults);
  return checked(plan, values);
}

function checked(plan: QueryPlan, values: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const faults = checkShape(plan.schema, values);
  if (faults.length > 0)
    throw queryRefusal(faults.map(({ pointer, detail }) => ({ pointer: `?${pointer.slice(1)}`, detail })));
  return values;
}

function queryRefusal(faults: readonly FieldFault[]): Refusal {
  const first = faults[0];
  return new Refusal("invalid_request", first === undefined ? "" : `${first.pointer}: ${first.detail}`, faults);
}

function unknownText(name: string, plan: QueryPlan): string {
  const nearest = name.length > 40 ? undefined : nearestWord(name, [...plan.types.keys()]);
  return nearest === undefined
    ? "is not a parameter of this route"
    : `is not a parameter of this route; the nearest is ${nearest}`;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

/** Text that is none of the type stays text, which the schema then refuses. */
function converted(type: string | undefined, text: string): unknown {
  if (type === "integer" && /^-?(0|[1-9][0-9]{0,15})$/.test(text)) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}
