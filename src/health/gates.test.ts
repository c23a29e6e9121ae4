import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import fc from "fast-check";
import { HEALTH, HEALTH_SLOTS_USED, HEALTH_WORD, setHealth } from "../image/health.ts";
import { createSharedImage, HEALTH_SLOTS, type SharedImage } from "../image/shared.ts";
import type { GatedRRset } from "../model/gates.ts";
import type { HealthCheckTemplate } from "../model/objects.ts";
import type { HealthEvent } from "./book.ts";
import { type HealthGates, openGates } from "./gates.ts";
import type { ProbeSpec, ProbeState } from "./probe.ts";

const HTTPS: HealthCheckTemplate = { protocol: "https", path: "/healthz" };

type Lab = {
  readonly gates: HealthGates;
  readonly shared: SharedImage;
  readonly events: HealthEvent[];
  readonly started: ProbeSpec[];
  readonly stopped: string[];
  readonly logged: string[];
  takenOver: number;
  now: number;
};

function openLab(shared = createSharedImage(1), region: string | undefined = "eu"): Lab {
  const events: HealthEvent[] = [];
  const started: ProbeSpec[] = [];
  const stopped: string[] = [];
  const logged: string[] = [];
  const lab = { shared, events, started, stopped, logged, takenOver: 0, now: 1_000_000 };
  const gates = openGates({
    shared,
    region,
    keyOf: (target) => createHash("sha256").update(target).digest("hex").slice(0, 16),
    start: (spec) => started.push(spec),
    stop: (key) => stopped.push(key),
    onTakenOver: () => {
      lab.takenOver += 1;
    },
    onEvent: (event) => events.push(event),
    now: () => lab.now,
    log: (_level, message) => logged.push(message),
  });
  return Object.assign(lab, { gates });
}

function rrset(given: Partial<GatedRRset> & { readonly of?: readonly string[] } = {}): GatedRRset {
  const { of = ["192.0.2.1", "192.0.2.2"], ...rest } = given;
  return {
    zone: "corp.",
    name: "www",
    type: "A",
    id: "rec_www",
    template: HTTPS,
    values: of.map((value) => ({ value })),
    method: undefined,
    ...rest,
  };
}

/** The probe of the address goes from the state that it was in to another. */
function turn({ gates }: Lab, host: string, to: ProbeState, from?: ProbeState): void {
  for (const probe of gates.book.probes.values()) {
    if (probe.spec.host !== host) continue;
    gates.hear([{ key: probe.key, from: from ?? probe.state, to, atMs: 5 }]);
  }
}

const told = ({ events }: Lab) =>
  events.splice(0).map(({ type, subject, data }) => `${type} ${subject} ${String(data.status ?? data.healthy)}`);

test("one probe serves 5,000 records with the same address and template, and ends with the last of them", () => {
  const lab = openLab();
  const { gates } = lab;
  const slots = new Set<number>();
  for (let index = 0; index < 5000; index++) {
    const given = rrset({ name: `host${index}`, id: `rec_${index}`, of: ["192.0.2.1"] });
    for (const slot of gates.gate(given)) slots.add(slot);
  }
  assert.equal(lab.started.length, 1);
  assert.equal(slots.size, 1);
  assert.ok(!slots.has(0));
  const [spec] = lab.started;
  assert.deepEqual(
    { ...spec, key: "", slot: 0 },
    {
      ...{ key: "", slot: 0, protocol: "https", host: "192.0.2.1", port: 443, path: "/healthz" },
      ...{ intervalMs: 15_000, timeoutMs: 5000, failureThreshold: 3 },
    },
  );
  for (let index = 0; index < 5000; index++) gates.ungate("corp.", `host${index}`, "A");
  assert.deepEqual(lab.stopped, [], "the image may still name the slot");
  gates.settle();
  assert.deepEqual(lab.stopped, [spec?.key]);
  assert.equal(gates.book.probes.size, 0);
});

