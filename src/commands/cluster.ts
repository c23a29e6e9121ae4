/** What is asked of the cluster as a whole: to join another one, and whether all nodes hold the same. */
import { setTimeout as delay } from "node:timers/promises";
import { CONSISTENCY_ZONES_DEFAULT } from "../model/limits.ts";
import { type ClusterJoin, type ConsistencyView, joinFaults, type NodeView } from "../model/node.ts";
import type { Kind, NaturalKey } from "../model/objects.ts";
import { Refusal, refuseFaults } from "../model/refusal.ts";
import type { StoreReader } from "../store/store.ts";
import type { ClusterView, JoinResult, NodeStanding, ZoneStanding } from "./cluster-view.ts";
import { listNodes, wholeMs } from "./nodes.ts";
import { permitUnconfined } from "./permit.ts";
import { type Caller, type CommandContext, runCommand } from "./run.ts";

/** The view of a node without a cluster key: it is all there is. */
export function loneCluster(self: {
  readonly id: string;
  readonly region: string;
  readonly version: string;
}): ClusterView {
  const node = {
    ...self,
    ...({ state: "alive", isSelf: true, address: "" } as const),
    ...{ since: undefined, queuedChanges: undefined, lagMs: undefined, skewMs: undefined, lastAgreement: undefined },
  };
  return {
    isEnabled: false,
    nodes: () => [node],
    peersAlive: () => 0,
    join: () => Promise.reject(new Error("a node without a cluster key dials nobody")),
    forget: () => undefined,
    announceZone: () => undefined,
    standings: () => Promise.resolve([]),
    holdsTheSame: () => Promise.resolve(false),
  };
}

/** Kinds that hold what people and programs made; sessions and nodes come and go by themselves. */
const DATA: readonly Kind[] = [
  ...(["zone", "record", "override", "service-account", "tsig-key", "subnet-mapping"] as const),
  ...(["healthcheck", "blocklist", "forwarder", "stub-zone", "config"] as const),
];

/** What a node holds that somebody made on it: how many of each kind; the admin of the first start is nobody's work. */
function ownData(store: Pick<StoreReader, "count" | "list">): Readonly<Record<string, number>> {
  const held = DATA.map((kind): [string, number] => [kind, store.count(kind)]);
  const made = store.list("user", { limit: 2 }).filter(({ stamp }) => stamp !== "").length;
  held.push(["user", made === 0 ? 0 : store.count("user")]);
  return Object.fromEntries(held.filter(([, count]) => count > 0));
}

/**
 * Has the node dial members of a cluster, and notes it. Throws `cluster_key_missing` without a key of the cluster,
 * `merge_needed` where the node holds data that would be put together with that of others and the caller has not said
 * so, and `upstream_failed` where nobody answers; these are dialled again until one of them is a member.
 */
export async function joinCluster(
  context: CommandContext,
  cluster: Pick<ClusterView, "isEnabled" | "nodes" | "join">,
  caller: Caller,
  { join, merge = false }: ClusterJoin,
): Promise<JoinResult> {
  permitUnconfined(caller, "join a cluster");
  if (!cluster.isEnabled) {
    const detail = "set replication.encrypt_key, the same as on the other nodes, and start the node again";
    throw new Refusal("cluster_key_missing", detail);
  }
  refuseFaults(joinFaults(join));
  const addresses = [...new Set(join)];
  if (!merge) refuseUnknown(context, cluster, addresses);
  const result = caller.dryRun ? { joined: 0, failures: [] } : await cluster.join(addresses);
  const hasFailed = result.joined === 0 && !caller.dryRun;
  await runCommand(context, caller, (tx) => {
    tx.note({
      action: "join",
      resource: "cluster",
      resource_id: context.store.nodeId,
      resource_name: addresses.join(", "),
      detail: `${result.joined} of ${addresses.length} answered${merge ? "; merge" : ""}`,
      ...(hasFailed ? { result: "failure" } : {}),
    });
  });
  if (!hasFailed) return result;
  const first = result.failures[0];
  const why = first === undefined ? "" : `; ${first.address}: ${first.detail}`;
  const detail = `nobody answered at the addresses, which are dialled again${why}`;
  throw new Refusal("upstream_failed", detail, [], { joined: 0, failures: result.failures });
}

