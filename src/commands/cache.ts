/** The cache of forwarded answers of this node: what it holds, and how it is emptied. It is no part of the store. */
import { anyFullName } from "../model/names.ts";
import { Refusal, refuseFaults } from "../model/refusal.ts";
import { permitUnconfined } from "./permit.ts";
import { type Caller, type CommandContext, runCommand } from "./run.ts";

/** Counts since the node's start, or since the thread that resolves was last replaced. */
export type CacheState = {
  readonly entries: number;
  readonly bytes: number;
  readonly capacity_bytes: number;
  readonly hits: number;
  readonly misses: number;
  readonly stale: number;
  readonly insertions: number;
  readonly evictions: number;
  readonly refreshes: number;
  readonly flushed: number;
};

/** What the API asks of the thread that resolves. The composition root supplies it. */
export type CacheView = {
  readonly nodeId: string;
  /** Undefined: the thread does not answer. */
  readonly read: () => Promise<CacheState | undefined>;
  /** `name` is a lower-case wire name; undefined: everything. Gives how many answers went, undefined: nobody says. */
  readonly flush: (name: Uint8Array | undefined, isSubtree: boolean) => Promise<number | undefined>;
};

export type FlushAsked = {
  /** With or without its last dot. */
  readonly name?: string;
  readonly subtree?: boolean;
};

export type FlushOutcome = { readonly node_id: string; readonly flushed: number };

function awayRefusal(): Refusal {
  return new Refusal("not_ready", "the thread that resolves does not answer now", [], { retry_after: 1 });
}

/** Throws `not_ready` where the thread that resolves is away. */
export async function readCache(view: CacheView): Promise<CacheState & { readonly node_id: string }> {
  const state = await view.read();
  if (state === undefined) throw awayRefusal();
  return { node_id: view.nodeId, ...state };
}

/** Takes answers out of this node's cache, and notes it. A rehearsal looks at the request and takes nothing. */
export async function flushCache(
  context: CommandContext,
  view: CacheView,
  caller: Caller,
  { name, subtree = false }: FlushAsked,
): Promise<FlushOutcome> {
  permitUnconfined(caller, "flush the cache");
  const outcome = name === undefined ? undefined : anyFullName(name);
  refuseFaults([
    ...(outcome?.kind === "fault" ? [{ pointer: "/name", detail: outcome.detail }] : []),
    ...(name === undefined && subtree ? [{ pointer: "/subtree", detail: "needs a name" }] : []),
  ]);
  const wire = outcome?.kind === "name" ? outcome.wire : undefined;
  const flushed = caller.dryRun ? 0 : await view.flush(wire, subtree);
  if (flushed === undefined) throw awayRefusal();
  const what = outcome?.kind === "name" ? outcome.text : "everything";
  await runCommand(context, caller, (tx) => {
    tx.note({
      action: "flush",
      resource: "cache",
      resource_id: view.nodeId,
      resource_name: what,
      detail: `${flushed} answers${subtree ? ", names below included" : ""}`,
    });
  });
  return { node_id: view.nodeId, flushed };
}
