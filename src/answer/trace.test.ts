import assert from "node:assert/strict";
import test from "node:test";
import { seededChance } from "../../tests/support/chance.ts";
import { openSelectionLab, type Policy, type SelectionLab, type Value } from "../../tests/support/selection-lab.ts";
import { queryBytes, zone } from "../../tests/support/zone-lab.ts";
import { RRTYPE } from "../dns/codes.ts";
import { nameToText } from "../dns/name.ts";
import { TRANSPORT } from "../image/counters.ts";
import { HEALTH } from "../image/health.ts";
import { METHOD } from "../image/layout.ts";
import { regionNumber } from "../image/regions.ts";
import { type Answerer, createAnswerer } from "./answerer.ts";
import type { TraceEvent } from "./trace.ts";

const ROOM = 1232;
const ANSWERS = 200_000;
const QUESTION_END = 12 + 15 + 4;
const METHODS = ["ALL", "ROUND_ROBIN", "FAILOVER", "LATENCY", "REGION", "GEO_FAILOVER", "WEIGHTED"] as const;
const REGIONS = ["west", "east", "north"] as const;

type Explainer = { readonly answerer: Answerer; readonly chance: Int32Array; readonly events: TraceEvent[] };

/** A second answerer over the lab's image, which tells everything and changes nothing. */
function explainerOf(lab: SelectionLab): Explainer {
  const events: TraceEvent[] = [];
  const chance = Int32Array.of(1, 2, 3, 4);
  const answerer = createAnswerer(lab.shared, {
    thread: 1,
    nodeId: undefined,
    maxUdpSize: ROOM,
    tcpIdleSeconds: 10,
    chance,
    isFrozen: true,
    trace: (event) => events.push(event),
  });
  return { answerer, chance, events };
}

function answerOf(answerer: Answerer, query: Uint8Array, bytes: Uint8Array, client: Uint8Array): number {
  bytes.set(query);
  answerer.enter();
  const length = answerer.answer(bytes, 0, query.length, ROOM, client, 0, client.length, TRANSPORT.UDP);
  answerer.leave();
  return length;
}

/** The last byte of each address in the answer to a question for A. */
function lastBytes(bytes: Uint8Array): number[] {
  const answers = (bytes[6]! << 8) | bytes[7]!;
  return Array.from({ length: answers }, (_, index) => bytes[QUESTION_END + index * 16 + 15]!);
}

test("the trace of an answer is that of the next answer, whatever method, health, client and chance", () => {
  const chance = Int32Array.of(9, 8, 7, 6);
  const lab = openSelectionLab([zone("corp.test.")], { answerer: { chance }, maxUdpSize: ROOM });
  const explainer = explainerOf(lab);
  const { below, pick } = seededChance(77);
  lab.regions({ "10.0.0.0/10": "west", "10.64.0.0/10": "east", "fd00::/16": "north" }, "north");
  const names = METHODS.flatMap((method) => [false, true].map((isAffine) => ({ method, isAffine })));
  const put = (index: number) => {
    const { method, isAffine } = names[index]!;
    const values: Value[] = Array.from({ length: 1 + below(6) }, (_, value) => {
      const region = below(4) === 0 ? {} : { region: pick(REGIONS) };
      return { value: `10.0.${index}.${value}`, probe: `${index}-${value}`, weight: below(3) * below(40), ...region };
    });
    const policy: Policy = {
      method,
      single: below(4) === 0,
      affinitySeconds: isAffine ? 60 : 0,
      preferred: [pick(REGIONS)],
    };
    lab.select(`n${String(index).padStart(2, "0")}.corp.test. A`, policy, values);
  };
  const queries = names.map((_, index) => {
    put(index);
    return queryBytes(`n${String(index).padStart(2, "0")}.corp.test. A`, { edns: false });
  });
  const [told, real] = [new Uint8Array(ROOM), new Uint8Array(ROOM)];
  for (let answer = 0; answer < ANSWERS; answer++) {
    const index = below(names.length);
    if (answer % 7 === 0) {
      const state = pick(["HEALTHY", "UNHEALTHY", "UNHEALTHY", "UNKNOWN"] as const);
      lab.health(`${index}-${below(6)}`, state, below(5) * 100);
    }
    if (answer % 101 === 0) put(index);
    if (answer % 13 === 0) lab.clock(1_800_000_000 + answer);
    const client =
      below(5) === 0
        ? Uint8Array.of(253, 0, below(3), 0, 0, 0, below(9), 0, 0, 0, 0, 0, 0, 0, 0, 1)
        : Uint8Array.of(10, below(256), below(256), 1);
    explainer.chance.set(chance);
    explainer.events.length = 0;
    const length = answerOf(explainer.answerer, queries[index]!, told, client);
    assert.equal(answerOf(lab.answerer, queries[index]!, real, client), length);
    if (Buffer.compare(told.subarray(0, length), real.subarray(0, length)) !== 0) {
      assert.fail(`${names[index]!.method}: ${lastBytes(told)} told, ${lastBytes(real)} answered`);
    }
    assert.deepEqual([...explainer.chance], [...chance]);
    const chosen = explainer.events.findLast(({ kind }) => kind === "chosen");
    assert.ok(chosen?.kind === "chosen");
    assert.deepEqual(chosen.chosen, lastBytes(real));
  }
});

