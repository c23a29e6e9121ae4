/** What a scripted upstream says: replies as data, messages from text, and tables that answer as a small server would. */
import { randomBytes } from "node:crypto";
import { CLASS, EDNS_OPTION, FLAG, RCODE, RRTYPE } from "../../src/dns/codes.ts";
import { findOption } from "../../src/dns/edns.ts";
import { encodeMessage, type Message, type ResourceRecord } from "../../src/dns/message.ts";
import { isSubdomain, LOWER, nameFromText, nameToText, ROOT_NAME } from "../../src/dns/name.ts";
import { rdataFromText } from "../../src/dns/rdata.ts";
import { typeFromText, typeToText } from "../../src/dns/type-names.ts";

/** A query as it arrived. */
export type ReceivedQuery = {
  readonly transport: "udp" | "tcp" | "tls";
  /** The upstream's own address that it was sent to. */
  readonly server: string;
  readonly source: { readonly address: string; readonly port: number };
  /** Milliseconds of `performance.now`. */
  readonly atMs: number;
  readonly bytes: Buffer;
  readonly message: Message;
  /** The question's name with its last dot, letters as they came, and its type: `eXample.test.`, `A`. */
  readonly name: string;
  readonly type: string;
  /** Client cookie and, behind it, server cookie; undefined: no COOKIE option. */
  readonly cookie: Buffer | undefined;
  /** Over TCP and TLS: number of the connection, from 0, and of the message in it. */
  readonly connection: number;
  readonly ordinal: number;
};

export type AnswerReply = {
  readonly kind: "answer";
  /** Lines `OWNER TTL TYPE RDATA`; behind a line `;; AUTHORITY` or `;; ADDITIONAL` those of that section. `\# ` and hex also. */
  readonly text?: string;
  readonly rcode?: number;
  /** Bits of FLAG, instead of QR, RA and the query's RD. */
  readonly flags?: number;
  readonly isTruncated?: boolean;
  /** "none": no OPT although there was one. Left out: an OPT where the query has one. */
  readonly edns?: "none";
  /** What of a COOKIE is sent back where the query has one. Left out: none. */
  readonly cookie?: "good" | "wrong-client" | "client-only";
  readonly options?: readonly { readonly code: number; readonly data: Uint8Array }[];
  /** How it differs from an honest answer to the question. */
  readonly lie?:
    | "id"
    | "name"
    | "type"
    | "class"
    | "case"
    | "lower"
    | "no-question"
    | "two-questions"
    | "query"
    | "opcode";
};

export type Reply = (
  | AnswerReply
  /** As they are; over TCP with their length in front. */
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  /** Over TCP: as they are, without a length in front. */
  | { readonly kind: "stream-bytes"; readonly bytes: Uint8Array }
  | { readonly kind: "silence" }
  /** Over TCP: RST, or FIN. */
  | { readonly kind: "reset" }
  | { readonly kind: "close" }
) & {
  readonly delayMs?: number;
  /** Over UDP: from a socket of its own at this address ("server": the same address, another port) instead of the one asked. */
  readonly from?: string;
  /** Over UDP: to another port of the client's address. */
  readonly toPort?: number;
  /** Over TCP: so many bytes at a time, with a pause between. */
  readonly trickle?: { readonly bytes: number; readonly everyMs: number };
};

/** Everything that is to happen, each reply after its own delay. An answer's bytes may be made by `replyBytes`. */
export type Handler = (query: ReceivedQuery) => Reply | readonly Reply[];

const SECTION = /^;;\s*(ANSWER|AUTHORITY|ADDITIONAL)/i;

export function wireName(text: string): Uint8Array {
  const result = nameFromText(text, ROOT_NAME);
  if (result.kind === "error") throw new Error(`${text}: ${result.reason}`);
  return result.name;
}

/** One line: `OWNER TTL TYPE RDATA`. */
export function recordFromLine(line: string): ResourceRecord {
  const parts = /^(\S+)\s+(\d+)\s+(?:IN\s+)?(\S+)\s*(.*)$/i.exec(line.trim());
  const type = typeFromText(parts?.[3] ?? "");
  if (parts === null || type === undefined) throw new Error(`no record: ${line}`);
  const generic = /^\\#\s+\d+\s*([0-9a-f\s]*)$/i.exec(parts[4]!);
  if (generic !== null) {
    const rdata = Buffer.from(generic[1]!.replace(/\s/g, ""), "hex");
    return { name: wireName(parts[1]!), type, class: CLASS.IN, ttl: Number(parts[2]), rdata };
  }
  const result = rdataFromText(type, parts[4]!, ROOT_NAME);
  if (result.kind === "error") throw new Error(`${line}: ${result.detail}`);
  return { name: wireName(parts[1]!), type, class: CLASS.IN, ttl: Number(parts[2]), rdata: result.rdata };
}

