/** How much there is of everything. */
import type { StoreReader } from "../store/store.ts";

export type Stats = {
  readonly zones: number;
  readonly records: number;
  readonly nodes: number;
  readonly users: number;
};

/** The store keeps its counts, so that this costs nothing however much it holds. */
export function readStats(store: Pick<StoreReader, "count">, nodes: number): Stats {
  return { zones: store.count("zone"), records: store.count("record"), nodes, users: store.count("user") };
}