function explain(lab: SelectionLab, question: string, client = "127.0.0.1"): readonly string[] {
  const explainer = explainerOf(lab);
  const address = Uint8Array.from(client.split(".").map(Number));
  answerOf(explainer.answerer, queryBytes(question), new Uint8Array(ROOM), address);
  return explainer.events.map(eventText);
}

function eventText(event: TraceEvent): string {
  switch (event.kind) {
    case "name":
      return `name ${nameToText(event.name)} after ${event.hops}`;
    case "route":
      return `route ${event.stage}${event.zone === undefined ? "" : ` ${nameToText(event.zone)}`}`;
    case "cache":
      return `cache ${event.isStale ? "stale" : "fresh"} ${event.ageSeconds}`;
    case "lack":
      return `lack ${event.type}`;
    case "found":
      return `found ${event.found} ${nameToText(event.owner)}`;
    case "rrset":
      return `${event.section} type ${event.type} ttl ${event.ttl}${event.isSelected ? " selected" : ""}`;
    case "select": {
      const method = Object.entries(METHOD).find(([, number]) => number === event.method)?.[0];
      const states = event.candidates.map(
        ({ health }) => Object.entries(HEALTH).find(([, word]) => word === health)?.[0],
      );
      return `select ${method} ${states.join(" ")}${event.failOpen ? " fail open" : ""} left ${event.left}`;
    }
    case "client":
      return `client ${REGIONS.find((name) => regionNumber(name) === event.region)} by ${event.source}`;
    case "step":
      return `step ${event.step} left ${event.left}`;
    case "chance":
      return `chance ${event.left}: ${event.shares}`;
    case "affinity":
      return `affinity among ${event.left}`;
    case "chosen":
      return `chosen ${event.chosen}`;
    case "follow":
      return `follow ${event.by} ${nameToText(event.target)}`;
    case "stopped":
      return `stopped by ${event.why}`;
    case "again":
      return "again";
    case "result":
      return `result ${event.rcode} answers ${event.answers}`;
  }
}

