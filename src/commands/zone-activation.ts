/**
 * Pending zones become active: by the acknowledgement of all peers that are alive, or after a while without it. The node
 * that made a zone counts; where that one has died, the others follow, each a little later than the one before, so that
 * one does it and the rest find it done. Doing it twice does no harm: of two states the active one wins on every node.
 */
import { errorText } from "../base/errors.ts";
import { ZONE_ACTIVATION_MS, ZONE_ACTIVATION_RESTART_MS, ZONE_ACTIVATION_STEP_MS } from "../model/limits.ts";
import { stampMs, stampNode } from "../store/stamp.ts";
import { SYSTEM } from "./cluster-caller.ts";
import { type CommandContext, runCommand } from "./run.ts";
import { scanSlices } from "./scan.ts";

/** Makes those of the zones active that are pending, as one command. Resolves with their names. */
export async function activateZones(
  context: CommandContext,
  zones: readonly string[],
  reason: string,
): Promise<readonly string[]> {
  if (!zones.some((zone) => context.store.stateOf(zone) === "pending")) return [];
  return runCommand(context, SYSTEM, (tx) =>
    zones.filter((zone) => {
      const stored = tx.get("zone", [zone]);
      if (stored === undefined || tx.stateOf(zone) !== "pending") return false;
      tx.setState(zone, "active");
      const { id } = stored.body;
      tx.note({ action: "activate", resource: "zone", resource_id: id, resource_name: zone, detail: reason });
      return true;
    }),
  );
}

/** Time as this file sees it; tests have their own. */
export type ActivationTimers = {
  /** Milliseconds of a clock that never runs backwards. */
  readonly now: () => number;
  readonly after: (delayMs: number, run: () => void) => () => void;
};

export type ZoneActivatorOptions = {
  readonly context: CommandContext;
  /** Whether all peers that are alive now have what this node has of the zone; false where not within the time. */
  readonly acknowledged: (zone: string, timeoutMs: number) => Promise<boolean>;
  /** Sends a zone to all peers again. */
  readonly announce: (zone: string) => void;
  /** Ids of the nodes that are alive, this one among them. */
  readonly aliveNodes: () => readonly string[];
  /** False while a zone may be here in part only: then none becomes active. */
  readonly isComplete: () => boolean;
  readonly timers: ActivationTimers;
};

export type ZoneActivator = {
  /** A zone was announced again by this node, which now counts acknowledgements of it whoever made it. */
  readonly announced: (zone: string) => void;
  /** Zones that wait. */
  readonly waiting: () => number;
  readonly close: () => void;
};

type Waiting = {
  deadlineMs: number;
  /** Whether acknowledgements are being waited for. */
  isCounting: boolean;
};

type Activation = ZoneActivatorOptions & {
  readonly waiting: Map<string, Waiting>;
  readonly acknowledgedZones: Set<string>;
  readonly overdueZones: Set<string>;
  isWriting: boolean;
  stopTicking: (() => void) | undefined;
  readonly closing: AbortController;
};

const TICK_MS = 1_000;
const RETRY_MS = 5_000;
/** Zones of one transaction, which is short. */
const AT_ONCE = 100;

/** Watches over all pending zones, those of before a restart too. */
export function createZoneActivator(options: ZoneActivatorOptions): ZoneActivator {
  const state: Activation = {
    ...options,
    waiting: new Map(),
    acknowledgedZones: new Set(),
    overdueZones: new Set(),
    isWriting: false,
    stopTicking: undefined,
    closing: new AbortController(),
  };
  const { store, log } = options.context;
  const end = store.onChange(({ changes, zones }) => {
    for (const { kind, key, before, after } of changes) {
      // A zone that was deleted, and made anew at once, waits anew.
      if (kind === "zone" && before?.born !== after?.born) state.waiting.delete(key[0] ?? "");
    }
    for (const zone of zones) watch(state, zone);
  });
  takeUp(state).catch((error: unknown) => log("error", `pending zones are not looked for: ${errorText(error)}`));
  return {
    announced: (zone) => {
      watch(state, zone);
      const waiting = state.waiting.get(zone);
      if (waiting !== undefined) void count(state, zone, waiting);
    },
    waiting: () => state.waiting.size,
    close: () => {
      end();
      state.closing.abort();
      state.stopTicking?.();
      state.waiting.clear();
    },
  };
}

