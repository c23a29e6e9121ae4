/** A store with a zone, callers of every kind, and a look at everything, for tests of commands. */
import assert from "node:assert/strict";
import type { Caller, CommandContext } from "../../src/commands/run.ts";
import { createZone } from "../../src/commands/zones.ts";
import type { Kind, Role } from "../../src/model/objects.ts";
import { Refusal, type RefusalCode } from "../../src/model/refusal.ts";
import { type AuditEntry, type AuditFilter, LIST_PAGE_MAX, type Store } from "../../src/store/store.ts";
import { temporaryStore } from "./store.ts";

export type CallerOptions = {
  readonly role?: Role;
  readonly zoneIds?: readonly string[];
  readonly dryRun?: boolean;
  readonly ifMatch?: string;
};

/** An editor, unless told otherwise. */
export function testCaller({ role = "editor", zoneIds, dryRun = false, ifMatch }: CallerOptions = {}): Caller {
  const actor = { kind: "user", id: "usr_test", name: "test", role } as const;
  return {
    actor: zoneIds === undefined ? actor : { ...actor, kind: "service-account", zoneIds },
    address: "192.0.2.100",
    requestId: "test-request",
    dryRun,
    ...(ifMatch === undefined ? {} : { ifMatch }),
  };
}

/** No other node is alive. */
export const ALONE = { peersAlive: () => 0 };

const KINDS: readonly Kind[] = ["zone", "record", "override", "user", "config", "healthcheck"];

/** Everything that a refused command must leave as it is: objects with their stamps, serials, states, the audit log. */
export function everythingIn(store: Store): unknown {
  const objects = KINDS.map((kind) => store.list(kind, { limit: LIST_PAGE_MAX }));
  const zones = store
    .list("zone", { limit: LIST_PAGE_MAX })
    .map(({ body }) => [store.serialOf(body.name), store.stateOf(body.name), store.count("record", body.name)]);
  return { objects, zones, counts: KINDS.map((kind) => store.count(kind)), audit: auditOf(store, {}) };
}

/** Entries of the audit log, newest first. */
export function auditOf(store: Store, filter: AuditFilter): readonly AuditEntry[] {
  return store.auditPage(filter, { limit: 1000 }).entries;
}

export type CommandWorld = AsyncDisposable & {
  readonly store: Store;
  readonly context: CommandContext;
  readonly zoneId: string;
  readonly everything: () => unknown;
  readonly audit: (filter: AuditFilter) => readonly AuditEntry[];
};

/** A store with one empty zone. */
export async function givenZone(name: string): Promise<CommandWorld> {
  const { store, context, [Symbol.asyncDispose]: dispose } = await temporaryStore();
  const { stored } = await createZone(context, testCaller(), ALONE, { name });
  return {
    store,
    context,
    zoneId: stored.body.id,
    everything: () => everythingIn(store),
    audit: (filter) => auditOf(store, filter),
    [Symbol.asyncDispose]: dispose,
  };
}

/** The refusal that the command ends with. */
export async function refusedWith(code: RefusalCode, command: Promise<unknown>): Promise<Refusal> {
  const refusal = await command.then(
    () => assert.fail(`was to be refused with ${code}`),
    (error: unknown) => error,
  );
  if (!(refusal instanceof Refusal)) throw refusal;
  assert.equal(refusal.code, code, refusal.message);
  return refusal;
}
