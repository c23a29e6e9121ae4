/**
 * What peers say to each other: one byte for the type, then JSON; behind it an answer may have rows, a line each. Whatever
 * arrives is checked before anybody sees it; an item's own content, and a row, is for the store to judge.
 */
import type { RawItem } from "../store/raw-items.ts";
import { type Agreements, type AuditVector, DIGEST_LEVELS, type ItemRef, type ItemVersion } from "../store/replica.ts";
import type { AuditEntry } from "../store/store.ts";
import { MESSAGE_BYTES_MAX } from "./channel.ts";
import {
  AGREEMENTS_MAX,
  LEAVES_ASKED_MAX,
  MESSAGE_ITEMS_MAX,
  NODES_ASKED,
  PAGE_ROWS_MAX,
  REF_CHARACTERS_MAX,
  REFS_ASKED,
  ROW_CHARACTERS_MAX,
  VECTOR_MAX,
  VERSIONS_A_PART,
  ZONES_ASKED_MAX,
} from "./limits.ts";
import {
  asRecord,
  count,
  digest,
  flag,
  list,
  MalformedError,
  nullable,
  optionalText,
  text,
  textOrNull,
} from "./shapes.ts";

/** What a peer has to know of a store before it exchanges anything with it. */
export type StoreStatus = {
  /** Whether it has had its first sync, or needs none. */
  readonly isComplete: boolean;
  readonly collectedUpToMs: number;
  readonly lastAgreementMs: number;
  readonly agreements: Agreements;
};

/** A zone as one node has it, and its whole digest, null while it is being made. */
export type ZoneStanding = { readonly serial: number; readonly digest: string; readonly records: number };
export type Standing = {
  readonly digest: string | null;
  readonly zones: Readonly<Record<string, ZoneStanding>>;
};

export type Questions = {
  /** Whether both have the same; `root` is null while the asker's digest is being made. */
  root: { readonly root: string | null; readonly status: StoreStatus };
  children: { readonly level: number; readonly nodes: readonly number[] };
  versions: { readonly leaves: readonly number[] };
  items: { readonly refs: readonly ItemRef[] };
  /** `asRows`: the asker takes plain records as rows. A version that does not know of rows answers with items alone. */
  page: { readonly cursor: string | null; readonly asRows?: boolean };
  audit: { readonly vector: AuditVector };
  standing: { readonly zones: readonly string[] };
};
export type Ask = keyof Questions;

/** One part of an answer; those of `versions` and `items` have many. */
export type Answers = {
  /** `queued`: what the answerer has still to send to the asker, and what it was sent and has not applied. */
  root: { readonly root: string | null; readonly status: StoreStatus; readonly queued: number };
  children: { readonly children: readonly (readonly string[])[] };
  versions: { readonly versions: readonly ItemVersion[] };
  items: { readonly items: readonly RawItem[] };
  page: { readonly items: readonly RawItem[]; readonly rows: readonly string[]; readonly cursor: string | null };
  audit: { readonly entries: readonly AuditEntry[]; readonly isMore: boolean };
  standing: Standing;
};

export type Question = {
  [Name in Ask]: { readonly type: "question"; readonly id: number; readonly ask: Name; readonly body: Questions[Name] };
}[Ask];
export type Refused = readonly [sequence: number, reason: string];
export type AnswerMessage = {
  readonly type: "answer";
  readonly id: number;
  readonly isLast: boolean;
  /** Why there is no answer; then it is the last. */
  readonly fault: string | undefined;
  /** Of one that has come without its `rows`, which are beside it. */
  readonly body: unknown;
  readonly rows?: readonly string[];
};

export type Message =
  /** Items have the numbers `first`, `first` + 1 and so on, in this stream. */
  | { readonly type: "changes"; readonly first: number; readonly items: readonly RawItem[] }
  /** All up to `through` are on the disk, but for those that were refused. */
  | { readonly type: "acknowledgement"; readonly through: number; readonly refused: readonly Refused[] }
  | Question
  | AnswerMessage
  /** What the sender has written into its audit log. */
  | { readonly type: "audit-notice"; readonly vector: AuditVector };

const TYPES = ["changes", "acknowledgement", "question", "answer", "audit-notice"] as const;
const FIRST_TYPE = 1;

export function encodeMessage(message: Message): Uint8Array {
  if (message.type === "answer" && hasRows(message.body)) return encodeRows(message, message.body);
  const { type, ...body } = message;
  return withType(type, JSON.stringify(body));
}

