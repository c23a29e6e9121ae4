/**
 * The answerer of the listeners and the explainer are asked the same, over zones, overrides, policies, health, mappings and
 * clients by chance, with the same chance and the same turn: there is no difference in their bytes, and what is explained is
 * what was answered. EXPLAIN_QUESTIONS says how many questions.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  arbitraryName,
  arbitraryOverrides,
  arbitraryZones,
  QUESTION_TYPES,
  zoneText,
} from "../../tests/support/arbitrary-zones.ts";
import { type Chance, seededChance } from "../../tests/support/chance.ts";
import { type DecodedRecord, decodeMessage } from "../../tests/support/dns-message.ts";
import type { NaiveRecord, NaiveZone } from "../../tests/support/naive-resolver.ts";
import { openSelectionLab, type SelectionLab, type Value } from "../../tests/support/selection-lab.ts";
import { nameOf, queryBytes } from "../../tests/support/zone-lab.ts";
import { EDE, FLAG, RCODE } from "../dns/codes.ts";
import { nameToText } from "../dns/name.ts";
import { rdataFromText } from "../dns/rdata.ts";
import { typeFromText } from "../dns/type-names.ts";
import { TRANSPORT, type Transport } from "../image/counters.ts";
import { regionNumber } from "../image/regions.ts";
import type { Explanation, Reason, SelectionReason } from "../model/explanation.ts";
import { createExplainer } from "./explain.ts";
import type { ExplainNames } from "./explain-names.ts";
import { createAnswerTracer, type TracedAnswer } from "./traced-answer.ts";

const QUESTIONS = Number(process.env.EXPLAIN_QUESTIONS ?? 50_000);
const QUESTIONS_A_WORLD = 1000;
/** Of so many questions one is explained in words; all are compared in bytes. */
const EXPLAINED_OF = 4;
const SEED = 20_261;
const ROOM = 65_535;
const DEFAULT_ROUTE = 99;
const SELECTABLE = ["A", "AAAA", "CNAME", "ALIAS", "MX", "SRV", "PTR", "TXT"];
const METHODS = ["ALL", "ROUND_ROBIN", "FAILOVER", "LATENCY", "REGION", "GEO_FAILOVER", "WEIGHTED"] as const;
const REGIONS = ["west", "east", "north"] as const;
const ASKED = [...QUESTION_TYPES, "A", "A", "A", "AAAA", "AAAA", "ANY", "MX", "SRV"] as const;

const NAMES: ExplainNames = {
  zoneId: () => undefined,
  pendingZone: () => undefined,
  route: () => undefined,
  record: () => ({ id: undefined, policy: "none", probes: new Map(), regions: new Map() }),
  region: (number) => REGIONS.find((name) => regionNumber(name) === number),
  mapping: () => undefined,
};

type World = {
  readonly lab: SelectionLab;
  readonly chance: Int32Array;
  readonly told: Int32Array;
  readonly trace: ReturnType<typeof createAnswerTracer>;
  /** Owners with the types that are selected there, and how many values each has. */
  readonly selected: readonly (readonly [owner: string, type: string])[];
  readonly names: readonly string[];
};

function openWorld(zones: readonly NaiveZone[], overrides: readonly NaiveRecord[], dice: Chance): World {
  const chance = Int32Array.of(dice.below(2 ** 31), 2, 3, 4);
  const lab = openSelectionLab(zones.map(zoneText), {
    answerer: { chance, forwards: true },
    nowSeconds: 1_800_000_000,
  });
  if (dice.below(3) > 0) lab.route(".", DEFAULT_ROUTE);
  if (dice.below(3) === 0) lab.block("elsewhere.");
  lab.override(overrides.map(({ owner, type, ttl, rdata }) => `${owner} ${ttl} ${type} ${rdata}\n`).join(""));
  const told = new Int32Array(4);
  const trace = createAnswerTracer(lab.shared, { thread: 1, maxUdpSize: 1232, tcpIdleSeconds: 10, chance: told });
  const records = [...zones.flatMap((zone) => zone.records), ...overrides];
  const selected = records
    .filter(({ type }) => SELECTABLE.includes(type) && dice.below(3) > 0)
    .map(({ owner, type }) => [owner, type] as const);
  const names = [...new Set(records.map(({ owner }) => owner))];
  const world = { lab, chance, told, trace, selected, names };
  for (const [owner, type] of selected) reselect(world, owner, type, dice);
  remap(world, dice);
  return world;
}

