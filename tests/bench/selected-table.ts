import type { Sample } from "./dnsperf.ts";
import { STATIC_FOUR, STATIC_ONE } from "./selected-zones.ts";
import { markdown, median, rcodeText, type Series } from "./table.ts";

const OURS = "signpost";
/** What answers that are chosen may cost, whatever the method, as a multiple of our own static ones in the same run. */
const COST_MAX = 1.5;

/** What an answer costs: probing is not part of it where the threads that answer are known. */
const answerUs = ({ answeringUserUs, userUs }: Sample): number => answeringUserUs ?? userUs;

function medianOf(all: readonly Series[], workload: string, server: string): number | undefined {
  const found = all.find((series) => series.workload === workload && series.server === server);
  return found === undefined ? undefined : median(found.samples.map(answerUs));
}

function ratio(own: number, other: number | undefined): string {
  if (other === undefined || other === 0) return "-";
  const value = own / other;
  return value < 0.1 ? value.toPrecision(2) : value.toFixed(2);
}

/** A Markdown table of medians, one row a workload and server; ratios are of the user time of the threads that answer. */
export function renderSelectedTable(all: readonly Series[]): string {
  const heading = [
    "workload",
    "server",
    "queries/s",
    "user us",
    "of it answering",
    "system us",
    "lost",
    "response codes",
    "answering vs its own static, 1 / 4 values",
    "answering vs gdnsd / powerdns",
  ];
  const rows = all.map(({ workload, server, samples }) => {
    const own = median(samples.map(answerUs));
    return [
      workload,
      server,
      Math.round(median(samples.map(({ queriesPerSecond }) => queriesPerSecond))).toLocaleString("en"),
      median(samples.map(({ userUs }) => userUs)).toFixed(2),
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
  if (base === 0) return ["- the kernel's clock saw no user time of static answers: longer rounds are needed"];
  return all
    .filter(({ workload, server }) => server === OURS && workload !== STATIC_ONE && workload !== STATIC_FOUR)
    .map(({ workload, samples }) => {
      const cost = median(samples.map(answerUs)) / base;
      const verdict = cost <= COST_MAX ? "holds" : "MISSED";
      return `- ${workload}: user time a query ${cost.toFixed(2)} x our own static, promised at most ${COST_MAX}: ${verdict}`;
    });
}