function hasRows(body: unknown): body is Answers["page"] {
  return typeof body === "object" && body !== null && "rows" in body && Array.isArray(body.rows);
}

/** Rows follow the JSON, a line each: neither has an end of line in it. */
function encodeRows({ id, isLast, fault }: AnswerMessage, { rows, ...body }: Answers["page"]): Uint8Array {
  return withType("answer", [JSON.stringify({ id, isLast, fault, body }), ...rows].join("\n"));
}

/** As `encodeMessage` of changes, of items that are text already. */
export function encodeChanges(first: number, items: readonly string[]): Uint8Array {
  return withType("changes", `{"first":${first},"items":[${items.join(",")}]}`);
}

function withType(type: Message["type"], json: string): Uint8Array {
  const bytes = Buffer.allocUnsafe(1 + Buffer.byteLength(json));
  bytes[0] = TYPES.indexOf(type) + FIRST_TYPE;
  bytes.write(json, 1, "utf8");
  return bytes;
}

/** The message, or why it is none. */
export function decodeMessage(bytes: Uint8Array): Message | { readonly type: "malformed"; readonly reason: string } {
  if (bytes.length > MESSAGE_BYTES_MAX) return { type: "malformed", reason: `${bytes.length} bytes` };
  const type = TYPES[(bytes[0] ?? 0) - FIRST_TYPE];
  if (type === undefined) return { type: "malformed", reason: `unknown type ${bytes[0]}` };
  try {
    const given = Buffer.from(bytes.buffer, bytes.byteOffset + 1, bytes.length - 1).toString();
    // One row more than there may be is refused as well as all of them.
    const [json = "", ...rows] = type === "answer" ? given.split("\n", PAGE_ROWS_MAX + 2) : [given];
    return decodeBody(type, asRecord(JSON.parse(json)), rows);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return { type: "malformed", reason: `${type}: not JSON` };
    if (thrown instanceof MalformedError) return { type: "malformed", reason: `${type}: ${thrown.message}` };
    throw thrown;
  }
}

function decodeBody(type: Message["type"], given: Readonly<Record<string, unknown>>, rows: readonly string[]): Message {
  switch (type) {
    case "changes":
      return { type, first: count(given.first), items: items(given.items) };
    case "acknowledgement":
      return { type, through: count(given.through), refused: list(given.refused, MESSAGE_ITEMS_MAX * 8, refused) };
    case "question":
      return decodeQuestion(given);
    case "answer":
      return {
        type,
        id: count(given.id),
        isLast: flag(given.isLast),
        fault: optionalText(given.fault, 200),
        body: given.body,
        ...(rows.length > 0 && { rows }),
      };
    case "audit-notice":
      return { type, vector: vector(given.vector) };
  }
}

function decodeQuestion(given: Readonly<Record<string, unknown>>): Question {
  const id = count(given.id);
  const body = asRecord(given.body);
  const type = "question";
  switch (given.ask) {
    case "root":
      return { type, id, ask: "root", body: { root: nullable(body.root, digest), status: status(body.status) } };
    case "children": {
      const level = count(body.level, DIGEST_LEVELS - 1);
      const nodes = list(body.nodes, NODES_ASKED, (node) => count(node, 16 ** level - 1));
      return { type, id, ask: "children", body: { level, nodes } };
    }
    case "versions": {
      const leaves = list(body.leaves, LEAVES_ASKED_MAX, (leaf) => count(leaf, 16 ** DIGEST_LEVELS - 1));
      return { type, id, ask: "versions", body: { leaves } };
    }
    case "items":
      return { type, id, ask: "items", body: { refs: list(body.refs, REFS_ASKED, ref) } };
    case "page":
      return { type, id, ask: "page", body: pageQuestion(body) };
    case "audit":
      return { type, id, ask: "audit", body: { vector: vector(body.vector) } };
    case "standing":
      return {
        type,
        id,
        ask: "standing",
        body: { zones: list(body.zones, ZONES_ASKED_MAX, (zone) => text(zone, 1024)) },
      };
    default:
      throw new MalformedError("an unknown question");
  }
}

function pageQuestion({ cursor, asRows }: Readonly<Record<string, unknown>>): Questions["page"] {
  return { cursor: textOrNull(cursor, REF_CHARACTERS_MAX), ...(asRows !== undefined && { asRows: flag(asRows) }) };
}

