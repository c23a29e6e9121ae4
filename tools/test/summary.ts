/** One event of node:test's stream, as its reporters take it. */
export type TestEvent = { readonly type: string; readonly data: unknown };

type Diagnostic = { readonly nesting: number; readonly message: string; readonly file?: string };

const COUNTS = ["tests", "suites", "pass", "fail", "cancelled", "skipped", "todo", "duration_ms"] as const;

function isDiagnostic(data: unknown): data is Diagnostic {
  return typeof data === "object" && data !== null && "nesting" in data && "message" in data;
}

/** The name and number of a line of a run's summary, or undefined for any other event. */
function readCount({ type, data }: TestEvent): { name: string; value: number } | undefined {
  // A test's own diagnostics name their file; those of the summary do not.
  if (type !== "test:diagnostic" || !isDiagnostic(data) || data.nesting !== 0 || data.file !== undefined)
    return undefined;
  const [name, value] = data.message.split(" ");
  return COUNTS.some((count) => count === name) ? { name: name ?? "", value: Number(value) } : undefined;
}

/**
 * Passes events of several runs on, and at their end one summary over all of them instead of one a run. Calls
 * `onFailure` before it when a test failed or was cancelled, or when none ran.
 */
export async function* withOneSummary(
  events: AsyncIterable<TestEvent>,
  onFailure: () => void,
): AsyncGenerator<TestEvent> {
  const sums = new Map<string, number>(COUNTS.map((name) => [name, 0]));
  for await (const event of events) {
    const count = readCount(event);
    if (count === undefined) yield event;
    else sums.set(count.name, (sums.get(count.name) ?? 0) + count.value);
  }
  const bad = (sums.get("fail") ?? 0) + (sums.get("cancelled") ?? 0);
  if (bad > 0 || sums.get("tests") === 0) onFailure();
  for (const [name, sum] of sums) {
    yield { type: "test:diagnostic", data: { nesting: 0, message: `${name} ${sum}`, level: "info" } };
  }
}
