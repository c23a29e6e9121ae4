/** Health in the control thread: what is probed, what came of it, and who is told. The probing is another thread's. */
import type { Log } from "../base/log.ts";
import { followConfig } from "../commands/config-documents.ts";
import type { HealthView } from "../commands/health-view.ts";
import type { HealthEvent } from "../health/book.ts";
import { type Checks, openChecks } from "../health/checks.ts";
import { type HealthGates, openGates } from "../health/gates.ts";
import type { FromHealth, HealthPort, ToHealth } from "../health/messages.ts";
import { type Outbox, openOutbox } from "../health/outbox.ts";
import type { ProbePolicy, ProbeSpec } from "../health/probe.ts";
import { createStatusView } from "../health/status-view.ts";
import type { SharedImage } from "../image/shared.ts";
import type { Store } from "../store/store.ts";
import { registerHealth } from "./health-metrics.ts";
import { healthKeyOf } from "./keys.ts";
import type { NodeMetrics } from "./metrics.ts";

export type HealthPlaneOptions = {
  readonly store: Pick<Store, "get" | "list" | "onChange">;
  readonly shared: SharedImage;
  readonly port: HealthPort<ToHealth, FromHealth>;
  /** See `healthKeyOf`. */
  readonly key: Uint8Array;
  readonly nodeId: string;
  readonly region: string | undefined;
  readonly areScriptsEnabled: boolean;
  readonly onEvent: (event: HealthEvent) => void;
  readonly metrics: Pick<NodeMetrics, "registry">;
  readonly log: Log;
  /** For tests; how long the health thread is waited for. */
  readonly askTimeoutMs?: number;
};

export type HealthPlane = Disposable & {
  /** For the publisher, which has to be told of before it starts. */
  readonly gates: HealthGates;
  readonly view: HealthView;
  /** What the health thread knows of probes, by key. */
  readonly ask: Outbox["ask"];
  /**
   * The publisher has put into the image what it could of the store. Resolves when the states that are known from before stand
   * where answers see them, or nobody says so in time.
   */
  readonly published: () => Promise<void>;
};

/** Opens it with the standalone checks of the store; the publisher's gates follow. */
export function openHealthPlane(options: HealthPlaneOptions): HealthPlane {
  const { store, shared, port, key, region, onEvent, log } = options;
  let gates: HealthGates | undefined;
  let checks: Checks | undefined;
  const outbox = openOutbox({
    port,
    specs: () => specsOf(gates, checks),
    onTransitions: (transitions) => {
      gates?.hear(transitions);
      checks?.hear(transitions);
    },
    onKnown: (states) => {
      gates?.recall(states);
      checks?.recall(states);
    },
    ...(options.askTimeoutMs === undefined ? {} : { timeoutMs: options.askTimeoutMs }),
  });
  const { start, stop } = outbox;
  const followed = followPolicy(store, outbox.setPolicy);
  const openedGates = openGates({
    shared,
    keyOf: (target) => healthKeyOf(key, target),
    region,
    start,
    stop,
    onTakenOver: outbox.complete,
    onEvent,
    now: Date.now,
    log,
  });
  const openedChecks = openChecks({ store, areScriptsEnabled: options.areScriptsEnabled, start, stop, onEvent });
  gates = openedGates;
  checks = openedChecks;
  registerHealth(
    { checks: openedChecks, gates: openedGates, outbox, clock: () => performance.now() },
    options.metrics.registry,
  );
  return {
    gates: openedGates,
    view: {
      nodeId: options.nodeId,
      ...createStatusView({ book: openedGates.book, checks: openedChecks }, outbox.ask),
    },
    ask: outbox.ask,
    published: async () => {
      if (specsOf(gates, checks).next().done === true) return;
      // Messages are heard in order: whoever answers this has taken up the states of all probes.
      await outbox.askFigures();
    },
    [Symbol.dispose]: () => {
      followed();
      openedChecks[Symbol.dispose]();
      outbox[Symbol.dispose]();
    },
  };
}

function* specsOf(gates: HealthGates | undefined, checks: Checks | undefined): Generator<ProbeSpec> {
  for (const { spec } of gates?.book.probes.values() ?? []) yield spec;
  for (const { spec } of checks?.byId.values() ?? []) if (spec !== undefined) yield spec;
}

/** Hands over the policy as the settings have it, now and after each change. The result ends it. */
function followPolicy(store: Pick<Store, "get" | "onChange">, set: (policy: ProbePolicy) => void): () => void {
  const reading = followConfig(store, "health-probe-policy");
  const tell = () => {
    const { allow_insecure_authenticated_probes, managed_identity_hosts } = reading().effective;
    set({
      allowInsecureAuthenticatedProbes: allow_insecure_authenticated_probes,
      managedIdentityHosts: managed_identity_hosts,
    });
  };
  tell();
  // It hears of a change after `reading`, which listens since before.
  return store.onChange(({ changes }) => {
    if (changes.some(({ kind, key }) => kind === "config" && key[0] === "health-probe-policy")) tell();
  });
}
