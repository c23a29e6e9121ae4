/** Whatever the store went through: its image answers as one that is published afresh from it, and as a plain model says. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { auditArena } from "../../tests/image/audit.ts";
import { editOf, openStoreLab, type StoreEdit, type StoreLab } from "../../tests/support/store-lab.ts";
import { openLab } from "../../tests/support/zone-lab.ts";
import { newId } from "../commands/run.ts";
import { collect } from "../image/writer.ts";
import type { OverrideBody, RecordType } from "../model/objects.ts";
import { overrideFromCreate } from "../model/override.ts";
import { excludes } from "../model/ownership.ts";
import { Refusal } from "../model/refusal.ts";
import { openStorePublisher } from "./store-publisher.ts";

const ZONES = ["t.", "sub.t.", "other."];
const NAMES = ["@", "a", "b.a", "*", "*.a", "c.b.a", "sub", "x.sub"];
const TYPES: readonly RecordType[] = ["A", "AAAA", "CNAME", "TXT", "NS", "MX", "ALIAS"];
const QUESTION_TYPES = ["A", "TXT", "NS", "MX", "CNAME", "SOA", "AAAA"];

const VALUES: { readonly [T in RecordType]?: readonly string[] } = {
  A: ["192.0.2.1", "192.0.2.2"],
  AAAA: ["2001:db8::1", "2001:db8::2"],
  CNAME: ["a.t.", "far.example."],
  TXT: ["one", "two"],
  NS: ["ns.other.", "a.t."],
  MX: ["a.t.", "b.a.t."],
  ALIAS: ["a.t.", "b.a.t."],
};

const OVERRIDDEN = ["a.t.", "x.t.", "other.", "b.a.t.", "far.example.", "sub.far.example."];

type Command =
  | {
      readonly kind: "override";
      readonly name: string;
      readonly type: RecordType;
      readonly values: number;
      readonly enabled: boolean;
      readonly expires_at: string | null;
    }
  | { readonly kind: "end-override"; readonly name: string; readonly type: RecordType }
  | { readonly kind: "zone"; readonly zone: string; readonly state: "pending" | "active"; readonly minimum: number }
  | { readonly kind: "end"; readonly zone: string }
  | { readonly kind: "ttl"; readonly zone: string; readonly ttl: number }
  | {
      readonly kind: "put";
      readonly zone: string;
      readonly name: string;
      readonly type: RecordType;
      readonly values: number;
    }
  | { readonly kind: "delete"; readonly zone: string; readonly name: string; readonly type: RecordType }
  | {
      readonly kind: "move";
      readonly zone: string;
      readonly name: string;
      readonly type: RecordType;
      readonly to: string;
    };

const zone = fc.constantFrom(...ZONES);
const place = { zone, name: fc.constantFrom(...NAMES), type: fc.constantFrom(...TYPES) };
const overridden = { name: fc.constantFrom(...OVERRIDDEN), type: place.type };
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("zone" as const),
      zone,
      state: fc.constantFrom("pending", "active", "active"),
      minimum: fc.nat(3),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("end" as const), zone }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("ttl" as const), zone, ttl: fc.integer({ min: 1, max: 3 }) }) },
  {
    weight: 12,
    arbitrary: fc.record({ kind: fc.constant("put" as const), ...place, values: fc.integer({ min: 0, max: 3 }) }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("delete" as const), ...place }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("move" as const), ...place, to: place.name }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("override" as const),
      ...overridden,
      values: fc.integer({ min: 1, max: 3 }),
      enabled: fc.constantFrom(true, true, false),
      expires_at: fc.constantFrom(null, null, "2000-01-01T00:00:00Z", "2999-01-01T00:00:00Z"),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("end-override" as const), ...overridden }) },
);

/** Those of the two values whose bit is set. */
function valuesOf(type: RecordType, bits: number): { value: string }[] {
  const values = (VALUES[type] ?? []).filter((_, index) => ((bits >> index) & 1) === 1);
  return values.map((value) => ({ value }));
}

