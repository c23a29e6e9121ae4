/** Takes in the body of a request: bounded for itself and with all others, decoded and parsed as the route wants it. */
import type { Readable } from "node:stream";
import { parseJson } from "../base/json.ts";
import { Refusal } from "../model/refusal.ts";
import { checkShape, isOptionalShape } from "../model/shape.ts";
import { BODIES_BYTES_MAX, BODY_BYTES_DEFAULT } from "./limits.ts";
import type { Route } from "./route.ts";

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** The bytes of all bodies that are being taken in, so that many large ones cannot fill the memory together. */
export type BodyBudget = { usedBytes: number };

/** The body as `row` wants it: checked JSON, or bytes for its raw media types. Throws 400, 413, 415, or 503 when too much is under way. */
export async function readBody(
  row: Route,
  headers: Headers,
  stream: Readable,
  budget: BodyBudget,
  timeoutMs: number,
): Promise<unknown> {
  const declared = headers["content-length"];
  const limit = row.bodyLimitBytes ?? BODY_BYTES_DEFAULT;
  if (declared !== undefined && Number(declared) > limit) throw tooLarge(limit);
  const mayBeEmpty = declared === "0" || (declared === undefined && headers["content-type"] === undefined);
  const media = mayBeEmpty ? undefined : mediaType(row, headers);
  const bytes = await takeBytes(stream, limit, budget, timeoutMs);
  if (media !== undefined && row.rawBody !== undefined) return bytes;
  if (bytes.length === 0) return checkedBody(row, undefined);
  if (media === undefined) mediaType(row, headers);
  const parsed = parseJson(bytes);
  if ("fault" in parsed) throw new Refusal("invalid_request", parsed.fault, [{ pointer: "", detail: parsed.fault }]);
  return checkedBody(row, parsed.value);
}

const JSON_TYPE = "application/json";

/** The media type without its parameters, where the route takes it. */
function mediaType(row: Route, headers: Headers): string {
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw new Refusal("media_type_unsupported", "a body with a Content-Encoding is not taken");
  }
  const given = String(headers["content-type"] ?? "");
  const [type = "", ...parameters] = given.split(";").map((part) => part.trim());
  const name = type.toLowerCase();
  const taken = row.rawBody ?? [JSON_TYPE];
  if (!taken.includes(name)) {
    throw new Refusal("media_type_unsupported", `the Content-Type must be ${taken.join(" or ")}`);
  }
  const charset = parameters.find((parameter) => /^charset=/i.test(parameter));
  if (charset !== undefined && !/^charset="?utf-?8"?$/i.test(charset)) {
    throw new Refusal("media_type_unsupported", "the only charset is utf-8");
  }
  return row.rawBody === undefined ? JSON_TYPE : name;
}

function tooLarge(limit: number): Refusal {
  return new Refusal("body_too_large", `the body must not have more than ${limit} bytes`, [], { limit_bytes: limit });
}

async function takeBytes(stream: Readable, limit: number, budget: BodyBudget, timeoutMs: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  // HTTP/1.1 has a limit of its own for a whole request, a stream of HTTP/2 has none.
  const timer = setTimeout(() => stream.destroy(new Error("the body took too long")), timeoutMs);
  try {
    for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
      if (!Buffer.isBuffer(chunk)) throw new Error("a body comes in bytes");
      length += chunk.length;
      budget.usedBytes += chunk.length;
      if (length > limit) throw tooLarge(limit);
      if (budget.usedBytes > BODIES_BYTES_MAX) {
        throw new Refusal("not_ready", "too many large bodies are under way", [], { retry_after: 1 });
      }
      chunks.push(chunk);
    }
    return Buffer.concat(chunks, length);
  } catch (error) {
    // A client that goes away in the middle is no fault of this program, and hears no more of it.
    throw error instanceof Refusal ? error : new Refusal("invalid_request", "the body ended early");
  } finally {
    clearTimeout(timer);
    budget.usedBytes -= length;
  }
}

function checkedBody(row: Route, value: unknown): unknown {
  if (row.body === undefined) {
    const isEmpty =
      value === undefined || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
    if (isEmpty && !Array.isArray(value)) return undefined;
    throw new Refusal("invalid_request", "this route takes no body", [{ pointer: "", detail: "must be left out" }]);
  }
  if (value === undefined) {
    if (isOptionalShape(row.body)) return undefined;
    throw new Refusal("invalid_request", "a body is needed", [{ pointer: "", detail: "is missing" }]);
  }
  const faults = checkShape(row.body, value);
  const [first] = faults;
  if (first === undefined) return value;
  throw new Refusal("invalid_request", `${first.pointer === "" ? "the body" : first.pointer} ${first.detail}`, faults);
}
