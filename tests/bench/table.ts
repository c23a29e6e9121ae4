import type { Sample } from "./dnsperf.ts";

/** Samples of one server under one workload. */
export type Series = { readonly workload: string; readonly server: string; readonly samples: readonly Sample[] };

/** Servers that ratios are given against, in the order of the columns' headings. */
const REFERENCES = ["knot", "gdnsd", "nsd"] as const;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = sorted.length >> 1;
  const upper = sorted[middle];
  if (upper === undefined) throw new Error("the median of nothing");
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? upper)) / 2;
}

/** The shares of the response codes over all samples, in per cent, in the order of the codes' names. */
function rcodeShares(samples: readonly Sample[]): Map<string, number> {
  const counts = new Map<string, number>();
  let total = 0;
  for (const { rcodes } of samples) {
    for (const [code, count] of rcodes) {
      counts.set(code, (counts.get(code) ?? 0) + count);
      total += count;
    }
  }
  const sorted = [...counts].sort(([left], [right]) => (left < right ? -1 : 1));
  return new Map(sorted.map(([code, count]) => [code, (count * 100) / total]));
}

/** "NOERROR 75.0 %, NXDOMAIN 25.0 %" */
export function rcodeText(samples: readonly Sample[]): string {
  return [...rcodeShares(samples)].map(([code, share]) => `${code} ${share.toFixed(1)} %`).join(", ");
}

function ratios(series: Series, all: readonly Series[], figure: (sample: Sample) => number): string {
  const own = median(series.samples.map(figure));
  const cells = REFERENCES.map((reference) => {
    const other = all.find(({ workload, server }) => workload === series.workload && server === reference);
    return other === undefined ? "-" : (own / median(other.samples.map(figure))).toFixed(2);
  });
  return cells.join(" / ");
}

/** A Markdown table of medians, one row a workload and server. */
export function renderTable(all: readonly Series[]): string {
  const references = REFERENCES.join(" / ");
  const heading = [
    "workload",
    "server",
    "queries/s",
    "user us",
    "system us",
    "lost",
    "response codes",
    `user vs ${references}`,
    `queries/s vs ${references}`,
  ];
  const rows = all.map((series) => [
    series.workload,
    series.server,
    Math.round(median(series.samples.map(({ queriesPerSecond }) => queriesPerSecond))).toLocaleString("en"),
    median(series.samples.map(({ userUs }) => userUs)).toFixed(2),
    median(series.samples.map(({ systemUs }) => systemUs)).toFixed(2),
    String(series.samples.reduce((sum, { lost }) => sum + lost, 0)),
    rcodeText(series.samples),
    ratios(series, all, ({ userUs }) => userUs),
    ratios(series, all, ({ queriesPerSecond }) => queriesPerSecond),
  ]);
  return markdown(heading, rows);
}

export function markdown(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(heading), line(heading.map(() => "---")), ...rows.map(line)].join("\n");
}

/** A run stops in the middle of its query file, so equal answers give shares that differ by a hair. */
const SHARE_TOLERANCE_PERCENT = 0.5;

/**
 * What is wrong with the response codes: dnsperf counts SERVFAIL and REFUSED as completed, so a server that fails fast
 * would win. Empty when all servers of a workload gave the same codes in the same shares.
 */
export function rcodeFaults(all: readonly Series[]): string[] {
  const faults: string[] = [];
  for (const workload of new Set(all.map((series) => series.workload))) {
    const ofWorkload = all.filter((series) => series.workload === workload);
    const first = ofWorkload[0];
    if (first === undefined) continue;
    const expected = rcodeShares(first.samples);
    for (const { server, samples } of ofWorkload) {
      const shares = rcodeShares(samples);
      for (const code of new Set([...shares.keys(), ...expected.keys()])) {
        const share = shares.get(code) ?? 0;
        const difference = Math.abs(share - (expected.get(code) ?? 0));
        if (code !== "NOERROR" && code !== "NXDOMAIN") faults.push(`${workload}: ${server} answers ${code}`);
        else if (difference > SHARE_TOLERANCE_PERCENT) {
          faults.push(`${workload}: ${server} answers ${code} to ${share.toFixed(1)} %, unlike ${first.server}`);
        }
      }
    }
  }
  return faults;
}
