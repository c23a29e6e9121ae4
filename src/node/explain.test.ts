import assert from "node:assert/strict";
import { test } from "node:test";
import { keyOf } from "../../tests/image/content.ts";
import { addressOf, openSelectionLab, type SelectionLab } from "../../tests/support/selection-lab.ts";
import { EVERYBODY, nameOf, queryBytes, zone } from "../../tests/support/zone-lab.ts";
import { createLookup, findZone } from "../answer/lookup.ts";
import { typeFromText } from "../dns/type-names.ts";
import type { GatedProbe } from "../health/book.ts";
import type { Outbox } from "../health/outbox.ts";
import type { ProbeStatus } from "../health/probe.ts";
import { TRANSPORT, threadCounters } from "../image/counters.ts";
import { UNIT_WORDS, ZONE as ZONE_WORDS } from "../image/layout.ts";
import { offerRecursion } from "../image/recursion.ts";
import { regionNumber } from "../image/regions.ts";
import type { Explanation, Reason, SelectionReason } from "../model/explanation.ts";
import { createExplainer } from "./explain.ts";
import type { ExplainNames, NamedRecord } from "./explain-names.ts";
import { createAnswerTracer } from "./traced-answer.ts";

const REGIONS = ["west", "east", "north"] as const;
const THREAD = 1;
const NO_RECORD: NamedRecord = { id: undefined, policy: "none", probes: new Map(), regions: new Map() };
const NAMES: ExplainNames = {
  zoneId: (name) => `zon of ${name}`,
  route: (domain) => (domain === "stub." ? { by: "stub_zone", id: "stb_1" } : { by: "forwarder", id: "fwd_1" }),
  record: () => NO_RECORD,
  pendingZone: () => undefined,
  region: (number) => REGIONS.find((name) => regionNumber(name) === number),
  mapping: () => ({ id: "map_1", subnet: "10.1.0.0/16" }),
};

type With = { readonly names?: Partial<ExplainNames>; readonly ask?: Outbox["ask"]; readonly client?: string };

async function explain(lab: SelectionLab, question: string, { names, ask, client }: With = {}): Promise<Explanation> {
  const [name = "", type = ""] = question.split(" ");
  const explainer = createExplainer({
    trace: createAnswerTracer(lab.shared, {
      thread: THREAD,
      maxUdpSize: 1232,
      tcpIdleSeconds: 10,
      chance: Int32Array.of(1, 2, 3, 4),
    }),
    names: { ...NAMES, ...names },
    ask: ask ?? (async () => undefined),
    nodeId: "node",
    maxUdpSize: 1232,
    now: () => Date.parse("2027-01-15T08:00:00Z"),
  });
  const number = typeFromText(type) ?? assert.fail(type);
  return await explainer({ name: nameOf(name), type: number, client: addressOf(client ?? "10.1.0.9") });
}

/** Kinds and what tells two of a kind apart, in their order. */
function outline({ reasons, answer }: Explanation): readonly string[] {
  const lines = reasons.map(lineOf);
  return [...lines, `${answer.rcode} ${answer.flags.join(" ")}`];
}

function lineOf(reason: Reason): string {
  switch (reason.kind) {
    case "route":
      return [
        `${reason.name} by ${reason.by}`,
        reason.zone ?? reason.domain,
        reason.forwarder_id ?? reason.stub_zone_id,
      ]
        .filter((part) => part !== undefined)
        .join(" ");
    case "cache":
      return `${reason.found} ${reason.name} ${reason.age_seconds}`;
    case "upstream":
      return `upstream for ${reason.name} ${reason.type}`;
    case "lookup":
      return `${reason.found} ${reason.owner}`;
    case "records":
      return `${reason.section} ${reason.name} ${reason.type} ${reason.ttl}`;
    case "selection":
      return `selection ${reason.name} ${reason.type}`;
    case "follow":
      return `${reason.by} to ${reason.target}`;
    case "no_data":
      return `no ${reason.type} at ${reason.name}`;
    case "end":
      return `end by ${reason.why}`;
    case "change":
      return "change";
  }
}

