/**
 * The least that a test waits before it gives up: what takes a second here takes many on a machine with a slow disk and
 * other work. Nobody waits longer for what comes; that something comes soon is no matter of a deadline.
 */
const PATIENCE_MS = 60_000;

/**
 * Waits until `condition` gives something other than undefined or false, asking again every `pollMs`.
 * Throws an Error that names `what` when `timeoutMs`, and at least PATIENCE_MS, have passed.
 */
export async function waitFor<Value>(
  what: string,
  timeoutMs: number,
  condition: () => Promise<Value | undefined | false> | Value | undefined | false,
  pollMs = 10,
): Promise<Value> {
  const patienceMs = Math.max(timeoutMs, PATIENCE_MS);
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > deadline) throw new Error(`${what}: not within ${patienceMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
