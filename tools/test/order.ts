/**
 * The test files that take longest, longest first, as measured on two cores. They begin first, or the last of them would run
 * with nothing beside it while the other core waits.
 */
export const LONGEST: readonly string[] = [
  "tests/api/generated.test.ts",
  "tests/api/hostile.test.ts",
  "tools/check.test.ts",
  "tests/cluster/joining.test.ts",
  "tests/scenarios/steer-many.test.ts",
  "tests/crash/crash.test.ts",
  "tests/api/matrix.test.ts",
  "tests/scenarios/break-glass.test.ts",
  "tests/scenarios/notify-webhook.test.ts",
  "tests/scenarios/notify-topic.test.ts",
  "src/publish/tail.test.ts",
  "tests/cluster/crashes.test.ts",
  "tests/cluster/nodes.test.ts",
  "tests/scenarios/first-start.test.ts",
  "tests/cluster/rolling-restart.test.ts",
  "tests/cluster/shared-state.test.ts",
  "tests/store/crash.test.ts",
  "tests/cluster/forming.test.ts",
  "tools/tidy/tidy.test.ts",
  "tests/scenarios/debug-capture.test.ts",
  "tests/scenarios/steer-failover.test.ts",
  "tests/cluster/membership-simulated.test.ts",
  "tests/cluster/split.test.ts",
  "tests/scenarios/import-hostile.test.ts",
  "tests/api/audit-export.test.ts",
  "tests/store/dying-thread.test.ts",
  "src/answer/affinity.test.ts",
  "src/answer/naive-resolver.test.ts",
  "tests/interop/transfer-encode.test.ts",
  "tests/cluster/replication-simulated.test.ts",
];

/** The same files, the longest of them at the front; all others keep their order. */
export function longestFirst(files: readonly string[]): string[] {
  const placeOf = (file: string) => (LONGEST.includes(file) ? LONGEST.indexOf(file) : LONGEST.length);
  return files.toSorted((one, other) => placeOf(one) - placeOf(other));
}