test("what a template leaves out makes no other probe; what it says otherwise does", () => {
  const lab = openLab();
  const same: readonly HealthCheckTemplate[] = [
    { protocol: "http" },
    { protocol: "http", port: 80, path: "/", interval_seconds: 15, timeout_seconds: 5 },
    { interval_seconds: 15, http_config: { path: "/" }, protocol: "http" },
  ];
  const other: readonly HealthCheckTemplate[] = [
    { protocol: "http", port: 81 },
    { protocol: "http", interval_seconds: 16 },
    { protocol: "http", timeout_seconds: 4 },
    { protocol: "tcp", port: 80 },
    { protocol: "http", http_config: { headers: { authorization: "one" } } },
    { protocol: "http", http_config: { headers: { authorization: "two" } } },
  ];
  const slotOf = (template: HealthCheckTemplate, index: number) =>
    lab.gates.gate(rrset({ name: `n${index}`, template, of: ["192.0.2.1"] }))[0];
  assert.equal(new Set(same.map(slotOf)).size, 1);
  assert.equal(new Set(other.map((template, index) => slotOf(template, index + 10))).size, other.length);
  assert.equal(lab.started.length, 1 + other.length);
});

test("targets: host names are absolute and lower-case, SRV values bring their ports, and what cannot be asked has no slot", () => {
  const lab = openLab();
  const template: HealthCheckTemplate = { protocol: "tcp" };
  const values = [
    { value: "App.Example.", port: 8080 },
    { value: "app.example.", port: 8081 },
    { value: ".", port: 8080 },
    { value: "other.example.", port: 0 },
    { value: "other.example." },
  ];
  const slots = lab.gates.gate({ ...rrset({ type: "SRV", template }), values });
  assert.deepEqual(
    slots.map((slot) => slot > 0),
    [true, true, false, false, false],
  );
  assert.deepEqual(
    lab.started.map(({ host, port }) => `${host}:${port}`),
    ["app.example.:8080", "app.example.:8081"],
  );
  lab.gates.gate(rrset({ type: "AAAA", of: ["2001:DB8::0001"] }));
  assert.equal(lab.started.at(-1)?.host, "2001:db8::1");
});

test("a record's status flips with its values, once each time, and a first good verdict is no event", () => {
  const lab = openLab();
  lab.gates.gate(rrset());
  turn(lab, "192.0.2.1", "healthy");
  assert.deepEqual(told(lab), []);
  turn(lab, "192.0.2.2", "unhealthy");
  turn(lab, "192.0.2.1", "unhealthy");
  turn(lab, "192.0.2.1", "healthy");
  turn(lab, "192.0.2.2", "healthy");
  assert.deepEqual(
    lab.events.map(({ type, subject, data }) => [type, subject, data.previous, data.status]),
    [
      ["health.check_transition", "rec_www", "healthy", "degraded"],
      ["health.check_transition", "rec_www", "degraded", "unhealthy"],
      ["health.check_transition", "rec_www", "unhealthy", "degraded"],
      ["health.check_transition", "rec_www", "degraded", "healthy"],
    ],
  );
  assert.deepEqual(lab.events[1]?.data, {
    ...{ status: "unhealthy", previous: "degraded", zone: "corp.", name: "www", type: "A" },
    ...{ healthy: 0, total: 2, failing_open: true },
  });
});

test("failover is told when all local values are unhealthy and one elsewhere is not, and its end when a local one recovers", () => {
  const lab = openLab();
  const values = [
    { value: "192.0.2.1", region: "eu" },
    { value: "192.0.2.2", region: "eu" },
    { value: "192.0.2.3", region: "us" },
  ];
  lab.gates.gate({ ...rrset({ method: "geo-failover" }), values });
  lab.gates.gate({ ...rrset({ method: "weighted", name: "other", id: "rec_other" }), values });
  const failovers = () => {
    const texts = told(lab);
    return texts.filter((text) => text.startsWith("failover"));
  };
  turn(lab, "192.0.2.1", "unhealthy");
  assert.deepEqual(failovers(), []);
  turn(lab, "192.0.2.2", "unhealthy");
  assert.deepEqual(failovers(), ["failover.activated rec_www 1"]);
  turn(lab, "192.0.2.3", "unhealthy");
  turn(lab, "192.0.2.3", "healthy");
  assert.deepEqual(failovers(), [], "it went on all the while");
  turn(lab, "192.0.2.2", "healthy");
  assert.deepEqual(failovers(), ["failover.recovered rec_www 2"]);
  turn(lab, "192.0.2.3", "unhealthy");
  turn(lab, "192.0.2.2", "unhealthy");
  assert.deepEqual(failovers(), [], "nowhere to go");
  turn(lab, "192.0.2.3", "healthy");
  turn(lab, "192.0.2.1", "healthy");
  assert.deepEqual(failovers(), ["failover.activated rec_www 1", "failover.recovered rec_www 2"]);
});