function choiceOf({ reasons }: Explanation): SelectionReason {
  const found = reasons.find((reason) => reason.kind === "selection");
  return found?.kind === "selection" ? found : assert.fail("nothing was selected");
}

/** What became of each candidate: its share, and its place or what dropped it. */
function fates({ candidates }: SelectionReason): readonly string[] {
  return candidates.map(({ value, share, position, dropped_by }) => `${value} ${share} ${position ?? dropped_by}`);
}

const ZONE = zone(
  "corp.test.",
  `www CNAME x.apps
*.apps CNAME pool
pool A 10.0.0.1
sub NS ns.sub
ns.sub A 10.0.0.53
loop CNAME loop2
loop2 CNAME loop
alone A 10.9.9.9
gone ALIAS nothing
@ MX 10 alone
out CNAME www.elsewhere.test.`,
);

test("the way of an answer is told in order", async () => {
  const lab = openSelectionLab([ZONE]);
  lab.override("far.example. CNAME alone.corp.test.\nbare.example. A 10.0.0.9");
  const cases: readonly (readonly [question: string, lines: readonly string[]])[] = [
    [
      "www.corp.test. A",
      [
        "www.corp.test. by zone corp.test.",
        "name www.corp.test.",
        "answer www.corp.test. CNAME 300",
        "CNAME to x.apps.corp.test.",
        "x.apps.corp.test. by zone corp.test.",
        "wildcard *.apps.corp.test.",
        "answer x.apps.corp.test. CNAME 300",
        "CNAME to pool.corp.test.",
        "pool.corp.test. by zone corp.test.",
        "name pool.corp.test.",
        "answer pool.corp.test. A 300",
        "NOERROR aa rd",
      ],
    ],
    [
      "far.example. A",
      [
        "far.example. by override",
        "answer far.example. CNAME 300",
        "CNAME to alone.corp.test.",
        "alone.corp.test. by zone corp.test.",
        "name alone.corp.test.",
        "answer alone.corp.test. A 300",
        "NOERROR aa rd",
      ],
    ],
    ["bare.example. TXT", ["bare.example. by override", "no TXT at bare.example.", "NOERROR aa rd"]],
    ["none.example. A", ["none.example. by nobody", "REFUSED rd"]],
    ["no.corp.test. A", ["no.corp.test. by zone corp.test.", "nothing no.corp.test.", "NXDOMAIN aa rd"]],
    [
      "alone.corp.test. TXT",
      ["alone.corp.test. by zone corp.test.", "name alone.corp.test.", "no TXT at alone.corp.test.", "NOERROR aa rd"],
    ],
    [
      "deep.sub.corp.test. A",
      [
        "deep.sub.corp.test. by zone corp.test.",
        "delegation sub.corp.test.",
        "additional ns.sub.corp.test. A 300",
        "NOERROR rd",
      ],
    ],
    [
      "gone.corp.test. A",
      [
        "gone.corp.test. by zone corp.test.",
        "name gone.corp.test.",
        "answer gone.corp.test. ALIAS 300",
        "ALIAS to nothing.corp.test.",
        "nothing.corp.test. by zone corp.test.",
        "nothing nothing.corp.test.",
        "NOERROR aa rd",
      ],
    ],
    [
      "out.corp.test. A",
      [
        "out.corp.test. by zone corp.test.",
        "name out.corp.test.",
        "answer out.corp.test. CNAME 300",
        "CNAME to www.elsewhere.test.",
        "www.elsewhere.test. by nobody",
        "NOERROR aa rd",
      ],
    ],
  ];
  for (const [question, lines] of cases) assert.deepEqual(outline(await explain(lab, question)), lines, question);
  assert.equal(outline(await explain(lab, "loop.corp.test. A")).at(-2), "end by loop");
});