function valueBy(type: string, index: number, { names }: World, dice: Chance): string {
  const target = dice.below(4) === 0 ? `v${index}.elsewhere.` : dice.pick(names);
  switch (type) {
    case "A":
      return `10.0.${index}.${dice.below(200)}`;
    case "AAAA":
      return `2001:db8::${index + 1}`;
    case "MX":
      return `${index} ${target}`;
    case "SRV":
      return `1 2 ${index} ${target}`;
    case "TXT":
      return `"${"x".repeat(dice.below(200))}${index}"`;
    default:
      return target;
  }
}

function reselect(world: World, owner: string, type: string, dice: Chance): void {
  const count = dice.below(12) === 0 ? 40 : 1 + dice.below(6);
  const values = Array.from({ length: count }, (_, index): Value => {
    const region = dice.below(3) === 0 ? {} : { region: dice.pick(REGIONS) };
    const probe = dice.below(5) === 0 ? {} : { probe: `p${dice.below(40)}` };
    return { value: valueBy(type, index, world, dice), weight: dice.below(3) * dice.below(50), ...region, ...probe };
  });
  const policy = {
    method: dice.pick(METHODS),
    single: type === "CNAME" || type === "ALIAS",
    affinitySeconds: dice.below(3) === 0 ? 60 : 0,
    preferred: REGIONS.filter(() => dice.below(2) === 0),
    ttl: 1 + dice.below(600),
  };
  world.lab.select(`${owner} ${type}`, policy, values);
}

function remap({ lab }: World, dice: Chance): void {
  const own = dice.below(2) === 0 ? undefined : dice.pick(REGIONS);
  const mappings = {
    "10.0.0.0/9": dice.pick(REGIONS),
    "10.64.0.0/10": dice.pick(REGIONS),
    "fd00::/24": dice.pick(REGIONS),
  };
  lab.regions(dice.below(8) === 0 ? {} : mappings, own);
}

function stir(world: World, dice: Chance): void {
  const { lab, selected } = world;
  const state = dice.pick(["HEALTHY", "UNHEALTHY", "UNHEALTHY", "UNKNOWN"] as const);
  lab.health(`p${dice.below(40)}`, state, dice.below(5) * 100);
  if (dice.below(10) === 0) lab.clock(1_800_000_000 + dice.below(10_000));
  if (dice.below(50) === 0) remap(world, dice);
  if (dice.below(20) === 0 && selected.length > 0) {
    const [owner, type] = dice.pick(selected);
    reselect(world, owner, type, dice);
  }
}

/** Lets the cache have what the last answer lacked. */
function learn({ lab, trace }: World, question: string, dice: Chance): void {
  const { events } = trace(queryBytes(question, { flags: FLAG.RD }), clientBy(dice), TRANSPORT.TCP);
  const asked = events.findLast((event) => event.kind === "follow" || event.kind === "name");
  if (asked === undefined || events.every(({ kind }) => kind !== "lack")) return;
  const name = nameToText(asked.kind === "follow" ? asked.target : asked.name);
  const address = `${name} 60 A 10.9.9.9`;
  const next = dice.pick(["a.t.", "x.elsewhere.", "far."]);
  const answers = dice.pick(["", address, address, `${name} 60 CNAME ${next}`]);
  lab.cached(`${name} A`, { route: DEFAULT_ROUTE, answers, isOpen: answers.includes("CNAME"), seconds: 60 });
}

function clientBy(dice: Chance): Uint8Array {
  return dice.below(4) === 0
    ? Uint8Array.of(253, 0, dice.below(3), 0, 0, 0, dice.below(9), 0, 0, 0, 0, 0, 0, 0, 0, 1)
    : Uint8Array.of(10, dice.below(256), dice.below(256), 1);
}

const scratch = new Uint8Array(ROOM);

