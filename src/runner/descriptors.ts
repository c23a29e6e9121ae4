/** Open files that came from whoever started this process, and that it would pass on to scripts. */
import { closeSync, readdirSync, readFileSync } from "node:fs";

/** O_CLOEXEC in the octal flags of /proc/PID/fdinfo: Node sets it for every file of its own. */
const CLOSE_ON_EXEC = 0o2000000;
const STANDARD_COUNT = 3;

function isPassedOn(descriptor: number): boolean {
  try {
    const text = readFileSync(`/proc/self/fdinfo/${descriptor}`, "latin1");
    return (Number.parseInt(/^flags:\s+(\d+)$/m.exec(text)?.[1] ?? "0", 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    // The listing's own, which is closed by now.
    return false;
  }
}

/** Closes them all but the standard ones and `kept`. Sockets of a service manager and what a shell left open are such. */
export function closeInherited(kept: readonly number[]): void {
  for (const name of readdirSync("/proc/self/fd")) {
    const descriptor = Number(name);
    if (descriptor < STANDARD_COUNT || kept.includes(descriptor) || !isPassedOn(descriptor)) continue;
    closeSync(descriptor);
  }
}