/** Who dials nodes of its own cluster mends it; with anybody else's cluster its data would mix. */
function refuseUnknown(
  { store }: CommandContext,
  cluster: Pick<ClusterView, "nodes">,
  addresses: readonly string[],
): void {
  const others = listNodes(store, cluster).filter(({ self }) => !self);
  const known = new Set(others.map(({ address }) => address));
  if (addresses.every((address) => known.has(address))) return;
  const holds = ownData(store);
  const kinds = Object.entries(holds);
  if (kinds.length === 0) return;
  const text = kinds.map(([kind, count]) => `${count} ${kind}${count === 1 ? "" : "s"}`).join(", ");
  const detail = `this node holds ${text}; merge: true puts them together with what the other nodes hold`;
  throw new Refusal("merge_needed", detail, [{ pointer: "/merge", detail: "is needed to be true" }], { holds });
}

/** The names of the zones of one page, and the name to go on behind. Without `limit` there are CONSISTENCY_ZONES_DEFAULT. */
export function zonesToCompare(
  store: Pick<StoreReader, "list">,
  { limit = CONSISTENCY_ZONES_DEFAULT, after }: { readonly limit?: number; readonly after?: NaturalKey | undefined },
): { readonly zones: readonly string[]; readonly next: NaturalKey | undefined } {
  const page = store.list("zone", { limit: limit + 1, ...(after === undefined ? {} : { after }) });
  const shown = page.slice(0, limit);
  return { zones: shown.map(({ body }) => body.name), next: page.length > limit ? shown.at(-1)?.key : undefined };
}

/** So long, in milliseconds, nodes that answer are asked again, where they differ: changes that were under way arrive. */
const SETTLING_MS = 2_000;
const ASK_AGAIN_MS = 100;

type Reader = Pick<StoreReader, "list" | "serialOf" | "count"> & { readonly nodeId: string };
type Compared = Omit<ConsistencyView, "next_cursor">;

/** What was found to be alike, or to differ by nothing but what is under way. */
type Settled = { readonly nodes: Set<string>; readonly zones: Set<string> };

/**
 * Asks all nodes what they hold, and compares: everything by its digest, and each of the zones. Nodes that are dead or
 * have left are shown and do not count; one that is alive and does not answer disagrees. Nodes that take writes are never alike at
 * one moment: what differs is asked for again for a while, and a difference counts that outlasts the changes.
 */
export async function readConsistency(
  store: Reader,
  cluster: Pick<ClusterView, "isEnabled" | "nodes" | "standings" | "holdsTheSame">,
  zones: readonly string[],
): Promise<Compared> {
  const settled: Settled = { nodes: new Set(), zones: new Set() };
  if (!cluster.isEnabled) return compared(store, cluster, zones, [loneStanding(store, zones)], settled);
  const untilMs = performance.now() + SETTLING_MS;
  /** By zone, as it was when it was found to be settled, or now. */
  const items = new Map<string, Compared["items"][number]>();
  let before: Compared | undefined;
  for (;;) {
    const open = zones.filter((zone) => !settled.zones.has(zone));
    const found = compared(store, cluster, open, await cluster.standings(open), settled);
    for (const item of found.items) items.set(item.zone, item);
    const view = { ...found, items: zones.flatMap((zone) => items.get(zone) ?? []) };
    const others = view.nodes.filter((node) => counts(node) && node.answered && !node.agrees);
    const leftMs = untilMs - performance.now();
    if (leftMs <= 0 || (others.length === 0 && view.items.every(({ agrees }) => agrees))) return view;
    note(before, view, settled, items);
    before = view;
    const looked = Promise.all(others.map(({ id }) => lookAt(cluster, id, settled)));
    // The time is left running where they answer, and keeps no node from ending.
    await Promise.race([looked, delay(leftMs, undefined, { ref: false })]);
    await delay(ASK_AGAIN_MS);
  }
}

