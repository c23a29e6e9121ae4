import assert from "node:assert/strict";
import test from "node:test";
import { createFakeHealth } from "../../tests/support/fake-health.ts";
import { ASKS_MAX, openOutbox, PROBES_PER_MESSAGE } from "./outbox.ts";
import type { ProbeSpec } from "./probe.ts";

/** All that this turn of the event loop has begun is done. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

function spec(key: string): ProbeSpec {
  const times = { intervalMs: 15_000, timeoutMs: 5000, failureThreshold: 3 };
  return { key, slot: 1, protocol: "tcp", host: "192.0.2.1", port: 80, ...times };
}

function openLab(specs: () => Iterable<ProbeSpec> = () => []) {
  const fake = createFakeHealth();
  const heard: string[] = [];
  const outbox = openOutbox({
    port: fake.port,
    specs,
    onTransitions: (transitions) => heard.push(...transitions.map(({ key }) => `transition ${key}`)),
    onKnown: (states) => heard.push(...states.map(({ key }) => `known ${key}`)),
    timeoutMs: 20,
  });
  return { fake, heard, outbox };
}

/** What was said, in short. */
function texts({ heard }: ReturnType<typeof createFakeHealth>): readonly string[] {
  return heard.splice(0).map((message) => {
    if (message.kind !== "probes") return message.kind;
    const keys = (list: readonly (string | ProbeSpec)[]) =>
      list.map((one) => (typeof one === "string" ? one : one.key)).join(",");
    return `+${keys(message.start)} -${keys(message.stop)}`;
  });
}

test("what happens in one turn goes out together, and what undoes itself goes out once", async () => {
  const { fake, outbox } = openLab();
  using _ = outbox;
  for (const key of ["a", "b", "c"]) outbox.start(spec(key));
  outbox.stop("b");
  outbox.stop("d");
  outbox.start(spec("d"));
  await turn();
  assert.deepEqual(texts(fake), ["begin", "+a,c,d -b"]);
  await turn();
  assert.deepEqual(texts(fake), []);
});

test("no message has too many probes, and everything that was named is said before it is complete", () => {
  const { fake, outbox } = openLab();
  using _ = outbox;
  for (let index = 0; index < 2 * PROBES_PER_MESSAGE + 1; index++) outbox.start(spec(`k${index}`));
  outbox.stop("gone");
  outbox.complete();
  const sizes = fake.heard.map((message) =>
    message.kind === "probes" ? message.start.length + message.stop.length : message.kind,
  );
  assert.deepEqual(sizes, ["begin", PROBES_PER_MESSAGE + 1, PROBES_PER_MESSAGE, 1, "complete"]);
  assert.ok(fake.heard.every((message) => message.kind !== "probes" || message.start.length <= PROBES_PER_MESSAGE));
});

test("a health thread that begins is told everything anew, in the same order as the first", async () => {
  const { fake, outbox } = openLab(() => [spec("a"), spec("b")]);
  using _ = outbox;
  const policy = { allowInsecureAuthenticatedProbes: false, managedIdentityHosts: ["api.example"] };
  fake.say({ kind: "ready" });
  await turn();
  await turn();
  assert.deepEqual(texts(fake), ["begin", "begin", "+a,b -"], "not complete yet");
  outbox.setPolicy(policy);
  outbox.complete();
  texts(fake);
  outbox.stop("old");
  fake.say({ kind: "ready" });
  await turn();
  await turn();
  const said = texts(fake);
  assert.deepEqual(said.slice(said.indexOf("begin")), ["begin", "policy", "+a,b -", "complete"]);
});

test("transitions and known states are handed on in the order in which they came", async () => {
  const { fake, heard, outbox } = openLab();
  using _ = outbox;
  fake.say({ kind: "known", states: [{ key: "a", state: "healthy", sinceMs: 1 }] });
  fake.say({ kind: "transitions", transitions: [{ key: "b", from: "unknown", to: "healthy", atMs: 1 }] });
  fake.say({ kind: "known", states: [{ key: "c", state: "healthy", sinceMs: 1 }] });
  await turn();
  await turn();
  assert.deepEqual(heard, ["known a", "transition b", "known c"]);
});

test("a question ends without an answer when its time is over, when the thread is replaced, and at the end", async () => {
  const { fake, outbox } = openLab();
  outbox.start(spec("a"));
  await turn();
  assert.deepEqual(
    (await outbox.ask(["a", "unknown"]))?.map(({ key }) => key),
    ["a"],
  );
  assert.equal((await outbox.askFigures())?.done, 7);
  fake.isSilent = true;
  assert.equal(await outbox.ask(["a"]), undefined);
  assert.equal(await outbox.askFigures(), undefined);
  const replaced = outbox.ask(["a"]);
  fake.say({ kind: "ready" });
  assert.equal(await replaced, undefined);
  const ended = outbox.ask(["a"]);
  outbox[Symbol.dispose]();
  assert.equal(await ended, undefined);
  // An answer that comes too late, and one to a question that nobody asked.
  fake.say({ kind: "told", id: 1, statuses: [] });
  fake.say({ kind: "told", id: 999, statuses: [] });
  await turn();
  await turn();
});

test("questions under way are bounded", async () => {
  const { fake, outbox } = openLab();
  using _ = outbox;
  fake.isSilent = true;
  const waiting = Array.from({ length: ASKS_MAX }, () => outbox.ask(["a"]));
  let isOver = false;
  void Promise.all(waiting).then(() => {
    isOver = true;
  });
  assert.equal(await outbox.ask(["a"]), undefined);
  assert.ok(!isOver, "it was not waited for");
  assert.ok((await Promise.all(waiting)).every((answer) => answer === undefined));
});