test("the way of an answer through names, zones and regions", () => {
  const lab = openSelectionLab([zone("corp.test.", "www CNAME x.apps\n*.apps CNAME pool\nalso A 10.9.0.1")]);
  lab.regions({ "10.1.0.0/16": "west" });
  lab.select("pool.corp.test. A", { method: "REGION", preferred: ["north", "east"] }, [
    { value: "10.0.0.1", probe: "a", region: "west" },
    { value: "10.0.0.2", region: "east" },
    { value: "10.0.0.3" },
  ]);
  lab.health("a", "UNHEALTHY");
  const pool = [
    "route own corp.test.",
    "found node pool.corp.test.",
    "answer type 1 ttl 30 selected",
    "select REGION UNHEALTHY UNKNOWN UNKNOWN left 1,2",
    "client west by mapping",
    "step client-region left ",
    "step preferred-region left ",
    "step preferred-region left 1",
    "chosen 1",
  ];
  assert.deepEqual(explain(lab, "www.corp.test. A", "10.1.0.9"), [
    "name www.corp.test. after 0",
    "route own corp.test.",
    "found node www.corp.test.",
    "answer type 5 ttl 300",
    "follow cname x.apps.corp.test.",
    "name x.apps.corp.test. after 1",
    "route own corp.test.",
    "found wildcard *.apps.corp.test.",
    "answer type 5 ttl 300",
    "follow cname pool.corp.test.",
    "name pool.corp.test. after 2",
    ...pool,
    "result 0 answers 3",
  ]);
  lab.override("far.example. CNAME also.corp.test.");
  assert.deepEqual(explain(lab, "far.example. A"), [
    "name far.example. after 0",
    "route override",
    "answer type 5 ttl 300",
    "follow cname also.corp.test.",
    "name also.corp.test. after 1",
    "route own corp.test.",
    "found node also.corp.test.",
    "answer type 1 ttl 300",
    "result 0 answers 2",
  ]);
  assert.deepEqual(explain(lab, "none.example. A"), ["name none.example. after 0", "route none", "result 5 answers 0"]);
  assert.deepEqual(explain(lab, "none.corp.test. A").slice(2), ["found nothing none.corp.test.", "result 3 answers 0"]);
});

test("chance, affinity, fail open and an ALIAS are told of", () => {
  const lab = openSelectionLab([zone("corp.test.", "sub NS ns.sub")], { nowSeconds: 1_800_000_000 });
  const values = [30, 10, 0].map((weight, index) => ({ value: `10.0.0.${index}`, probe: `p${index}`, weight }));
  lab.select("w.corp.test. A", { method: "WEIGHTED" }, values);
  lab.select("corp.test. ALIAS", { method: "FAILOVER", single: true }, ["w.corp.test.", "ns1.corp.test."]);
  const lines = explain(lab, "corp.test. A");
  assert.deepEqual(lines.slice(3, 11), [
    `answer type ${RRTYPE.ALIAS} ttl 30 selected`,
    "select FAILOVER UNKNOWN UNKNOWN left 0,1",
    "step first left 0",
    "chosen 0",
    "follow alias w.corp.test.",
    "route own corp.test.",
    "found node w.corp.test.",
    "answer type 1 ttl 30 selected",
  ]);
  assert.equal(lines[12], "chance 0,1,2: 0.75,0.25,0");
  for (const { probe } of values) lab.health(probe, "UNHEALTHY");
  assert.ok(
    explain(lab, "w.corp.test. A").includes("select WEIGHTED UNHEALTHY UNHEALTHY UNHEALTHY fail open left 0,1,2"),
  );
  lab.select("w.corp.test. A", { method: "ROUND_ROBIN", affinitySeconds: 60 }, values);
  assert.ok(explain(lab, "w.corp.test. A").includes("affinity among 0,1,2"));
  assert.deepEqual(explain(lab, "x.sub.corp.test. A").slice(2, 3), ["found cut sub.corp.test."]);
});

test("records beside an answer are told with their owner and what is selected among; a chain that ends says why", () => {
  const lab = openSelectionLab([zone("corp.test.", "mx MX 10 Mail\n@ MX 10 mail\nloop CNAME pool\npool CNAME loop")]);
  lab.select("mail.corp.test. A", { method: "FAILOVER" }, ["10.0.0.1", "10.0.0.2"]);
  lab.select("srv.corp.test. SRV", { method: "ROUND_ROBIN" }, ["1 2 3 mail.corp.test."]);
  for (const question of ["mx.corp.test. MX", "srv.corp.test. SRV"]) {
    const { answerer, events } = explainerOf(lab);
    const query = queryBytes(question);
    answerOf(answerer, query, new Uint8Array(ROOM), Uint8Array.of(10, 0, 0, 1));
    const beside = events.filter((event) => event.kind === "rrset").at(-1);
    assert.deepEqual(beside, {
      kind: "rrset",
      section: "additional",
      owner: Uint8Array.from(Buffer.from("\x04mail\x04corp\x04test\x00")),
      type: RRTYPE.A,
      ttl: 30,
      isSelected: true,
      rdata: [Uint8Array.of(10, 0, 0, 1), Uint8Array.of(10, 0, 0, 2)],
    });
  }
  assert.equal(explain(lab, "loop.corp.test. A").at(-2), "stopped by loop");
});
