/** What the runner needs of this machine, or why it cannot run scripts here. */
import { statSync } from "node:fs";
import { MEMORY_BYTES_MAX } from "./limits.ts";
import { canSeeChildren } from "./process-tree.ts";
import type { Cell } from "./run-script.ts";
import { filterBytes } from "./seccomp-filter.ts";
import { findTool } from "./tool.ts";
import type { ScriptUser } from "./user.ts";

export type CellOptions = ScriptUser & {
  readonly directory: string | undefined;
  /** Paths of the service. */
  readonly hidden: readonly string[];
};

export type Prepared =
  | { readonly kind: "ready"; readonly cell: Cell; readonly ip: string }
  | { readonly kind: "refused"; readonly why: string };

/** `own`: the user that this process acts as. */
export function prepareCell(options: CellOptions, own = process.geteuid?.()): Prepared {
  const { userId, groupId, directory, hidden } = options;
  const refused = (why: string): Prepared => ({ kind: "refused", why });
  if (process.platform !== "linux") return refused("scripts run on Linux only");
  const filter = filterBytes(process.arch);
  if (filter === undefined) return refused(`there is no filter of system calls for ${process.arch}`);
  if (own !== 0 && own !== userId) {
    return refused(`the runner is user ${own}: it must be root, or user ${userId} itself, to run scripts as that user`);
  }
  for (const path of hidden) {
    if (ownerOf(path) === userId) {
      return refused(`${path} belongs to user ${userId}, as whom scripts run`);
    }
  }
  if (!canSeeChildren()) return refused("this kernel does not tell of a process's children (CONFIG_PROC_CHILDREN)");
  const bwrap = findTool("bwrap");
  if (bwrap === undefined) return refused("bwrap is missing; install the package bubblewrap (0.8 or later)");
  const ip = findTool("ip");
  if (ip === undefined) return refused("ip is missing; install the package iproute2");
  return {
    kind: "ready",
    ip,
    cell: { bwrap, userId, groupId, filter, directory, memoryBytesMax: MEMORY_BYTES_MAX },
  };
}

/** Undefined where it is not there, or where this user does not even come near it. */
function ownerOf(path: string): number | undefined {
  try {
    return statSync(path).uid;
  } catch {
    return undefined;
  }
}
