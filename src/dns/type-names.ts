/**
 * Mnemonics of RR types and classes (IANA DNS parameters registry; TYPEnnn and CLASSnnn: RFC 3597 section 5).
 * Lookup reads bytes of a larger text and makes no string, because every record of a zone file passes through it.
 */

import { CLASS, RRTYPE } from "./codes.ts";

/** Every type that the registry names, so that a real type that we do not hold is told from a misspelled word. */
const TYPE_NAMES: readonly (readonly [string, number])[] = [
  ...Object.entries(RRTYPE),
  ...(
    "MD 3|MF 4|MB 7|MG 8|MR 9|NULL 10|WKS 11|HINFO 13|MINFO 14|RP 17|AFSDB 18|X25 19|ISDN 20|RT 21|NSAP 22|" +
    "NSAP-PTR 23|SIG 24|KEY 25|PX 26|GPOS 27|LOC 29|NXT 30|EID 31|NIMLOC 32|ATMA 34|NAPTR 35|KX 36|CERT 37|A6 38|" +
    "SINK 40|APL 42|SSHFP 44|IPSECKEY 45|RRSIG 46|NSEC 47|DNSKEY 48|DHCID 49|NSEC3 50|NSEC3PARAM 51|TLSA 52|" +
    "SMIMEA 53|HIP 55|NINFO 56|RKEY 57|TALINK 58|CDS 59|CDNSKEY 60|OPENPGPKEY 61|CSYNC 62|ZONEMD 63|SVCB 64|" +
    "HTTPS 65|DSYNC 66|HHIT 67|BRID 68|SPF 99|UINFO 100|UID 101|GID 102|UNSPEC 103|NID 104|L32 105|L64 106|LP 107|" +
    "EUI48 108|EUI64 109|NXNAME 128|URI 256|AVC 258|DOA 259|AMTRELAY 260|RESINFO 261|WALLET 262|CLA 263|IPN 264|" +
    "TA 32768|DLV 32769|WINS 65281|WINSR 65282|WINS-R 65282|NBSTAT 65282"
  )
    .split("|")
    .map((entry): [string, number] => [
      entry.slice(0, entry.indexOf(" ")),
      Number(entry.slice(entry.indexOf(" ") + 1)),
    ]),
];

const CLASS_NAMES: readonly (readonly [string, number])[] = Object.entries(CLASS);
const TYPE_PREFIX = "TYPE";
const CLASS_PREFIX = "CLASS";
const encoder = new TextEncoder();

type Mnemonic = { readonly bytes: Uint8Array; readonly code: number };
type MnemonicTable = readonly (readonly Mnemonic[] | undefined)[];

const TABLE_MASK = 255;
const TYPE_TABLE = buildTable(TYPE_NAMES);
const CLASS_TABLE = buildTable(CLASS_NAMES);
const TYPE_PREFIX_BYTES = encoder.encode(TYPE_PREFIX);
const CLASS_PREFIX_BYTES = encoder.encode(CLASS_PREFIX);
const TEXT_BY_TYPE: ReadonlyMap<number, string> = new Map(TYPE_NAMES.map(([name, code]) => [code, name]));

/** The type that the word in `text[start, end)` names (any case), or -1 where it names none. */
export function typeFromBytes(text: Uint8Array, start: number, end: number): number {
  if (end - start === 1 && (text[start]! | 0x20) === 0x61) return RRTYPE.A;
  const code = lookUp(TYPE_TABLE, text, start, end);
  return code >= 0 ? code : numberedCode(TYPE_PREFIX_BYTES, text, start, end);
}

/** The class that the word in `text[start, end)` names (any case), or -1 where it names none. */
export function classFromBytes(text: Uint8Array, start: number, end: number): number {
  const code = lookUp(CLASS_TABLE, text, start, end);
  return code >= 0 ? code : numberedCode(CLASS_PREFIX_BYTES, text, start, end);
}

/** The type that a text names, or undefined. */
export function typeFromText(text: string): number | undefined {
  const bytes = encoder.encode(text);
  const type = typeFromBytes(bytes, 0, bytes.length);
  return type < 0 ? undefined : type;
}

/** `A`, `MX`, `TYPE65400`. */
export function typeToText(type: number): string {
  return TEXT_BY_TYPE.get(type) ?? `${TYPE_PREFIX}${type}`;
}

/** True where the registry gives the type a name of its own. */
export function isNamedType(type: number): boolean {
  return TEXT_BY_TYPE.has(type);
}

/** Types that exist in messages only and never in a zone (RFC 6895 section 3.1). */
export function isMetaType(type: number): boolean {
  return type === 0 || type === RRTYPE.OPT || (type >= 128 && type <= 255);
}

function lookUp(table: MnemonicTable, text: Uint8Array, start: number, end: number): number {
  const bucket = table[hashWord(text, start, end)];
  if (bucket === undefined) return -1;
  for (const entry of bucket) if (matchesWord(entry.bytes, text, start, end)) return entry.code;
  return -1;
}

function numberedCode(prefix: Uint8Array, text: Uint8Array, start: number, end: number): number {
  const digitsStart = start + prefix.length;
  if (end <= digitsStart || end - digitsStart > 5 || !matchesWord(prefix, text, start, digitsStart)) return -1;
  let code = 0;
  for (let at = digitsStart; at < end; at++) {
    const digit = text[at]! - 0x30;
    if (digit < 0 || digit > 9) return -1;
    code = code * 10 + digit;
  }
  return code > 0xffff ? -1 : code;
}

/** The word is upper case and digits; letters of the text match in either case. */
function matchesWord(word: Uint8Array, text: Uint8Array, start: number, end: number): boolean {
  if (end - start !== word.length) return false;
  for (let index = 0; index < word.length; index++) {
    const byte = text[start + index]!;
    if (byte !== word[index]! && (byte < 0x61 || byte > 0x7a || byte - 0x20 !== word[index]!)) return false;
  }
  return true;
}

function hashWord(text: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let at = start; at < end && at < start + 12; at++) hash = (hash * 31 + (text[at]! & 0xdf)) & 0xffff;
  return (hash ^ (hash >> 8)) & TABLE_MASK;
}

function buildTable(names: readonly (readonly [string, number])[]): MnemonicTable {
  const table: Mnemonic[][] = [];
  for (const [name, code] of names) {
    const bytes = encoder.encode(name);
    const slot = hashWord(bytes, 0, bytes.length);
    const bucket = table[slot] ?? [];
    bucket.push({ bytes, code });
    table[slot] = bucket;
  }
  return Array.from({ length: TABLE_MASK + 1 }, (_, slot) => table[slot]);
}
