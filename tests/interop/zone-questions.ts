import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Question } from "../support/dns-message.ts";
import type { ZoneSource } from "../support/server.ts";

/** A question with the way it is sent. */
export type Inquiry = Question & { readonly transport: "udp" | "tcp" };

export const ZONES: readonly ZoneSource[] = [
  { name: "corp.test", file: "diff-corp" },
  { name: "child.corp.test", file: "diff-child" },
  { name: "shadow.corp.test", file: "diff-shadow" },
  { name: "other.test", file: "diff-other" },
  { name: "10.in-addr.arpa", file: "diff-reverse" },
].map(({ name, file }) => ({ name, file: fileURLToPath(new URL(`../vectors/${file}.zone`, import.meta.url)) }));

const FLAG = { RD: 0x0100, AD: 0x0020, CD: 0x0010 } as const;

/** What the zones hold, what they could hold, and the numbers at the edges. */
const TYPES = {
  A: 1,
  NS: 2,
  MD: 3,
  CNAME: 5,
  SOA: 6,
  NULL: 10,
  PTR: 12,
  HINFO: 13,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  NAPTR: 35,
  DNAME: 39,
  DS: 43,
  HTTPS: 65,
  ANY: 255,
  CAA: 257,
  PRIVATE: 65400,
} as const;

/** Types with rules of their own in a query (RFC 6895 section 3.1), asked of a few names. */
const META_TYPES = [0, 41, 46, 47, 48, 50, 128, 249, 250, 251, 252, 253, 254, 65401, 65535];

/** IQUERY, STATUS, NOTIFY, UPDATE, DSO, and one that nobody has assigned. */
const OPCODES = [1, 2, 4, 5, 6, 15];

/** What servers tell of themselves in class CH. */
const CHAOS_NAMES = ["id.server.", "hostname.bind.", "version.bind.", "version.server.", "unknown.bind."];

const CLASSES = [0, 2, 3, 4, 254, 255, 65280];

/** The owners of a zone file that has one record a line, absolute and with the last dot. */
function ownersOf({ name, file }: ZoneSource): string[] {
  const owners = new Set<string>();
  for (const line of readFileSync(file, "latin1").split("\n")) {
    const owner = /^[^;$\s]\S*/.exec(line)?.[0];
    if (owner !== undefined) owners.add(owner === "@" ? `${name}.` : `${owner}.${name}.`);
  }
  return [...owners];
}

/** The parent of a name in text form, minding escaped dots; undefined above the root's children. */
function parentOf(name: string): string | undefined {
  const parent = /^(?:\\.|[^.\\])+\.(.+)$/.exec(name)?.[1];
  return parent;
}

/** All owners of all zones, and every name between them and their zone's apex: the empty non-terminals. */
export function existingNames(): string[] {
  const names = new Set<string>();
  for (const zone of ZONES) {
    for (const owner of ownersOf(zone)) {
      for (let name: string | undefined = owner; name !== undefined; name = parentOf(name)) {
        names.add(name);
        if (name === `${zone.name}.`) break;
      }
    }
  }
  return [...names];
}

function fits(name: string): boolean {
  const labels = name.split(".");
  return name.length < 250 && labels.every((label) => label.length < 64);
}

/** Names that are not there: below and beside each that is, below and at wildcards, in no zone at all. */
export function missingNames(existing: readonly string[]): string[] {
  const derived = existing.flatMap((name) => [`nope.${name}`, `no.such.${name}`, `*.${name}`, `under.*.${name}`]);
  const beside = existing.flatMap((name) => {
    const parent = parentOf(name);
    return parent === undefined ? [] : [`zz-${parent.length}.${parent}`];
  });
  const elsewhere = [".", "test.", "arpa.", "in-addr.arpa.", "elsewhere.example.", "xcorp.test.", "corp.test.example."];
  const known = new Set(existing);
  return [...new Set([...derived, ...beside, ...elsewhere])].filter((name) => !known.has(name) && fits(name));
}

function alternateCase(name: string): string {
  return [...name].map((letter, index) => (index % 2 === 0 ? letter.toUpperCase() : letter.toLowerCase())).join("");
}

