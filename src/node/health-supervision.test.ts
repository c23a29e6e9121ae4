import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { waitFor } from "../../tests/support/wait.ts";
import type { FromHealth, ToHealth } from "../health/messages.ts";
import type { ProbeSpec, ProbeStatus } from "../health/probe.ts";
import { HEALTH, HEALTH_WORD, type HealthSlots, healthOf, openHealthSlots, takeHealthSlot } from "../image/health.ts";
import { createSharedImage, type SharedImage } from "../image/shared.ts";
import { type HealthSupervision, startHealth } from "./health-supervision.ts";
import { createNodeStatus, isRunning, restartsOf } from "./status.ts";
import { createThreadLink, type ThreadLink } from "./thread-link.ts";

const ENTRY = new URL("../../tests/support/health-thread-entry.ts", import.meta.url);
const keyOf = (number: number): string => number.toString(16).padStart(16, "0");

function specOf(slots: HealthSlots, number: number, host: string): ProbeSpec {
  const key = keyOf(number);
  const [slot, port] = [slots.byKey.get(key)?.slot ?? takeHealthSlot(slots, key), 80];
  return { key, slot, protocol: "tcp", host, port, intervalMs: 1_000, timeoutMs: 500, failureThreshold: 2 };
}

/** What a control thread would be: its end of the link, and all that it hears. */
type Control = { readonly link: ThreadLink<ToHealth, FromHealth>; readonly heard: FromHealth[] };

function openControl(health: HealthSupervision): Control {
  const link = createThreadLink<ToHealth, FromHealth>(health.connect());
  const heard: FromHealth[] = [];
  link.onMessage((message) => heard.push(message));
  health.onReplaced((port) => link.connect(port));
  return { link, heard };
}