/** What a listener would send; where something is lacking, what it sends if nobody can be asked. */
function answered(
  { lab }: World,
  query: Uint8Array,
  client: Uint8Array,
  transport: Transport,
  { events }: TracedAnswer,
): Uint8Array {
  scratch.set(query);
  lab.answerer.enter();
  const length = events.some(({ kind }) => kind === "lack")
    ? lab.answerer.answerNow(scratch, 0, query.length, ROOM, client, 0, client.length, transport, EDE.OTHER)
    : lab.answerer.answer(scratch, 0, query.length, ROOM, client, 0, client.length, transport);
  lab.answerer.leave();
  return scratch.subarray(0, length);
}

function assertSame(one: Uint8Array, other: Uint8Array, what: () => string): void {
  if (Buffer.compare(one, other) !== 0) assert.deepEqual(Buffer.from(one), Buffer.from(other), what());
}

function compareBytes(world: World, question: string, dice: Chance): void {
  const transport = dice.below(4) === 0 ? TRANSPORT.TCP : TRANSPORT.UDP;
  const edns = dice.below(3) === 0 ? false : { udpSize: dice.pick([512, 1232, 4096]) };
  const query = queryBytes(question, { edns, flags: dice.below(2) * 0x100 });
  const client = clientBy(dice);
  world.told.set(world.chance);
  const answer = world.trace(query, client, transport);
  assertSame(answer.bytes, answered(world, query, client, transport, answer), () => question);
}

/** The explainer asks by itself, and the listener's answerer is then asked the same. */
async function compareExplanation(world: World, question: string, dice: Chance): Promise<Explanation> {
  const [name = "", typeText = ""] = question.split(" ");
  const client = clientBy(dice);
  const asked: { readonly query: Uint8Array; readonly transport: Transport; readonly answer: TracedAnswer }[] = [];
  const explain = createExplainer({
    trace: (query, address, transport) => {
      world.told.set(world.chance);
      const answer = world.trace(query, address, transport);
      asked.push({ query, transport, answer });
      return answer;
    },
    names: NAMES,
    ask: async () => undefined,
    nodeId: "n",
    maxUdpSize: 1232,
    now: () => 0,
  });
  const explanation = await explain({ name: nameOf(name), type: typeFromText(typeText) ?? assert.fail(), client });
  const [udp, tcp] = asked;
  assert.ok(udp !== undefined && udp.transport === TRANSPORT.UDP);
  assert.equal(explanation.answer.needs_tcp, tcp !== undefined);
  if (tcp === undefined) {
    assertSame(udp.answer.bytes, answered(world, udp.query, client, TRANSPORT.UDP, udp.answer), () => question);
    assertTold(explanation, udp.answer.bytes);
  } else {
    assertSame(tcp.answer.bytes, answered(world, tcp.query, client, TRANSPORT.TCP, tcp.answer), () => question);
    assertTold(explanation, tcp.answer.bytes);
  }
  return explanation;
}

/** The answer of the explanation, against a decoder that has nothing in common with what made it. */
function assertTold({ answer, reasons, question }: Explanation, bytes: Uint8Array): void {
  const message = decodeMessage(bytes);
  assert.equal(RCODE[answer.rcode as keyof typeof RCODE], message.rcode);
  for (const [flag, bit] of [
    ["aa", 0x400],
    ["tc", 0x200],
    ["rd", 0x100],
    ["ra", 0x80],
  ] as const) {
    assert.equal(answer.flags.includes(flag), (message.flags & bit) !== 0, flag);
  }
  for (const section of ["answer", "authority", "additional"] as const) {
    assert.deepEqual(answer[section].map(recordOfLine), message[section]);
  }
  for (const reason of reasons) if (reason.kind === "selection") assertChoice(reason, reasons, answer, question.type);
}

function recordOfLine(line: string): DecodedRecord {
  const [owner = "", ttl = "", , typeText = ""] = line.split(" ");
  const type = typeFromText(typeText) ?? assert.fail(line);
  const text = line.split(" ").slice(4).join(" ");
  const rdata = rdataFromText(type, text);
  if (rdata.kind === "error") return assert.fail(`${line}: ${rdata.detail}`);
  return { owner, type, class: 1, ttl: Number(ttl), rdata: Buffer.from(rdata.rdata).toString("hex") };
}

