/**
 * What the service and the runner of scripts tell each other over a Unix socket: JSON, one message a line, every line
 * bounded. The runner begins with "hello"; every "run" is answered by one "done" with its id.
 */

/** Another version is another language: the service takes such a runner for none. */
export const SCRIPT_PROTOCOL_VERSION = 1;
/** A command with as many and as long arguments as a check may have, in their longest JSON spelling. */
export const REQUEST_BYTES_MAX = 2 * 2 ** 20;
export const REPLY_BYTES_MAX = 4_096;
export const DETAIL_CHARACTERS_MAX = 200;
/** Longer than any check may take. */
export const SCRIPT_TIMEOUT_MS_MAX = 86_400_000;

export type RunRequest = {
  readonly kind: "run";
  readonly id: number;
  /** An absolute path. */
  readonly command: string;
  readonly args: readonly string[];
  /** From the arrival of the request on; a script that waits for its turn uses up some of it. */
  readonly timeoutMs: number;
};

/** What came of a script. Absent error: it ended with status 0. */
export type ScriptOutcome = {
  readonly latencyUs: number;
  /** "script": it failed by itself. "runner": it could not be run. */
  readonly error?: "script" | "runner";
  /** For a person, at most DETAIL_CHARACTERS_MAX characters, never an argument. */
  readonly detail?: string;
};

export type RunnerMessage =
  | { readonly kind: "hello"; readonly version: number }
  | { readonly kind: "done"; readonly id: number; readonly outcome: ScriptOutcome };

function objectOf(line: string): Readonly<Record<string, unknown>> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

function isWholeNumber(value: unknown, most: number): value is number {
  return Number.isSafeInteger(value) && typeof value === "number" && value >= 0 && value <= most;
}

/** A text that a program can be given: the kernel ends it at its first NUL. */
function isArgument(value: unknown): value is string {
  return typeof value === "string" && !value.includes("\0");
}

/** The request in a line, or undefined. */
export function requestFromLine(line: string): RunRequest | undefined {
  const { kind, id, command, args, timeoutMs } = objectOf(line) ?? {};
  if (kind !== "run" || !isWholeNumber(id, Number.MAX_SAFE_INTEGER)) return undefined;
  if (!isArgument(command) || !command.startsWith("/")) return undefined;
  if (!Array.isArray(args) || !args.every(isArgument)) return undefined;
  if (!isWholeNumber(timeoutMs, SCRIPT_TIMEOUT_MS_MAX) || timeoutMs === 0) return undefined;
  return { kind, id, command, args, timeoutMs };
}

function outcomeOf(value: unknown): ScriptOutcome | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { latencyUs, error, detail }: Readonly<Record<string, unknown>> = { ...value };
  if (!isWholeNumber(latencyUs, Number.MAX_SAFE_INTEGER)) return undefined;
  if (error === undefined) return { latencyUs };
  if (error !== "script" && error !== "runner") return undefined;
  if (typeof detail !== "string") return undefined;
  return { latencyUs, error, detail: detail.slice(0, DETAIL_CHARACTERS_MAX) };
}

/** What the runner says in a line, or undefined. */
export function runnerMessageFromLine(line: string): RunnerMessage | undefined {
  const { kind, version, id, outcome } = objectOf(line) ?? {};
  if (kind === "hello") return isWholeNumber(version, 1_000_000) ? { kind, version } : undefined;
  if (kind !== "done" || !isWholeNumber(id, Number.MAX_SAFE_INTEGER)) return undefined;
  const result = outcomeOf(outcome);
  return result === undefined ? undefined : { kind, id, outcome: result };
}

export function lineOf(message: RunRequest | RunnerMessage): string {
  return `${JSON.stringify(message)}\n`;
}

const NEWLINE = 0x0a;

/**
 * Takes bytes as they come and gives lines without their end; false as soon as one is longer than `bytesMax`, after which
 * nothing more is taken.
 */
export function createLineCutter(bytesMax: number, onLine: (line: string) => void): (chunk: Uint8Array) => boolean {
  let parts: Uint8Array[] = [];
  let waiting = 0;
  let isOver = false;
  const keep = (part: Uint8Array) => {
    waiting += part.length;
    parts.push(part);
    isOver = waiting > bytesMax;
    return !isOver;
  };
  return (chunk) => {
    if (isOver) return false;
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      if (!keep(chunk.subarray(from, end))) return false;
      const line = Buffer.concat(parts).toString("utf8");
      parts = [];
      waiting = 0;
      from = end + 1;
      onLine(line);
    }
    return from === chunk.length || keep(chunk.subarray(from));
  };
}
