import type { Sample } from "./dnsperf.ts";
import { STATIC_FOUR, STATIC_ONE } from "./selected-zones.ts";
import { markdown, median, rcodeText, type Series } from "./table.ts";

const OURS = "signpost";
/** What answers that are chosen may cost, whatever the method, as a multiple of our own static ones in the same run. */
const COST_MAX = 1.5;

const userUs = (sample: Sample): number => sample.userUs;

function medianOf(all: readonly Series[], workload: string, server: string): number | undefined {
  const found = all.find((series) => series.workload === workload && series.server === server);
  return found === undefined ? undefined : median(found.samples.map(userUs));
}

function ratio(own: number, other: number | undefined): string {
  if (other === undefined) return "-";
  const value = own / other;
  return value < 0.1 ? value.toPrecision(2) : value.toFixed(2);
}

/** A Markdown table of medians, one row a workload and server; ratios are of user time a query. */
export function renderSelectedTable(all: readonly Series[]): string {
  const heading = [
    "workload",
    "server",
    "queries/s",
    "user us",
    "system us",
    "lost",
    "response codes",
    "user vs its own static, 1 / 4 values",
    "user vs gdnsd / powerdns",
  ];
  const rows = all.map(({ workload, server, samples }) => {
    const own = median(samples.map(userUs));
    return [
      workload,
      server,
      Math.round(median(samples.map(({ queriesPerSecond }) => queriesPerSecond))).toLocaleString("en"),
      own.toFixed(2),
      median(samples.map(({ systemUs }) => systemUs)).toFixed(2),
      String(samples.reduce((sum, { lost }) => sum + lost, 0)),
      rcodeText(samples),
      [STATIC_ONE, STATIC_FOUR].map((name) => ratio(own, medianOf(all, name, server))).join(" / "),
      ["gdnsd", "powerdns"].map((peer) => ratio(own, medianOf(all, workload, peer))).join(" / "),
    ];
  });
  return markdown(heading, rows);
}

/** One line a workload of ours: what it costs against our own static answers of one value, and whether the promise holds. */
export function selectedPromiseLines(all: readonly Series[]): string[] {
  const base = medianOf(all, STATIC_ONE, OURS);
  if (base === undefined) return [];
  return all
    .filter(({ workload, server }) => server === OURS && workload !== STATIC_ONE && workload !== STATIC_FOUR)
    .map(({ workload, samples }) => {
      const cost = median(samples.map(userUs)) / base;
      const verdict = cost <= COST_MAX ? "holds" : "MISSED";
      return `- ${workload}: user time a query ${cost.toFixed(2)} x our own static, promised at most ${COST_MAX}: ${verdict}`;
    });
}