test("without a region of its own, or without a local value, a node knows no failover", () => {
  const values = [
    { value: "192.0.2.1", region: "eu" },
    { value: "192.0.2.2", region: "us" },
  ];
  for (const region of ["asia", undefined]) {
    const lab = openLab(createSharedImage(1), region ?? "");
    lab.gates.gate({ ...rrset({ method: "region" }), values });
    turn(lab, "192.0.2.1", "unhealthy");
    assert.deepEqual(told(lab), ["health.check_transition rec_www degraded"]);
  }
});

test("what was so before the start is no event, what happens to it is", () => {
  const lab = openLab();
  lab.gates.gate(rrset());
  const [first, second] = [...lab.gates.book.probes.values()];
  assert.ok(first !== undefined && second !== undefined);
  lab.gates.recall([{ key: first.key, state: "unhealthy", sinceMs: 1 }]);
  assert.deepEqual([told(lab), first.state], [[], "unhealthy"]);
  // Of the second nobody has said what it was.
  lab.gates.hear([{ key: second.key, from: "unhealthy", to: "healthy", atMs: 5 }]);
  assert.deepEqual(told(lab), ["health.check_transition rec_www degraded"]);
  // A health thread died with the message: its successor finds the state, and it is news.
  lab.gates.recall([{ key: second.key, state: "unhealthy", sinceMs: 6 }]);
  assert.deepEqual(told(lab), ["health.check_transition rec_www unhealthy"]);
  lab.gates.hear([{ key: "0123456789abcdef", from: "healthy", to: "unhealthy", atMs: 5 }]);
  assert.deepEqual(told(lab), []);
});

test("a successor of the control thread finds slots and states, and tells nothing twice", () => {
  const one = openLab();
  const slots = one.gates.gate(rrset());
  one.gates.gate(rrset({ name: "gone", of: ["192.0.2.9"] }));
  const words = new Int32Array(one.shared.health);
  setHealth(words, slots[0] ?? 0, HEALTH.UNHEALTHY, 0);
  const other = openLab(one.shared);
  assert.deepEqual(other.gates.gate(rrset()), slots);
  const usedOf = () => Array.from({ length: 3 }, (_, index) => words[HEALTH_WORD.KEY_HIGH + index + 1] !== 0);
  assert.equal(usedOf().filter(Boolean).length, 3, "RRsets of the predecessor may answer until it is settled");
  other.gates.settle();
  other.gates.settle();
  assert.equal(other.takenOver, 1);
  assert.equal(other.events.length, 0);
  turn(other, "192.0.2.1", "healthy");
  assert.deepEqual(told(other), ["health.check_transition rec_www healthy"]);
  assert.equal(usedOf().filter(Boolean).length, 2, "what nobody gates any more is given back");
});

test("a zone built anew keeps the slots of what answers until it is done, and ends what is not in it", () => {
  const lab = openLab();
  const { gates } = lab;
  gates.gate(rrset());
  gates.gate(rrset({ name: "old", id: "rec_old", of: ["192.0.2.7"] }));
  gates.beginZone("corp.");
  gates.gate(rrset({ of: ["192.0.2.3"] }));
  gates.settle();
  assert.deepEqual(lab.stopped, [], "the zone that answers names them");
  // The build is given up, and begins again.
  gates.beginZone("corp.");
  gates.gate(rrset({ of: ["192.0.2.4"] }));
  gates.settle();
  assert.deepEqual(lab.stopped, []);
  gates.endZone("corp.");
  gates.settle();
  assert.equal(lab.stopped.length, 4);
  assert.deepEqual(
    [...gates.book.probes.values()].map(({ spec }) => spec.host),
    ["192.0.2.4"],
  );
  gates.ungateZone("corp.");
  gates.settle();
  assert.equal(gates.book.probes.size + gates.book.zones.size, 0);
});

