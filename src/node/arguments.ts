import { OperatorError } from "../base/errors.ts";
import { nearestWord } from "../base/nearest.ts";
import { environmentName, SETTINGS } from "./config.ts";

/** A zone file to serve; `name`: what its relative names are relative to, with the last dot. */
export type ZoneArgument = { readonly name: string | undefined; readonly file: string };

export type Command =
  | { readonly kind: "serve"; readonly zones: readonly ZoneArgument[] }
  | { readonly kind: "help" }
  | { readonly kind: "version" };

const OPTIONS = ["--zone", "--help", "--version"] as const;

/** Reads the arguments behind the program's name. Throws OperatorError for one that it does not know. */
export function commandFromArguments(words: readonly string[]): Command {
  const zones: ZoneArgument[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    if (word === "--help" || word === "-h") return { kind: "help" };
    if (word === "--version") return { kind: "version" };
    if (word === "--zone") {
      index += 1;
      zones.push(zoneArgument(words[index]));
    } else if (word.startsWith("--zone=")) {
      zones.push(zoneArgument(word.slice("--zone=".length)));
    } else {
      throw new OperatorError(`unknown argument "${word}"; did you mean ${nearestWord(word, OPTIONS)}?`);
    }
  }
  return { kind: "serve", zones };
}

/** What stands before the first `=` is the zone's name unless it is part of a path. */
function zoneArgument(text: string | undefined): ZoneArgument {
  if (text === undefined || text === "" || text.startsWith("--")) {
    throw new OperatorError("--zone needs a file: --zone FILE or --zone NAME=FILE");
  }
  const parts = /^([^/=]+)=(.+)$/.exec(text);
  if (parts === null) return { name: undefined, file: text };
  const [, name = "", file = ""] = parts;
  return { name: name.endsWith(".") ? name : `${name}.`, file };
}

/** What `--help` prints. */
export function helpText(): string {
  const settings = Object.entries(SETTINGS).map(
    ([setting, { fallback, help }]) =>
      `  ${environmentName(setting).padEnd(24)}${help}${fallback === "" ? "" : ` (default ${fallback})`}`,
  );
  return [
    "Usage: signpost [--zone FILE | --zone NAME=FILE]...",
    "",
    "Serves the zones of the given zone files over DNS.",
    "",
    "  --zone FILE             a zone file; its $ORIGIN or its absolute SOA owner names the zone",
    "  --zone NAME=FILE        a zone file whose names are relative to NAME",
    "  --help                  this text",
    "  --version               the version",
    "",
    "SIGHUP reads the zone files again; SIGTERM ends after the answers under way.",
    "",
    "Settings, as environment variables:",
    ...settings,
    "",
  ].join("\n");
}
