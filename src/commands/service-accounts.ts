/** Service accounts: automation's way in, with a token that is shown once. */
import { SERVICE_ACCOUNTS_MAX } from "../model/limits.ts";
import type { ServiceAccountBody } from "../model/objects.ts";
import { type FieldFault, Refusal, refuseFaults } from "../model/refusal.ts";
import {
  hasExpired,
  newToken,
  rotationOutcome,
  type ServiceAccountCreate,
  serviceAccountFaults,
} from "../model/service-account.ts";
import type { Stored, StoreReader } from "../store/store.ts";
import { noteDelete, noteWrite } from "./audit-outcome.ts";
import { permitUnconfined } from "./permit.ts";
import { type Caller, newId, requireById, requireMatch, runCommand } from "./run.ts";
import type { SignIn } from "./sign-in.ts";

/** `token` is there where one was made, and never in a dry run: it would not hold. */
export type ServiceAccountOutcome = {
  readonly stored: Stored<"service-account">;
  readonly token: string | undefined;
};

const KIND = "service-account";

/** Creates an account and its first token. A name that is taken is a `conflict` that names its account. */
export function createServiceAccount(
  { context }: SignIn,
  caller: Caller,
  given: ServiceAccountCreate,
): Promise<ServiceAccountOutcome> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write service accounts");
    const zones = zonesOf(tx, given.zone_ids);
    refuseFaults([...serviceAccountFaults(given, tx.nowMs), ...zones.faults]);
    const other = tx.get(KIND, [given.name])?.body;
    if (other !== undefined) {
      const faults = [{ pointer: "/name", detail: "is taken" }];
      throw new Refusal("conflict", "there is a service account of this name", faults, {
        service_account_id: other.id,
      });
    }
    if (tx.count(KIND) >= SERVICE_ACCOUNTS_MAX) {
      throw new Refusal("conflict", `there are ${SERVICE_ACCOUNTS_MAX} service accounts, and no more can be`);
    }
    const id = newId(KIND);
    const { token, secretHash } = newToken(id);
    const { name, role, comment, expires_at } = given;
    const body: ServiceAccountBody = {
      id,
      name,
      role,
      ...(zones.ids === undefined ? {} : { zone_ids: zones.ids }),
      ...(comment === undefined ? {} : { comment }),
      ...(typeof expires_at === "string" ? { expires_at: new Date(expires_at).toISOString() } : {}),
      revoked: false,
      version: 1,
      secret_hash: secretHash,
      issuing_node: context.store.nodeId,
    };
    const stored = tx.put(KIND, body);
    noteWrite(tx, "create", { stored, before: undefined }, name);
    return { stored, token: caller.dryRun ? undefined : token };
  });
}

/** The ids of the zones as they are now, and a fault for each that there is not. */
function zonesOf(
  tx: Pick<StoreReader, "byId">,
  zoneIds: readonly string[] | undefined,
): { readonly ids: readonly string[] | undefined; readonly faults: readonly FieldFault[] } {
  const ids: string[] = [];
  const faults: FieldFault[] = [];
  for (const [index, zoneId] of (zoneIds ?? []).entries()) {
    const zone = tx.byId("zone", zoneId)?.body;
    if (zone === undefined) faults.push({ pointer: `/zone_ids/${index}`, detail: "there is no zone with this id" });
    else if (!ids.includes(zone.id)) ids.push(zone.id);
  }
  return { ids: zoneIds === undefined ? undefined : ids, faults };
}

/** Ends the token; the account stays listed. Again is no error. */
export function revokeServiceAccount({ context }: SignIn, caller: Caller, id: string): Promise<ServiceAccountOutcome> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write service accounts");
    const before = requireById(tx, KIND, id);
    requireMatch(caller, before);
    const stored = tx.put(KIND, { ...before.body, revoked: true });
    noteWrite(tx, "update", { stored, before }, stored.body.name, "revoked");
    return { stored, token: undefined };
  });
}

/**
 * Makes a new secret, if `version` (the one that the caller knows) is the current one or left out; the old one ends at
 * once. One behind is the same call again: it changes nothing, and is noted so. Throws `version_mismatch` for any other, `conflict` for
 * what could not be used, and where another node issued the account.
 */
export function rotateServiceAccount(
  { context, serviceAccountScope }: SignIn,
  caller: Caller,
  id: string,
  version: number | undefined,
): Promise<ServiceAccountOutcome> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write service accounts");
    const before = requireById(tx, KIND, id);
    const account = before.body;
    if (serviceAccountScope === "issuing-node" && account.issuing_node !== context.store.nodeId) {
      const detail = `only the node ${account.issuing_node} rotates this token; address that node`;
      throw new Refusal("conflict", detail, [], { issuing_node: account.issuing_node });
    }
    if (account.revoked) throw new Refusal("conflict", "the service account was revoked");
    if (hasExpired(account, tx.nowMs)) throw new Refusal("conflict", "the service account has expired");
    const outcome = rotationOutcome(account, version);
    if (outcome === "mismatch") {
      const faults = [{ pointer: "/version", detail: `the current version is ${account.version}` }];
      throw new Refusal("version_mismatch", "the service account has another version", faults, {
        version: account.version,
      });
    }
    requireMatch(caller, before);
    if (outcome === "done") {
      noteWrite(tx, "update", { stored: before, before }, account.name, "rotated already");
      return { stored: before, token: undefined };
    }
    const { token, secretHash } = newToken(account.id);
    const stored = tx.put(KIND, { ...account, version: account.version + 1, secret_hash: secretHash });
    noteWrite(tx, "update", { stored, before }, account.name, "with a new token");
    return { stored, token: caller.dryRun ? undefined : token };
  });
}

/** Deletes an account; its token ends at once. Returns its own id. */
export function deleteServiceAccount({ context }: SignIn, caller: Caller, id: string): Promise<string> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write service accounts");
    const stored = requireById(tx, KIND, id);
    requireMatch(caller, stored);
    tx.delete(KIND, stored.key);
    noteDelete(tx, stored, stored.body.name);
    return stored.body.id;
  });
}
