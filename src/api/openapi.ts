/** The table of routes as an OpenAPI 3.1 document: what the server checks is what a reader is told. */
import type { TSchema } from "typebox";
import Type from "typebox";
import { isOptionalShape } from "../model/shape.ts";
import { isMutating, rateClassOf } from "./admission.ts";
import { BODY_BYTES_DEFAULT } from "./limits.ts";
import { exampleOf } from "./openapi-examples.ts";
import { PROBLEMS } from "./problem.ts";
import { queryPlan } from "./query.ts";
import { type Route, route } from "./route.ts";

type Json = Readonly<Record<string, unknown>>;

const DESCRIPTION = `Every request but sign-in carries \`Authorization: Bearer TOKEN\` (from \`/auth/login\`, or the token of a \
service account) or the session's cookie. Requests that change something, and GETs of whole contents, carry \
\`X-SVC-CSRF: 1\`. Refusals are problem documents (RFC 9457) with a stable \`code\` and the fields at fault, in this order: \
401, 429, 403 for the role or the zone, 403 for the CSRF header, 404, 400, 409, 412, 413, 415, 422. \
Lists are complete without \`limit\`, and pages with it. A PUT changes the fields it is given; null takes a field away.`;

const Problem = {
  type: "object",
  required: ["type", "title", "status", "detail", "code", "errors"],
  properties: {
    type: { type: "string" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string", description: "One sentence for a person." },
    code: { type: "string", enum: Object.keys(PROBLEMS) },
    errors: {
      type: "array",
      items: {
        type: "object",
        required: ["pointer", "detail"],
        properties: {
          pointer: { type: "string", description: "RFC 6901 pointer into the body, or ?name of a query parameter." },
          detail: { type: "string" },
        },
      },
    },
  },
};

/** The document of all rows, its own among them. */
export function openApiDocument(rows: readonly Route[], version: string): Json {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const row of rows) {
    const path = row.path.replace(/:([a-zA-Z_]+)/g, "{$1}");
    paths[path] = { ...paths[path], [row.method.toLowerCase()]: operationOf(row) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Signpost",
      version,
      description: DESCRIPTION,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/api/v1" }],
    tags: [...new Set(rows.map(({ tag }) => tag))].sort().map((name) => ({ name })),
    paths,
    components: {
      schemas: { Problem },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        session: { type: "apiKey", in: "cookie", name: "svc_session" },
      },
    },
  };
}

/** The route of the document, which holds `rows` and itself. */
export function openApiRoute(rows: readonly Route[], version: string): Route {
  let text: Buffer | undefined;
  const own: Route = route({
    method: "GET",
    path: "/openapi.json",
    summary: "This document",
    tag: "documentation",
    access: "public",
    response: Type.Object({}),
    handle: () => {
      text ??= Buffer.from(JSON.stringify(openApiDocument([...rows, own], version)));
      return { headers: { "content-type": "application/json; charset=utf-8" }, body: text };
    },
  });
  return own;
}

function operationOf(row: Route): Json {
  return {
    operationId: operationId(row),
    summary: row.summary,
    tags: [row.tag],
    description: `${accessText(row)} Counted as \`${rateClassOf(row)}\`.`,
    "x-access": row.access,
    security: row.access === "public" ? [] : [{ bearer: [] }, { session: [] }],
    parameters: [...pathParameters(row), ...queryParameters(row), ...headerParameters(row)],
    ...requestBody(row),
    responses: { "200": successOf(row), ...refusalsOf(row) },
  };
}

function operationId({ method, path }: Route): string {
  return `${method.toLowerCase()}${path.replace(/[^a-zA-Z0-9]+(.)?/g, (_, letter?: string) => (letter ?? "").toUpperCase())}`;
}

function accessText({ access, confinedTo, method }: Route): string {
  if (access === "public") return "Needs no token.";
  const confined =
    method !== "GET" && confinedTo !== undefined ? " A token confined to zones may use it in these." : "";
  return `Needs the role ${access}${access === "admin" ? "" : ", or one above it"}.${confined}`;
}

