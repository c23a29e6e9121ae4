import assert from "node:assert/strict";
import { test } from "node:test";
import { auditOf, testCaller } from "../../tests/support/commands.ts";
import { createSimulatedClock, type SimulatedClock } from "../../tests/support/simulated-clock.ts";
import { temporaryStore } from "../../tests/support/store.ts";
import { waitFor } from "../../tests/support/wait.ts";
import type { CommandContext } from "./run.ts";
import { activateZones, createZoneActivator, type ZoneActivator } from "./zone-activation.ts";
import { createZone, deleteZone } from "./zones.ts";

const TWO = { peersAlive: () => 1 };
const ZONE = "corp.example.";
const until = (condition: () => boolean) => waitFor("it to happen", 10_000, condition);

type Lab = {
  readonly clock: SimulatedClock;
  readonly activator: ZoneActivator;
  readonly announced: string[];
  readonly warnings: string[];
  /** Answers the questions about the zone. */
  readonly acknowledge: (zone: string, isThere: boolean) => void;
  readonly asked: () => readonly string[];
};

function labOver(
  context: CommandContext,
  aliveNodes: readonly string[] = ["test-node", "other"],
  isComplete: () => boolean = () => true,
): Lab {
  const clock = createSimulatedClock();
  const questions = new Map<string, (isThere: boolean) => void>();
  const announced: string[] = [];
  const warnings: string[] = [];
  const activator = createZoneActivator({
    context: {
      ...context,
      log: (level, message) => {
        if (level === "warn") warnings.push(message);
      },
    },
    acknowledged: (zone) => new Promise((resolve) => questions.set(zone, resolve)),
    announce: (zone) => announced.push(zone),
    aliveNodes: () => aliveNodes,
    isComplete,
    timers: clock,
  });
  const acknowledge = (zone: string, isThere: boolean) => questions.get(zone)?.(isThere);
  return { clock, activator, announced, warnings, acknowledge, asked: () => [...questions.keys()] };
}

test("what all nodes that are alive acknowledge is active, and the audit log says why", async () => {
  await using temporary = await temporaryStore();
  const { context, store } = temporary;
  const lab = labOver(context);
  await createZone(context, testCaller(), TWO, { name: ZONE });
  await createZone(context, testCaller(), { peersAlive: () => 0 }, { name: "active.example." });
  assert.deepEqual([lab.asked(), lab.activator.waiting()], [[ZONE], 1]);
  await lab.clock.pass(5_000);
  assert.equal(store.stateOf(ZONE), "pending");
  lab.acknowledge(ZONE, true);
  await until(() => store.stateOf(ZONE) === "active");
  assert.equal(lab.activator.waiting(), 0);
  const entries = auditOf(store, { action: "activate" });
  assert.deepEqual(
    entries.map(({ user_name, resource_name, detail }) => [user_name, resource_name, detail]),
    [["system", ZONE, "acknowledged by all nodes that are alive"]],
  );
  assert.deepEqual(await activateZones(context, [ZONE, "nowhere.example."], "again"), []);
  assert.deepEqual(lab.warnings, []);
  lab.activator.close();
});

test("what is not acknowledged in time is active after a minute, with a warning; a zone that is deleted is forgotten", async () => {
  await using temporary = await temporaryStore();
  const { context, store } = temporary;
  const lab = labOver(context);
  const { stored } = await createZone(context, testCaller(), TWO, { name: "gone.example." });
  await createZone(context, testCaller(), TWO, { name: ZONE });
  await deleteZone(context, testCaller(), stored.body.id);
  assert.equal(lab.activator.waiting(), 1);
  lab.acknowledge("gone.example.", true);
  lab.acknowledge(ZONE, false);
  await lab.clock.pass(59_000);
  assert.equal(store.stateOf(ZONE), "pending");
  await lab.clock.pass(2_000);
  await until(() => store.stateOf(ZONE) === "active");
  await until(() => lab.warnings.length === 1);
  assert.match(lab.warnings.join(), /corp\.example\. is active though/);
  assert.match(auditOf(store, { action: "activate" })[0]?.detail ?? "", /^not acknowledged/);
  lab.activator.close();
});

