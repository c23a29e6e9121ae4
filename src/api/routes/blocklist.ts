/** /blocklist: names that are answered with NXDOMAIN, with all that lies below them. */
import { Readable } from "node:stream";
import Type from "typebox";
import { type BlocklistTools, type BlocklistView, putBlocklist, viewBlocklist } from "../../commands/blocklist.ts";
import type { CommandContext } from "../../commands/run.ts";
import { BLOCKLIST_BYTES_MAX, BLOCKLIST_DOMAINS_MAX } from "../../model/limits.ts";
import { Refusal } from "../../model/refusal.ts";
import { type Reply, type Route, route } from "../route.ts";

const TAG = "blocklist";
const JSON_TYPE = "application/json";

const Count = Type.Integer({ minimum: 0, readOnly: true });
const BlocklistUpdate = Type.Object(
  {
    domains: Type.Array(Type.String({ examples: ["ads.example."] }), {
      maxItems: BLOCKLIST_DOMAINS_MAX,
      description: "Full names, with or without their last dot. Each covers all names below it.",
    }),
    count: Type.Optional(Count),
  },
  { additionalProperties: false },
);
const BlocklistDocument = Type.Object({
  count: Count,
  domains: Type.Array(Type.String(), { description: "In the order of names where they are few." }),
});
const BlocklistSummary = Type.Object({ count: Count });

/** The routes of /blocklist. A body is not made into values here: it is read beside this thread, by `tools`. */
export function blocklistRoutes(context: CommandContext, tools: BlocklistTools): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/blocklist",
      summary: "Get the blocklist",
      tag: TAG,
      access: "readonly",
      response: BlocklistDocument,
      handle: ({ signal }) => documentReply(viewBlocklist(context.store), signal),
    }),
    route({
      method: "PUT",
      path: "/blocklist",
      summary: "Replace the whole blocklist",
      tag: TAG,
      access: "editor",
      body: BlocklistUpdate,
      rawBody: [JSON_TYPE],
      bodyLimitBytes: BLOCKLIST_BYTES_MAX,
      response: BlocklistSummary,
      handle: async ({ body, caller, signal }) => {
        const bytes: unknown = body;
        if (!(bytes instanceof Uint8Array)) {
          throw new Refusal("invalid_request", "a body is needed", [{ pointer: "", detail: "is missing" }]);
        }
        const { count, etag } = await putBlocklist(context, caller, tools, bytes, signal);
        return { headers: versionOf(etag), body: { count } };
      },
    }),
  ];
}

function versionOf(etag: string | undefined): Readonly<Record<string, string>> {
  return etag === undefined ? {} : { etag };
}

/** A piece at a time, as the client reads. What fails in the first is still a problem document. */
async function documentReply({ count, etag, names }: BlocklistView, signal: AbortSignal): Promise<Reply> {
  const pieces = documentPieces(count, names(), signal);
  const first = await pieces.next();
  const headers = { "content-type": `${JSON_TYPE}; charset=utf-8`, ...versionOf(etag) };
  return { headers, body: Readable.from(withFirst(first.value ?? "", pieces), { objectMode: false }) };
}

async function* documentPieces(
  count: number,
  names: AsyncIterable<readonly string[]>,
  signal: AbortSignal,
): AsyncGenerator<string, undefined> {
  let text = `{"count":${count},"domains":[`;
  let isFirst = true;
  for await (const some of names) {
    if (signal.aborted) return;
    if (some.length === 0) continue;
    const piece = JSON.stringify(some).slice(1, -1);
    yield text + (isFirst ? piece : `,${piece}`);
    text = "";
    isFirst = false;
  }
  yield `${text}]}`;
}

async function* withFirst(first: string, rest: AsyncIterable<string>): AsyncGenerator<string> {
  yield first;
  yield* rest;
}