/** A supervisor with nothing but a health thread, on a data directory that may have been used before. */
function open(directory = mkdtempSync(join(tmpdir(), "signpost-health-thread-")), shared = createSharedImage(1)) {
  const status = createNodeStatus(["control", "health"]);
  const lines: string[] = [];
  const health = startHealth({
    entry: ENTRY,
    lifelessMs: 3_000,
    shared,
    status,
    config: { "node.data_dir": directory, "cloud.metadata_url": "http://127.0.0.1:1" },
    runnerSocket: undefined,
    nodeId: "node-1",
    thread: 3,
    log: (_, message) => lines.push(message),
  });
  const stop = async () => {
    const ended = health.thread.ended();
    health.thread.post({ kind: "stop" });
    await ended;
  };
  return {
    directory,
    shared,
    status,
    lines,
    health,
    slots: openHealthSlots(shared),
    stop,
    [Symbol.asyncDispose]: async () => {
      await health.thread.terminate();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function stateIn(shared: SharedImage, { slot }: ProbeSpec): number {
  return healthOf(new Int32Array(shared.health)[HEALTH_WORD.VERDICT + slot]!);
}

async function waitForState(shared: SharedImage, spec: ProbeSpec, state: number): Promise<void> {
  await waitFor(`${spec.host} in state ${state}`, 10_000, () => stateIn(shared, spec) === state);
}

let lastAsk = 0;

async function ask({ link, heard }: Control, spec: ProbeSpec): Promise<ProbeStatus | undefined> {
  lastAsk += 1;
  const id = lastAsk;
  link.post({ kind: "ask", id, keys: [spec.key] });
  const told = await waitFor("the answer", 10_000, () =>
    heard.find((message) => message.kind === "told" && message.id === id),
  );
  return told.kind === "told" ? told.statuses[0] : undefined;
}

function transitionsOf({ heard }: Control): string[] {
  return heard.flatMap((message) =>
    message.kind === "transitions" ? message.transitions.map(({ key, to }) => `${key} ${to}`) : [],
  );
}

test("what control names is probed, judged in the shared words and told", async () => {
  await using world = open();
  const { slots, shared, health, status } = world;
  const control = openControl(health);
  const [up, down] = [specOf(slots, 1, "up."), specOf(slots, 2, "down.")];
  control.link.post({ kind: "begin" });
  control.link.post({ kind: "probes", start: [up, down], stop: [] });
  control.link.post({ kind: "complete" });
  await waitForState(shared, up, HEALTH.HEALTHY);
  await waitForState(shared, down, HEALTH.UNHEALTHY);
  await waitFor("the transitions", 5_000, () => transitionsOf(control).length === 2);
  assert.deepEqual(transitionsOf(control).toSorted(), [`${up.key} healthy`, `${down.key} unhealthy`]);
  assert.equal((await ask(control, down))?.history[0]?.error, "refused");
  control.link.post({ kind: "ask-figures", id: 99 });
  const told = await waitFor("the figures", 5_000, () => control.heard.find(({ kind }) => kind === "told-figures"));
  assert.deepEqual(told.kind === "told-figures" && told.figures.probes, { unknown: 0, healthy: 1, unhealthy: 1 });
  assert.equal(control.heard.filter(({ kind }) => kind === "ready").length, 0);
  assert.ok(isRunning(status, "health"));
  control.link.post({ kind: "probes", start: [], stop: [up.key] });
  assert.equal(await ask(control, up), undefined);
});

for (const fault of ["kill", "hang"] as const) {
  test(`a thread with a fault (${fault}) is replaced, its verdicts stay, and probes go on`, async () => {
    await using world = open();
    const { slots, shared, health, status, directory } = world;
    const control = openControl(health);
    const specs = [specOf(slots, 1, "down."), specOf(slots, 2, "toggle."), specOf(slots, 3, `${fault}.`)] as const;
    const [down, toggle] = specs;
    control.link.post({ kind: "probes", start: specs, stop: [] });
    await waitForState(shared, down, HEALTH.UNHEALTHY);
    await waitForState(shared, toggle, HEALTH.UNHEALTHY);
    // The words are there before the messages that tell of them.
    await waitFor("both transitions", 10_000, () =>
      [down, toggle].every(({ key }) => transitionsOf(control).includes(`${key} unhealthy`)),
    );
    const heardBefore = control.heard.length;
    writeFileSync(join(directory, "FAULT"), "");
    await waitFor("a replacement", 15_000, () => control.heard.slice(heardBefore).some(({ kind }) => kind === "ready"));
    assert.equal(restartsOf(status, "health"), 1);
    // The words were never taken back: answers have followed them all the time.
    assert.equal(stateIn(shared, down), HEALTH.UNHEALTHY);
    control.link.post({ kind: "begin" });
    control.link.post({ kind: "probes", start: specs, stop: [] });
    control.link.post({ kind: "complete" });
    const known = await waitFor("the states", 5_000, () =>
      control.heard.slice(heardBefore).find((message) => message.kind === "known"),
    );
    assert.ok(
      known.kind === "known" && known.states.some(({ key, state }) => key === down.key && state === "unhealthy"),
    );
    writeFileSync(join(directory, "TOGGLE"), "");
    await waitForState(shared, toggle, HEALTH.HEALTHY);
    const told = control.heard.slice(heardBefore).filter(({ kind }) => kind === "transitions");
    const keys = told.flatMap((message) => (message.kind === "transitions" ? message.transitions : []));
    assert.ok(
      keys.every(({ key }) => key !== down.key),
      "what was known already is no transition",
    );
  });
}

test("a control thread that is replaced finds the probes as they were, and ends those that it does not name", async () => {
  await using world = open();
  const { slots, shared, health } = world;
  const first = openControl(health);
  const [kept, dropped] = [specOf(slots, 1, "down."), specOf(slots, 2, "up.")];
  first.link.post({ kind: "probes", start: [kept, dropped], stop: [] });
  await waitForState(shared, kept, HEALTH.UNHEALTHY);
  await waitForState(shared, dropped, HEALTH.HEALTHY);
  const before = await ask(first, kept);
  first.link.close();
  const second = openControl(health);
  second.link.post({ kind: "begin" });
  second.link.post({ kind: "probes", start: [kept], stop: [] });
  second.link.post({ kind: "complete" });
  const after = await ask(second, kept);
  assert.equal(after?.sinceMs, before?.sinceMs);
  assert.ok((after?.history.length ?? 0) >= (before?.history.length ?? 1));
  assert.equal(await ask(second, dropped), undefined);
  const known = second.heard.find((message) => message.kind === "known");
  assert.deepEqual(known, {
    kind: "known",
    states: [{ key: kept.key, state: "unhealthy", sinceMs: before?.sinceMs }],
  });
});

test("states survive the end of the process, with their age", async () => {
  const directory = mkdtempSync(join(tmpdir(), "signpost-health-thread-"));
  const old = open(directory);
  const down = specOf(old.slots, 1, "down.");
  const control = openControl(old.health);
  control.link.post({ kind: "probes", start: [down], stop: [] });
  await waitForState(old.shared, down, HEALTH.UNHEALTHY);
  const before = await ask(control, down);
  await old.stop();
  control.link.close();
  assert.equal(statSync(join(directory, "health-state")).mode & 0o777, 0o600);

  await using world = open(directory);
  // The slot may be any other in a new process.
  takeHealthSlot(world.slots, keyOf(77));
  const again = specOf(world.slots, 1, "down.");
  const successor = openControl(world.health);
  successor.link.post({ kind: "probes", start: [again], stop: [] });
  const after = await ask(successor, again);
  assert.equal(stateIn(world.shared, again), HEALTH.UNHEALTHY);
  assert.deepEqual([after?.state, after?.sinceMs], ["unhealthy", before?.sinceMs]);
  await waitFor("a probe", 5_000, async () => ((await ask(successor, again))?.history.length ?? 0) > 0);
  assert.deepEqual(transitionsOf(successor), []);
});
