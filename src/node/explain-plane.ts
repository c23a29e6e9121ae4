/** Explanations in the control thread: the answerer that tells, and the words for what it tells. */
import type { Explainer } from "../commands/explain.ts";
import { STREAM_LIMITS } from "../listen/limits.ts";
import type { StorePublisher } from "../publish/store-publisher.ts";
import type { Store } from "../store/store.ts";
import type { ControlPlaneOptions } from "./control-options.ts";
import { createExplainer } from "./explain.ts";
import { createExplainNames } from "./explain-names.ts";
import type { HealthPlane } from "./health-plane.ts";
import { createAnswerTracer } from "./traced-answer.ts";

export type ExplainPlaneOptions = {
  readonly options: Pick<ControlPlaneOptions, "shared" | "thread" | "config" | "nodeId">;
  readonly store: Pick<Store, "get" | "stateOf">;
  readonly health: Pick<HealthPlane, "gates" | "ask">;
  readonly publisher: Pick<StorePublisher, "regionName">;
};

export function openExplainer({ options, store, health, publisher }: ExplainPlaneOptions): Explainer {
  const { shared, thread, config, nodeId } = options;
  const maxUdpSize = config["dns.max_udp_size"];
  const tcpIdleSeconds = STREAM_LIMITS.idleMs / 1000;
  return createExplainer({
    trace: createAnswerTracer(shared, { thread, maxUdpSize, tcpIdleSeconds }),
    names: createExplainNames({ store, book: health.gates.book, regionName: publisher.regionName }),
    ask: health.ask,
    nodeId,
    maxUdpSize,
    now: Date.now,
  });
}
