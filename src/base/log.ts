import { once } from "node:events";
import { type DestinationStream, pino } from "pino";

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
  /** Takes no more lines; settles when all are written, or when nobody has taken them for CLOSE_MS. */
  readonly close: () => Promise<void>;
};

const CLOSE_MS = 500;
/** Lines that wait for a slow reader, in bytes; what is beyond is lost. */
const MAX_WAITING_BYTES = 4 * 2 ** 20;

/**
 * A log on a file descriptor. Lines are written in the background, so that a reader that does not read never stops
 * this thread.
 */
export function openLog(descriptor: number, level: LogLevel, format: "text" | "json"): LogSink {
  const destination = pino.destination({ dest: descriptor, sync: false, minLength: 0, maxLength: MAX_WAITING_BYTES });
  // A full disk or a reader that has gone costs log lines; it must not cost the node.
  destination.on("error", () => {});
  const stream: DestinationStream =
    format === "json" ? destination : { write: (json) => void destination.write(textLine(json)) };
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  );
  return {
    log: (lineLevel, message, fields) => logger[lineLevel](fields ?? {}, message),
    close: async () => {
      const closed = once(destination, "close");
      destination.end();
      await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, CLOSE_MS).unref())]);
    },
  };
}
