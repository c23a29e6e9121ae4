/**
 * Waits until `condition` gives something other than undefined or false, asking again every `pollMs`.
 * Throws an Error that names `what` when `timeoutMs` have passed.
 */
export async function waitFor<Value>(
  what: string,
  timeoutMs: number,
  condition: () => Promise<Value | undefined | false> | Value | undefined | false,
  pollMs = 10,
): Promise<Value> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > deadline) throw new Error(`${what}: not within ${timeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