/** The ways in which one question is asked; each is asked of every existing name. */
const VARIANTS: readonly ((question: Inquiry) => Inquiry)[] = [
  (question) => ({ ...question, flags: FLAG.RD }),
  (question) => ({ ...question, flags: FLAG.AD | FLAG.CD }),
  (question) => ({ ...question, edns: { udpSize: 1232 } }),
  (question) => ({ ...question, edns: { udpSize: 4096, dnssecOk: true }, flags: FLAG.RD | FLAG.AD }),
  (question) => ({ ...question, edns: { udpSize: 512 }, flags: FLAG.CD }),
  (question) => ({ ...question, edns: { udpSize: 0 } }),
  (question) => ({ ...question, transport: "tcp" }),
  (question) => ({ ...question, transport: "tcp", edns: { udpSize: 512 } }),
  (question) => ({ ...question, name: alternateCase(question.name) }),
];

/** EDNS at its edges: unknown version, unknown and unfinished options (RFC 6891 sections 6.1.2 and 6.1.3). */
const EDNS_VARIANTS: readonly NonNullable<Question["edns"]>[] = [
  { version: 1 },
  { version: 255, dnssecOk: true },
  { udpSize: 65535 },
  { options: [{ code: 65001, data: Uint8Array.of(1, 2, 3) }] },
  { options: [{ code: 12, data: new Uint8Array(16) }] },
  { options: [{ code: 8, data: Uint8Array.of(0, 1, 24, 0, 10, 1, 2) }] },
];

/** Every question of the differential test, a few thousand, the same each time. */
export function inquiries(): Inquiry[] {
  const existing = existingNames();
  const missing = missingNames(existing);
  const all: Inquiry[] = [];
  const udp = (name: string, type: number): Inquiry => ({ name, type, transport: "udp" });
  for (const name of existing) for (const type of Object.values(TYPES)) all.push(udp(name, type));
  for (const name of missing) for (const type of [TYPES.A, TYPES.MX, TYPES.DS, TYPES.ANY]) all.push(udp(name, type));
  for (const name of existing) {
    for (const variant of VARIANTS) {
      for (const type of [TYPES.A, TYPES.TXT, TYPES.MX, TYPES.NS]) all.push(variant(udp(name, type)));
    }
  }
  for (const name of missing) for (const variant of VARIANTS.slice(0, 4)) all.push(variant(udp(name, TYPES.A)));
  for (const zone of ZONES) {
    const apex = `${zone.name}.`;
    for (const type of META_TYPES) all.push(udp(apex, type), udp(`missing.${apex}`, type), udp(`www.${apex}`, type));
    for (const number of CLASSES) {
      all.push({ ...udp(apex, TYPES.SOA), class: number }, { ...udp(`missing.${apex}`, TYPES.A), class: number });
    }
    for (const edns of EDNS_VARIANTS) {
      all.push({ ...udp(apex, TYPES.SOA), edns }, { ...udp(`missing.${apex}`, TYPES.A), edns });
    }
  }
  for (const opcode of OPCODES) all.push({ ...udp("corp.test.", TYPES.SOA), flags: opcode << 11 });
  for (const name of CHAOS_NAMES) all.push({ ...udp(name, TYPES.TXT), class: 3 }, { ...udp(name, TYPES.A), class: 3 });
  for (const name of ["elsewhere.example.", "."]) {
    for (const type of META_TYPES) all.push(udp(name, type));
    for (const edns of EDNS_VARIANTS) all.push({ ...udp(name, TYPES.A), edns });
  }
  return all;
}

const TYPE_NAMES = new Map<number, string>(Object.entries(TYPES).map(([name, number]) => [number, name]));

/** One line that says all of a question, for messages. */
export function inquiryText({ name, type, class: number = 1, flags = 0, edns, transport }: Inquiry): string {
  const parts = [name, TYPE_NAMES.get(type) ?? `TYPE${type}`, transport];
  if (number !== 1) parts.push(`CLASS${number}`);
  if (flags >> 11 !== 0) parts.push(`opcode ${flags >> 11}`);
  for (const [flag, bit] of Object.entries(FLAG)) if ((flags & bit) !== 0) parts.push(flag);
  if (edns !== undefined)
    parts.push(`EDNS ${JSON.stringify(edns, (_, value) => (value instanceof Uint8Array ? [...value] : value))}`);
  return parts.join(" ");
}
