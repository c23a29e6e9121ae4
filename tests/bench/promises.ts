import { median, type Series } from "./table.ts";

/** What design and README promise of ours, as ratios of medians against a peer in the same run. */
type Promised = {
  readonly figure: "userUs" | "queriesPerSecond";
  readonly peer: string;
  readonly limit: number;
  readonly kind: "at most" | "at least";
};

const PROMISES: readonly Promised[] = [
  { figure: "userUs", peer: "knot", kind: "at most", limit: 1.0 },
  { figure: "userUs", peer: "gdnsd", kind: "at most", limit: 1.5 },
  { figure: "queriesPerSecond", peer: "nsd", kind: "at least", limit: 0.95 },
];

/** One line a promise and workload: the ratio measured, the ratio promised, and whether it holds. */
export function promiseLines(all: readonly Series[]): string[] {
  const lines: string[] = [];
  for (const { workload, server, samples } of all) {
    if (server !== "signpost" || workload === "tcp") continue;
    for (const { figure, peer, kind, limit } of PROMISES) {
      const other = all.find((series) => series.workload === workload && series.server === peer);
      if (other === undefined) continue;
      const ratio = median(samples.map((sample) => sample[figure])) / median(other.samples.map((s) => s[figure]));
      const holds = kind === "at most" ? ratio <= limit : ratio >= limit;
      const what = figure === "userUs" ? "user time a query" : "queries a second";
      const verdict = holds ? "holds" : "MISSED";
      lines.push(`- ${workload}: ${what} ${ratio.toFixed(2)} x ${peer}, promised ${kind} ${limit}: ${verdict}`);
    }
  }
  return lines;
}