test("a zone of a node that died is activated by another, later; one that it announced again by acknowledgement", async () => {
  await using maker = await temporaryStore({ nodeId: "other" });
  await using temporary = await temporaryStore();
  const { context, store } = temporary;
  const lab = labOver(context, ["a-node", "test-node"]);
  for (const name of [ZONE, "again.example."]) await createZone(maker.context, testCaller(), TWO, { name });
  await store.applyRemote(maker.store.rawItems({ limit: 100 }).items);
  assert.deepEqual([lab.asked(), lab.activator.waiting()], [[], 2]);
  lab.activator.announced("again.example.");
  assert.deepEqual(lab.asked(), ["again.example."]);
  lab.acknowledge("again.example.", true);
  await until(() => store.stateOf("again.example.") === "active");
  // The maker's turn, and that of the node before this one in the order of ids.
  await lab.clock.pass(69_000);
  assert.equal(store.stateOf(ZONE), "pending");
  await lab.clock.pass(2_000);
  await until(() => store.stateOf(ZONE) === "active");
  lab.activator.close();
});

test("zones that were pending when the node stopped are taken up, announced again, and activated soon", async () => {
  await using temporary = await temporaryStore();
  const { context, store } = temporary;
  for (const name of [ZONE, "slow.example."]) await createZone(context, testCaller(), TWO, { name });
  const later = { ...context, now: () => Date.now() + 3_600_000 };
  const lab = labOver(later);
  await until(() => lab.activator.waiting() === 2);
  assert.deepEqual(lab.announced, [ZONE, "slow.example."]);
  lab.acknowledge(ZONE, true);
  await until(() => store.stateOf(ZONE) === "active");
  await lab.clock.pass(9_000);
  assert.equal(store.stateOf("slow.example."), "pending");
  await lab.clock.pass(2_000);
  await until(() => store.stateOf("slow.example.") === "active");
  lab.activator.close();
});

test("a node that has its first sync before it makes no zone active, for it may have a part of it only", async () => {
  await using maker = await temporaryStore({ nodeId: "other" });
  await using temporary = await temporaryStore();
  const { context, store } = temporary;
  let isComplete = false;
  const lab = labOver(context, ["other", "test-node"], () => isComplete);
  for (const name of [ZONE, "again.example."]) await createZone(maker.context, testCaller(), TWO, { name });
  await store.applyRemote(maker.store.rawItems({ limit: 100 }).items);
  lab.activator.announced("again.example.");
  lab.acknowledge("again.example.", true);
  await lab.clock.pass(120_000);
  assert.deepEqual([store.stateOf(ZONE), store.stateOf("again.example.")], ["pending", "pending"]);
  isComplete = true;
  await lab.clock.pass(1_000);
  await until(() => store.stateOf(ZONE) === "active" && store.stateOf("again.example.") === "active");
  lab.activator.close();
});

test("a write that fails is made again, and what closed activates nothing more", async () => {
  await using temporary = await temporaryStore();
  const { context, store } = temporary;
  let fails = true;
  const write: typeof store.write = (work) =>
    fails ? Promise.reject(new Error("the clock is off")) : store.write(work);
  await createZone(context, testCaller(), TWO, { name: ZONE });
  const lab = labOver({ ...context, store: { ...store, write } });
  await until(() => lab.asked().length === 1);
  lab.acknowledge(ZONE, true);
  await until(() => lab.warnings.length === 1);
  assert.match(lab.warnings.join(), /cannot be made active now: the clock is off/);
  fails = false;
  await lab.clock.pass(1_000);
  await until(() => store.stateOf(ZONE) === "active");
  assert.equal(auditOf(store, { action: "activate" })[0]?.detail, "acknowledged by all nodes that are alive");
  lab.activator.close();
  await createZone(context, testCaller(), TWO, { name: "late.example." });
  assert.equal(lab.activator.waiting(), 0);
});
