/** Lists: complete and streamed, or by pages with an opaque cursor. */
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import Type, { type TSchema } from "typebox";
import { Refusal } from "../model/refusal.ts";
import { LIST_PAGE_MAX } from "../store/store.ts";
import { CURSOR_LENGTH_MAX, STREAM_CHUNK_CHARACTERS } from "./limits.ts";
import type { Reply } from "./route.ts";

/** The query parameters that every list takes. */
export const PAGE_QUERY = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LIST_PAGE_MAX,
      description: "Entries of one page. Without it the list is complete.",
    }),
  ),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: CURSOR_LENGTH_MAX, description: "`next_cursor` of the page before." }),
  ),
};

/** The 200 response of a list. */
export function listOf(item: TSchema): TSchema {
  return Type.Object({ items: Type.Array(item), next_cursor: Type.Union([Type.String(), Type.Null()]) });
}

/** The cursor that continues behind `key`. */
export function cursorOf(key: readonly string[]): string {
  return Buffer.from(JSON.stringify(key)).toString("base64url");
}

/** The key that a cursor continues behind; undefined without one. Throws `invalid_request` for what is none. */
export function keyOfCursor(cursor: string | undefined): readonly string[] | undefined {
  if (cursor === undefined) return undefined;
  try {
    const key: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (Array.isArray(key) && key.length <= 8 && key.every((part) => typeof part === "string")) return key.map(String);
  } catch {
    // What does not parse is as wrong as what has another form.
  }
  const detail = "is not a cursor that this list gave";
  throw new Refusal("invalid_request", `?cursor ${detail}`, [{ pointer: "?cursor", detail }]);
}

/** One page as a body. */
export function pageOf(items: readonly unknown[], next: readonly string[] | undefined): unknown {
  return { items, next_cursor: next === undefined ? null : cursorOf(next) };
}

/**
 * A complete list as a stream: items are taken, made into text and sent in pieces, as fast as the client reads. Other
 * work has its turn between two pieces.
 */
export function streamItems(items: Iterable<unknown> | AsyncIterable<unknown>): Reply {
  return {
    headers: { "content-type": "application/json; charset=utf-8" },
    body: Readable.from(pieces(items, '{"items":[', ",", '],"next_cursor":null}'), STREAM_OPTIONS),
  };
}

/** As `streamItems`, one JSON text a line (NDJSON). */
export function streamLines(items: Iterable<unknown> | AsyncIterable<unknown>): Reply {
  return {
    headers: { "content-type": "application/x-ndjson; charset=utf-8" },
    body: Readable.from(pieces(items, "", "\n", "\n"), STREAM_OPTIONS),
  };
}

const STREAM_OPTIONS = { objectMode: false, highWaterMark: STREAM_CHUNK_CHARACTERS };

async function* pieces(
  items: Iterable<unknown> | AsyncIterable<unknown>,
  head: string,
  between: string,
  tail: string,
): AsyncGenerator<Buffer> {
  let text = head;
  let isFirst = true;
  for await (const item of items) {
    text += isFirst ? JSON.stringify(item) : between + JSON.stringify(item);
    isFirst = false;
    if (text.length < STREAM_CHUNK_CHARACTERS) continue;
    yield Buffer.from(text);
    text = "";
    await setImmediate();
  }
  // An empty list of lines is an empty body.
  yield Buffer.from(isFirst && head === "" ? "" : text + tail);
}
