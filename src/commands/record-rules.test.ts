/** Random writes of records, held against a naive model of the rules. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type CommandWorld, everythingIn, givenZone, testCaller } from "../../tests/support/commands.ts";
import type { RecordType } from "../model/objects.ts";
import { Refusal } from "../model/refusal.ts";
import { bulkDelete } from "./bulk-delete.ts";
import { createRecord, deleteRecord, updateRecord } from "./records.ts";

const NAMES = ["a", "a.b"];
const VALUES = { A: "192.0.2.1", TXT: "text", CNAME: "x.corp.", ALIAS: "y.corp." } as const;
type Type = keyof typeof VALUES;

type Step =
  | { readonly kind: "create"; readonly name: string; readonly type: Type; readonly guarded: boolean }
  | { readonly kind: "rename"; readonly pick: number; readonly name: string }
  | { readonly kind: "guard"; readonly pick: number; readonly guarded: boolean }
  | { readonly kind: "delete"; readonly pick: number; readonly force: boolean }
  | { readonly kind: "bulk"; readonly picks: readonly number[]; readonly force: boolean };

const name = fc.constantFrom(...NAMES);
const pick = fc.nat(7);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant("create" as const),
    name,
    type: fc.constantFrom<Type>("A", "TXT", "CNAME", "ALIAS"),
    guarded: fc.boolean(),
  }),
  fc.record({ kind: fc.constant("rename" as const), pick, name }),
  fc.record({ kind: fc.constant("guard" as const), pick, guarded: fc.boolean() }),
  fc.record({ kind: fc.constant("delete" as const), pick, force: fc.boolean() }),
  fc.record({ kind: fc.constant("bulk" as const), picks: fc.array(pick, { maxLength: 4 }), force: fc.boolean() }),
);

type Entry = { readonly id: string; readonly name: string; readonly type: RecordType; readonly guarded: boolean };

/** The rules in the plainest words: what the records are afterwards, or that the step is refused. */
class Model {
  entries: Entry[] = [];
  known: string[] = [];

  at(place: Pick<Entry, "name" | "type">): Entry | undefined {
    return this.entries.find((entry) => entry.name === place.name && entry.type === place.type);
  }
  byId(id: string): Entry | undefined {
    return this.entries.find((entry) => entry.id === id);
  }
  mayStand(place: Pick<Entry, "name" | "type">): boolean {
    if (this.at(place)?.guarded) return false;
    const others = this.entries.filter((entry) => entry.name === place.name && entry.type !== place.type);
    const owns = (type: RecordType) => type === "CNAME" || type === "ALIAS";
    return !(others.some(({ type }) => owns(type)) || (owns(place.type) && others.length > 0));
  }
  put(entry: Entry): void {
    this.entries = [
      ...this.entries.filter(({ id, name, type }) => id !== entry.id && !(name === entry.name && type === entry.type)),
      entry,
    ];
  }
  remove(id: string): void {
    this.entries = this.entries.filter((entry) => entry.id !== id);
  }
}

/** Whether the model refuses the step; otherwise it has taken it. `id` is that of a record made meanwhile. */
function take(model: Model, step: Step, idOf: (pick: number) => string, id: string | undefined): boolean {
  if (step.kind === "create") {
    if (!model.mayStand(step)) return false;
    model.put({ id: model.at(step)?.id ?? id ?? "", name: step.name, type: step.type, guarded: step.guarded });
    return true;
  }
  if (step.kind === "bulk") {
    for (const picked of step.picks) {
      const entry = model.byId(idOf(picked));
      if (entry !== undefined && (step.force || !entry.guarded)) model.remove(entry.id);
    }
    return true;
  }
  const entry = model.byId(idOf(step.pick));
  if (entry === undefined) return false;
  if (step.kind === "delete") {
    if (entry.guarded && !step.force) return false;
    model.remove(entry.id);
  } else if (step.kind === "guard") model.put({ ...entry, guarded: step.guarded });
  else if (step.name !== entry.name) {
    if (!model.mayStand({ name: step.name, type: entry.type })) return false;
    model.put({ ...entry, name: step.name });
  }
  return true;
}

/** The id of what a create made. Throws what the command throws. */
async function run(world: CommandWorld, step: Step, idOf: (pick: number) => string): Promise<string | undefined> {
  const { context, zoneId } = world;
  switch (step.kind) {
    case "create": {
      const { name, type, guarded } = step;
      const given = { name, type, ttl: 0, values: [{ value: VALUES[type] }], protected: guarded };
      return (await createRecord(context, testCaller(), zoneId, given)).stored.body.id;
    }
    case "rename":
      await updateRecord(context, testCaller(), idOf(step.pick), { name: step.name });
      return undefined;
    case "guard":
      await updateRecord(context, testCaller(), idOf(step.pick), { protected: step.guarded });
      return undefined;
    case "delete":
      await deleteRecord(context, testCaller(), idOf(step.pick), step.force);
      return undefined;
    case "bulk":
      await bulkDelete(context, testCaller(), zoneId, { ids: step.picks.map(idOf), force: step.force });
      return undefined;
  }
}

function stateOf(world: CommandWorld): readonly Entry[] {
  return world.store.list("record", { prefix: ["corp."], limit: 100 }).map(({ body, shadowedBy }) => {
    assert.equal(shadowedBy, undefined);
    return { id: body.id, name: body.name, type: body.type, guarded: body.protected };
  });
}

const sorted = (entries: readonly Entry[]) =>
  [...entries].sort((one, other) => `${one.name} ${one.type}`.localeCompare(`${other.name} ${other.type}`));

test("random writes do what the rules say, and refused ones do nothing", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 40 }), async (steps) => {
      await using world = await givenZone("corp.");
      const model = new Model();
      const idOf = (picked: number) => model.known[picked % Math.max(model.known.length, 1)] ?? "rec_none";
      for (const each of steps) {
        const before = everythingIn(world.store);
        const outcome = await run(world, each, idOf).catch((error: unknown) => error);
        if (typeof outcome === "string") model.known.push(outcome);
        const isRefused = outcome instanceof Refusal;
        assert.ok(outcome === undefined || typeof outcome === "string" || isRefused, String(outcome));
        assert.equal(take(model, each, idOf, typeof outcome === "string" ? outcome : undefined), !isRefused);
        if (isRefused) assert.deepEqual(everythingIn(world.store), before);
        assert.deepEqual(sorted(stateOf(world)), sorted(model.entries));
      }
    }),
    { numRuns: 40 },
  );
});
