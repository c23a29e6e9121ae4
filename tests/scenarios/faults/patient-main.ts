/** The program with patience for upstreams, for tests that count what those are asked. */
import { runCommand } from "../../../src/node/command.ts";
import { THREAD_PLAN } from "../../../src/node/node.ts";

await runCommand(process.argv.slice(2), process.env, {
  ...THREAD_PLAN,
  resolve: new URL("../../support/patient-resolve-entry.ts", import.meta.url),
});
