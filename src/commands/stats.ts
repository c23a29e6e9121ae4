/** How much there is of everything. */
import type { StoreReader } from "../store/store.ts";
import type { ClusterView } from "./cluster-view.ts";
import { listNodes } from "./nodes.ts";

export type Stats = {
  readonly zones: number;
  readonly records: number;
  readonly nodes: number;
  readonly users: number;
};

/** The store keeps its counts, so that this costs nothing however much it holds. */
export function readStats(store: Pick<StoreReader, "count" | "list">, cluster: Pick<ClusterView, "nodes">): Stats {
  return {
    zones: store.count("zone"),
    records: store.count("record"),
    nodes: listNodes(store, cluster).length,
    users: store.count("user"),
  };
}