type Sections = {
  readonly ANSWER: ResourceRecord[];
  readonly AUTHORITY: ResourceRecord[];
  readonly ADDITIONAL: ResourceRecord[];
};

export function sectionsFromText(text: string): Sections {
  const sections: Sections = { ANSWER: [], AUTHORITY: [], ADDITIONAL: [] };
  let into = sections.ANSWER;
  for (const line of text.split("\n").map((each) => each.trim())) {
    const section = SECTION.exec(line)?.[1]?.toUpperCase();
    if (section === "ANSWER" || section === "AUTHORITY" || section === "ADDITIONAL") into = sections[section];
    else if (line !== "" && !line.startsWith(";")) into.push(recordFromLine(line));
  }
  return sections;
}

/** The server cookie (16 bytes) that a scripted upstream gives; the same for all. */
export const SERVER_COOKIE = randomBytes(16);

function cookieOption(
  query: ReceivedQuery,
  wish: AnswerReply["cookie"],
): readonly { code: number; data: Uint8Array }[] {
  if (wish === undefined || query.cookie === undefined) return [];
  const client = Buffer.from(query.cookie.subarray(0, 8));
  if (wish === "wrong-client") client[0] = client[0]! ^ 0xff;
  const data = wish === "client-only" ? client : Buffer.concat([client, SERVER_COOKIE]);
  return [{ code: EDNS_OPTION.COOKIE, data }];
}

function liedQuestions(query: ReceivedQuery, lie: AnswerReply["lie"]): Message["questions"] {
  const [asked] = query.message.questions;
  if (asked === undefined || lie === "no-question") return [];
  if (lie === "name") return [{ ...asked, name: wireName("lie.example.") }];
  if (lie === "type") return [{ ...asked, type: asked.type + 1 }];
  if (lie === "class") return [{ ...asked, class: CLASS.CH }];
  if (lie === "case") return [{ ...asked, name: asked.name.map((byte) => (isLetter(byte) ? byte ^ 0x20 : byte)) }];
  if (lie === "lower") return [{ ...asked, name: asked.name.map((byte) => LOWER[byte]!) }];
  if (lie === "two-questions") return [asked, asked];
  return [asked];
}

function isLetter(byte: number): boolean {
  return LOWER[byte]! >= 0x61 && LOWER[byte]! <= 0x7a;
}

/** The message that an answer is, for the query. */
export function answerMessage(query: ReceivedQuery, reply: AnswerReply): Message {
  const { ANSWER, AUTHORITY, ADDITIONAL } = sectionsFromText(reply.text ?? "");
  const { message } = query;
  const usual = FLAG.QR | FLAG.RA | (message.flags & FLAG.RD);
  const flags = (reply.flags ?? usual) | (reply.isTruncated === true ? FLAG.TC : 0);
  const hasEdns = message.edns !== undefined && reply.edns !== "none";
  const options = [...cookieOption(query, reply.cookie), ...(reply.options ?? [])];
  return {
    id: reply.lie === "id" ? message.id ^ 0x5555 : message.id,
    flags: reply.lie === "query" ? flags & ~FLAG.QR : flags,
    opcode: reply.lie === "opcode" ? 4 : 0,
    rcode: reply.rcode ?? RCODE.NOERROR,
    questions: liedQuestions(query, reply.lie),
    answers: ANSWER,
    authorities: AUTHORITY,
    additionals: ADDITIONAL,
    edns: hasEdns ? { udpSize: 1232, version: 0, wantsDnssec: message.edns.wantsDnssec, options } : undefined,
  };
}

/** Its bytes. Over UDP an answer that the query has no room for is cut, with TC. */
export function replyBytes(query: ReceivedQuery, reply: AnswerReply): Uint8Array {
  const room = query.transport === "udp" ? Math.max(512, query.message.edns?.udpSize ?? 512) : 65_535;
  return encodeMessage(answerMessage(query, reply), room).bytes;
}

export type TableOptions = {
  /** The table's CNAMEs are followed inside of it, as a resolver would; else the answer ends with the first. */
  readonly followsAliases?: boolean;
  /** Given beside every record's answer. */
  readonly cookie?: AnswerReply["cookie"];
};

