/**
 * Encoded zones that follow the store's feed: the next secondary is given what the last one was, with what has changed since. All of
 * a zone is always as it was right behind one batch of the feed, whose serial it has.
 */
import type { RecordBody, ZoneBody } from "../model/objects.ts";
import type { EncodedTransfer } from "../primary/axfr-encode.ts";
import { TRANSFER_MESSAGE_BYTES } from "../primary/limits.ts";
import type { Change, ChangeBatch, Store } from "../store/store.ts";
import { KEPT_CHANGES_MAX, SPARE_MESSAGES_MAX } from "./transfer-limits.ts";
import { patchZone, type RecordChange, type TransferZone, transferOf } from "./transfer-zone.ts";

export type KeptZones = Disposable & {
  /** The zone as the feed has it by now, or later; undefined: it has to be encoded. Never rejects. */
  readonly get: (zone: string) => Promise<KeptTransfer | undefined>;
  /** From here on changes of the zone are remembered, for what is read of it meanwhile; the result ends that. */
  readonly watch: (zone: string) => Watch;
  /** Keeps what was read while it was watched. */
  readonly keep: (zone: TransferZone, watch: Watch) => EncodedTransfer;
  readonly forget: (zone: string) => void;
  /** Lets go of what nobody has asked for since that moment of `performance.now`. */
  readonly forgetUnused: (sinceMs: number) => void;
  readonly stats: () => { readonly zones: number; readonly bytes: number };
};

export type KeptTransfer = { readonly transfer: EncodedTransfer; readonly isPatched: boolean };

export type Watch = { readonly zone: string; readonly news: ZoneNews[]; changes: number; readonly end: () => void };

/** What one batch says of one zone. */
type ZoneNews = {
  /** Behind it; undefined: it does not say. */
  serial: number | undefined;
  /** The zone's own fields, where they changed. */
  body: ZoneBody | undefined;
  /** The zone ended, began, or has another TTL for all that inherit it. */
  isOther: boolean;
  readonly changes: RecordChange[];
};

type Kept = {
  zone: TransferZone;
  transfer: EncodedTransfer;
  bytes: number;
  usedMs: number;
  /** Heard, and not in `zone` yet. */
  body: TransferZone["body"];
  serial: number;
  changes: Map<string, RecordChange>;
  patching: Promise<KeptTransfer | undefined> | undefined;
};

type State = {
  readonly bytesMax: number;
  /** The one that was used the longest ago first. */
  readonly kept: Map<string, Kept>;
  readonly watches: Set<Watch>;
  bytes: number;
};

export function createKeptZones(store: Pick<Store, "onChange">, bytesMax: number): KeptZones {
  const state: State = { bytesMax, kept: new Map(), watches: new Set(), bytes: 0 };
  const end = store.onChange((batch) => hear(state, batch));
  return {
    get: (zone) => get(state, zone),
    watch: (zone) => {
      const watch: Watch = { zone, news: [], changes: 0, end: () => void state.watches.delete(watch) };
      state.watches.add(watch);
      return watch;
    },
    keep: (zone, watch) => keep(state, zone, watch),
    forget: (zone) => forget(state, zone),
    forgetUnused: (sinceMs) => {
      for (const [zone, { usedMs }] of state.kept) {
        if (usedMs > sinceMs) return;
        forget(state, zone);
      }
    },
    stats: () => ({ zones: state.kept.size, bytes: state.bytes }),
    [Symbol.dispose]: () => {
      end();
      state.kept.clear();
      state.bytes = 0;
    },
  };
}

async function get(state: State, zone: string): Promise<KeptTransfer | undefined> {
  for (;;) {
    const kept = state.kept.get(zone);
    if (kept === undefined) return undefined;
    touch(state, zone, kept);
    if (kept.patching === undefined) {
      const isCurrent = kept.serial === kept.zone.serial && kept.changes.size === 0;
      if (isCurrent) return { transfer: kept.transfer, isPatched: false };
      kept.patching = patch(state, zone, kept).finally(() => {
        kept.patching = undefined;
      });
      return kept.patching;
    }
    // It may have begun before what the one who asks has written: it is looked at again.
    await kept.patching;
  }
}

/** Never rejects. */
async function patch(state: State, zone: string, kept: Kept): Promise<KeptTransfer | undefined> {
  const { body, serial, changes } = kept;
  kept.changes = new Map();
  // What cannot be put into messages fails again where all of it is encoded, and there it is told.
  const patched = await patchedTransfer(kept.zone, body, serial, changes).catch(() => undefined);
  if (state.kept.get(zone) !== kept) return undefined;
  if (patched === undefined || isScattered(patched.zone)) {
    forget(state, zone);
    return undefined;
  }
  kept.zone = patched.zone;
  kept.transfer = patched.transfer;
  setBytes(state, zone, kept);
  return { transfer: patched.transfer, isPatched: true };
}

async function patchedTransfer(
  former: TransferZone,
  body: TransferZone["body"],
  serial: number,
  changes: ReadonlyMap<string, RecordChange>,
): Promise<{ readonly zone: TransferZone; readonly transfer: EncodedTransfer } | undefined> {
  const zone = await patchZone(former, body, serial, changes.values());
  return zone === undefined ? undefined : { zone, transfer: transferOf(zone) };
}

