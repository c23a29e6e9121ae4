/** Reads and replaces the blocklist. Parts are written ahead of the index that names them, a few in each transaction. */
import { setImmediate } from "node:timers/promises";
import { nameToText } from "../dns/name.ts";
import { BLOCKLIST_KEY, EMPTY_BLOCKLIST, isBlocklist, listHash, partsOf, unpackPart } from "../model/blocklist.ts";
import { BLOCKLIST_SORTED_MAX } from "../model/limits.ts";
import type { BlocklistBody, BlocklistPartBody } from "../model/objects.ts";
import { Refusal } from "../model/refusal.ts";
import type { Store, StoreReader } from "../store/store.ts";
import { permitUnconfined } from "./permit.ts";
import {
  type Caller,
  type CommandContext,
  type CommandTransaction,
  etagOf,
  requireCurrent,
  runCommand,
  runCommandInSlices,
} from "./run.ts";

/** A list that was read beside the control thread, and is held there until it is disposed of. */
export type BlocklistReading = AsyncDisposable & {
  readonly list: BlocklistBody;
  readonly parts: (keys: readonly string[]) => Promise<readonly BlocklistPartBody[]>;
};

/** Rejects with a Refusal where the body is no list. */
export type BlocklistReader = (body: Uint8Array, signal?: AbortSignal) => Promise<BlocklistReading>;

export type BlocklistTools = {
  readonly read: BlocklistReader;
  /** Resolves when the list of the store blocks on this node, as far as that depends on this node. */
  readonly inForce: () => Promise<void>;
};

export type BlocklistOutcome = {
  readonly count: number;
  /** Absent while nobody has put a list, and of a rehearsal. */
  readonly etag?: string;
};

/** Parts in one transaction, or looked at in one turn: a part takes a tenth of a millisecond or two. */
const PARTS_AT_ONCE = 8;
/** How often parts are looked for anew that housekeeping has taken meanwhile. */
const ATTEMPTS = 3;

/** Replaces the whole list. `body` is JSON as it came, and is taken over. Resolves when the list is in force. */
export async function putBlocklist(
  context: CommandContext,
  caller: Caller,
  tools: BlocklistTools,
  body: Uint8Array,
  signal: AbortSignal,
): Promise<BlocklistOutcome> {
  permitUnconfined(caller, "write the blocklist");
  const outcome = await replaceList(context, caller, tools, body, signal);
  // What the list was read in is given up by now, so that its memory is there for what is built.
  await tools.inForce();
  return outcome;
}

async function replaceList(
  context: CommandContext,
  caller: Caller,
  { read }: BlocklistTools,
  body: Uint8Array,
  signal: AbortSignal,
): Promise<BlocklistOutcome> {
  await using reading = await read(body, signal);
  const { list } = reading;
  // Ahead of its parts, which would be written for nothing.
  requireCurrent(caller, context.store.get("blocklist", BLOCKLIST_KEY));
  if (caller.dryRun) return runCommand(context, caller, (tx) => writeIndex(tx, list));
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const found = await writeParts(context.store, reading);
    const outcome = await runCommandInSlices(context, caller, function* (tx) {
      permitUnconfined(caller, "write the blocklist");
      return (yield* areThere(tx, found)) ? writeIndex(tx, list) : undefined;
    });
    if (outcome !== undefined) return outcome;
  }
  throw new Refusal("not_ready", "the list could not be written; try again", [], { retry_after: 1 });
}

/** Puts an earlier list back while its parts are still there; throws `conflict` where they are not. */
export function putBackBlocklist(
  context: CommandContext,
  caller: Caller,
  list: BlocklistBody,
): Promise<BlocklistOutcome> {
  const put = function* (tx: CommandTransaction): Generator<void, BlocklistOutcome> {
    permitUnconfined(caller, "write the blocklist");
    if (!isBlocklist(list) || !(yield* areThere(tx, partsOf(list)))) {
      throw new Refusal("conflict", "the names of that list have been removed: put the list anew");
    }
    return writeIndex(tx, list);
  };
  if (!caller.dryRun) return runCommandInSlices(context, caller, put);
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write the blocklist");
    return writeIndex(tx, list);
  });
}

