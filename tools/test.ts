/**
 * `npm test [-- PATTERN...]`: every test file, or those whose path contains one of the patterns. Types, lint and house
 * rules are tests too (tools/check.test.ts), so that the summary at the end counts all that can fail. Exit code 1 when
 * anything failed or nothing ran.
 */
import { globSync } from "node:fs";
import { Readable } from "node:stream";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { longestFirst } from "./test/order.ts";
import { type TestEvent, withOneSummary } from "./test/summary.ts";

/** Two files at once suit a machine of two cores, and are far from a limit anywhere. */
const CONCURRENCY = 2;
/** Ten times what any test file takes on two cores; one that hangs fails instead of holding up the run for ever. */
const FILE_TIMEOUT_MS = 600_000;

const root = fileURLToPath(new URL("..", import.meta.url));

// Some hundred test files, and what they start, would each strip and compile the same sources: the first to do it keeps the
// outcome for the others, where the node itself keeps it. What is measured for coverage has to be compiled anew.
if (process.env.NODE_V8_COVERAGE === undefined) {
  process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("../node_modules/.cache/signpost", import.meta.url));
}

/**
 * These wait for probes, retries, upstreams, other members, starts and time-outs most of their time, each with ports and
 * addresses of its own.
 */
const WAITING = new RegExp(
  "^tests/(cluster/|scenarios/((steer|notify|forward|primary|transport|import)[-.]|" +
    "(break-glass|config|debug-capture|explain|first-start|health-restart|management|overrides|query-log|refused-start|" +
    "reload|serve|signals|single-sign-on|socket-activation|thread-death|wildcard-address)[.])|crash/)",
);
/**
 * These keep one core busy, with a store, an API, an image or an answerer in their own process, or with programs that they
 * compare; none of them minds another beside it.
 */
const COMPUTING = new RegExp(
  "^tests/((api|fuzz|interop|support)/|store/(?!disk)|cluster/[^/]*simulated|bench/(selected-)?(table|zones)[.]|" +
    "image/(death|model|reader-inside|split-death|whole-zone)[.])",
);
const WAITING_CONCURRENCY = 4;

type Group = "units" | "waiting" | "alone";

/** Whole-system tests start servers and load the machine, so that another beside them would disturb both; some only wait. */
function groupOf(file: string): Group {
  if (!file.startsWith("tests/") || COMPUTING.test(file)) return "units";
  return WAITING.test(file) ? "waiting" : "alone";
}

function testFiles(patterns: readonly string[]): string[] {
  const all = globSync(["src/**/*.test.ts", "tests/**/*.test.ts", "tools/**/*.test.ts"], { cwd: root }).sort();
  return patterns.length === 0 ? all : all.filter((file) => patterns.some((pattern) => file.includes(pattern)));
}

async function* allEvents(files: readonly string[], signal: AbortSignal): AsyncGenerator<TestEvent> {
  const groups = [
    { files: files.filter((file) => groupOf(file) === "units"), concurrency: CONCURRENCY },
    { files: files.filter((file) => groupOf(file) === "waiting"), concurrency: WAITING_CONCURRENCY },
    { files: files.filter((file) => groupOf(file) === "alone"), concurrency: 1 },
  ];
  for (const group of groups) {
    if (group.files.length === 0 || signal.aborted) continue;
    yield* run({ ...group, files: longestFirst(group.files), cwd: root, signal, timeout: FILE_TIMEOUT_MS });
  }
}

const files = testFiles(process.argv.slice(2));
if (files.length === 0) {
  console.error(`no test file matches ${process.argv.slice(2).join(" ")}`);
  process.exit(1);
}

const abort = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    process.exitCode = signal === "SIGINT" ? 130 : 143;
    abort.abort();
  });
}

const events = withOneSummary(allEvents(files, abort.signal), () => {
  process.exitCode ??= 1;
});
Readable.from(events).compose(new spec()).pipe(process.stdout);
