/** Lists: complete and streamed, or by pages with an opaque cursor. */
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import Type, { type TSchema } from "typebox";
import { Refusal } from "../model/refusal.ts";
import { LIST_PAGE_MAX } from "../store/store.ts";
import { CURSOR_LENGTH_MAX, PAGE_BYTES_MAX, STREAM_CHUNK_CHARACTERS } from "./limits.ts";
import type { Reply } from "./route.ts";

/** The query parameters that every list takes. */
export const PAGE_QUERY = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LIST_PAGE_MAX,
      description: "Most entries of one page, which ends early at 4 MB. Without it the list is complete.",
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

/** What one turn of the event loop finds. */
export type Turn = {
  readonly items: readonly unknown[];
  /** There at the end of the list or of the page: the cursor to go on with, or undefined where nothing follows. */
  readonly end?: { readonly next: string | undefined };
};
/** Finds what comes next. Once the page is full, it gives no more than the end. */
export type Turns = (isFull: boolean) => Turn | Promise<Turn>;

export type TurnsOptions = {
  /** Ends it at PAGE_BYTES_MAX; a list that is no page is complete. */
  readonly isPage?: boolean;
  /** What stands before the items of a list. */
  readonly before?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
};

/**
 * A list or a page of it. Items are taken, made into bytes and sent in pieces, as fast as the client reads, and other work
 * has its turn between two pieces. A client that does not read holds a piece or two: bytes, neither texts nor objects.
 */
export function jsonReply(turns: Turns, options: TurnsOptions): Promise<Reply> {
  return reply(turns, options, {
    contentType: "application/json; charset=utf-8",
    head: JSON.stringify({ ...options.before, items: [] }).slice(0, -2),
    between: ",",
    tail: (next) => `],"next_cursor":${JSON.stringify(next ?? null)}}`,
  });
}

/** As `jsonReply`, one JSON text a line (NDJSON). */
export function linesReply(turns: Turns, options: TurnsOptions): Promise<Reply> {
  return reply(turns, options, {
    contentType: "application/x-ndjson; charset=utf-8",
    head: "",
    between: "\n",
    // An empty list of lines is an empty body.
    tail: (_next, isEmpty) => (isEmpty ? "" : "\n"),
  });
}

type Form = {
  readonly contentType: string;
  readonly head: string;
  readonly between: string;
  readonly tail: (next: string | undefined, isEmpty: boolean) => string;
};

/** What fits in one piece goes as a whole: its length is known, and what fails in it is still a problem document. */
async function reply(turns: Turns, options: TurnsOptions, form: Form): Promise<Reply> {
  const pieces = piecesOf(turns, options, form);
  const headers = { "content-type": form.contentType };
  const first = await pieces.next();
  if (first.done === true) return { headers, body: first.value };
  return { headers, body: Readable.from(withFirst(first.value, pieces), { objectMode: false }) };
}

/** Every piece but the last is yielded, and the last is returned. */
async function* piecesOf(turns: Turns, options: TurnsOptions, form: Form): AsyncGenerator<Buffer, Buffer> {
  const write = pieceWriter(turns, options, form);
  for (;;) {
    const { piece, isLast } = await write();
    if (isLast) return piece;
    if (piece.length > 0) yield piece;
    await setImmediate();
    // Nobody reads what this would give; and a search that finds nothing has no other way to learn of it.
    if (options.signal?.aborted) return NOTHING;
  }
}

async function* withFirst(first: Buffer, pieces: AsyncGenerator<Buffer, Buffer>): AsyncGenerator<Buffer> {
  yield first;
  yield yield* pieces;
}

/** Makes one turn at each call, and bytes of it as soon as there are enough for a piece; before that they are none. */
function pieceWriter(turns: Turns, { isPage = false }: TurnsOptions, { head, between, tail }: Form) {
  let text = head;
  let bytes = 0;
  let isEmpty = true;
  const take = (): Buffer => {
    const piece = Buffer.from(text);
    bytes += piece.length;
    text = "";
    return piece;
  };
  return async (): Promise<{ readonly piece: Buffer; readonly isLast: boolean }> => {
    const { items, end } = await turns(isPage && bytes + text.length >= PAGE_BYTES_MAX);
    for (const item of items) {
      text += isEmpty ? JSON.stringify(item) : between + JSON.stringify(item);
      isEmpty = false;
    }
    if (end !== undefined) text += tail(end.next, isEmpty);
    const isReady = end !== undefined || text.length >= STREAM_CHUNK_CHARACTERS;
    return { piece: isReady ? take() : NOTHING, isLast: end !== undefined };
  };
}
const NOTHING = Buffer.alloc(0);
