/** A health thread that probes nothing: tests say what its probes found. It speaks the protocol of the real one. */
import type { FromHealth, HealthPort, ToHealth } from "../../src/health/messages.ts";
import type { ProbeFigures, ProbeSpec, ProbeState, ProbeStatus } from "../../src/health/probe.ts";

export type FakeHealth = {
  readonly port: HealthPort<ToHealth, FromHealth>;
  /** Everything that it was told, in order. */
  readonly heard: ToHealth[];
  /** What it has to probe now. */
  readonly specs: ReadonlyMap<string, ProbeSpec>;
  /** A verdict on a probe that it has. */
  readonly turn: (key: string, to: ProbeState) => void;
  /** More of what it knows of a probe. */
  readonly set: (key: string, status: Partial<ProbeStatus>) => void;
  readonly say: (message: FromHealth) => void;
  /** It hears no more, as one that is dead. */
  isSilent: boolean;
};

/** Messages arrive in a later turn of the event loop, in order, as between threads, and as copies. */
export function createFakeHealth(): FakeHealth {
  const specs = new Map<string, ProbeSpec>();
  const statuses = new Map<string, ProbeStatus>();
  const heard: ToHealth[] = [];
  let listener: ((message: FromHealth) => void) | undefined;
  const say = (message: FromHealth) => {
    const copy = structuredClone(message);
    setImmediate(() => listener?.(copy));
  };
  const statusOf = (key: string): ProbeStatus =>
    statuses.get(key) ?? {
      ...{ key, state: "unknown", nextMs: 0, isStale: false },
      ...{ failures: 0, successes: 0, latencyUs: 0, history: [] },
    };
  const fake: FakeHealth = {
    heard,
    specs,
    say,
    isSilent: false,
    set: (key, status) => statuses.set(key, { ...statusOf(key), ...status }),
    turn: (key, to) => {
      const { state: from } = statusOf(key);
      fake.set(key, { state: to, sinceMs: 1_700_000_000_000 });
      say({ kind: "transitions", transitions: [{ key, from, to, atMs: 1_700_000_000_000 }] });
    },
    port: {
      post: (message) => {
        if (fake.isSilent) return;
        const copy = structuredClone(message);
        heard.push(copy);
        answer(copy);
      },
      onMessage: (given) => {
        listener = given;
      },
      close: () => {
        listener = undefined;
      },
    },
  };
  const answer = (message: ToHealth): void => {
    if (message.kind === "begin") specs.clear();
    if (message.kind === "probes") {
      for (const spec of message.start) specs.set(spec.key, spec);
      for (const key of message.stop) specs.delete(key);
    }
    if (message.kind === "ask") {
      const known = message.keys.filter((key) => specs.has(key));
      say({ kind: "told", id: message.id, statuses: known.map(statusOf) });
    }
    if (message.kind === "ask-figures") say({ kind: "told-figures", id: message.id, figures: figures() });
  };
  const figures = (): ProbeFigures => {
    const probes = { unknown: 0, healthy: 0, unhealthy: 0 };
    for (const key of specs.keys()) probes[statusOf(key).state] += 1;
    return {
      probes,
      stale: 0,
      inFlight: 0,
      done: 7,
      failed: { refused: 2 },
      latenessMs: { "0.5": 1, "0.99": 12, "1": 30 },
    };
  };
  return fake;
}
