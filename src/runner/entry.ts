/** The runner's program where the service starts it itself; main.ts leads to the same. */
import { runScriptRunner } from "./main.ts";

await runScriptRunner(process.argv.slice(2), process.env);