test("each step says what it dropped, and what share is left to whom", async () => {
  const lab = openSelectionLab([ZONE], { nowSeconds: 1_800_000_000 });
  lab.regions({ "10.1.0.0/16": "west" }, "north");
  const region = (name: string, index: number) => ({ value: `10.0.0.${index}`, region: name, probe: `p${index}` });
  const values = [region("west", 1), region("west", 2), region("east", 3), { value: "10.0.0.4" }];
  const put = (method: Parameters<SelectionLab["select"]>[1], list: Parameters<SelectionLab["select"]>[2]) =>
    lab.select("pool.corp.test. A", method, list);
  const told = async (more: With = {}) => choiceOf(await explain(lab, "pool.corp.test. A", more));

  put({ method: "REGION" }, values);
  lab.health("p1", "UNHEALTHY");
  assert.deepEqual(fates(await told()), [
    "10.0.0.1 0 unhealthy",
    "10.0.0.2 1 1",
    "10.0.0.3 0 other_region",
    "10.0.0.4 0 other_region",
  ]);
  const { client, reasons, failing_open } = await told();
  assert.deepEqual(client, { region: "west", source: "mapping", subnet: "10.1.0.0/16", mapping_id: "map_1" });
  assert.deepEqual(reasons, [
    "4 values, 1 unhealthy and dropped",
    "the client is in west, by the mapping of 10.1.0.0/16",
    "1 value in the client's region, west",
  ]);
  assert.equal(failing_open, false);
  assert.deepEqual((await told({ client: "192.0.2.1" })).client, { region: "north", source: "node" });

  put({ method: "FAILOVER" }, values);
  assert.deepEqual(fates(await told())[2], "10.0.0.3 0 later_in_order");
  lab.health("p2", "HEALTHY", 900);
  lab.health("p3", "HEALTHY", 500);
  put({ method: "LATENCY" }, values);
  const latency = await told();
  assert.deepEqual(fates(latency).slice(1), ["10.0.0.2 0 slower", "10.0.0.3 1 1", "10.0.0.4 0 slower"]);
  assert.deepEqual(
    latency.candidates.map(({ state, probed, latency_ms }) => [state, probed, latency_ms]),
    [
      ["unhealthy", true, undefined],
      ["healthy", true, 0.9],
      ["healthy", true, 0.5],
      ["unknown", false, undefined],
    ],
  );

  const weights = [60, 0, 20, 20].map((weight, index) => ({ value: `10.0.0.${index}`, weight, probe: `w${index}` }));
  lab.health("w3", "UNHEALTHY");
  put({ method: "WEIGHTED" }, weights);
  const weighted = await told();
  assert.deepEqual(
    weighted.candidates.map(({ share, weight_percent }) => [share, weight_percent]),
    [
      [0.75, 60],
      [0, 0],
      [0.25, 20],
      [0, 20],
    ],
  );
  assert.deepEqual(weighted.candidates.map(({ dropped_by }) => dropped_by).toSorted(), [
    ...["chance", "unhealthy", "weight_zero"],
    undefined,
  ]);
});

