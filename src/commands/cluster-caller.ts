/** Who writes what no request asked for. */
import type { Caller } from "./run.ts";

/** The node itself, as the audit log names it. */
export const SYSTEM: Caller = {
  actor: { kind: "system", id: "", name: "system", role: "admin" },
  address: "",
  requestId: "",
  dryRun: false,
};
