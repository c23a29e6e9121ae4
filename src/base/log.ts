import { type DestinationStream, pino } from "pino";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;
export type LogLine = { readonly level: LogLevel; readonly message: string; readonly fields?: LogFields };

/** Takes log lines. Who needs to log is given one; there is no global logger. */
export type Log = (level: LogLevel, message: string, fields?: LogFields) => void;

/** A line that a person reads: time, level, message, then the fields as `name=value`. */
function textLine(json: string): string {
  const { time, level, msg, ...fields }: Record<string, unknown> = JSON.parse(json);
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${JSON.stringify(value)}`);
  return `${String(time).slice(11, 23)} ${String(level).padEnd(5)} ${String(msg)}${rest.join("")}\n`;
}

export type LogSink = { readonly log: Log; readonly flush: () => void };

/**
 * A log on a file descriptor. Lines are written in the background, so that a reader that does not read never stops
 * this thread; `flush` writes what is left before the process ends.
 */
export function openLog(descriptor: number, level: LogLevel, format: "text" | "json"): LogSink {
  const destination = pino.destination({ dest: descriptor, sync: false, minLength: 0, maxLength: 2 ** 22 });
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
    flush: () => destination.flushSync(),
  };
}
