/** Takes in the body of a request: bounded for itself and with all others, decoded and parsed as the route wants it. */
import type { Readable } from "node:stream";
import { parseJson } from "../base/json.ts";
import { Refusal } from "../model/refusal.ts";
import { checkShape, isOptionalShape } from "../model/shape.ts";
import * as limits from "./limits.ts";
import type { Route } from "./route.ts";

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/**
 * The bytes of all bodies that are being taken in, so that many large ones cannot fill the memory together, nor those of
 * one address keep out those of others.
 */
export type BodyBudget = { readonly of: (key: string) => BodyShare };

export type BodyShare = {
  /** Whether there is room for so many bytes more; they count from then on where there is. */
  readonly take: (bytes: number) => boolean;
  readonly giveBack: (bytes: number) => void;
};

export function createBodyBudget(
  bytesMax = limits.BODIES_BYTES_MAX,
  bytesPerKeyMax = limits.BODIES_BYTES_PER_ADDRESS_MAX,
): BodyBudget {
  const byKey = new Map<string, number>();
  let used = 0;
  const add = (key: string, bytes: number): void => {
    used += bytes;
    const own = (byKey.get(key) ?? 0) + bytes;
    if (own === 0) byKey.delete(key);
    else byKey.set(key, own);
  };
  return {
    of: (key) => ({
      take(bytes) {
        if (used + bytes > bytesMax || (byKey.get(key) ?? 0) + bytes > bytesPerKeyMax) return false;
        add(key, bytes);
        return true;
      },
      giveBack: (bytes) => add(key, -bytes),
    }),
  };
}

/** The body as `row` wants it: checked JSON, or bytes for its raw media types. Throws 400, 413, 415, or 503 when too much is under way. */
export async function readBody(
  row: Route,
  headers: Headers,
  stream: Readable,
  share: BodyShare,
  timeoutMs: number,
): Promise<unknown> {
  const declared = headers["content-length"];
  const limit = row.bodyLimitBytes ?? limits.BODY_BYTES_DEFAULT;
  if (declared !== undefined && Number(declared) > limit) throw tooLarge(limit);
  const mayBeEmpty = declared === "0" || (declared === undefined && headers["content-type"] === undefined);
  const media = mayBeEmpty ? undefined : mediaType(row, headers);
  const bytes = await takeBytes(stream, { limit, declared: Number(declared ?? 0) }, share, timeoutMs);
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

type Lengths = { readonly limit: number; readonly declared: number };

async function takeBytes(
  stream: Readable,
  { limit, declared }: Lengths,
  share: BodyShare,
  timeoutMs: number,
): Promise<Buffer> {
  const bytes = collector(declared);
  let length = 0;
  let counted = 0;
  const stopTimers = endSlowBody(stream, timeoutMs, () => length);
  try {
    for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
      if (!Buffer.isBuffer(chunk)) throw new Error("a body comes in bytes");
      length += chunk.length;
      if (length > limit) throw tooLarge(limit);
      const more = Math.max(0, length - limits.BODY_BYTES_UNCOUNTED) - counted;
      if (more > 0 && !share.take(more)) {
        throw new Refusal("not_ready", "too many large bodies are under way", [], { retry_after: 1 });
      }
      counted += more;
      bytes.add(chunk);
    }
    return bytes.all();
  } catch (error) {
    // A client that goes away in the middle is no fault of this program, and hears no more of it.
    throw error instanceof Refusal ? error : new Refusal("invalid_request", "the body ended early");
  } finally {
    stopTimers();
    if (counted > 0) share.giveBack(counted);
  }
}

/**
 * Puts a body together. A large one whose length was declared has a place of its own from the beginning, in memory that is
 * taken as it fills: as pieces it would be there twice, and joining them would hold up everything else.
 */
function collector(declared: number): { readonly add: (chunk: Buffer) => void; readonly all: () => Buffer } {
  const chunks: Buffer[] = [];
  if (!(declared > limits.BODY_BYTES_DEFAULT)) {
    return { add: (chunk) => void chunks.push(chunk), all: () => Buffer.concat(chunks) };
  }
  // Of pages of its own, which go back to the system; what the allocator has of this size it mostly keeps.
  const place = Buffer.from(new ArrayBuffer(declared, { maxByteLength: declared }), 0, declared);
  let length = 0;
  return {
    add: (chunk) => {
      // More than was declared: HTTP ends it there, and whoever else sends it has a limit.
      if (length + chunk.length > declared) throw new Refusal("invalid_request", "the body is longer than it said");
      place.set(chunk, length);
      length += chunk.length;
    },
    all: () => place.subarray(0, length),
  };
}

/** HTTP/1.1 has a limit of its own for a whole request, a stream of HTTP/2 has none; neither has a least rate. */
function endSlowBody(stream: Readable, timeoutMs: number, lengthOf: () => number): () => void {
  const whole = setTimeout(() => stream.destroy(new Error("the body took too long")), timeoutMs);
  const startedAtMs = performance.now();
  const rate = setInterval(() => {
    const countedMs = performance.now() - startedAtMs - limits.BODY_GRACE_MS;
    if (countedMs < 0 || lengthOf() >= (countedMs * limits.BODY_BYTES_PER_SECOND_MIN) / 1000) return;
    stream.destroy(new Error("the body comes too slowly"));
  }, 1_000);
  return () => {
    clearTimeout(whole);
    clearInterval(rate);
  };
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
