/**
 * The log as one part of the node has it, whose lines other nodes, or what is stored, can make come without end: so many of each kind
 * within a while, so that one kind hides no other, and so many of all kinds together.
 */
import type { Log, LogFields } from "../base/log.ts";
import { PART_LINES_MAX, PART_LINES_MS, PART_LINES_OF_KIND_MAX } from "./limits.ts";

/** `part` names it where lines were left out. Lines of debugging are all written: whoever asks for them wants them. */
export function createPartLog(log: Log, part: string, now: () => number = () => performance.now()): Log {
  let sinceMs = Number.NEGATIVE_INFINITY;
  let lines = 0;
  let left = 0;
  const ofKind = new Map<string, number>();
  return (level, message, fields) => {
    if (level === "debug") return log(level, message, fields);
    if (now() - sinceMs >= PART_LINES_MS) {
      if (left > 0) log("warn", `lines about ${part} that are not in the log`, { lines: left });
      sinceMs = now();
      lines = 0;
      left = 0;
      ofKind.clear();
    }
    const kind = kindOf(message, fields);
    const count = ofKind.get(kind) ?? 0;
    if (lines >= PART_LINES_MAX || count >= PART_LINES_OF_KIND_MAX) {
      left += 1;
      return;
    }
    lines += 1;
    ofKind.set(kind, count + 1);
    log(level, message, fields);
  };
}

/** The message without what its fields name. */
function kindOf(message: string, fields: LogFields = {}): string {
  return Object.values(fields).reduce<string>(
    (kind, value) => (typeof value === "string" && value !== "" ? kind.replaceAll(value, "") : kind),
    message,
  );
}
