import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { TOOL_DEADLINE_MS } from "./limits.ts";

/** Directories of the system's own programs: what PATH says is not asked, the runner may be root. */
const DIRECTORIES = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/bin"] as const;

/** The path of a program of the system, or undefined. */
export function findTool(name: string): string | undefined {
  return DIRECTORIES.map((directory) => `${directory}/${name}`).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** What a program wrote to standard output. Rejects with what it wrote to standard error when it fails. */
export function runTool(path: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { env: { LANG: "C" }, timeout: TOOL_DEADLINE_MS, maxBuffer: 4 * 2 ** 20 };
    execFile(path, args, options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(stderr.trim() === "" ? error.message : stderr.trim()));
    });
  });
}
