/** Debug capture: every query of a while, as lines in the memory of the node that is asked. It is no part of the store. */
import { DEBUG_WINDOW_SECONDS_DEFAULT } from "../model/limits.ts";
import { permitUnconfined } from "./permit.ts";
import { type Caller, type CommandContext, runCommand } from "./run.ts";

export type DebugStatus = {
  readonly node_id: string;
  /** Whether the window is open. */
  readonly enabled: boolean;
  readonly expires_at: string | null;
  /** Lines that are kept, and lines that came in a window and are not among them. */
  readonly lines: number;
  readonly dropped: number;
  readonly capacity: number;
};

export type DebugTail = {
  readonly node_id: string;
  readonly dropped: number;
  readonly capacity: number;
  /** Oldest first, each a JSON text. */
  readonly lines: readonly string[];
};

/** What the API asks of whoever captures. The composition root supplies it. */
export type DebugView = {
  readonly nodeId: string;
  /** Opens a window, or gives an open one another end. */
  readonly enable: (seconds: number) => void;
  readonly disable: () => void;
  readonly status: () => DebugStatus;
  readonly tail: () => DebugTail;
  /** The number of lines that went. */
  readonly clear: () => number;
};

/** Opens the window for so many seconds, and notes it. A rehearsal leaves it as it is. */
export async function enableDebug(
  context: CommandContext,
  view: DebugView,
  caller: Caller,
  { duration_seconds: seconds = DEBUG_WINDOW_SECONDS_DEFAULT }: { readonly duration_seconds?: number },
): Promise<DebugStatus> {
  // Noted first: nobody reads queries of others without a trace.
  await noteDebug(context, view, caller, "enable", `for ${seconds} seconds`);
  if (!caller.dryRun) view.enable(seconds);
  return view.status();
}

/** Closes the window; what was captured stays. */
export async function disableDebug(context: CommandContext, view: DebugView, caller: Caller): Promise<DebugStatus> {
  await noteDebug(context, view, caller, "disable", undefined);
  if (!caller.dryRun) view.disable();
  return view.status();
}

/** Discards what was captured; an open window stays open. */
export async function clearDebug(context: CommandContext, view: DebugView, caller: Caller): Promise<void> {
  await noteDebug(context, view, caller, "delete", `${view.status().lines} lines`);
  if (!caller.dryRun) view.clear();
}

async function noteDebug(
  context: CommandContext,
  view: DebugView,
  caller: Caller,
  action: string,
  detail: string | undefined,
): Promise<void> {
  permitUnconfined(caller, "use debug capture");
  await runCommand(context, caller, (tx) => {
    tx.note({
      action,
      resource: "debug",
      resource_id: view.nodeId,
      resource_name: view.nodeId,
      ...(detail === undefined ? {} : { detail }),
    });
  });
}
