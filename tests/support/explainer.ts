/** Explanations over an image, as a node has them. */
import type { Explainer } from "../../src/commands/explain.ts";
import { createSharedImage, type SharedImage } from "../../src/image/shared.ts";
import { createExplainer } from "../../src/node/explain.ts";
import { createExplainNames } from "../../src/node/explain-names.ts";
import type { HealthPlane } from "../../src/node/health-plane.ts";
import { createAnswerTracer } from "../../src/node/traced-answer.ts";
import type { Store } from "../../src/store/store.ts";

export type ExplainerLab = {
  readonly store: Pick<Store, "get" | "stateOf">;
  readonly health: Pick<HealthPlane, "gates" | "ask">;
  /** Left out: one in which nothing is published. */
  readonly shared?: SharedImage;
  readonly regionName?: (number: number) => string | undefined;
  readonly now?: () => number;
};

const THREAD = 1;
const UDP_SIZE = 1232;

export function explainerOver({ store, health, shared, regionName, now }: ExplainerLab): Explainer {
  const image = shared ?? createSharedImage(1);
  return createExplainer({
    trace: createAnswerTracer(image, { thread: THREAD, maxUdpSize: UDP_SIZE, tcpIdleSeconds: 10 }),
    names: createExplainNames({ store, book: health.gates.book, regionName: regionName ?? (() => undefined) }),
    ask: health.ask,
    nodeId: "test-node",
    maxUdpSize: UDP_SIZE,
    now: now ?? Date.now,
  });
}
