/** Writes of conditional forwarders and stub zones. A domain has one of them: two would say different things of its names. */
import { domainWarnings } from "../model/forward-domain.ts";
import {
  type ForwarderCreate,
  type ForwarderUpdate,
  forwarderFromCreate,
  forwarderWithUpdate,
} from "../model/forwarder.ts";
import { ROUTES_MAX } from "../model/limits.ts";
import type { Bodies } from "../model/objects.ts";
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

export type ForwardKind = "forwarder" | "stub-zone";

export type ForwardOutcome<K extends ForwardKind> = WriteOutcome<K> & {
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
  return create(context, caller, "forwarder", (id) => forwarderFromCreate(given, id, context.isOwnSocket));
}

/** The same of a stub zone. */
export function createStubZone(
  context: ForwardContext,
  caller: Caller,
  given: StubZoneCreate,
): Promise<ForwardOutcome<"stub-zone">> {
  return create(context, caller, "stub-zone", (id) => stubZoneFromCreate(given, id, context.isOwnSocket));
}

function create<K extends ForwardKind>(
  context: ForwardContext,
  caller: Caller,
  kind: K,
  bodyOf: (id: string) => Bodies[K],
): Promise<ForwardOutcome<K>> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, WHAT[kind]);
    const body = bodyOf(newId(kind));
    refuseTakenDomain(tx, body.domain);
    refuseTooMany(tx);
    return noted(tx, "create", { stored: tx.put(kind, body), before: undefined });
  });
}

/** Changes the fields given, as one command. Another domain moves the forwarder, which keeps its id. */
export function updateForwarder(
  context: ForwardContext,
  caller: Caller,
  id: string,
  given: ForwarderUpdate,
): Promise<ForwardOutcome<"forwarder">> {
  return update(context, caller, { kind: "forwarder", id }, (before) =>
    forwarderWithUpdate(before.body, given, viewTimes(before), context.isOwnSocket),
  );
}

/** The same of a stub zone. */
export function updateStubZone(
  context: ForwardContext,
  caller: Caller,
  id: string,
  given: StubZoneUpdate,
): Promise<ForwardOutcome<"stub-zone">> {
  return update(context, caller, { kind: "stub-zone", id }, (before) =>
    stubZoneWithUpdate(before.body, given, viewTimes(before), context.isOwnSocket),
  );
}

function update<K extends ForwardKind>(
  context: ForwardContext,
  caller: Caller,
  { kind, id }: { readonly kind: K; readonly id: string },
  bodyOf: (before: Stored<K>) => Bodies[K],
): Promise<ForwardOutcome<K>> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, WHAT[kind]);
    const before = requireById(tx, kind, id);
    const body = bodyOf(before);
    const isMoved = body.domain !== before.body.domain;
    if (isMoved) refuseTakenDomain(tx, body.domain);
    requireMatch(caller, before);
    const stored = isMoved ? tx.move(kind, before.key, body) : tx.put(kind, body);
    return noted(tx, "update", { stored, before });
  });
}

function noted<K extends ForwardKind>(
  tx: CommandTransaction,
  action: "create" | "update",
  outcome: WriteOutcome<K>,
): ForwardOutcome<K> {
  const { domain } = outcome.stored.body;
  noteWrite(tx, action, outcome, domain);
  return { ...outcome, warnings: warningsOf(tx, domain) };
}

/** Deletes a forwarder or stub zone as one command. Returns its own id. */
export function deleteForwardRoute(
  context: CommandContext,
  caller: Caller,
  kind: ForwardKind,
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
