/** JSON as it comes from strangers: strict UTF-8, bounded depth, no member twice, no `__proto__`. */

export const JSON_DEPTH_MAX = 64;

export type ParsedJson = { readonly value: unknown } | { readonly fault: string };

/** The value of a JSON text (RFC 8259) in UTF-8, or one sentence that says why there is none. */
export function parseJson(bytes: Uint8Array): ParsedJson {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return { fault: "the text is not valid UTF-8" };
  }
  const fault = structureFault(text);
  if (fault !== undefined) return { fault };
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { fault: `the text is not valid JSON: ${syntaxFault(error)}` };
  }
}

/** V8 quotes the text around the fault; what it quotes may be a secret, so only the place is kept. */
function syntaxFault(error: unknown): string {
  const place = error instanceof Error ? /at position \d+( \(line \d+ column \d+\))?/.exec(error.message) : null;
  return place === null
    ? "it ends too early or holds a character that may not be there"
    : `unexpected character ${place[0]}`;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Depth and repeated members, found before the text is parsed. The text need not be valid: what this walk takes for
 * structure in an invalid text does not matter, since JSON.parse refuses it.
 */
function structureFault(text: string): string | undefined {
  const names: (Set<string> | undefined)[] = [];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x7b || code === 0x5b) {
      if (names.length === JSON_DEPTH_MAX) return `the text is nested deeper than ${JSON_DEPTH_MAX} levels`;
      names.push(code === 0x7b ? new Set() : undefined);
    } else if (code === 0x7d || code === 0x5d) {
      names.pop();
    } else if (code === QUOTE) {
      const end = stringEnd(text, at + 1);
      const members = names.at(-1);
      if (members !== undefined && isName(text, end + 1)) {
        const name = nameOf(text.slice(at + 1, end));
        if (name === "__proto__") return "a member must not be named __proto__";
        if (members.has(name)) return `the member ${JSON.stringify(name.slice(0, 100))} is there twice`;
        members.add(name);
      }
      at = end;
    }
  }
  return undefined;
}

/** The place of the quote that ends a string whose content begins at `at`. */
function stringEnd(text: string, at: number): number {
  let end = text.indexOf('"', at);
  while (end >= 0 && isEscaped(text, at, end)) end = text.indexOf('"', end + 1);
  return end < 0 ? text.length : end;
}

function isEscaped(text: string, start: number, at: number): boolean {
  let backslashes = 0;
  while (at - backslashes > start && text.charCodeAt(at - backslashes - 1) === BACKSLASH) backslashes++;
  return backslashes % 2 === 1;
}

/** Whether a colon comes next, so that the string before it names a member. */
function isName(text: string, at: number): boolean {
  let next = at;
  while (next < text.length && text.charCodeAt(next) <= 0x20) next++;
  return text.charCodeAt(next) === 0x3a;
}

/** Two spellings of one name are one name. */
function nameOf(raw: string): string {
  if (!raw.includes("\\")) return raw;
  try {
    return String(JSON.parse(`"${raw}"`));
  } catch {
    return raw;
  }
}
