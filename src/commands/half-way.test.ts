/** Every write of these commands, broken at each of its steps in turn, must leave the store as it was. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ALONE, type CommandWorld, everythingIn, givenZone, testCaller } from "../../tests/support/commands.ts";
import type { StoreTransaction } from "../store/store.ts";
import { bulkDelete } from "./bulk-delete.ts";
import { createHealthCheck, deleteHealthCheck, updateHealthCheck } from "./health-checks.ts";
import { createOverride, deleteOverride, updateOverride } from "./overrides.ts";
import { createRecord, deleteRecord, updateRecord } from "./records.ts";
import type { CommandContext } from "./run.ts";
import { createZone, deleteZone, updateZone } from "./zones.ts";

const STEPS = ["put", "delete", "move", "deleteZone", "setState", "audit"] as const;

class Broken extends Error {}

/** A context whose transactions throw right after their n-th step; `taken` counts the steps. */
function breakingAfter(context: CommandContext, n: number): { readonly context: CommandContext; taken: () => number } {
  let taken = 0;
  const breaking = (tx: StoreTransaction): StoreTransaction => {
    const broken: Record<string, unknown> = { ...tx };
    for (const step of STEPS) {
      const real = tx[step] as (...given: unknown[]) => unknown;
      broken[step] = (...given: unknown[]) => {
        const result = real(...given);
        taken++;
        if (taken === n) throw new Broken(`after step ${n}, ${step}`);
        return result;
      };
    }
    return broken as StoreTransaction;
  };
  const { store } = context;
  const broken = {
    ...store,
    write: <T>(work: (tx: StoreTransaction) => T) => store.write((tx) => work(breaking(tx))),
    writeInSlices: <T>(work: (tx: StoreTransaction) => Generator<void, T>) =>
      store.writeInSlices((tx) => work(breaking(tx))),
  };
  return { context: { ...context, store: broken }, taken: () => taken };
}

const value = { type: "A" as const, ttl: 0, values: [{ value: "192.0.2.1" }] };

const watched = { protocol: "tcp", target: "192.0.2.1:53" } as const;

type Ids = { readonly [Name in "www" | "web" | "override" | "other" | "check"]: string };

function withScripts(context: CommandContext) {
  return { ...context, areScriptsEnabled: true };
}

async function givenEverything(world: CommandWorld): Promise<Ids> {
  const record = async (name: string) =>
    (await createRecord(world.context, testCaller(), world.zoneId, { ...value, name })).stored.body.id;
  const override = async (name: string) =>
    (await createOverride(world.context, testCaller(), { ...value, name })).stored.body.id;
  return {
    www: await record("www"),
    web: await record("web"),
    override: await override("a.example."),
    other: await override("b.example."),
    check: (await createHealthCheck(withScripts(world.context), testCaller(), { ...watched, name: "a" })).stored.body
      .id,
  };
}

type Command = (context: CommandContext, world: CommandWorld, ids: Ids) => Promise<unknown>;
const caller = testCaller();
const COMMANDS: Readonly<Record<string, Command>> = {
  "create a zone": (context) => createZone(context, caller, ALONE, { name: "lab." }),
  "update a zone": (context, { zoneId }) => updateZone(context, caller, zoneId, { default_ttl: 5 }),
  "delete a zone": (context, { zoneId }) => deleteZone(context, caller, zoneId),
  "create a record": (context, { zoneId }) => createRecord(context, caller, zoneId, { ...value, name: "new" }),
  "replace a record": (context, { zoneId }) => createRecord(context, caller, zoneId, { ...value, name: "www", ttl: 5 }),
  "update a record": (context, _, { www }) => updateRecord(context, caller, www, { ttl: 5 }),
  "rename a record": (context, _, { www }) => updateRecord(context, caller, www, { name: "new" }),
  "rename a record on to another": (context, _, { www }) => updateRecord(context, caller, www, { name: "web" }),
  "delete a record": (context, _, { www }) => deleteRecord(context, caller, www, false),
  "delete in bulk": (context, { zoneId }, { www, web }) => bulkDelete(context, caller, zoneId, { ids: [www, web] }),
  "create an override": (context) => createOverride(context, caller, { ...value, name: "c.example." }),
  "update an override": (context, _, { override }) => updateOverride(context, caller, override, { enabled: false }),
  "rename an override on to another": (context, _, { override }) =>
    updateOverride(context, caller, override, { name: "b.example." }),
  "delete an override": (context, _, { override }) => deleteOverride(context, caller, override),
  "create a health check": (context) => createHealthCheck(withScripts(context), caller, { ...watched, name: "new" }),
  "update a health check": (context, _, { check }) =>
    updateHealthCheck(withScripts(context), caller, check, { comment: "x" }),
  "rename a health check": (context, _, { check }) =>
    updateHealthCheck(withScripts(context), caller, check, { name: "new" }),
  "delete a health check": (context, _, { check }) => deleteHealthCheck(context, caller, check),
};

for (const [name, command] of Object.entries(COMMANDS)) {
  test(`${name}: what breaks half-way leaves nothing`, async () => {
    await using world = await givenZone("corp.");
    const ids = await givenEverything(world);
    const before = everythingIn(world.store);
    for (let step = 1; ; step++) {
      const breaking = breakingAfter(world.context, step);
      const outcome = await command(breaking.context, world, ids).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (outcome === undefined) {
        assert.ok(step > 2, "a write has at least one step and its entry in the audit log");
        assert.equal(breaking.taken(), step - 1);
        break;
      }
      assert.ok(outcome instanceof Broken, String(outcome));
      assert.deepEqual(everythingIn(world.store), before, outcome.message);
    }
    assert.notDeepEqual(everythingIn(world.store), before);
  });
}
