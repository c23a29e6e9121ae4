/**
 * Names as the API spells them. The canonical text of a name is absolute, in lower case, with `\X` and `\DDD` (RFC 1035
 * section 5.1) for what a zone file would read otherwise; what is canonical is always accepted again. Owners and zones
 * are stored so. Host names in values keep their case and are compared without it (RFC 4343).
 */
import { ipFromText } from "../base/ip.ts";
import { LOWER, NAME_BYTES_MAX, type NameResult, nameFromText, nameToText } from "../dns/name.ts";

/** `text` is canonical, `wire` the same name in lower case. */
export type NameOutcome =
  | { readonly kind: "name"; readonly text: string; readonly wire: Uint8Array }
  | { readonly kind: "fault"; readonly detail: string };

/** How the apex is written in the name of a record. */
export const APEX = "@";

/** A name of a zone, a mailbox or a server, which must end in its dot: the fault has the right spelling. */
export function fullName(text: string): NameOutcome {
  const parsed = parseName(text);
  if (parsed.kind === "fault") return parsed;
  if (endsInDot(text)) return parsed;
  return fault(`must be a full name that ends in a dot: ${quoted(`${text}.`)}`);
}

/** A full name with or without its last dot. */
export function anyFullName(text: string): NameOutcome {
  return parseName(text);
}

/**
 * The name of a record, relative to its zone: "@" is the apex. `text` of the outcome is relative too, `wire` the whole
 * name. A name that ends in a dot is refused: whoever writes it means a full name.
 */
export function relativeName(text: string, zone: string): NameOutcome {
  const apex = apexOf(zone);
  if (apex.kind === "error") return fault(`the zone ${quoted(zone)} has no name`);
  if (text === APEX) return { kind: "name", text, wire: folded(apex.name) };
  if (text === "") return fault(`must not be empty; the zone's own name is ${quoted(APEX)}`);
  if (endsInDot(text)) return fault(absoluteHint(text, zone));
  const parsed = parseName(text);
  if (parsed.kind === "fault") return parsed;
  const length = parsed.wire.length - 1 + apex.name.length;
  if (length > NAME_BYTES_MAX) return fault(`is longer than ${NAME_BYTES_MAX} bytes together with the zone's name`);
  const wire = new Uint8Array(length);
  wire.set(parsed.wire);
  wire.set(folded(apex.name), parsed.wire.length - 1);
  return { kind: "name", text: parsed.text.slice(0, -1), wire };
}

let lastApex: { readonly zone: string; readonly name: NameResult } | undefined;

/** Records of one zone come one after the other, tens of thousands of them in an import. */
function apexOf(zone: string): NameResult {
  if (lastApex?.zone !== zone) lastApex = { zone, name: nameFromText(zone) };
  return lastApex.name;
}

function absoluteHint(text: string, zone: string): string {
  const parsed = parseName(text);
  if (parsed.kind === "fault") return parsed.detail;
  const relative = relativeTo(parsed.text, zone);
  if (relative === undefined) return `must be relative to the zone, and ${quoted(text)} lies outside ${quoted(zone)}`;
  return `must be relative to the zone: ${quoted(relative)}`;
}

/** A canonical name relative to a canonical zone, "@" for the zone itself; undefined where it lies outside. */
export function relativeTo(name: string, zone: string): string | undefined {
  if (name === zone) return APEX;
  if (zone === ".") return name.slice(0, -1);
  if (!name.endsWith(`.${zone}`)) return undefined;
  const relative = name.slice(0, -zone.length - 1);
  // The dot before the zone may belong to a label: `a\.corp.` does not lie in `corp.`.
  return endsInBackslash(relative) ? undefined : relative;
}

/** The full name of a record, canonical. */
export function absoluteName(relative: string, zone: string): string {
  if (relative === APEX) return zone;
  return zone === "." ? `${relative}.` : `${relative}.${zone}`;
}

/**
 * A host name as a value has it: absolute, with its dot even where it was left out, its case kept. `wire` keeps the case.
 * An address is refused, and so is the root where `root` is not set.
 */
export function hostName(text: string, options: { readonly root?: boolean } = {}): NameOutcome {
  const spelled = checkSpelling(text);
  if (spelled !== undefined) return fault(spelled);
  if (text === "." && options.root !== true) return fault("must be the name of a host");
  if (ipFromText(text) !== undefined) return fault("must be a host name, not an address");
  const result = nameFromText(endsInDot(text) ? text : `${text}.`);
  if (result.kind === "error") return fault(`is not a valid name: ${result.reason}`);
  return { kind: "name", text: nameToText(result.name), wire: result.name };
}

/** Whether a name is one of a host (RFC 1123 section 2.1, underscores allowed): no escapes, its last label no number. */
export function isHostSpelling(text: string): boolean {
  const labels = text.replace(/\.$/, "").split(".");
  return (
    labels.every((label) => /^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?$/.test(label)) &&
    !/^\d+$/.test(labels.at(-1) ?? "")
  );
}

/** The canonical text of a name in wire form. */
export function canonicalName(wire: Uint8Array): string {
  return nameToText(folded(wire));
}

/** The first label is the asterisk that makes a wildcard of the name (RFC 4592 section 2.1.1). */
export function isWildcard(relative: string): boolean {
  return relative === "*" || relative.startsWith("*.");
}

function parseName(text: string): NameOutcome {
  const spelled = checkSpelling(text);
  if (spelled !== undefined) return fault(spelled);
  const result = nameFromText(endsInDot(text) ? text : `${text}.`);
  if (result.kind === "error") return fault(`is not a valid name: ${result.reason}`);
  const wire = folded(result.name);
  return { kind: "name", text: nameToText(wire), wire };
}

/** What the text of any name may not hold. */
function checkSpelling(text: string): string | undefined {
  if (text === "") return "must not be empty";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  if (/[^\x00-\x7f]/.test(text)) return "must be ASCII: write an internationalised name in punycode (xn--...)";
  if (text === APEX) return `must be a name; ${quoted(APEX)} is understood in the name of a record only`;
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (character === "\\") at++;
    // What zone files read otherwise stands for itself behind a backslash only, as it is printed.
    else if (character <= " " || character === "\x7f" || '"$();@'.includes(character)) {
      return `must not hold ${quoted(character)} without a backslash`;
    }
  }
  return undefined;
}

function endsInDot(text: string): boolean {
  return text.endsWith(".") && !endsInBackslash(text.slice(0, -1));
}

/** An odd number of backslashes at the end: what follows is escaped. */
function endsInBackslash(text: string): boolean {
  let count = 0;
  while (text[text.length - 1 - count] === "\\") count++;
  return count % 2 === 1;
}

function folded(wire: Uint8Array): Uint8Array {
  return wire.map((byte) => LOWER[byte]!);
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

function fault(detail: string): NameOutcome {
  return { kind: "fault", detail };
}