test("affinity has its network, its period and its end; where all are unhealthy all are taken", async () => {
  const lab = openSelectionLab([ZONE], { nowSeconds: 1_800_000_000 });
  const weights = [60, 0, 20, 20].map((weight, index) => ({ value: `10.0.0.${index}`, weight, probe: `w${index}` }));
  lab.health("w3", "UNHEALTHY");
  const put = (method: Parameters<SelectionLab["select"]>[1], list: Parameters<SelectionLab["select"]>[2]) =>
    lab.select("pool.corp.test. A", method, list);
  const told = async (more: With = {}) => choiceOf(await explain(lab, "pool.corp.test. A", more));

  put({ method: "WEIGHTED", affinitySeconds: 60 }, weights);
  const affine = await told();
  assert.deepEqual(affine.candidates.map(({ dropped_by }) => dropped_by).toSorted(), [
    ...["affinity", "unhealthy", "weight_zero"],
    undefined,
  ]);
  const { network, period_seconds, redrawn_at } = affine.affinity ?? assert.fail();
  assert.deepEqual([network, period_seconds], ["10.1.0.0/24", 60]);
  const seconds = Date.parse(redrawn_at) / 1000;
  assert.ok(seconds > 1_800_000_000 && seconds <= 1_800_000_060, redrawn_at);
  lab.clock(seconds - 1);
  assert.equal((await told()).affinity?.redrawn_at, redrawn_at);
  lab.clock(seconds);
  assert.equal((await told()).affinity?.period, (affine.affinity?.period ?? 0) + 1);
  assert.equal((await told({ client: "2001:db8::1" })).affinity?.network, "2001:db8::/56");

  for (const { probe } of weights) lab.health(probe, "UNHEALTHY");
  put({ method: "ALL" }, weights);
  const open = await told();
  assert.equal(open.failing_open, true);
  assert.deepEqual(
    open.candidates.map(({ share, answered }) => [share, answered]),
    Array(4).fill([1, true]),
  );
});

test("CNAMEs that take turns share the answers, and an ALIAS tells of both choices", async () => {
  const lab = openSelectionLab([ZONE]);
  lab.select("www.corp.test. CNAME", { method: "ROUND_ROBIN", single: true }, ["pool.corp.test.", "alone.corp.test."]);
  const first = choiceOf(await explain(lab, "www.corp.test. A"));
  assert.deepEqual(fates(first), ["pool.corp.test. 0.5 1", "alone.corp.test. 0.5 other_turn"]);
  lab.select("gone.corp.test. ALIAS", { method: "FAILOVER", single: true }, ["pool.corp.test."]);
  lab.select("pool.corp.test. A", { method: "ROUND_ROBIN", ttl: 20 }, ["10.0.0.1", "10.0.0.2"]);
  const alias = await explain(lab, "gone.corp.test. A");
  assert.deepEqual(outline(alias).slice(2), [
    "answer gone.corp.test. ALIAS 30",
    "selection gone.corp.test. ALIAS",
    "ALIAS to pool.corp.test.",
    "pool.corp.test. by zone corp.test.",
    "name pool.corp.test.",
    "answer pool.corp.test. A 20",
    "selection pool.corp.test. A",
    "NOERROR aa rd",
  ]);
  assert.deepEqual(alias.answer.answer, ["gone.corp.test. 20 IN A 10.0.0.1", "gone.corp.test. 20 IN A 10.0.0.2"]);
});

