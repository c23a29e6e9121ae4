/** Arguments of the runner's program. */
import { OperatorError } from "../base/errors.ts";
import { LOG_LEVELS, type LogLevel } from "../base/log.ts";

export type RunnerArguments = {
  /** Undefined: the socket is inherited from a service manager. */
  readonly socket: string | undefined;
  /** Name or number; "" for the default. */
  readonly user: string;
  readonly directory: string | undefined;
  /** Paths of the service that scripts must not see. */
  readonly hidden: readonly string[];
  readonly logLevel: LogLevel;
  readonly logFormat: "text" | "json";
  /** Ends when standard input does: when the service that started it has ended, however that came about. */
  readonly isChild: boolean;
};

const OPTIONS = ["--socket", "--user", "--directory", "--hide", "--log-level", "--log-format"] as const;
type Option = (typeof OPTIONS)[number];

/** Throws OperatorError for arguments that are not understood. */
export function runnerArguments(words: readonly string[]): RunnerArguments {
  const given = new Map<Option, string[]>();
  let isChild = false;
  for (let index = 0; index < words.length; index++) {
    const word = words[index];
    if (word === "--child") {
      isChild = true;
      continue;
    }
    const option = OPTIONS.find((one) => one === word);
    index += 1;
    const value = words[index];
    if (option === undefined || value === undefined) throw new OperatorError(`script-runner: ${word}: ${usage()}`);
    given.set(option, [...(given.get(option) ?? []), value]);
  }
  const last = (option: Option) => given.get(option)?.at(-1);
  const level = last("--log-level") ?? "info";
  const logLevel = LOG_LEVELS.find((one) => one === level);
  const logFormat = last("--log-format") ?? "json";
  if (logLevel === undefined) throw new OperatorError(`--log-level is one of ${LOG_LEVELS.join(", ")}`);
  if (logFormat !== "text" && logFormat !== "json") throw new OperatorError("--log-format is text or json");
  return {
    socket: last("--socket"),
    user: last("--user") ?? "",
    directory: last("--directory"),
    hidden: given.get("--hide") ?? [],
    logLevel,
    logFormat,
    isChild,
  };
}

function usage(): string {
  return "script-runner [--socket PATH] [--user USER] [--directory PATH] [--hide PATH]... [--log-level LEVEL] [--log-format text|json]";
}
