/** Writes of conditional forwarders and stub zones. A domain has one of them: two would say different things of its names. */
import { domainWarnings } from "../model/forward-domain.ts";
import {
  type ForwarderCreate,
  type ForwarderUpdate,
  forwarderFromCreate,
  forwarderWithUpdate,
} from "../model/forwarder.ts";
import { ROUTES_MAX } from "../model/limits.ts";
import { Refusal } from "../model/refusal.ts";
import {
  type StubZoneCreate,
  type StubZoneUpdate,
  stubZoneFromCreate,
  stubZoneWithUpdate,
} from "../model/stub-zone.ts";
import type { IsOwnSocket } from "../model/upstreams.ts";
import type { Stored, StoreReader } from "../store/store.ts";
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

export type ForwardContext = CommandContext & {
  /** Upstreams must not be this node itself. */
  readonly isOwnSocket: IsOwnSocket;
};

export type ForwardOutcome<K extends "forwarder" | "stub-zone"> = WriteOutcome<K> & {
  /** Sentences for the person who wrote it. */
  readonly warnings: readonly string[];
};

const WHAT = { forwarder: "write forwarders", "stub-zone": "write stub zones" } as const;

/** Throws `conflict` that names the forwarder or stub zone that has the domain. */
function refuseTakenDomain(tx: Pick<StoreReader, "get">, domain: string): void {
  const forwarder = tx.get("forwarder", [domain])?.body;
  if (forwarder !== undefined) {
    throw taken(`${domain} has the forwarder ${forwarder.id}`, { forwarder_id: forwarder.id });
  }
  const stub = tx.get("stub-zone", [domain])?.body;
  if (stub !== undefined) throw taken(`${domain} has the stub zone ${stub.id}`, { stub_zone_id: stub.id });
}

function taken(detail: string, members: Readonly<Record<string, string>>): Refusal {
  return new Refusal("conflict", detail, [{ pointer: "/domain", detail: "is taken" }], members);
}

function refuseTooMany(tx: Pick<StoreReader, "count">): void {
  if (tx.count("forwarder") + tx.count("stub-zone") < ROUTES_MAX) return;
  throw new Refusal("conflict", `there are ${ROUTES_MAX} forwarders and stub zones, and there may not be more`);
}

function warningsOf(tx: Pick<StoreReader, "get">, domain: string): readonly string[] {
  return domainWarnings(domain, tx.get("zone", [domain]) !== undefined);
}

/** Creates a forwarder as one command; a domain that is taken is a conflict. */
export function createForwarder(
  context: ForwardContext,
  caller: Caller,
  given: ForwarderCreate,
): Promise<ForwardOutcome<"forwarder">> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, WHAT.forwarder);
    const body = forwarderFromCreate(given, newId("forwarder"), context.isOwnSocket);
    refuseTakenDomain(tx, body.domain);
    refuseTooMany(tx);
    return created(tx, { stored: tx.put("forwarder", body), before: undefined });
  });
}

/** The same of a stub zone. */
export function createStubZone(
  context: ForwardContext,
  caller: Caller,
  given: StubZoneCreate,
): Promise<ForwardOutcome<"stub-zone">> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, WHAT["stub-zone"]);
    const body = stubZoneFromCreate(given, newId("stub-zone"), context.isOwnSocket);
    refuseTakenDomain(tx, body.domain);
    refuseTooMany(tx);
    return created(tx, { stored: tx.put("stub-zone", body), before: undefined });
  });
}

function created<K extends "forwarder" | "stub-zone">(
  tx: CommandTransaction,
  outcome: WriteOutcome<K>,
): ForwardOutcome<K> {
  const { domain } = outcome.stored.body;
  noteWrite(tx, "create", outcome, domain);
  return { ...outcome, warnings: warningsOf(tx, domain) };
}

/** Changes the fields given, as one command. Another domain moves the forwarder, which keeps its id. */
export function updateForwarder(
  context: ForwardContext,
  caller: Caller,
  id: string,
  given: ForwarderUpdate,
): Promise<ForwardOutcome<"forwarder">> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, WHAT.forwarder);
    const before = requireById(tx, "forwarder", id);
    const body = forwarderWithUpdate(before.body, given, viewTimes(before), context.isOwnSocket);
    const isMoved = body.domain !== before.body.domain;
    if (isMoved) refuseTakenDomain(tx, body.domain);
    requireMatch(caller, before);
    const stored: Stored<"forwarder"> = isMoved ? tx.move("forwarder", before.key, body) : tx.put("forwarder", body);
    const outcome = { stored, before };
    noteWrite(tx, "update", outcome, body.domain);
    return { ...outcome, warnings: warningsOf(tx, body.domain) };
  });
}

/** The same of a stub zone. */
export function updateStubZone(
  context: ForwardContext,
  caller: Caller,
  id: string,
  given: StubZoneUpdate,
): Promise<ForwardOutcome<"stub-zone">> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, WHAT["stub-zone"]);
    const before = requireById(tx, "stub-zone", id);
    const body = stubZoneWithUpdate(before.body, given, viewTimes(before), context.isOwnSocket);
    const isMoved = body.domain !== before.body.domain;
    if (isMoved) refuseTakenDomain(tx, body.domain);
    requireMatch(caller, before);
    const stored: Stored<"stub-zone"> = isMoved ? tx.move("stub-zone", before.key, body) : tx.put("stub-zone", body);
    const outcome = { stored, before };
    noteWrite(tx, "update", outcome, body.domain);
    return { ...outcome, warnings: warningsOf(tx, body.domain) };
  });
}

/** Deletes a forwarder or stub zone as one command. Returns its own id. */
export function deleteForwardRoute(
  context: CommandContext,
  caller: Caller,
  kind: "forwarder" | "stub-zone",
  id: string,
): Promise<string> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, WHAT[kind]);
    const stored = requireById(tx, kind, id);
    requireMatch(caller, stored);
    tx.delete(kind, stored.key);
    noteDelete(tx, stored, stored.body.domain);
    return stored.body.id;
  });
}
