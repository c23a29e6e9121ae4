import { pino } from "pino";
import { createLineWriter } from "./line-writer.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;
export type LogLine = { readonly level: LogLevel; readonly message: string; readonly fields?: LogFields };

/** Takes log lines. Who needs to log is given one; there is no global logger. */
export type Log = (level: LogLevel, message: string, fields?: LogFields) => void;

const CONTROL_CHARACTERS = /\p{Cc}/gu;

function escapeCharacter(character: string): string {
  return character === "\n" ? "\\n" : `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
}

/** A line that a person reads: time, level, message, then the fields as `name=value`. */
function textLine(json: string): string {
  const { time, level, msg, ...fields }: Record<string, unknown> = JSON.parse(json);
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${JSON.stringify(value)}`);
  // A message may hold what a client or a file sent: it cannot begin a line of its own.
  const message = String(msg).replace(CONTROL_CHARACTERS, escapeCharacter);
  return `${String(time).slice(11, 23)} ${String(level).padEnd(5)} ${message}${rest.join("")}\n`;
}

export type LogSink = {
  readonly log: Log;
  /** Settles when every line is written, or when nobody has taken them for FLUSH_MS. */
  readonly flush: () => Promise<void>;
};

const FLUSH_MS = 500;
/** Characters that wait for a slow reader; lines beyond are lost. */
const MAX_WAITING = 4 * 2 ** 20;

/** A log on a file descriptor; no reader, slow or gone, ever holds up who logs. */
export function openLog(descriptor: number, level: LogLevel, format: "text" | "json"): LogSink {
  const { write, flush } = createLineWriter(descriptor, MAX_WAITING);
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: format === "json" ? write : (json) => write(textLine(json)) },
  );
  return {
    log: (lineLevel, message, fields) => logger[lineLevel](fields ?? {}, message),
    flush: () => flush(FLUSH_MS),
  };
}
