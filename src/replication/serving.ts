/** Answers to the questions of peers, from the store; what is long goes in parts, between which the thread does other things. */
import { errorText } from "../base/errors.ts";
import type { RawItem } from "../store/raw-items.ts";
import type { ItemRef, ReplicaStore } from "../store/replica.ts";
import type { AuditEntry } from "../store/store.ts";
import {
  AUDIT_ENTRIES,
  BATCH_CHARACTERS,
  CHUNK_REFS,
  PAGE_ITEMS,
  PAGE_SMALL_PAGES,
  PAGE_SMALL_ROWS,
  VERSIONS_A_PART,
} from "./limits.ts";
import {
  type Answers,
  type Question,
  type Questions,
  type Standing,
  type StoreStatus,
  versionsBody,
} from "./messages.ts";

export type ServingParts = {
  readonly store: ReplicaStore;
  readonly status: () => StoreStatus;
  readonly standing: (zones: readonly string[]) => Standing;
  /** What is still to be sent to that peer, or has come and is not applied, and what it tells of itself by asking. */
  readonly onRoot: (nodeId: string, question: Questions["root"]) => { readonly queued: number };
};

/** Yields the parts; each is sent before the next one is made. Throws what the peer is to be told. */
export async function* answer(parts: ServingParts, nodeId: string, question: Question): AsyncGenerator<unknown> {
  const { store } = parts;
  switch (question.ask) {
    case "root": {
      const { queued } = parts.onRoot(nodeId, question.body);
      const told: Answers["root"] = { root: rootOf(store), status: parts.status(), queued };
      yield told;
      break;
    }
    case "children":
      if (!store.digest.isReady()) throw new Error("the digest is being made");
      yield { children: store.digest.children(question.body.level, question.body.nodes) };
      break;
    case "versions": {
      if (!store.digest.isReady()) throw new Error("the digest is being made");
      const versions = await store.digest.versions(question.body.leaves);
      for (let at = 0; at < versions.length; at += VERSIONS_A_PART) {
        yield versionsBody(versions.slice(at, at + VERSIONS_A_PART));
      }
      break;
    }
    case "items":
      yield* itemParts(store, question.body.refs);
      break;
    case "page":
      yield pageOf(store, question.body);
      break;
    case "audit":
      yield auditPart(store, question.body);
      break;
    case "standing":
      yield parts.standing(question.body.zones);
      break;
  }
}

/** Null while the digest is being made, which asking for it begins. */
export function rootOf({ digest }: ReplicaStore): string | null {
  if (digest.isReady()) return digest.root();
  digest.ready().catch(() => undefined);
  return null;
}

/** Small pages one after the other, while they are nearly all plain rows: of such, one costs a third of any other item. */
function pageOf(store: ReplicaStore, { cursor, asRows = false }: Questions["page"]): Answers["page"] {
  const items: RawItem[] = [];
  const rows: string[] = [];
  let next = cursor;
  for (let small = 0; small < PAGE_SMALL_PAGES; small++) {
    const options = { limit: PAGE_SMALL_ROWS, charactersMax: BATCH_CHARACTERS, asRows };
    const page = store.rawItems({ ...options, ...(next !== null && { cursor: next }) });
    items.push(...page.items);
    rows.push(...page.rows);
    next = page.cursor ?? null;
    if (next === null || items.length >= PAGE_ITEMS) break;
  }
  return { items, rows, cursor: next };
}

function* itemParts(store: ReplicaStore, refs: readonly ItemRef[]): Generator<Answers["items"]> {
  for (let at = 0; at < refs.length; ) {
    const items = [];
    let characters = 0;
    for (; at < refs.length && characters < BATCH_CHARACTERS; at += CHUNK_REFS) {
      for (const item of store.items(refs.slice(at, at + CHUNK_REFS))) {
        items.push(item);
        characters += JSON.stringify(item).length;
      }
    }
    yield { items };
  }
}

function auditPart(store: ReplicaStore, { vector }: Questions["audit"]): Answers["audit"] {
  const entries: AuditEntry[] = [];
  let characters = 0;
  for (const [instance, last] of Object.entries(store.auditVector())) {
    let after = vector[instance] ?? 0;
    while (after < last) {
      const room = AUDIT_ENTRIES - entries.length;
      if (room <= 0 || characters > BATCH_CHARACTERS) return { entries, isMore: true };
      const found = store.auditAfter(instance, after, Math.min(room, CHUNK_REFS));
      const sequence = found.reduce((greatest, { id }) => Math.max(greatest, sequenceOf(id)), after);
      // What was pruned has no entries: the rest is as if it had been sent.
      if (sequence === after) break;
      entries.push(...found);
      characters += found.reduce((sum, entry) => sum + JSON.stringify(entry).length, 0);
      after = sequence;
    }
  }
  return { entries, isMore: false };
}

/** Of an audit entry's id, "<instance>-<sequence>". */
export function sequenceOf(id: string): number {
  return Number(id.slice(id.lastIndexOf("-") + 1));
}

/** What the peer is told instead of an answer. */
export function faultText(thrown: unknown): string {
  return errorText(thrown).slice(0, 200);
}
