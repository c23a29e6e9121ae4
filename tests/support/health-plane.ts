/** Health as the control thread of a node has it, over a store and a health thread that does as the test says. */
import { Registry } from "prom-client";
import type { HealthEvent } from "../../src/health/book.ts";
import { createSharedImage, type SharedImage } from "../../src/image/shared.ts";
import { type HealthPlane, openHealthPlane } from "../../src/node/health-plane.ts";
import type { Store } from "../../src/store/store.ts";
import { createFakeHealth, type FakeHealth } from "./fake-health.ts";

export type HealthLab = HealthPlane & {
  readonly fake: FakeHealth;
  readonly events: HealthEvent[];
  readonly registry: Registry;
};

export type HealthLabOptions = { readonly shared?: SharedImage; readonly areScriptsEnabled?: boolean };

/** `askTimeoutMs` is short: a test of a dead health thread has to wait for it. */
export function openHealthLab(store: Store, { shared, areScriptsEnabled = false }: HealthLabOptions = {}): HealthLab {
  const fake = createFakeHealth();
  const events: HealthEvent[] = [];
  const registry = new Registry();
  const plane = openHealthPlane({
    store,
    shared: shared ?? createSharedImage(1),
    port: fake.port,
    key: new Uint8Array(32).fill(3),
    nodeId: "test-node",
    region: "eu",
    areScriptsEnabled,
    onEvent: (event) => events.push(event),
    metrics: { registry },
    log: () => undefined,
    askTimeoutMs: 50,
  });
  return { ...plane, fake, events, registry };
}
