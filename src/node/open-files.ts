import { readFileSync } from "node:fs";

/** Where the system does not say: what every system grants. */
const USUAL_LIMIT = 1_024;

/** How many files and sockets this process may have open. */
export function descriptorLimit(): number {
  try {
    const limit = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1];
    if (limit === "unlimited") return Number.MAX_SAFE_INTEGER;
    return limit === undefined ? USUAL_LIMIT : Number(limit);
  } catch {
    return USUAL_LIMIT;
  }
}