/** Zones that were pending when this node stopped: their peers may not have heard of them yet. */
async function takeUp(state: Activation): Promise<void> {
  const { store } = state.context;
  const accept = ({ body }: { readonly body: { readonly name: string } }) => store.stateOf(body.name) === "pending";
  for await (const slice of scanSlices(store, "zone", { accept, signal: state.closing.signal })) {
    for (const { body, born } of slice) {
      if (state.closing.signal.aborted || state.waiting.has(body.name)) continue;
      const ageMs = Math.max(0, state.context.now() - stampMs(born));
      if (stampNode(born) === store.nodeId) state.announce(body.name);
      watch(state, body.name, Math.max(ZONE_ACTIVATION_RESTART_MS, ZONE_ACTIVATION_MS - ageMs));
    }
  }
}

function watch(state: Activation, zone: string, graceMs = ZONE_ACTIVATION_MS): void {
  const { store } = state.context;
  if (store.stateOf(zone) !== "pending") {
    state.waiting.delete(zone);
    return;
  }
  if (state.closing.signal.aborted || state.waiting.has(zone)) return;
  const isOwn = stampNode(store.get("zone", [zone])?.born ?? "") === store.nodeId;
  const waiting = { deadlineMs: state.timers.now() + graceMs + (isOwn ? 0 : turnMs(state)), isCounting: false };
  state.waiting.set(zone, waiting);
  tick(state);
  if (isOwn) void count(state, zone, waiting);
}

/** How much later than the maker of a zone this node steps in for it. */
function turnMs({ aliveNodes, context }: Activation): number {
  const rank = [...aliveNodes()].sort().indexOf(context.store.nodeId);
  return ZONE_ACTIVATION_STEP_MS * (1 + Math.max(0, rank));
}

async function count(state: Activation, zone: string, waiting: Waiting): Promise<void> {
  if (waiting.isCounting) return;
  waiting.isCounting = true;
  const { timers, context } = state;
  const timeoutMs = Math.max(TICK_MS, waiting.deadlineMs - timers.now());
  const isThere = await state.acknowledged(zone, timeoutMs).catch((error: unknown) => {
    context.log("debug", `acknowledgements of the zone ${zone} cannot be counted: ${errorText(error)}`);
    return false;
  });
  waiting.isCounting = false;
  // It may have been deleted and made anew meanwhile, which begins anew.
  if (!isThere || state.waiting.get(zone) !== waiting) return;
  state.acknowledgedZones.add(zone);
  await write(state);
}

function tick(state: Activation): void {
  if (state.stopTicking !== undefined || state.waiting.size === 0) return;
  state.stopTicking = state.timers.after(TICK_MS, () => {
    state.stopTicking = undefined;
    const nowMs = state.timers.now();
    for (const [zone, waiting] of state.waiting) {
      if (waiting.deadlineMs > nowMs) continue;
      waiting.deadlineMs = nowMs + RETRY_MS;
      state.overdueZones.add(zone);
    }
    void write(state);
    tick(state);
  });
}

const BY_ALL = "acknowledged by all nodes that are alive";
const IN_TIME = "not acknowledged by all nodes that are alive in time";

/** One transaction at a time, for all zones that have come together meanwhile. */
async function write(state: Activation): Promise<void> {
  if (state.isWriting || !state.isComplete()) return;
  state.isWriting = true;
  const { acknowledgedZones, overdueZones, context } = state;
  try {
    while (!state.closing.signal.aborted && acknowledgedZones.size + overdueZones.size > 0) {
      await activateSome(context, acknowledgedZones, BY_ALL);
      for (const zone of await activateSome(context, overdueZones, IN_TIME)) {
        context.log("warn", `the zone ${zone} is active though not all nodes acknowledged it in time`, { zone });
      }
    }
  } catch (error) {
    // With the next tick it is tried again.
    context.log("warn", `pending zones cannot be made active now: ${errorText(error)}`);
  } finally {
    state.isWriting = false;
  }
}

/** What of a set was activated leaves it; where that throws, all of it stays. */
async function activateSome(context: CommandContext, zones: Set<string>, reason: string): Promise<readonly string[]> {
  const some = [...zones].slice(0, AT_ONCE);
  if (some.length === 0) return [];
  const done = await activateZones(context, some, reason);
  for (const zone of some) zones.delete(zone);
  return done;
}
