import { runCommand } from "./node/command.ts";

await runCommand(process.argv.slice(2), process.env);
