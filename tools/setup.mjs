// Installs the dependencies where they are missing or older than the lockfile.
// Plain JavaScript for Node 20: it runs before anything is installed, the project's own Node included.
import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The time a file was last written, in milliseconds; 0 where it does not exist. */
function writtenAt(path) {
  return statSync(new URL(path, new URL("../", import.meta.url)), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

// npm writes this hidden lockfile last, so an install that was interrupted counts as missing.
if (writtenAt("node_modules/.package-lock.json") < writtenAt("package-lock.json")) {
  console.error("signpost: installing dependencies (npm ci)");
  const { status, error } = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    stdio: ["ignore", 2, 2],
  });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}
