/** Whatever the store went through: its image answers as one that is published afresh from it, and as a plain model says. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { auditArena } from "../../tests/image/audit.ts";
import { checkedTables, type RecordingGates, recordingGates } from "../../tests/support/recording-gates.ts";
import { editOf, openStoreLab, type StoreEdit, type StoreLab } from "../../tests/support/store-lab.ts";
import { openLab, type ZoneLab } from "../../tests/support/zone-lab.ts";
import { newId } from "../commands/run.ts";
import { collect } from "../image/writer.ts";
import { policyOf } from "../model/lb-policy.ts";
import type { LbPolicy, OverrideBody, RecordBody, RecordType } from "../model/objects.ts";
import { overrideFromCreate } from "../model/override.ts";
import { excludes } from "../model/ownership.ts";
import { Refusal } from "../model/refusal.ts";
import { openStorePublisher } from "./store-publisher.ts";

const ZONES = ["t.", "sub.t.", "other."];
const NAMES = ["@", "a", "b.a", "*", "*.a", "c.b.a", "sub", "x.sub"];
const TYPES: readonly RecordType[] = ["A", "AAAA", "CNAME", "TXT", "NS", "MX", "ALIAS"];
const QUESTION_TYPES = ["A", "TXT", "NS", "MX", "CNAME", "SOA", "AAAA"];

const VALUES: { readonly [T in RecordType]?: readonly string[] } = {
  A: ["192.0.2.1", "198.51.100.2"],
  AAAA: ["2001:db8::1", "2001:db8:1::2"],
  CNAME: ["a.t.", "far.example."],
  TXT: ["one", "two"],
  NS: ["ns.other.", "a.t."],
  MX: ["a.t.", "b.a.t."],
  ALIAS: ["a.t.", "b.a.t."],
};

const OVERRIDDEN = ["a.t.", "x.t.", "other.", "b.a.t.", "far.example.", "sub.far.example."];

/** Policies whose answers do not depend on chance or on how often was asked, but for the order of their values. */
const POLICIES = [
  { method: "failover", failover_order: "last" },
  { method: "weighted", client_affinity: true, value_weights: "last" },
  { method: "region", client_affinity: true, region_preference: ["us"] },
  { method: "geo-failover", client_affinity: true },
  { method: "round-robin" },
] as const;
type Policy = (typeof POLICIES)[number];
const SUBNETS = ["192.0.2.0/24", "192.0.0.0/8", "2001:db8::/32", "2001:db8:1::/48", "127.0.0.0/8"];

/** What a record is selected by. */
type Selected = { readonly policy: Policy | null; readonly isGated: boolean; readonly region: string };

