/** The program with a control thread that ends when it is told to. */
import { runCommand } from "../../../src/node/command.ts";
import { THREAD_PLAN } from "../../../src/node/node.ts";

await runCommand(process.argv.slice(2), process.env, {
  ...THREAD_PLAN,
  control: new URL("./control-entry.ts", import.meta.url),
  controlHeapMb: 256,
});