function assertChoice(
  { candidates, name, type, failing_open }: SelectionReason,
  reasons: readonly Reason[],
  { answer, additional }: Explanation["answer"],
  asked: string,
): void {
  const taken = candidates
    .filter(({ answered }) => answered)
    .toSorted((one, other) => (one.position ?? 0) - (other.position ?? 0))
    .map(({ value }) => value);
  assert.ok(taken.length > 0);
  for (const { answered, position, dropped_by, share, state } of candidates) {
    assert.equal(answered, position !== undefined);
    assert.equal(answered, dropped_by === undefined);
    if (answered) assert.ok(share > 0);
    if (dropped_by === "unhealthy") assert.ok(state === "unhealthy" && !failing_open && share === 0);
    if (state === "unhealthy" && !failing_open) assert.equal(dropped_by, "unhealthy");
  }
  const sum = candidates.reduce((total, { share }) => total + share, 0);
  const isWhole = candidates.every(({ share }) => share === 0 || share === 1);
  assert.ok(Math.abs(sum - (isWhole ? taken.length : 1)) < 1e-9, `shares of ${name} ${type}: ${sum}`);
  if (type === "ALIAS") return;
  const section = reasons.findLast((each) => each.kind === "records" && each.name === name && each.type === type);
  assert.ok(section?.kind === "records");
  const isAlias = reasons.some((each) => each.kind === "follow" && each.by === "ALIAS" && each.target === name);
  // A CNAME on the way of an ALIAS is in no answer.
  if (isAlias && type === "CNAME" && asked !== "CNAME") return;
  const lines = section.section === "answer" ? answer : additional;
  const values = lines.filter((line) => line.split(" ")[3] === type && (isAlias || line.startsWith(`${name} `)));
  // What does not fit beside an answer is left out.
  if (section.section === "additional" && values.length === 0) return;
  assert.deepEqual(
    values.slice(-taken.length).map((line) => line.split(" ").slice(4).join(" ")),
    taken,
  );
}

test("nothing that is explained differs from what is answered", async () => {
  const worlds = Math.ceil(QUESTIONS / QUESTIONS_A_WORLD);
  const made = fc.sample(fc.tuple(arbitraryZones, arbitraryOverrides, fc.array(arbitraryName, { minLength: 5 })), {
    numRuns: worlds,
    seed: SEED,
  });
  const seen = new Set<string>();
  for (const [index, [zones, overrides, others]] of made.entries()) {
    const dice = seededChance(SEED + index);
    const world = openWorld(zones, overrides, dice);
    const names = [...world.names, ...world.names, ...others];
    for (let asked = 0; asked < QUESTIONS_A_WORLD; asked++) {
      if (dice.below(3) === 0) stir(world, dice);
      const [owner, selectedType] = world.selected.length > 0 ? dice.pick(world.selected) : ["t.", "A"];
      const question =
        dice.below(2) === 0
          ? `${owner} ${selectedType === "ALIAS" ? "A" : selectedType}`
          : `${dice.pick(names)} ${dice.pick(ASKED)}`;
      if (dice.below(8) === 0) learn(world, question, dice);
      if (asked % EXPLAINED_OF !== 0) compareBytes(world, question, dice);
      else for (const reason of (await compareExplanation(world, question, dice)).reasons) seen.add(kindsOf(reason));
    }
  }
  // What never came up was never compared.
  for (const kind of EXPECTED) assert.ok(seen.has(kind) || [...seen].some((each) => each.includes(kind)), kind);
});

const EXPECTED = [
  "route override",
  "route zone",
  "route nobody",
  "route default_forwarder",
  "route delegation",
  "route blocklist",
  "cache",
  "upstream",
  "lookup name",
  "lookup wildcard",
  "lookup delegation",
  "lookup nothing",
  "no_data",
  "follow CNAME",
  "follow ALIAS",
  "end loop",
  "affinity",
  ...["unhealthy", "other_region", "later_in_order", "slower", "weight_zero", "chance", "affinity", "other_turn"],
];

function kindsOf(reason: Reason): string {
  switch (reason.kind) {
    case "route":
    case "follow":
      return `${reason.kind} ${reason.by}`;
    case "lookup":
      return `lookup ${reason.found}`;
    case "end":
      return `end ${reason.why}`;
    case "selection":
      return `selection ${reason.candidates.map(({ dropped_by }) => dropped_by).join(" ")}`;
    default:
      return reason.kind;
  }
}