function run({ tx, zone: makeZone, record }: StoreEdit, each: Command): void {
  if (each.kind === "override") {
    const { kind: _, ...given } = each;
    const override = overrideFromCreate({ ...given, values: valuesOf(each.type, each.values) }, newId("override"));
    tx.put("override", override);
    return;
  }
  if (each.kind === "end-override") {
    tx.delete("override", [each.name, each.type]);
    return;
  }
  const stored = tx.get("zone", [each.zone]);
  if (each.kind === "zone") {
    if (stored === undefined)
      makeZone({ name: each.zone, soa: { mname: "ns.other.", minimum: each.minimum } }, each.state);
    else {
      tx.put("zone", { ...stored.body, soa: { ...stored.body.soa, mname: `ns${each.minimum}.other.` } });
      if (each.state === "active") tx.setState(each.zone, "active");
    }
    return;
  }
  if (stored === undefined) return;
  if (each.kind === "end") tx.deleteZone(each.zone);
  else if (each.kind === "ttl") tx.put("zone", { ...stored.body, default_ttl: each.ttl });
  else if (each.kind === "delete") tx.delete("record", [each.zone, each.name, each.type]);
  else if (each.kind === "move") {
    const from = tx.get("record", [each.zone, each.name, each.type]);
    const isFree = tx.get("record", [each.zone, each.to, each.type]) === undefined;
    const isCname = each.type === "CNAME" && each.to === "@";
    if (from !== undefined && isFree && !isCname) tx.move("record", from.key, { ...from.body, name: each.to });
  } else {
    const given = {
      name: each.name,
      type: each.type,
      values: valuesOf(each.type, each.values),
      auto_populate: true,
    };
    try {
      record(each.zone, given);
    } catch (error) {
      // A CNAME at the apex.
      if (!(error instanceof Refusal)) throw error;
    }
  }
}

function everyAnswer(ask: (question: string) => readonly string[]): readonly string[] {
  const lines: string[] = [];
  const below = ZONES.flatMap((apex) =>
    [...NAMES, "nothing", "x.y.a"].map((name) => (name === "@" ? apex : `${name}.${apex}`)),
  );
  for (const owner of new Set([...below, ...OVERRIDDEN])) {
    for (const type of QUESTION_TYPES) {
      const [status = "", ...records] = ask(`${owner} ${type}`);
      lines.push(`${owner} ${type}: ${status}`, ...records.sort());
    }
  }
  return lines;
}

async function freshAnswers({ store }: StoreLab): Promise<readonly string[]> {
  const lab = openLab([]);
  using publisher = openStorePublisher({ store, writer: lab.writer, log: () => undefined });
  await publisher.start();
  return everyAnswer((question) => lab.ask(question));
}

function isInEffect({ enabled, expires_at: expiry }: OverrideBody): boolean {
  return enabled && (expiry === undefined || Date.parse(expiry) > Date.now());
}

/** Asks the store itself, as far as that is simple: what a name has that exists, is no CNAME's and lies below no cut. */
function checkAgainstStore(world: StoreLab): void {
  const { store, lab } = world;
  const shown = store.list("record", { limit: 1000 }).filter(({ shadowedBy }) => shadowedBy === undefined);
  const overrides = store.list("override", { limit: 1000 }).filter(({ body }) => isInEffect(body));
  for (const { body } of overrides) {
    const rivals = overrides.filter(({ body: { name } }) => name === body.name);
    if (body.type === "ALIAS" || rivals.some(({ body: { type } }) => excludes(type, body.type, body.name))) continue;
    const answers = lab.ask(`${body.name} ${body.type}`).filter((line) => line.startsWith(`answer ${body.name} `));
    assert.equal(answers.length, body.type === "CNAME" ? 1 : body.values.length, `${body.name} ${body.type}`);
  }
  for (const { body } of shown) {
    if (body.zone !== "other." || store.stateOf("other.") !== "active" || body.type === "ALIAS") continue;
    const owner = body.name === "@" ? body.zone : `${body.name}.${body.zone}`;
    if (overrides.some(({ body: { name } }) => name === owner)) continue;
    const isBelowCut = shown.some(
      ({ body: cut }) =>
        cut.zone === body.zone &&
        cut.type === "NS" &&
        cut.values.length > 0 &&
        cut.name !== "@" &&
        (body.name === cut.name || body.name.endsWith(`.${cut.name}`)),
    );
    if (isBelowCut) continue;
    const answers = lab.ask(`${owner} ${body.type}`).filter((line) => line.startsWith(`answer ${owner} `));
    const isStoodIn = body.type === "NS" && body.name === "@" && body.values.length === 0;
    const expected = body.type === "CNAME" ? Math.min(1, body.values.length) : body.values.length;
    assert.equal(answers.length, isStoodIn ? 1 : expected, `${owner} ${body.type}`);
  }
}

test("random histories end in the answers of a fresh publication, and lose no memory", async () => {
  const transactions = fc.array(fc.array(command, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(transactions, async (history) => {
      await using world = await openStoreLab();
      for (const commands of history) {
        await world.store.write((tx) => {
          const edit = editOf(tx);
          // The store takes a zone's end once in a transaction.
          const isFirst = (each: Command & { readonly kind: "end" }) =>
            commands.find((other) => other.kind === "end" && other.zone === each.zone) === each;
          for (const each of commands) if (each.kind !== "end" || isFirst(each)) run(edit, each);
        });
        checkAgainstStore(world);
      }
      await world.publisher.settled();
      assert.deepEqual(
        everyAnswer((question) => world.lab.ask(question)),
        await freshAnswers(world),
      );
      while (collect(world.lab.writer));
      auditArena(world.lab.writer);
    }),
    { numRuns: 80 },
  );
});
