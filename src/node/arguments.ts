import { OperatorError } from "../base/errors.ts";
import { nearestWord } from "../base/nearest.ts";
import { SETTINGS } from "./config.ts";
import { environmentName } from "./config-environment.ts";
import type { SettingRow } from "./setting-types.ts";

/** A zone file to import; `name`: what its relative names are relative to, with the last dot. */
export type ZoneArgument = { readonly name: string | undefined; readonly file: string };

/** `config`: the configuration file, where one is named. */
export type Command =
  | { readonly kind: "serve"; readonly config: string | undefined; readonly zones: readonly ZoneArgument[] }
  | { readonly kind: "check"; readonly config: string | undefined }
  | {
      readonly kind: "reset-admin-password";
      readonly config: string | undefined;
      readonly password: "random" | "standard-input";
    }
  | { readonly kind: "help" }
  | { readonly kind: "version" };

const OPTIONS = [
  "--config",
  "--zone",
  "--check",
  "--reset-admin-password",
  "--admin-password-stdin",
  "--help",
  "--version",
] as const;

/** What of the arguments was seen so far. */
type Seen = { config: string | undefined; readonly zones: ZoneArgument[]; readonly flags: Set<string> };

/** Reads the arguments behind the program's name. Throws OperatorError for one that it does not know. */
export function commandFromArguments(words: readonly string[]): Command {
  const seen: Seen = { config: undefined, zones: [], flags: new Set() };
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    if (word === "--help" || word === "-h") return { kind: "help" };
    if (word === "--version") return { kind: "version" };
    const equals = word.indexOf("=");
    const option = equals < 0 ? word : word.slice(0, equals);
    if (option === "--zone" || option === "--config") {
      if (equals < 0) index += 1;
      takeFile(seen, option, equals < 0 ? words[index] : word.slice(equals + 1));
    } else if (OPTIONS.some((known) => known === word)) {
      seen.flags.add(word);
    } else {
      throw new OperatorError(`unknown argument "${word}"; did you mean ${nearestWord(option, OPTIONS)}?`);
    }
  }
  return commandOf(seen);
}

function takeFile(seen: Seen, option: "--zone" | "--config", text: string | undefined): void {
  if (text === undefined || text === "" || text.startsWith("--")) {
    const forms = option === "--zone" ? "--zone FILE or --zone NAME=FILE" : "--config FILE";
    throw new OperatorError(`${option} needs a file: ${forms}`);
  }
  if (option === "--zone") seen.zones.push(zoneArgument(text));
  else if (seen.config === undefined) seen.config = text;
  else throw new OperatorError("--config is given twice; there is one configuration file");
}

/** What stands before the first `=` is the zone's name unless it is part of a path. */
function zoneArgument(text: string): ZoneArgument {
  const parts = /^([^/=]+)=(.+)$/.exec(text);
  if (parts === null) return { name: undefined, file: text };
  const [, name = "", file = ""] = parts;
  return { name: name.endsWith(".") ? name : `${name}.`, file };
}

function commandOf({ config, zones, flags }: Seen): Command {
  const isCheck = flags.has("--check");
  const isFromInput = flags.has("--admin-password-stdin");
  const isReset = isFromInput || flags.has("--reset-admin-password");
  if (!isCheck && !isReset) return { kind: "serve", config, zones };
  if (isCheck && isReset) throw new OperatorError("--check changes nothing and cannot reset a password");
  if (zones.length > 0) throw new OperatorError(`--zone is for serving, and ${[...flags].join(" ")} does not serve`);
  if (isCheck) return { kind: "check", config };
  return { kind: "reset-admin-password", config, password: isFromInput ? "standard-input" : "random" };
}

const SETTING_COLUMN = 50;

function settingLine(setting: string, { fallback, help, isSecret, isUnused }: SettingRow): string {
  const name = environmentName(setting);
  const remarks = [
    ...(fallback === "" ? [] : [`default ${fallback}`]),
    ...(isSecret === true ? [`or in a file: ${name}_FILE`] : []),
    ...(isUnused === true ? ["accepted, not yet used"] : []),
  ];
  return `  ${name.padEnd(SETTING_COLUMN)}${help}${remarks.length === 0 ? "" : ` (${remarks.join("; ")})`}`;
}

/** What `--help` prints. */
export function helpText(): string {
  return [
    "Usage: signpost [--config FILE] [--zone FILE | --zone NAME=FILE]...",
    "       signpost [--config FILE] --check",
    "       signpost [--config FILE] --reset-admin-password | --admin-password-stdin",
    "",
    "Serves zones over DNS and manages them over HTTPS.",
    "",
    "  --config FILE           settings in YAML",
    "  --zone FILE             a zone file, imported where its zone is not stored yet; its $ORIGIN or absolute SOA owner",
    "                          names the zone",
    "  --zone NAME=FILE        a zone file whose names are relative to NAME",
    "  --check                 says what is wrong with the settings, and ends",
    "  --reset-admin-password  gives the admin a new random password, prints it, and ends; the service must be stopped",
    "  --admin-password-stdin  the same with a password from standard input",
    "  --help                  this text",
    "  --version               the version",
    "",
    "SIGHUP reads the API's certificate again; SIGTERM ends after what is under way.",
    "",
    "Settings, as environment variables, which go before the file; SVC_DNS_THREADS is `threads` below `dns:` there. Lists",
    "are separated by commas.",
    ...Object.entries(SETTINGS).map(([setting, row]) => settingLine(setting, row)),
    "",
  ].join("\n");
}
