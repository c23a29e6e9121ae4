/** What the resolver counts of itself. */
import type { UpstreamFigures } from "./settings.ts";

/** Totals since the resolver began. */
export type Counts = {
  resolved: number;
  failed: number;
  refusedFull: number;
  loops: number;
  flushed: number;
  scrubbedRecords: number;
  rebindingRecords: number;
};

export function createCounts(): Counts {
  return { resolved: 0, failed: 0, refusedFull: 0, loops: 0, flushed: 0, scrubbedRecords: 0, rebindingRecords: 0 };
}

/** One row for each upstream, however many routes have it: sums, and of times those of the one that answered most. */
export function joinUpstreams(all: readonly UpstreamFigures[]): readonly UpstreamFigures[] {
  const byText = new Map<string, UpstreamFigures>();
  for (const each of all) {
    const before = byText.get(each.upstream);
    byText.set(each.upstream, before === undefined ? each : joinTwo(before, each));
  }
  return [...byText.values()];
}

function joinTwo(left: UpstreamFigures, right: UpstreamFigures): UpstreamFigures {
  const busier = right.answers > left.answers ? right : left;
  return {
    upstream: left.upstream,
    queries: left.queries + right.queries,
    answers: left.answers + right.answers,
    timeouts: left.timeouts + right.timeouts,
    networkErrors: left.networkErrors + right.networkErrors,
    failures: left.failures + right.failures,
    rejected: left.rejected + right.rejected,
    smoothedRttMs: busier.smoothedRttMs,
    isFailing: left.isFailing || right.isFailing,
    latencySumMs: left.latencySumMs + right.latencySumMs,
    latencyCounts: left.latencyCounts.map((count, index) => count + (right.latencyCounts[index] ?? 0)),
  };
}