test("an explanation moves nothing: no turn, no counter", async () => {
  const lab = openSelectionLab([ZONE]);
  lab.select("pool.corp.test. A", { method: "ROUND_ROBIN" }, ["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
  for (const first of ["10.0.0.1", "10.0.0.2", "10.0.0.3"]) {
    for (let times = 0; times < 3; times++) {
      assert.equal((await explain(lab, "pool.corp.test. A")).answer.answer[0], `pool.corp.test. 30 IN A ${first}`);
    }
    assert.equal(lab.values("pool.corp.test. A")[0], first);
  }
  assert.ok(threadCounters(lab.shared, THREAD).every((count) => count === 0));
});

test("an answer from the middle of a change says so, and tells its way once", async () => {
  const lab = openSelectionLab([ZONE]);
  lab.regions({ "10.1.0.0/16": "west" });
  lab.select("pool.corp.test. A", { method: "REGION" }, [{ value: "10.0.0.1", region: "west" }, "10.0.0.2"]);
  const before = await explain(lab, "pool.corp.test. A");
  const lookup = createLookup();
  const body = findZone(lab.writer.view, lookup, keyOf(lab.writer.view, "corp.test."), 0);
  // As beginChange of the writer leaves it.
  lab.writer.view.words[body * UNIT_WORDS + ZONE_WORDS.SEQUENCE]! += 1;
  const during = await explain(lab, "pool.corp.test. A");
  assert.deepEqual(outline(during), ["change", ...outline(before)]);
  assert.deepEqual(choiceOf(during).client, choiceOf(before).client);
});

test("an answer that is too long for UDP is told as TCP has it", async () => {
  const lab = openSelectionLab([ZONE]);
  const values = Array.from({ length: 200 }, (_, index) => `10.7.0.${index}`);
  lab.select("pool.corp.test. A", { method: "ROUND_ROBIN" }, values);
  const { answer, reasons } = await explain(lab, "pool.corp.test. A");
  assert.deepEqual([answer.needs_tcp, answer.flags, answer.answer.length], [true, ["aa", "rd"], 200]);
  assert.equal(reasons.filter(({ kind }) => kind === "selection").length, 1);
});

test("names, ids and times come from the store, the gates and the health thread", async () => {
  const lab = openSelectionLab([ZONE]);
  lab.health("a", "UNHEALTHY");
  lab.health("b", "HEALTHY");
  lab.select("pool.corp.test. A", { method: "ALL" }, [
    { value: "10.0.0.1", probe: "a" },
    { value: "10.0.0.2", probe: "b" },
  ]);
  const probes = new Map(["key-1", "key-2"].map((key, index) => [index + 1, { key } as GatedProbe]));
  const asked: string[][] = [];
  const status = (key: string, state: ProbeStatus["state"]): ProbeStatus => ({
    ...{ key, state, sinceMs: 1_700_000_000_000, nextMs: 0, isStale: false },
    ...{ failures: 0, successes: 0, latencyUs: 0, history: [] },
  });
  const record = (owner: string): NamedRecord =>
    owner === "pool.corp.test." ? { ...NO_RECORD, id: "rec_1", policy: "zone", probes } : NO_RECORD;
  const explanation = await explain(lab, "pool.corp.test. A", {
    names: {
      record: (zoneName, owner, type) => (zoneName === "corp.test." && type === "A" ? record(owner) : NO_RECORD),
    },
    ask: async (keys) => {
      asked.push([...keys]);
      // The second has changed since: what it says is not of the state that the answer saw.
      return [status("key-1", "unhealthy"), status("key-2", "unhealthy")];
    },
  });
  assert.deepEqual(asked, [["key-1", "key-2"]]);
  const choice = choiceOf(explanation);
  assert.deepEqual([choice.record_id, choice.policy], ["rec_1", "zone"]);
  assert.deepEqual(
    choice.candidates.map(({ since }) => since),
    ["2023-11-14T22:13:20.000Z", undefined],
  );
  const route = explanation.reasons.find(({ kind }) => kind === "route");
  assert.ok(route?.kind === "route" && route.zone_id === "zon of corp.test.");
  assert.deepEqual(explanation.question, { name: "pool.corp.test.", type: "A", client: "10.1.0.9" });
});

/** Asks as fast as a listener does; `ask` gives the length of the answer, which ends with an address. */
function asker(lab: SelectionLab, question: string) {
  const query = queryBytes(question, { edns: false });
  const bytes = new Uint8Array(512);
  const client = addressOf("10.1.0.9");
  const ask = () => {
    bytes.set(query);
    lab.answerer.enter();
    const length = lab.answerer.answer(bytes, 0, query.length, bytes.length, client, 0, client.length, TRANSPORT.UDP);
    lab.answerer.leave();
    return length;
  };
  return { bytes, ask };
}

test("the shares that are told are those that come out", async () => {
  const lab = openSelectionLab([ZONE], { answerer: { chance: Int32Array.of(5, 6, 7, 8) } });
  const values = [50, 30, 15, 5, 0].map((weight, index) => ({ value: `10.0.0.${index}`, weight, probe: `${index}` }));
  lab.select("pool.corp.test. A", { method: "WEIGHTED" }, values);
  const QUESTIONS = 100_000;
  for (const unhealthy of [undefined, "0"]) {
    if (unhealthy !== undefined) lab.health(unhealthy, "UNHEALTHY");
    const { candidates } = choiceOf(await explain(lab, "pool.corp.test. A"));
    const counts = new Map<string, number>();
    const { bytes, ask } = asker(lab, "pool.corp.test. A");
    for (let asked = 0; asked < QUESTIONS; asked++) {
      const value = `10.0.0.${bytes[ask() - 1]}`;
      counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    for (const { value, share } of candidates) {
      const seen = (counts.get(value) ?? 0) / QUESTIONS;
      assert.ok(Math.abs(seen - share) < 0.005, `${value}: ${seen} of the answers, ${share} told`);
      if (share === 0) assert.equal(seen, 0);
    }
  }
});

test("names that are not ours: by whom they are resolved, what the cache has, and that an upstream would be asked", async () => {
  const lab = openSelectionLab(
    [zone("corp.test.", "out CNAME www.far.\nalias ALIAS www.far.\ncut NS ns.elsewhere.\nblocked CNAME x.ads.\n")],
    { answerer: { forwards: true }, nowSeconds: 1000 },
  );
  lab.route(".", 99);
  lab.route("partner.", 50);
  lab.route("stub.", 51);
  lab.block("ads.");
  assert.deepEqual(outline(await explain(lab, "out.corp.test. A")), [
    "out.corp.test. by zone corp.test.",
    "name out.corp.test.",
    "answer out.corp.test. CNAME 300",
    "CNAME to www.far.",
    "www.far. by default_forwarder",
    "upstream for www.far. A",
    "SERVFAIL aa rd ra",
  ]);
  lab.cached("www.far. A", { route: 99, seconds: 20, keptSeconds: 600, answers: "www.far. 20 A 10.0.0.1" });
  lab.clock(1007);
  const cached = await explain(lab, "out.corp.test. A");
  assert.deepEqual(outline(cached).slice(4), ["www.far. by default_forwarder", "fresh www.far. 7", "NOERROR aa rd ra"]);
  assert.equal(cached.answer.needs_upstream, false);
  offerRecursion(lab.writer, []);
  const outside = await explain(lab, "out.corp.test. A");
  assert.deepEqual(outline(outside).slice(3), ["CNAME to www.far.", "www.far. by nobody", "NOERROR aa rd"]);
  assert.match(JSON.stringify(outside.reasons.at(-1)), /whose network recursion is not offered to/);
  offerRecursion(lab.writer, EVERYBODY);
  assert.deepEqual(cached.answer.answer.at(-1), "www.far. 13 IN A 10.0.0.1");
  assert.deepEqual(outline(await explain(lab, "alias.corp.test. A")).slice(-4), [
    "ALIAS to www.far.",
    "www.far. by default_forwarder",
    "fresh www.far. 7",
    "NOERROR aa rd ra",
  ]);
  lab.clock(1100);
  assert(lab.cache.useStale(lab.cache.find(lab.key("www.far."), 1, 0), 1200));
  assert.deepEqual(outline(await explain(lab, "www.far. A")), [
    "www.far. by default_forwarder",
    "stale www.far. 100",
    "NOERROR rd ra",
  ]);
  const lines = async (question: string) => outline(await explain(lab, question));
  assert.deepEqual((await lines("a.partner. A"))[0], "a.partner. by forwarder partner. fwd_1");
  assert.deepEqual((await lines("a.stub. A"))[0], "a.stub. by stub_zone stub. stb_1");
  assert.deepEqual((await lines("blocked.corp.test. A")).slice(-2), ["x.ads. by blocklist ads.", "NXDOMAIN aa rd ra"]);
  assert.deepEqual((await lines("x.cut.corp.test. A")).slice(1), [
    "delegation cut.corp.test.",
    "x.cut.corp.test. by delegation cut.corp.test.",
    "upstream for x.cut.corp.test. A",
    "SERVFAIL rd ra",
  ]);
  assert.equal((await explain(lab, "x.cut.corp.test. A")).answer.needs_upstream, true);
});
