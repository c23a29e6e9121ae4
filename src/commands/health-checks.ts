/** Writes of standalone health checks. Who may make a script run, and where, is decided here. */
import {
  editsScript,
  type HealthCheckCreate,
  type HealthCheckUpdate,
  healthCheckFromCreate,
  healthCheckWithUpdate,
} from "../model/health-check.ts";
import * as limits from "../model/limits.ts";
import type { HealthCheckBody } from "../model/objects.ts";
import { Refusal } from "../model/refusal.ts";
import type { Stored } from "../store/store.ts";
import { noteDelete, noteWrite, type WriteOutcome } from "./audit-outcome.ts";
import { permitUnconfined } from "./permit.ts";
import {
  type Caller,
  type CommandContext,
  type CommandTransaction,
  newId,
  requireById,
  requireMatch,
  runCommand,
} from "./run.ts";
import { viewTimes } from "./view-times.ts";

const KIND = "healthcheck";
const WHAT = "write health checks";

export type HealthCheckContext = CommandContext & {
  /** What the configuration of this node says. */
  readonly areScriptsEnabled: boolean;
};

/** Throws `role_insufficient` where a request would set or change a script and the caller is no administrator. */
function permitScript(caller: Caller, editsScripts: boolean): void {
  if (!editsScripts || caller.actor.role === "admin") return;
  const detail = `to set the protocol script or to change script_config needs the role admin, and the caller has ${caller.actor.role}`;
  throw new Refusal("role_insufficient", detail);
}

function requireScriptsEnabled({ areScriptsEnabled }: HealthCheckContext, check: HealthCheckBody): void {
  if (areScriptsEnabled || check.protocol !== "script") return;
  throw new Refusal("script_checks_disabled", "script checks are not enabled here: script_checks.enabled is false");
}

function refuseTakenName(tx: CommandTransaction, name: string): void {
  const incumbent = tx.get(KIND, [name])?.body;
  if (incumbent === undefined) return;
  throw new Refusal("conflict", "there is a health check of this name", [{ pointer: "/name", detail: "is taken" }], {
    health_check_id: incumbent.id,
  });
}

/** Creates a check as one command; a name that is taken is a conflict. */
export function createHealthCheck(
  context: HealthCheckContext,
  caller: Caller,
  given: HealthCheckCreate,
): Promise<WriteOutcome<"healthcheck">> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, WHAT);
    permitScript(caller, editsScript(undefined, given));
    const body = healthCheckFromCreate(given, newId(KIND));
    requireScriptsEnabled(context, body);
    refuseTakenName(tx, body.name);
    if (tx.count(KIND) >= limits.HEALTH_CHECKS_MAX) {
      throw new Refusal("conflict", `there are ${limits.HEALTH_CHECKS_MAX} health checks, and there may not be more`);
    }
    const outcome = { stored: tx.put(KIND, body), before: undefined };
    noteWrite(tx, "create", outcome, body.name);
    return outcome;
  });
}

/** Changes the fields given, as one command. A check that gets another name keeps its id. */
export function updateHealthCheck(
  context: HealthCheckContext,
  caller: Caller,
  id: string,
  given: HealthCheckUpdate,
): Promise<WriteOutcome<"healthcheck">> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, WHAT);
    const before = requireById(tx, KIND, id);
    const editsScripts = editsScript(before.body, given);
    permitScript(caller, editsScripts);
    const body = healthCheckWithUpdate(before.body, given, viewTimes(before));
    if (editsScripts) requireScriptsEnabled(context, body);
    const isRenamed = body.name !== before.body.name;
    if (isRenamed) refuseTakenName(tx, body.name);
    requireMatch(caller, before);
    const stored: Stored<"healthcheck"> = isRenamed ? tx.move(KIND, before.key, body) : tx.put(KIND, body);
    const outcome = { stored, before };
    noteWrite(tx, "update", outcome, body.name);
    return outcome;
  });
}

/** Deletes a check as one command. Returns its own id. */
export function deleteHealthCheck(context: CommandContext, caller: Caller, id: string): Promise<string> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, WHAT);
    const stored = requireById(tx, KIND, id);
    requireMatch(caller, stored);
    tx.delete(KIND, stored.key);
    noteDelete(tx, stored, stored.body.name);
    return stored.body.id;
  });
}