/** Parts that the index in force does not name may have been removed meanwhile; others are put back: see blocklist-keeper.ts. */
function* areThere(tx: CommandTransaction, found: readonly string[]): Generator<void, boolean> {
  const named = new Set(partsOf(tx.get("blocklist", BLOCKLIST_KEY)?.body ?? EMPTY_BLOCKLIST));
  for (const [index, key] of found.filter((each) => !named.has(each)).entries()) {
    if (tx.get("blocklist-part", [key]) === undefined) return false;
    if (index % PARTS_AT_ONCE === 0) yield;
  }
  return true;
}

/** Writes what the store does not have of a list. Resolves with the keys of what it has. */
async function writeParts(store: Store, { list, parts }: BlocklistReading): Promise<readonly string[]> {
  const found: string[] = [];
  const keys = partsOf(list);
  for (let from = 0; from < keys.length; from += PARTS_AT_ONCE) {
    const some = keys.slice(from, from + PARTS_AT_ONCE);
    const missing = new Set(some.filter((key) => readPart(store, key) === undefined));
    found.push(...some.filter((key) => !missing.has(key)));
    if (missing.size === 0) {
      await setImmediate();
      continue;
    }
    const bodies = await parts([...missing]);
    await store.write((tx) => {
      for (const body of bodies) tx.put("blocklist-part", body);
    });
  }
  return found;
}

function writeIndex(tx: CommandTransaction, list: BlocklistBody): BlocklistOutcome {
  const before = tx.get("blocklist", BLOCKLIST_KEY);
  requireCurrent(tx.caller, before);
  const stored = tx.put("blocklist", list);
  const isChanged = before?.stamp !== stored.stamp;
  tx.note({
    action: "update",
    resource: "blocklist",
    resource_id: list.name,
    resource_name: list.name,
    ...(isChanged ? { before: noted(before?.body ?? EMPTY_BLOCKLIST), after: noted(list) } : { result: "unchanged" }),
  });
  return { count: list.count, ...(tx.caller.dryRun ? {} : { etag: etagOf(stored) }) };
}

/** The audit log says which list it was, not what was on it. */
function noted(list: BlocklistBody): Readonly<Record<string, unknown>> {
  return { count: list.count, sha256: listHash(list) };
}

export type BlocklistView = {
  readonly count: number;
  readonly etag?: string;
  /**
   * The names, canonical, a few at a time. Throws `not_ready` where a part has not come from another node yet. A list of up
   * to BLOCKLIST_SORTED_MAX names comes in their order, a longer one in an order of its own.
   */
  readonly names: () => AsyncIterable<readonly string[]>;
};

/** The list as it is now: what comes later does not change what `names` gives. */
export function viewBlocklist(store: Pick<StoreReader, "get">): BlocklistView {
  const stored = store.get("blocklist", BLOCKLIST_KEY);
  const list = stored?.body ?? EMPTY_BLOCKLIST;
  return {
    count: list.count,
    ...(stored === undefined ? {} : { etag: etagOf(stored) }),
    names: () => (list.count <= BLOCKLIST_SORTED_MAX ? sortedNames(store, list) : namesOf(store, list)),
  };
}

async function* sortedNames(store: Pick<StoreReader, "get">, list: BlocklistBody): AsyncGenerator<readonly string[]> {
  const all: string[] = [];
  for await (const names of namesOf(store, list)) all.push(...names);
  yield all.sort();
}

async function* namesOf(store: Pick<StoreReader, "get">, list: BlocklistBody): AsyncGenerator<readonly string[]> {
  for (const key of partsOf(list)) {
    const wire = readPart(store, key);
    if (wire === undefined)
      throw new Refusal("not_ready", "a part of the list is not here yet", [], { retry_after: 5 });
    yield textsOf(wire);
    await setImmediate();
  }
}

/** The names of a part; undefined where it is not there, or not what its key says. */
function readPart(store: Pick<StoreReader, "get">, key: string): Uint8Array | undefined {
  const part = store.get("blocklist-part", [key]);
  return part === undefined ? undefined : unpackPart(part.body);
}

function textsOf(wire: Uint8Array): readonly string[] {
  const texts: string[] = [];
  for (let at = 0; at < wire.length; ) {
    texts.push(nameToText(wire, at));
    while (wire[at] !== 0) at += wire[at]! + 1;
    at++;
  }
  return texts;
}