async function lookAt(cluster: Pick<ClusterView, "holdsTheSame">, id: string, { nodes }: Settled): Promise<void> {
  // Who does not answer differs, as before.
  if (await cluster.holdsTheSame(id).catch(() => false)) nodes.add(id);
}

/** A zone that differs, and not in the same way as a moment ago, is being changed. */
function note(
  before: Compared | undefined,
  view: Compared,
  { nodes, zones }: Settled,
  items: Map<string, Compared["items"][number]>,
): void {
  const known = new Map(before?.items.map((item) => [item.zone, item]));
  for (const { id, agrees } of view.nodes) if (agrees) nodes.add(id);
  for (const item of view.items) {
    const was = known.get(item.zone);
    const isMoving =
      was !== undefined && !zones.has(item.zone) && JSON.stringify(was.nodes) !== JSON.stringify(item.nodes);
    if (!item.agrees && !isMoving) continue;
    zones.add(item.zone);
    items.set(item.zone, { ...item, agrees: true });
  }
}

function compared(
  store: Reader,
  cluster: Pick<ClusterView, "nodes">,
  zones: readonly string[],
  standings: readonly NodeStanding[],
  settled: Settled,
): Compared {
  const told = new Map(standings.map((standing) => [standing.id, standing]));
  const members = listNodes(store, cluster);
  const own = told.get(store.nodeId);
  const isAlone = members.filter(counts).length <= 1;
  const nodes = members.map((node) => {
    return nodeStandingOf(node, told.get(node.id), own, (node.self && isAlone) || settled.nodes.has(node.id));
  });
  const counted = new Set(members.filter(counts).map(({ id }) => id));
  const agrees = nodes.every((node) => node.agrees || !counted.has(node.id));
  const items = zones.map((zone) => zoneStandingOf(zone, members, told));
  return { agrees, nodes, items };
}

function counts({ status }: Pick<NodeView, "status">): boolean {
  return status === "alive" || status === "suspect";
}

/** Nobody compares digests with a node without a cluster, and so it makes none. */
function loneStanding(
  store: Pick<StoreReader, "serialOf" | "count"> & { readonly nodeId: string },
  zones: readonly string[],
): NodeStanding {
  const standingOf = (zone: string): ZoneStanding => ({
    serial: store.serialOf(zone) ?? 0,
    digest: "",
    records: store.count("record", zone),
  });
  return {
    id: store.nodeId,
    ...{ digest: undefined, lagMs: undefined, skewMs: undefined },
    zones: Object.fromEntries(zones.map((zone) => [zone, standingOf(zone)])),
  };
}

function nodeStandingOf(
  node: NodeView,
  told: NodeStanding | undefined,
  own: NodeStanding | undefined,
  isSettled: boolean,
): ConsistencyView["nodes"][number] {
  const digest = told?.digest ?? null;
  const isSame = digest !== null && digest === own?.digest;
  return {
    id: node.id,
    status: node.status,
    answered: told?.zones !== undefined,
    digest,
    agrees: isSame || isSettled,
    lag_ms: wholeMs(told?.lagMs) ?? node.lag_ms,
    skew_ms: wholeMs(told?.skewMs) ?? node.skew_ms,
  };
}

function zoneStandingOf(
  zone: string,
  members: readonly NodeView[],
  told: ReadonlyMap<string, NodeStanding>,
): ConsistencyView["items"][number] {
  const rows = members.flatMap(({ id }) => {
    const zones = told.get(id)?.zones;
    if (zones === undefined) return [];
    return [{ id, standing: Object.hasOwn(zones, zone) ? zones[zone] : undefined }];
  });
  const [first] = rows;
  const agrees = rows.every(({ standing }) => isSameStanding(standing, first?.standing));
  return {
    zone,
    agrees,
    nodes: rows.map(({ id, standing }) => ({
      id,
      serial: standing?.serial ?? null,
      digest: standing === undefined || standing.digest === "" ? null : standing.digest,
      records: standing?.records ?? null,
    })),
  };
}

function isSameStanding(one: ZoneStanding | undefined, other: ZoneStanding | undefined): boolean {
  return one?.serial === other?.serial && one?.digest === other?.digest;
}