/**
 * Answers from lines `OWNER TTL TYPE RDATA` as a server that knows nothing else: CNAMEs, wildcard owners `*.`, NODATA and
 * NXDOMAIN with the SOA of the table that the name lies below; without one REFUSED. Takes 100,000 lines.
 */
export function tableHandler(
  text: string,
  { followsAliases = true, cookie }: TableOptions = {},
): (query: ReceivedQuery) => AnswerReply {
  const records = sectionsFromText(text).ANSWER;
  const byName = Map.groupBy(records, ({ name }) => folded(name));
  const apexes = records.filter(({ type }) => type === RRTYPE.SOA);
  const known = new Set<string>();
  for (const { name } of records)
    for (let at = 0; at < name.length; at += name[at]! + 1) known.add(folded(name.subarray(at)));
  const at = (name: Uint8Array): readonly ResourceRecord[] => {
    const exact = byName.get(folded(name));
    if (exact !== undefined || known.has(folded(name))) return exact ?? [];
    for (let parent = name; parent.length > 1; ) {
      parent = parent.subarray(parent[0]! + 1);
      const wild = byName.get(folded(Uint8Array.of(1, 0x2a, ...parent)));
      if (wild !== undefined) return wild.map((record) => ({ ...record, name }));
      if (known.has(folded(parent))) break;
    }
    return [];
  };
  return (query) => {
    const [question] = query.message.questions;
    if (question === undefined) return { kind: "answer", rcode: RCODE.FORMERR };
    const answers: ResourceRecord[] = [];
    let name = question.name;
    for (let links = 0; links < 20; links++) {
      const here = at(name);
      const wanted = here.filter(({ type }) => type === question.type || question.type === RRTYPE.ANY);
      const alias = here.find(({ type }) => type === RRTYPE.CNAME);
      answers.push(...(wanted.length > 0 || alias === undefined ? wanted : [alias]));
      if (wanted.length > 0 || alias === undefined || !followsAliases) break;
      name = alias.rdata;
    }
    const shared = { kind: "answer", ...(cookie === undefined ? {} : { cookie }) } as const;
    const isWhole = answers.at(-1)?.type === question.type || (answers.length > 0 && !followsAliases);
    if (isWhole) return { ...shared, text: linesOf(answers) };
    const soa = apexes.filter((each) => isSubdomain(name, each.name)).sort((a, b) => b.name.length - a.name.length)[0];
    if (soa === undefined && answers.length === 0) return { ...shared, rcode: RCODE.REFUSED };
    const isThere = soa === undefined || known.has(folded(name)) || at(name).length > 0;
    const authority = soa === undefined ? "" : `\n;; AUTHORITY\n${linesOf([soa])}`;
    return { ...shared, rcode: isThere ? RCODE.NOERROR : RCODE.NXDOMAIN, text: `${linesOf(answers)}${authority}` };
  };
}

function linesOf(records: readonly ResourceRecord[]): string {
  return records
    .map(({ name, ttl, type, rdata }) => {
      const hex = Buffer.from(rdata).toString("hex");
      return `${nameToText(name)} ${ttl} ${typeToText(type)} \\# ${rdata.length} ${hex}`;
    })
    .join("\n");
}

function folded(name: Uint8Array): string {
  return Buffer.from(name.map((byte) => LOWER[byte]!)).toString("latin1");
}

/** The COOKIE of a message. */
export function cookieOf(message: Message): Buffer | undefined {
  const data = findOption(message.edns, EDNS_OPTION.COOKIE);
  return data === undefined ? undefined : Buffer.from(data);
}

/** An answer with enough TXT records for about so many bytes. */
export function largeAnswer(name: string, bytes: number): AnswerReply {
  const count = Math.ceil(bytes / 263);
  const lines = Array.from(
    { length: count },
    (_, index) => `${name} 60 TXT "${String(index).padStart(5, "0")}${"x".repeat(245)}"`,
  );
  return { kind: "answer", text: lines.join("\n") };
}

/** A response to the query whose answer's owner is a pointer to itself. */
export function loopingBytes(query: ReceivedQuery): Uint8Array {
  const head = replyBytes(query, { kind: "answer", edns: "none" });
  const bytes = new Uint8Array(head.length + 16);
  bytes.set(head);
  bytes[7] = 1;
  bytes.set([0xc0, head.length, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1], head.length);
  return bytes;
}