function pathParameters(row: Route): readonly Json[] {
  const names = [...row.path.matchAll(/:([a-zA-Z_]+)/g)].map((match) => match[1] ?? "");
  const properties = propertiesOf(row.params);
  return names.map((name) => {
    const schema = properties[name] ?? { type: "string" };
    return { name, in: "path", required: true, schema: plain(schema), example: exampleOf(name, schema) };
  });
}

function queryParameters(row: Route): readonly Json[] {
  const { schema } = queryPlan(row.query, isMutating(row));
  return Object.entries(propertiesOf(schema)).map(([name, property]) => ({
    name,
    in: "query",
    required: !Type.IsOptional(property),
    ...(name === "dry_run" ? { description: "Does everything but the writing." } : descriptionOf(property)),
    schema: plain(property),
  }));
}

function headerParameters(row: Route): readonly Json[] {
  const parameters: Json[] = [];
  if (isMutating(row) || row.sensitive === true) {
    parameters.push({ name: "X-SVC-CSRF", in: "header", required: true, schema: { type: "string", enum: ["1"] } });
  }
  if (row.method === "PUT" || row.method === "DELETE") {
    const description = "The ETag of the version that the change is meant for.";
    parameters.push({ name: "If-Match", in: "header", required: false, description, schema: { type: "string" } });
  }
  return parameters;
}

function requestBody(row: Route): Json {
  if (row.rawBody !== undefined) {
    const { body } = row;
    const media = body === undefined ? {} : { schema: plain(body), example: exampleOf("", body) };
    const content = Object.fromEntries(row.rawBody.map((type) => [type, media]));
    return { requestBody: { required: true, description: bodyLimitText(row), content } };
  }
  if (row.body === undefined) return {};
  const content = { "application/json": { schema: plain(row.body), example: exampleOf("", row.body) } };
  return { requestBody: { required: !isOptionalShape(row.body), description: bodyLimitText(row), content } };
}

function bodyLimitText({ bodyLimitBytes }: Route): string {
  return `At most ${bodyLimitBytes ?? BODY_BYTES_DEFAULT} bytes.`;
}

/** `contentMediaType` of a response that is no JSON names what it is. */
function successOf({ response }: Route): Json {
  const type = "contentMediaType" in response ? String(response.contentMediaType) : "application/json";
  const example = type === "application/json" ? { example: exampleOf("", response) } : {};
  return { description: "Done", content: { [type]: { schema: plain(response), ...example } } };
}

function refusalsOf(row: Route): Json {
  const hasBody = row.body !== undefined || row.rawBody !== undefined;
  const statuses: readonly (readonly [number, string, boolean])[] = [
    [400, "A field, a parameter or the body is not valid.", true],
    [401, "There are no credentials, or they are not valid.", row.access !== "public"],
    [403, "The role, the zones of the token or the header X-SVC-CSRF.", row.access !== "public" || isMutating(row)],
    [404, "There is no such thing.", row.path.includes(":")],
    [409, "It collides with what is there.", isMutating(row)],
    [412, "If-Match names another version.", row.method === "PUT" || row.method === "DELETE"],
    [413, "The body is too large.", hasBody],
    [415, "The media type is not taken.", hasBody],
    [422, "The batch is larger than the cap.", row.path.endsWith("/bulk-delete")],
    [429, "Too many requests: `Retry-After` says when to come again.", true],
    [500, "The node failed.", true],
    [503, "The node cannot take this now.", true],
  ];
  const content = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };
  return Object.fromEntries(
    statuses
      .filter(([, , applies]) => applies)
      .map(([status, description]) => [String(status), { description, content }]),
  );
}

function propertiesOf(schema: TSchema | undefined): Readonly<Record<string, TSchema>> {
  return schema !== undefined && Type.IsObject(schema) ? schema.properties : {};
}

function descriptionOf(schema: TSchema): Json {
  return "description" in schema ? { description: schema.description } : {};
}

/** The schema without what typebox keeps for itself. */
function plain(schema: unknown): unknown {
  return JSON.parse(JSON.stringify(schema));
}