/** Throws MalformedError where the body is no answer to that question. */
export function decodeAnswer<Name extends Ask>(ask: Name, body: unknown, rows?: readonly string[]): Answers[Name] {
  return ANSWERS[ask](asRecord(body), rows ?? []);
}

type AnswerDecoder<Name extends Ask> = (
  body: Readonly<Record<string, unknown>>,
  rows: readonly string[],
) => Answers[Name];

const ANSWERS: { readonly [Name in Ask]: AnswerDecoder<Name> } = {
  root: (body) => ({ root: nullable(body.root, digest), status: status(body.status), queued: count(body.queued) }),
  children: (body) => ({
    children: list(body.children, NODES_ASKED, (each) => list(each, 16, digest)),
  }),
  versions: (body) => ({ versions: list(body.versions, VERSIONS_A_PART, version) }),
  items: (body) => ({ items: items(body.items) }),
  page: (body, rows) => ({
    items: items(body.items),
    rows: list(rows, PAGE_ROWS_MAX, (row) => text(row, ROW_CHARACTERS_MAX)),
    cursor: textOrNull(body.cursor, REF_CHARACTERS_MAX),
  }),
  audit: (body) => ({ entries: list(body.entries, MESSAGE_ITEMS_MAX, auditEntry), isMore: flag(body.isMore) }),
  standing: (body) => ({ digest: nullable(body.digest, digest), zones: zoneStandings(body.zones) }),
};

function items(given: unknown): readonly RawItem[] {
  return list(given, MESSAGE_ITEMS_MAX, (item) => {
    text(asRecord(item).item, 64);
    // The store refuses by number what it cannot take.
    return item as RawItem;
  });
}

function ref(given: unknown): ItemRef {
  return text(given, REF_CHARACTERS_MAX);
}

function refused(given: unknown): Refused {
  const [sequence, reason] = list(given, 2, (part) => part);
  return [count(sequence), text(reason, 100)];
}

/** A pair, for there may be hundreds of thousands of them. */
function version(given: unknown): ItemVersion {
  if (!Array.isArray(given) || given.length !== 2) throw new MalformedError("a version that is none");
  return { ref: ref(given[0]), version: text(given[1], REF_CHARACTERS_MAX) };
}

/** The body of an answer to `versions`. */
export function versionsBody(versions: readonly ItemVersion[]): unknown {
  return { versions: versions.map(({ ref, version }) => [ref, version]) };
}

function status(given: unknown): StoreStatus {
  const { isComplete, collectedUpToMs, lastAgreementMs, agreements: known } = asRecord(given);
  return {
    isComplete: flag(isComplete),
    collectedUpToMs: count(collectedUpToMs),
    lastAgreementMs: count(lastAgreementMs),
    agreements: agreements(known),
  };
}

/** An older version says nothing of them. */
function agreements(given: unknown): Agreements {
  const entries = Object.entries(given === undefined ? {} : asRecord(given));
  if (entries.length > AGREEMENTS_MAX) throw new MalformedError("too many agreements");
  return Object.fromEntries(entries.map(([nodeId, atMs]) => [text(nodeId, 200), count(atMs)]));
}

function vector(given: unknown): AuditVector {
  const entries = Object.entries(asRecord(given));
  if (entries.length > VECTOR_MAX) throw new MalformedError("too many instances");
  return Object.fromEntries(entries.map(([instance, sequence]) => [text(instance, 200), count(sequence)]));
}

const AUDIT_TEXTS = [
  ...(["id", "time", "node_id", "user_id", "user_name", "source_address", "request_id", "action"] as const),
  ...(["resource", "resource_id", "resource_name", "result"] as const),
];

function auditEntry(given: unknown): AuditEntry {
  const entry = asRecord(given);
  for (const name of AUDIT_TEXTS) text(entry[name], 65_536);
  optionalText(entry.detail, 65_536);
  return given as AuditEntry;
}

function zoneStandings(given: unknown): Standing["zones"] {
  const entries = Object.entries(asRecord(given));
  if (entries.length > ZONES_ASKED_MAX) throw new MalformedError("too many zones");
  return Object.fromEntries(
    entries.map(([zone, standing]) => {
      const { serial, digest: zoneDigest, records } = asRecord(standing);
      return [zone, { serial: count(serial), digest: text(zoneDigest, 128), records: count(records) }];
    }),
  );
}
