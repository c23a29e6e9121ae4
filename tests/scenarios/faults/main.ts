/** The program with faults planted in its threads, for tests of what survives them. */
import { runCommand } from "../../../src/node/command.ts";
import { THREAD_PLAN } from "../../../src/node/node.ts";

await runCommand(process.argv.slice(2), process.env, {
  ...THREAD_PLAN,
  batch: new URL("./answer-entry.ts", import.meta.url),
  control: new URL("./control-entry.ts", import.meta.url),
  secure: new URL("./secure-entry.ts", import.meta.url),
  resolve: new URL("../../support/patient-resolve-entry.ts", import.meta.url),
  controlHeapMb: 128,
  // A thread that is out of memory collects garbage for seconds before it dies of it.
  controlLifelessMs: Number(process.env.FAULT_LIFELESS_MS ?? 60_000),
});
