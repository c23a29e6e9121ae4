/**
 * Dynamic update (RFC 2136) as a command: one transaction, carried out whole or not at all, under the grants of the key that
 * signed it. All of it is decided on the names that it is about before anything is written.
 */
import { randomBytes } from "node:crypto";
import { cidrFromText, cidrHolds, ipFromText, unmappedIp } from "../base/ip.ts";
import { RCODE, RRTYPE } from "../dns/codes.ts";
import type { UpdateFault, UpdateMessage, UpdateOperation } from "../dns/update.ts";
import { canonicalName } from "../model/names.ts";
import type { TsigKeyBody } from "../model/objects.ts";
import { Refusal } from "../model/refusal.ts";
import { mayUpdate, mayUpdateZone } from "../model/update-grants.ts";
import type { StoreReader } from "../store/store.ts";
import { readConfig } from "./config-documents.ts";
import { type Caller, type CommandContext, type CommandTransaction, runCommand, runCommandInSlices } from "./run.ts";
import { applyOperations } from "./update-apply.ts";
import { openWorkingZone, type WorkingZone } from "./update-names.ts";
import { failedPrerequisite, heldType, titleOf, type UpdateRefusal } from "./update-prerequisites.ts";
import { plannedWrites, writeUpdate } from "./update-write.ts";

export type UpdateSender = {
  /** Canonical name of the key whose signature on the request is good; absent: it is not signed. */
  readonly keyName?: string;
  /** Text of its address, without port. */
  readonly address: string;
};

/** `detail` says for a log why it is not NOERROR, and is empty where it is. */
export type UpdateOutcome = { readonly rcode: number; readonly detail: string; readonly recordsChanged: number };

/** An update of more RRs than this is carried out in slices, so that reads and answers of the API do not wait for all of it. */
const AT_ONCE = 100;

/**
 * Carries out an update. Resolves once it is durable and published, with the rcode for the answer. Rejects only where the
 * server itself fails.
 */
export async function applyUpdate(
  context: CommandContext,
  sender: UpdateSender,
  update: UpdateMessage,
): Promise<UpdateOutcome> {
  try {
    const key = sender.keyName === undefined ? undefined : context.store.get("tsig-key", [sender.keyName])?.body;
    const caller = callerOf(sender, key);
    if (update.prerequisites.length + update.updates.length > AT_ONCE) {
      return await runCommandInSlices(context, caller, (tx) => steps(tx, sender, update));
    }
    return await runCommand(context, caller, (tx) => toEnd(steps(tx, sender, update)));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const isRefused = REFUSED_BECAUSE.some((code) => code === error.code);
    return { rcode: isRefused ? RCODE.REFUSED : RCODE.SERVFAIL, detail: error.message, recordsChanged: 0 };
  }
}

/** What is wrong with the update; every other refusal is a state that this node is in. */
const REFUSED_BECAUSE = ["invalid_request", "record_protected", "name_owned"] as const;

function toEnd<T>(work: Generator<void, T>): T {
  let step = work.next();
  while (step.done !== true) step = work.next();
  return step.value;
}

/** Unsigned updates have no name; what the audit log calls them. */
const UNSIGNED = { id: "unsigned", name: "unsigned" };

function callerOf({ address, keyName }: UpdateSender, key: TsigKeyBody | undefined): Caller {
  const named = keyName === undefined ? UNSIGNED : { id: key?.id ?? "", name: keyName };
  return {
    actor: { kind: "key", ...named, role: "editor" },
    address,
    requestId: `upd_${randomBytes(10).toString("hex")}`,
    dryRun: false,
  };
}