/** Into messages that are nearly empty, by deletions and by halving. */
function isScattered({ middle }: TransferZone): boolean {
  const bytes = middle.reduce((sum, { length }) => sum + length, 0);
  return middle.length > Math.ceil(bytes / TRANSFER_MESSAGE_BYTES) * 2 + SPARE_MESSAGES_MAX;
}

function keep(state: State, zone: TransferZone, watch: Watch): EncodedTransfer {
  const { name } = zone.body;
  const transfer = transferOf(zone);
  forget(state, name);
  if (watch.changes > KEPT_CHANGES_MAX) return transfer;
  const { body, serial } = zone;
  const kept: Kept = {
    ...{ zone, transfer, body, serial },
    bytes: 0,
    usedMs: performance.now(),
    changes: new Map(),
    patching: undefined,
  };
  state.kept.set(name, kept);
  setBytes(state, name, kept);
  for (const news of watch.news) tell(state, name, news);
  return transfer;
}

function touch(state: State, zone: string, kept: Kept): void {
  kept.usedMs = performance.now();
  state.kept.delete(zone);
  state.kept.set(zone, kept);
}

function forget(state: State, zone: string): void {
  const kept = state.kept.get(zone);
  if (kept === undefined) return;
  state.kept.delete(zone);
  state.bytes -= kept.bytes;
}

function setBytes(state: State, zone: string, kept: Kept): void {
  const bytes = bytesOf(kept.zone);
  state.bytes += bytes - kept.bytes;
  kept.bytes = bytes;
  if (bytes > state.bytesMax) {
    forget(state, zone);
    return;
  }
  for (const oldest of state.kept.keys()) {
    if (state.bytes <= state.bytesMax) return;
    forget(state, oldest);
  }
}

/** Roughly: of an ALIAS more is kept than its names. */
function bytesOf({ middle, aliases }: TransferZone): number {
  const ofMessages = middle.reduce((sum, { length }) => sum + length, ZONE_BYTES);
  return aliases.reduce((sum, { owner, target }) => sum + owner.length + target.length + ALIAS_BYTES, ofMessages);
}

const ZONE_BYTES = 500;
const ALIAS_BYTES = 300;

function hear(state: State, batch: ChangeBatch): void {
  if (state.kept.size + state.watches.size === 0) return;
  for (const [zone, news] of newsOf(state, batch)) {
    for (const watch of state.watches) if (watch.zone === zone) note(watch, news);
    tell(state, zone, news);
  }
}

/** Of the zones that are kept or watched. */
function newsOf(state: State, { changes, zones, serials }: ChangeBatch): ReadonlyMap<string, ZoneNews> {
  const wanted = new Set(state.kept.keys());
  for (const { zone } of state.watches) wanted.add(zone);
  const all = new Map<string, ZoneNews>();
  const newsOfZone = (zone: string): ZoneNews => {
    const known = all.get(zone) ?? { serial: serials.get(zone), body: undefined, isOther: false, changes: [] };
    all.set(zone, known);
    return known;
  };
  for (const zone of zones) if (wanted.has(zone)) newsOfZone(zone);
  for (const change of changes) {
    const [zone = ""] = change.key;
    if (!wanted.has(zone)) continue;
    if (isOf(change, "record")) newsOfZone(zone).changes.push(recordChange(change));
    else if (isOf(change, "zone")) noteZone(newsOfZone(zone), change);
  }
  return all;
}

function isOf<K extends "record" | "zone">(change: Change, kind: K): change is Change<K> {
  return change.kind === kind;
}

/** Little of a record is needed, and what is not may be large. */
function recordChange({ key, before, after }: Change<"record">): RecordChange {
  const body: RecordBody | undefined = (after ?? before)?.body;
  if (body === undefined) throw new Error(`nothing is said of the record ${key.join(" ")}`);
  const { name, type, ttl, values, priority, weight, port, tag } = body;
  const isThere = after !== undefined && after.shadowedBy === undefined;
  return {
    ...{ name, type, ttl, values: isThere ? values : [] },
    ...(priority !== undefined && { priority }),
    ...(weight !== undefined && { weight }),
    ...(port !== undefined && { port }),
    ...(tag !== undefined && { tag }),
  };
}

function noteZone(news: ZoneNews, { before, after }: Change<"zone">): void {
  news.body = after?.body;
  const isSame = before?.born === after?.born && before?.body.default_ttl === after?.body.default_ttl;
  if (!isSame || after === undefined || after.shadowedBy !== undefined) news.isOther = true;
}

function note(watch: Watch, news: ZoneNews): void {
  watch.changes += news.changes.length;
  if (watch.changes <= KEPT_CHANGES_MAX) watch.news.push(news);
  else watch.news.length = 0;
}

function tell(state: State, zone: string, { serial, body, isOther, changes }: ZoneNews): void {
  const kept = state.kept.get(zone);
  if (kept === undefined) return;
  if (isOther || serial === undefined) {
    forget(state, zone);
    return;
  }
  // It was read behind that batch.
  if (serial <= kept.serial) return;
  kept.serial = serial;
  if (body !== undefined) kept.body = { name: body.name, soa: body.soa, default_ttl: body.default_ttl };
  for (const change of changes) kept.changes.set(`${change.name} ${change.type}`, change);
  if (kept.changes.size > KEPT_CHANGES_MAX) forget(state, zone);
}
