/** Answers about one object: its view with its version, and where it is. */
import Type from "typebox";
import { type Caller, etagOf } from "../../commands/run.ts";
import type { Stored } from "../../store/store.ts";
import type { Reply } from "../route.ts";

/** The view with its ETag, and after a create its Location. A rehearsal's version never was, so it has neither. */
export function objectReply(view: unknown, stored: Stored, caller: Caller, location?: string): Reply {
  if (caller.dryRun) return { body: view };
  return {
    headers: { etag: etagOf(stored), ...(location === undefined ? {} : { location: `/api/v1${location}` }) },
    body: view,
  };
}

/** The answer to a DELETE. */
export function deletedReply(id: string): Reply {
  return { body: { deleted: true, id } };
}

export const DeletedView = Type.Object({ deleted: Type.Literal(true), id: Type.String() });