type Command =
  | { readonly kind: "map"; readonly subnet: string; readonly region: string | null }
  | { readonly kind: "default"; readonly zone: string; readonly policy: Policy | null }
  | {
      readonly kind: "override";
      readonly name: string;
      readonly type: RecordType;
      readonly selected: Selected;
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
      readonly selected: Selected;
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
const policy = fc.option(fc.constantFrom(...POLICIES));
const selected: fc.Arbitrary<Selected> = fc.record({
  policy,
  isGated: fc.boolean(),
  region: fc.constantFrom("", "", "eu"),
});
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
    arbitrary: fc.record({
      kind: fc.constant("put" as const),
      ...place,
      selected,
      values: fc.integer({ min: 0, max: 3 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("map" as const),
      subnet: fc.constantFrom(...SUBNETS),
      region: fc.constantFrom("eu", "us", null),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("default" as const), zone, policy }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("delete" as const), ...place }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("move" as const), ...place, to: place.name }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("override" as const),
      ...overridden,
      selected,
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

/** The fields of a record of that type; one with several targets of a CNAME has a policy that always answers the same. */
function selectedFields(type: RecordType, values: { value: string }[], { policy, isGated, region }: Selected) {
  const takesHealth = ["A", "AAAA", "CNAME", "ALIAS"].includes(type);
  const isTurning = (type === "CNAME" || type === "ALIAS") && (policy === null || policy.method === "round-robin");
  const given = policy === null || isTurning ? (isTurning && isGated ? POLICIES[0] : undefined) : policy;
  return {
    values: values.map((value) => (region === "" ? value : { ...value, region })),
    ...(given === undefined || type === "NS" ? {} : { lb_policy: policyOn(given, values) }),
    ...(isGated && takesHealth ? { health_check_template: { protocol: "tcp" as const, port: 80 } } : {}),
  };
}

/** The last value comes first, or has most of the weight. */
function policyOn(policy: Policy, values: { value: string }[]) {
  const last = values.at(-1)?.value;
  const { method } = policy;
  if (last === undefined) return { method };
  if (method === "failover") return { method, failover_order: [last] };
  if (method === "weighted") return { method, client_affinity: true, value_weights: { [last]: 70 } };
  if (method === "region") return { method, client_affinity: true, region_preference: [...policy.region_preference] };
  return policy;
}

function run({ tx, zone: makeZone, record }: StoreEdit, each: Command): void {
  if (each.kind === "map") {
    const { subnet, region } = each;
    if (region === null) tx.delete("subnet-mapping", [subnet]);
    else tx.put("subnet-mapping", { id: newId("subnet-mapping"), subnet, region_id: region, source: "manual" });
    return;
  }
  if (each.kind === "override") {
    const { kind: _, selected: by, ...given } = each;
    const fields = selectedFields(each.type, valuesOf(each.type, each.values), by);
    const override = overrideFromCreate({ ...given, ...fields }, newId("override"));
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
  else if (each.kind === "default") {
    const { lb_policy: _, ...body } = stored.body;
    // Where a CNAME inherits it, round-robin would answer another target each time.
    const lb_policy = each.policy === null ? undefined : policyOn(each.policy, []);
    const isSteady = lb_policy !== undefined && lb_policy.method !== "round-robin";
    tx.put("zone", { ...body, ...(isSteady ? { lb_policy: { client_affinity: true, ...lb_policy } } : {}) });
  } else if (each.kind === "delete") tx.delete("record", [each.zone, each.name, each.type]);
  else if (each.kind === "move") {
    const from = tx.get("record", [each.zone, each.name, each.type]);
    const isFree = tx.get("record", [each.zone, each.to, each.type]) === undefined;
    const isCname = each.type === "CNAME" && each.to === "@";
    if (from !== undefined && isFree && !isCname) tx.move("record", from.key, { ...from.body, name: each.to });
  } else {
    const given = {
      name: each.name,
      type: each.type,
      ...selectedFields(each.type, valuesOf(each.type, each.values), each.selected),
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

/** All that can be seen of an image, and of what is gated by it. */
function everything(lab: ZoneLab, gates: RecordingGates) {
  return {
    tables: checkedTables(lab.writer, gates),
    book: gates.book(),
    answers: everyAnswer((question) => lab.ask(question)),
  };
}

async function freshly({ store }: StoreLab): Promise<ReturnType<typeof everything>> {
  const lab = openLab([]);
  const gates = recordingGates();
  using publisher = openStorePublisher({ store, writer: lab.writer, log: () => undefined, gates, region: "us" });
  await publisher.start();
  return everything(lab, gates);
}

function isInEffect({ enabled, expires_at: expiry }: OverrideBody): boolean {
  return enabled && (expiry === undefined || Date.parse(expiry) > Date.now());
}

/** How many values one answer has: no value is unhealthy. */
function answered(body: RecordBody | OverrideBody, inherited: LbPolicy | undefined): number {
  const { type, values } = body;
  const policy = policyOf(body, { ...(inherited === undefined ? {} : { lb_policy: inherited }) });
  const isOne = type === "CNAME" || (policy !== undefined && policy.method !== "round-robin");
  return isOne ? Math.min(1, values.length) : values.length;
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
    assert.equal(answers.length, answered(body, undefined), `${body.name} ${body.type}`);
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
    const { lb_policy } = store.get("zone", [body.zone])?.body ?? assert.fail(body.zone);
    assert.equal(answers.length, isStoodIn ? 1 : answered(body, lb_policy), `${owner} ${body.type}`);
  }
}

const START: readonly Command[] = [
  { kind: "zone", zone: "t.", state: "active", minimum: 0 },
  { kind: "zone", zone: "other.", state: "active", minimum: 0 },
  { kind: "map", subnet: "192.0.0.0/8", region: "eu" },
];

test("random histories end in the answers of a fresh publication, and lose no memory", async () => {
  let [tables, slots, placed] = [0, 0, 0];
  const transactions = fc.array(fc.array(command, { minLength: 1, maxLength: 8 }), {
    minLength: 1,
    maxLength: 25,
    size: "max",
  });
  await fc.assert(
    fc.asyncProperty(transactions, async (history) => {
      const gates = recordingGates();
      await using world = await openStoreLab({ gates, region: "us" });
      for (const commands of [START, ...history]) {
        await world.store.write((tx) => {
          const edit = editOf(tx);
          // The store takes a zone's end once in a transaction.
          const isFirst = (each: Command & { readonly kind: "end" }) =>
            commands.find((other) => other.kind === "end" && other.zone === each.zone) === each;
          for (const each of commands) if (each.kind !== "end" || isFirst(each)) run(edit, each);
        });
        checkAgainstStore(world);
        checkedTables(world.lab.writer, gates);
      }
      await world.publisher.settled();
      assert.deepEqual(everything(world.lab, gates), await freshly(world));
      const gated = gates.book().flatMap(({ values }) => values);
      assert.equal(gates.held.size, gated.length, "every slot that is held is one of a value that is gated");
      slots += gated.length;
      for (const { candidates } of checkedTables(world.lab.writer, gates)) {
        tables++;
        if (candidates.some(({ region }) => region !== 0)) placed++;
      }
      while (collect(world.lab.writer));
      auditArena(world.lab.writer);
    }),
    { numRuns: 60 },
  );
  assert(tables > 60 && slots > 40 && placed > 5, `${tables} tables, ${slots} slots, ${placed} with regions`);
});