/** The order of RFC 2136 section 3: zone, prerequisites, permission, update. */
function* steps(tx: CommandTransaction, sender: UpdateSender, update: UpdateMessage): Generator<void, UpdateOutcome> {
  const { enabled, allow_unsigned_networks } = readConfig(tx, "dynamic-dns").effective;
  if (!enabled) return refused({ rcode: RCODE.REFUSED, detail: "dynamic update is not enabled" });
  const zoneName = canonicalName(update.zone);
  const zone = tx.get("zone", [zoneName]);
  if (zone === undefined || tx.stateOf(zoneName) !== "active") {
    return refused({ rcode: RCODE.NOTAUTH, detail: `${zoneName} is no zone of this server` });
  }
  const grants = grantsOf(tx, sender, allow_unsigned_networks);
  if (grants === undefined || !mayUpdateZone(grants, zoneName)) {
    return refused({ rcode: RCODE.REFUSED, detail: `${senderText(sender)} may not update ${zoneName}` });
  }
  const working = openWorkingZone(tx, zone.body);
  const serial = tx.serialOf(zoneName) ?? 0;
  const failed = yield* failedPrerequisite(working, serial, update.prerequisites);
  if (failed !== undefined) return refused(failed);
  const operations = yield* permitted(working, grants, update.updates);
  if (operations.kind === "refused") return refused(operations.refusal);
  const applied = yield* applyOperations(working, serial, operations.operations);
  if (applied.kind === "refused") return refused(applied.refusal);
  const writes = yield* plannedWrites(working);
  yield* writeUpdate(tx, zone, applied.zone, writes);
  return { rcode: RCODE.NOERROR, detail: "", recordsChanged: writes.length };
}

function refused({ rcode, detail }: UpdateRefusal): UpdateOutcome {
  return { rcode, detail, recordsChanged: 0 };
}

function senderText({ keyName, address }: UpdateSender): string {
  return keyName === undefined ? address : `${keyName} at ${address}`;
}

type Grants = Pick<TsigKeyBody, "grants">;

/** A signed update has the grants of its key, wherever it came from; undefined: it has none at all. */
function grantsOf(
  reader: Pick<StoreReader, "get">,
  { keyName, address }: UpdateSender,
  networks: readonly string[],
): Grants | undefined {
  if (keyName !== undefined) return reader.get("tsig-key", [keyName])?.body;
  const bytes = ipFromText(address);
  if (bytes === undefined) return undefined;
  const plain = unmappedIp(bytes);
  const isAllowed = networks.some((text) => {
    const network = cidrFromText(text);
    return network !== undefined && cidrHolds(network, plain);
  });
  return isAllowed ? {} : undefined;
}

type PermittedUpdate =
  | { readonly kind: "refused"; readonly refusal: UpdateRefusal }
  | { readonly kind: "permitted"; readonly operations: readonly UpdateOperation[] };

/** All operations, where none is malformed (section 3.4.1) and none is beyond the grants (section 3.3). */
function* permitted(
  working: WorkingZone,
  grants: Grants,
  updates: readonly (UpdateOperation | UpdateFault)[],
): Generator<void, PermittedUpdate> {
  const operations: UpdateOperation[] = [];
  for (const update of updates) {
    if (update.kind === "fault") return { kind: "refused", refusal: update };
    operations.push(update);
  }
  for (const operation of operations) {
    const detail = beyondGrants(working, grants, operation);
    if (detail !== undefined) return { kind: "refused", refusal: { rcode: RCODE.REFUSED, detail } };
    yield;
  }
  return { kind: "permitted", operations };
}

/** Why the operation is not permitted. Who deletes a name deletes all that it has, so has to be granted every type of it. */
function beyondGrants(working: WorkingZone, grants: Grants, operation: UpdateOperation): string | undefined {
  const name = working.at(operation.name);
  const refusedType = typesOf(operation).find((type) => !mayUpdate(grants, working.zone.name, name.name, type));
  return refusedType === undefined ? undefined : `${name.name} ${refusedType} is not granted`;

  function typesOf(asked: UpdateOperation): readonly string[] {
    if (asked.kind !== "delete-name") {
      return [asked.type === RRTYPE.SOA ? "SOA" : (heldType(asked.type) ?? titleOf(name, asked.type))];
    }
    return [...name.sets.values()].flatMap(({ type, values }) =>
      values.size === 0 || (name.isApex && type === "NS") ? [] : [type],
    );
  }
}