test("an edit that takes the bad value out ends the record's bad status, and says so", () => {
  const lab = openLab();
  lab.gates.gate(rrset());
  turn(lab, "192.0.2.1", "unhealthy");
  told(lab);
  lab.gates.gate(rrset({ of: ["192.0.2.2", "192.0.2.5"] }));
  assert.deepEqual(told(lab), ["health.check_transition rec_www healthy"]);
  lab.gates.gate(rrset({ id: "rec_another", of: ["192.0.2.1"] }));
  assert.deepEqual(told(lab), [], "another record in its place begins as it is");
});

test("without a slot left a value is not probed, and the log says so once a minute", () => {
  const shared = createSharedImage(1);
  const words = new Int32Array(shared.health);
  // All slots but one have an owner.
  for (let slot = 1; slot < HEALTH_SLOTS - 1; slot++) words[HEALTH_WORD.KEY_LOW + slot] = slot;
  words[HEALTH_SLOTS_USED] = HEALTH_SLOTS - 2;
  const lab = openLab(shared);
  const slots = lab.gates.gate(rrset({ of: ["192.0.2.1", "192.0.2.2", "192.0.2.3"] }));
  assert.deepEqual(slots, [HEALTH_SLOTS - 1, 0, 0]);
  assert.deepEqual([lab.logged.length, lab.started.length], [1, 1]);
  const [entry] = lab.gates.book.zones.get("corp.")?.entries.values() ?? [];
  assert.deepEqual(
    entry?.values.map(({ lacksSlot }) => lacksSlot),
    [false, true, true],
  );
  lab.now += 60_000;
  lab.gates.gate(rrset({ of: ["192.0.2.1", "192.0.2.2"] }));
  assert.equal(lab.logged.length, 2);
});

test("after any history the book is that of a fresh start, and slots and probes are held by what is in it", () => {
  const names = fc.constantFrom("a", "b", "c");
  const zones = fc.constantFrom("one.", "two.");
  const address = fc.constantFrom("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4");
  const of = fc.uniqueArray(address, { minLength: 1, maxLength: 3 });
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant("gate" as const), zone: zones, name: names, of }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("ungate" as const), zone: zones, name: names }) },
    fc.record({ kind: fc.constantFrom("begin" as const, "end" as const, "drop" as const), zone: zones }),
    fc.record({ kind: fc.constant("settle" as const) }),
    fc.record({ kind: fc.constant("turn" as const), host: address, to: fc.constantFrom("healthy", "unhealthy") }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const lab = openLab();
      const { gates } = lab;
      for (const one of steps) {
        if (one.kind === "gate") gates.gate(rrset({ ...one, id: `rec_${one.zone}${one.name}` }));
        if (one.kind === "ungate") gates.ungate(one.zone, one.name, "A");
        if (one.kind === "begin") gates.beginZone(one.zone);
        if (one.kind === "end") gates.endZone(one.zone);
        if (one.kind === "drop") gates.ungateZone(one.zone);
        if (one.kind === "settle") gates.settle();
        if (one.kind === "turn") turn(lab, one.host, one.to as ProbeState);
      }
      for (const zone of gates.book.zones.values()) for (const probe of zone.held) assert.ok(probe.holders > 0);
      for (const [name, { building }] of gates.book.zones) {
        if (building > 0) {
          const entries = [...(gates.book.zones.get(name)?.entries.values() ?? [])];
          gates.beginZone(name);
          for (const { zone, name, id, values } of entries) {
            gates.gate(rrset({ zone, name, id, of: values.map(({ value }) => value) }));
          }
          gates.endZone(name);
        }
      }
      gates.settle();
      const fresh = openLab();
      const states = new Map([...gates.book.probes.values()].map(({ spec, state }) => [spec.host, state]));
      for (const { entries } of gates.book.zones.values()) {
        for (const { zone, name, id, values } of entries.values()) {
          fresh.gates.gate(rrset({ zone, name, id, of: values.map(({ value }) => value) }));
        }
      }
      for (const [host, state] of states) turn(fresh, host, state);
      assert.deepEqual(summary(gates), summary(fresh.gates));
    }),
  );
});

function summary({ book }: HealthGates): unknown {
  const entries = [...book.zones.values()].flatMap((zone) => [...zone.entries.values()]);
  return {
    entries: entries.map(({ zone, name, status }) => `${zone} ${name} ${status}`).toSorted(),
    probes: [...book.probes.values()]
      .map(({ spec, holders, rrsets }) => `${spec.host} ${holders} ${rrsets.size}`)
      .toSorted(),
  };
}
