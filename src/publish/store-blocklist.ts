/**
 * Keeps the blocklist of the image at that of the store. It is built shard by shard beside the one in force, in slices, and
 * shards whose parts are the same are taken over. A list takes effect as a whole, when all of its parts are there: from
 * another node they come in any order.
 */
import { hash } from "node:crypto";
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import {
  type BlocklistDraft,
  beginBlocklist,
  discardBlocklist,
  hasShard,
  putShard,
  type ShardFingerprint,
  showBlocklist,
} from "../image/blocklist.ts";
import { routingChanged } from "../image/writer.ts";
import type { ImageWriter } from "../image/writer-state.ts";
import {
  BLOCKLIST_KEY,
  BLOCKLIST_SHARDS,
  EMPTY_BLOCKLIST,
  isBlocklist,
  partsOfShard,
  unpackPart,
} from "../model/blocklist.ts";
import type { ChangeBatch, Store } from "../store/store.ts";

export type BlocklistPublisherOptions = {
  readonly store: Pick<Store, "get">;
  readonly writer: ImageWriter;
  readonly log: Log;
  /** Called after every change of the image, which leaves something to collect. */
  readonly onChanged: () => void;
};

export type BlocklistPublisher = Disposable & {
  /**
   * Puts the list into the image, in place of what a predecessor left there. Resolves when it is in force, or cannot be for
   * want of parts: then what was in force stays until they have come.
   */
  readonly start: () => Promise<void>;
  readonly hear: (batch: ChangeBatch) => void;
  readonly settled: () => Promise<void>;
  /** There is something to do, and all that it takes. */
  readonly isWaiting: () => boolean;
  /** The list could not be published and is tried again; what was in force before stays. */
  readonly isFailed: () => boolean;
};

/** What failed is tried again after this time: the image may have been full. */
export const RETRY_MS = 60_000;

type State = {
  readonly options: BlocklistPublisherOptions;
  /** The list in the making and the shard that comes next; undefined: none is. */
  building: { readonly draft: BlocklistDraft; shard: number } | undefined;
  /** Parts of the shard that comes next which the store does not have; while there are any, nothing is done. */
  readonly missing: Set<string>;
  /** A list is to be put in force. */
  isDue: boolean;
  isStarted: boolean;
  isFailed: boolean;
  isEnded: boolean;
  next: NodeJS.Immediate | undefined;
  retry: NodeJS.Timeout | undefined;
  readonly waiting: (() => void)[];
};

export function openBlocklistPublisher(options: BlocklistPublisherOptions): BlocklistPublisher {
  const state: State = {
    options,
    building: undefined,
    missing: new Set(),
    isDue: false,
    isStarted: false,
    isFailed: false,
    isEnded: false,
    next: undefined,
    retry: undefined,
    waiting: [],
  };
  return {
    start() {
      state.isStarted = true;
      begin(state);
      return settled(state);
    },
    hear: (batch) => hear(state, batch),
    settled: () => settled(state),
    isWaiting: () => isWaiting(state),
    isFailed: () => state.isFailed,
    [Symbol.dispose]() {
      state.isEnded = true;
      clearImmediate(state.next);
      clearTimeout(state.retry);
      endWaiting(state);
    },
  };
}

function isWaiting({ isDue, missing, isFailed, isEnded }: State): boolean {
  return isDue && missing.size === 0 && !isFailed && !isEnded;
}

function settled(state: State): Promise<void> {
  if (!isWaiting(state)) return Promise.resolve();
  return new Promise((resolve) => state.waiting.push(resolve));
}

function endWaiting(state: State): void {
  for (const resolve of state.waiting.splice(0)) resolve();
}

function hear(state: State, { changes }: ChangeBatch): void {
  if (state.isEnded || !state.isStarted) return;
  let isNew = false;
  for (const { kind, key, after } of changes) {
    if (kind === "blocklist") isNew = true;
    if (kind === "blocklist-part" && after !== undefined) state.missing.delete(key[0]!);
  }
  if (isNew) begin(state);
  else if (isWaiting(state)) schedule(state);
}

/** Another list is to be published: what is made of the one before stays, as far as they are the same. */
function begin(state: State): void {
  clearTimeout(state.retry);
  state.isDue = true;
  state.isFailed = false;
  state.missing.clear();
  if (state.building !== undefined) state.building.shard = 0;
  schedule(state);
}

function schedule(state: State): void {
  if (state.next !== undefined || state.isEnded) return;
  state.next = setImmediate(() => {
    state.next = undefined;
    if (isWaiting(state)) attempt(state);
    if (isWaiting(state)) schedule(state);
    else endWaiting(state);
  });
}

function attempt(state: State): void {
  const { log, writer } = state.options;
  try {
    step(state);
  } catch (error) {
    if (state.building !== undefined) discardBlocklist(writer, state.building.draft);
    state.building = undefined;
    state.isFailed = true;
    state.retry = setTimeout(() => begin(state), RETRY_MS).unref();
    log("error", `the blocklist cannot be published: ${errorText(error)}`);
  }
}

/** One shard that is not there yet; behind the last of them the list is shown. */
function step(state: State): void {
  const { store, writer, onChanged } = state.options;
  const list = store.get("blocklist", BLOCKLIST_KEY)?.body ?? EMPTY_BLOCKLIST;
  if (!isBlocklist(list)) throw new Error("its index is not one");
  state.building ??= { draft: beginBlocklist(writer), shard: 0 };
  const { building } = state;
  for (; building.shard < BLOCKLIST_SHARDS; building.shard++) {
    const shard = list.shards[building.shard]!;
    const fingerprint = fingerprintOf(shard);
    if (hasShard(building.draft, building.shard, fingerprint)) continue;
    const names = readShard(state, shard);
    if (names !== undefined) putShard(writer, building.draft, building.shard++, fingerprint, names);
    return;
  }
  state.building = undefined;
  state.isDue = false;
  showBlocklist(writer, building.draft);
  routingChanged(writer);
  onChanged();
}

/** The names of a shard; undefined where it has to wait for parts. */
function readShard({ options, missing }: State, shard: string): Uint8Array | undefined {
  const parts: Uint8Array[] = [];
  for (const key of partsOfShard(shard)) {
    const part = options.store.get("blocklist-part", [key]);
    const names = part === undefined ? undefined : unpackPart(part.body);
    if (part === undefined) missing.add(key);
    else if (names === undefined) throw new Error(`its part ${key} is damaged`);
    else parts.push(names);
  }
  if (missing.size > 0) options.log("info", "the blocklist waits for parts that have not come yet");
  if (missing.size > 0) return undefined;
  const [only] = parts;
  return only !== undefined && parts.length === 1 ? only : Buffer.concat(parts);
}

/** 64 bits of what the shard consists of; zeros where it is empty. */
function fingerprintOf(shard: string): ShardFingerprint {
  if (shard === "") return [0, 0];
  const digest = hash("sha256", shard, "buffer");
  return [digest.readInt32LE(0), digest.readInt32LE(4)];
}
