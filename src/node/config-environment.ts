/** Settings from SVC_ environment variables, and secrets from the files that such variables name. */
import { errorCode, errorText } from "../base/errors.ts";
import { nearestWord } from "../base/nearest.ts";
import type { ConfigSource, GivenSetting } from "./config-source.ts";
import { SECRET_FILE_BYTES_MAX } from "./limits.ts";
import { readRegularFile } from "./regular-file.ts";
import { type SettingRow, textsOf } from "./setting-types.ts";

const PREFIX = "SVC_";
const FILE_SUFFIX = "_FILE";

/** `dns.max_udp_size` is SVC_DNS_MAX_UDP_SIZE. */
export function environmentName(setting: string): string {
  return `${PREFIX}${setting.replaceAll(".", "_").toUpperCase()}`;
}

/** Everything that begins with SVC_ is a setting: a mistyped name would leave its setting at the default without a word. */
export function environmentSettings(
  environment: NodeJS.ProcessEnv,
  rows: Readonly<Record<string, SettingRow>>,
): ConfigSource {
  const settings = Object.entries(rows);
  const known = new Set(
    settings.flatMap(([setting, { isSecret }]) => {
      const name = environmentName(setting);
      return isSecret === true ? [name, name + FILE_SUFFIX] : [name];
    }),
  );
  const unknown = Object.keys(environment).filter((name) => name.startsWith(PREFIX) && !known.has(name));
  const faults = unknown.map(
    (name) => `unknown environment variable ${name}; did you mean ${nearestWord(name, [...known])}?`,
  );
  const given: GivenSetting[] = [];
  for (const [setting, { type, isSecret }] of settings) {
    const name = environmentName(setting);
    const text = environment[name];
    const file = isSecret === true ? environment[name + FILE_SUFFIX] : undefined;
    if (text !== undefined && file !== undefined) {
      faults.push(`${name} and ${name}${FILE_SUFFIX} are both set; one of them is enough`);
    } else if (text !== undefined) {
      given.push({ setting, where: name, texts: isSecret === true ? [text] : textsOf(text.trim(), type) });
    } else if (file !== undefined) {
      const read = readSecretFile(file);
      if ("fault" in read) faults.push(`${name}${FILE_SUFFIX}: ${read.fault}`);
      else given.push({ setting, where: name + FILE_SUFFIX, texts: [read.text] });
    }
  }
  return { given, faults };
}

/** The file's text without the newline that editors put at its end; a fault says why, and nothing of what is in it. */
function readSecretFile(file: string): { readonly text: string } | { readonly fault: string } {
  try {
    const bytes = readRegularFile(file, SECRET_FILE_BYTES_MAX);
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes).replace(/\r?\n$/, "");
    return text === "" ? { fault: `the file ${file} is empty` } : { text };
  } catch (error) {
    if (errorCode(error) === "ENOENT") return { fault: `there is no file ${file}` };
    if (errorCode(error) === "ERR_ENCODING_INVALID_ENCODED_DATA") return { fault: `the file ${file} is not UTF-8` };
    return { fault: `cannot read the file ${file}: ${errorText(error)}` };
  }
}
