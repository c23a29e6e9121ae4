/** Settings from a YAML file. Whatever it holds that is no setting is a fault with its line. */
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, type YAMLMap } from "yaml";
import { errorCode, errorText, OperatorError } from "../base/errors.ts";
import { nearestWord } from "../base/nearest.ts";
import type { ConfigSource, GivenSetting } from "./config-source.ts";
import { CONFIG_FILE_BYTES_MAX } from "./limits.ts";
import { readRegularFile } from "./regular-file.ts";
import type { SettingRow } from "./setting-types.ts";

type Rows = Readonly<Record<string, SettingRow>>;

/** What is being read, and what was found so far. */
type Reader = {
  readonly file: string;
  readonly rows: Rows;
  readonly lines: LineCounter;
  readonly given: GivenSetting[];
  readonly faults: string[];
};

/** Throws OperatorError where the file cannot be read at all. */
export function readConfigFile(file: string, rows: Rows): ConfigSource {
  return configFromText(readText(file), file, rows);
}

function readText(file: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(readRegularFile(file, CONFIG_FILE_BYTES_MAX));
  } catch (error) {
    const code = errorCode(error);
    if (code === "ENOENT") throw new OperatorError(`there is no configuration file ${file}`);
    const reason = code === "ERR_ENCODING_INVALID_ENCODED_DATA" ? "it is not UTF-8" : errorText(error);
    throw new OperatorError(`cannot read the configuration file ${file}: ${reason}`);
  }
}

/** `file` is named in faults. */
export function configFromText(text: string, file: string, rows: Rows): ConfigSource {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    version: "1.2",
    schema: "core",
    merge: false,
    // `pairsOf` finds the keys that stand twice: to the parser they would be a reason to read no further.
    uniqueKeys: false,
  });
  const reader: Reader = { file, rows, lines, given: [], faults: [] };
  for (const { code, pos } of [...document.errors, ...document.warnings]) {
    reader.faults.push(`${placeOf(reader, pos[0])} ${SYNTAX_FAULTS[code] ?? "it is no valid YAML here"}`);
  }
  if (reader.faults.length === 0) readDocument(reader, document);
  return { given: reader.given, faults: reader.faults };
}

/** The parser's own sentences may repeat what stands in the file, a secret among it. */
const SYNTAX_FAULTS: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: "a second document begins here; the file is one",
  TAB_AS_INDENT: "a tab indents the line; YAML takes spaces",
  BAD_INDENT: "the indentation fits no line above",
  BLOCK_AS_IMPLICIT_KEY: 'a value holds ": "; put it in quotes',
  BAD_SCALAR_START: "a value begins with a character that YAML keeps for itself; put it in quotes",
  TAG_RESOLVE_FAILED: 'a value begins with "!"; put it in quotes',
};

function placeOf({ file, lines }: Reader, offset: number): string {
  return `${file}:${lines.linePos(offset).line}:`;
}

function placeOfNode(reader: Reader, node: unknown): string {
  const range = isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range : undefined;
  return placeOf(reader, range?.[0] ?? 0);
}

function readDocument(reader: Reader, document: Document.Parsed): void {
  const { contents } = document;
  if (isEmpty(contents)) return;
  if (!isMap(contents)) {
    reader.faults.push(`${placeOfNode(reader, contents)} the file holds sections with settings, such as "dns:"`);
    return;
  }
  const sections = [...new Set(Object.keys(reader.rows).map((setting) => setting.split(".", 1)[0] ?? ""))];
  for (const [section, content, place] of pairsOf(reader, contents)) {
    if (!sections.includes(section)) {
      reader.faults.push(
        `${place} unknown key ${section}; did you mean ${nearestKey(reader.rows, sections, section, content)}?`,
      );
    } else if (isMap(content)) {
      readSection(reader, section, content);
    } else if (!isEmpty(content)) {
      reader.faults.push(`${place} ${section} is a section; its settings stand below it, indented`);
    }
  }
}

/** A key that belongs into a section is shown with it; else the nearest section. */
function nearestKey(rows: Rows, sections: readonly string[], key: string, content: unknown): string | undefined {
  if (isMap(content)) return nearestWord(key, sections);
  const within = Object.keys(rows).find((setting) => setting.slice(setting.indexOf(".") + 1) === key);
  return within ?? nearestWord(key, [...sections, ...Object.keys(rows)]);
}

function readSection(reader: Reader, section: string, content: YAMLMap): void {
  for (const [key, node, place] of pairsOf(reader, content)) {
    const setting = `${section}.${key}`;
    const row = Object.hasOwn(reader.rows, setting) ? reader.rows[setting] : undefined;
    if (row === undefined) {
      const ofSection = Object.keys(reader.rows).filter((name) => name.startsWith(`${section}.`));
      const elsewhere = Object.keys(reader.rows).find((name) => name.endsWith(`.${key}`));
      reader.faults.push(
        `${place} unknown key ${setting}; did you mean ${elsewhere ?? nearestWord(setting, ofSection)}?`,
      );
      continue;
    }
    if (isEmpty(node)) continue;
    const where = `${place} ${setting}`;
    const texts = textsOfNode(node, row);
    if (typeof texts === "string") reader.faults.push(`${where} ${texts}`);
    else reader.given.push({ setting, where, texts });
  }
}

/** Key, value and place of each pair. Keys that are no plain words are faults, and so are those that stand twice. */
function* pairsOf(reader: Reader, map: YAMLMap): Generator<readonly [string, unknown, string]> {
  const seen = new Set<string>();
  for (const { key, value } of map.items) {
    const place = placeOfNode(reader, key);
    if (!isScalar(key) || typeof key.value !== "string") {
      reader.faults.push(`${place} a key is a word such as "listen"`);
      continue;
    }
    if (seen.has(key.value)) reader.faults.push(`${place} the key stands here a second time`);
    seen.add(key.value);
    yield [key.value, value, place];
  }
}

/** A key without a value leaves its setting at the default. */
function isEmpty(node: unknown): boolean {
  return node === null || (isScalar(node) && node.value === null);
}

const SHAPE_FAULTS = {
  text: "takes text; put the value in quotes",
  number: "takes a whole number, without quotes",
  boolean: "takes true or false",
  list: "takes a list of texts, such as [one, two]",
} as const;

/** The texts of a value of the setting's shape, or what is wrong with it. */
function textsOfNode(node: unknown, { type: { shape } }: SettingRow): readonly string[] | string {
  if (shape === "list") {
    // One item needs no brackets.
    const items = isSeq(node) ? node.items : [node];
    const texts = items.map((item) => (isScalar(item) && typeof item.value === "string" ? item.value : undefined));
    const found = texts.filter((text) => text !== undefined);
    return found.length === texts.length ? found : SHAPE_FAULTS.list;
  }
  if (isSeq(node) || isMap(node)) return "takes one value";
  const value: unknown = isScalar(node) ? node.value : undefined;
  const isOfShape = shape === "text" ? typeof value === "string" : typeof value === shape;
  return isOfShape ? [String(value)] : SHAPE_FAULTS[shape];
}
