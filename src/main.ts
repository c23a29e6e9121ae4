import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

// From the first moment on: by itself SIGHUP would end the process, and SIGUSR1 open a debugger's port.
process.on("SIGHUP", () => {});
process.on("SIGUSR1", () => {});

// Compiled code is kept beside the dependencies: the next start takes half the time, and no thread loads the program that
// strips types, which takes a third of the process's memory. Where the folder cannot be written, nothing is kept.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("../node_modules/.cache/signpost", import.meta.url));
enableCompileCache();

const [first, ...rest] = process.argv.slice(2);
if (first === "script-runner") {
  // A program of its own: it loads nothing of the service.
  const { runScriptRunner } = await import("./runner/main.ts");
  await runScriptRunner(rest, process.env);
} else {
  const { runCommand } = await import("./node/command.ts");
  await runCommand(process.argv.slice(2), process.env);
}
