/**
 * The nodes of the cluster: each writes itself into the store, so that all know it also while it is away, and what is live
 * of them comes from the node layer. A node that was removed is dialled no more until it is back.
 */
import type { NodeView } from "../model/node.ts";
import type { NodeBody } from "../model/objects.ts";
import { Refusal } from "../model/refusal.ts";
import { LIST_PAGE_MAX, type Store, type StoreReader } from "../store/store.ts";
import { SYSTEM } from "./cluster-caller.ts";
import type { ClusterNode, ClusterView } from "./cluster-view.ts";
import { permitUnconfined } from "./permit.ts";
import { type Caller, type CommandContext, runCommand } from "./run.ts";

type NodeReader = Pick<StoreReader, "list">;

/** Every node that has written itself or that is a member now, in the order of ids. */
export function listNodes(store: NodeReader, cluster: Pick<ClusterView, "nodes">): readonly NodeView[] {
  const written = new Map(store.list("node", { limit: LIST_PAGE_MAX }).map(({ body }) => [body.id, body]));
  const live = new Map(cluster.nodes().map((node) => [node.id, node]));
  const views: NodeView[] = [];
  for (const id of [...new Set([...written.keys(), ...live.keys()])].sort()) {
    const view = nodeViewOf(written.get(id), live.get(id));
    if (view !== undefined) views.push(view);
  }
  return views;
}

/** Undefined: it was removed, and the node layer remembers it for a while. */
function nodeViewOf(written: NodeBody | undefined, live: ClusterNode | undefined): NodeView | undefined {
  const isThere = live !== undefined && (live.isSelf || live.state === "alive" || live.state === "suspect");
  if (written === undefined && !isThere) return undefined;
  // What a member says of itself now is newer than what it once wrote.
  const { id = "", region = "", address = "", version = "" } = { ...written, ...(isThere ? toldOf(live) : {}) };
  return {
    id,
    // Nobody has heard of it since this node started.
    status: live?.state ?? "dead",
    self: live?.isSelf ?? false,
    region,
    address,
    version,
    since: live?.since ?? null,
    queued_changes: live?.queuedChanges ?? null,
    lag_ms: wholeMs(live?.lagMs),
    skew_ms: wholeMs(live?.skewMs),
    last_agreement: live?.lastAgreement ?? null,
  };
}

/** As the API shows a duration that was measured. */
export function wholeMs(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms);
}

/** The fields that it knows of; a member whose own words have not come yet is known by what is stored. */
function toldOf({ id, region, address, version }: ClusterNode): Partial<NodeBody> {
  return {
    id,
    ...(region === "" ? {} : { region }),
    ...(address === "" ? {} : { address }),
    ...(version === "" ? {} : { version }),
  };
}

/** Where the other nodes said that they can be dialled: how a node finds its cluster again that nobody told of it. */
export function knownPeers(store: NodeReader & { readonly nodeId: string }): readonly string[] {
  const others = store.list("node", { limit: LIST_PAGE_MAX }).filter(({ body }) => body.id !== store.nodeId);
  return others.flatMap(({ body }) => (body.address === "" ? [] : [body.address]));
}

/** Throws `not_found`. */
export function requireNode(store: NodeReader, cluster: Pick<ClusterView, "nodes">, id: string): NodeView {
  const node = listNodes(store, cluster).find((each) => each.id === id);
  if (node === undefined) throw new Refusal("not_found", `there is no node with the id ${JSON.stringify(id)}`);
  return node;
}

/**
 * Removes a node that has stopped, as one command: all nodes forget it, and it comes back when it starts again, or can be
 * reached again where it was only cut off. Throws `node_alive` for this node and for one that is, or may be, running.
 */
export async function deleteNode(
  context: CommandContext,
  cluster: Pick<ClusterView, "nodes" | "forget">,
  caller: Caller,
  id: string,
): Promise<string> {
  permitUnconfined(caller, "remove nodes");
  const { self, status } = requireNode(context.store, cluster, id);
  const members = { node_id: id, node_status: status };
  if (self) throw new Refusal("node_alive", "a node cannot remove itself; stop it and ask another one", [], members);
  if (status === "alive" || status === "suspect") {
    const detail = `the node ${id} is ${status}; stop it, and remove it when it has left or is dead`;
    throw new Refusal("node_alive", detail, [], members);
  }
  await runCommand(context, caller, (tx) => {
    const before = tx.get("node", [id])?.body;
    if (before !== undefined) tx.delete("node", [id]);
    const entry = { action: "delete", resource: "node", resource_id: id, resource_name: id };
    tx.note({ ...entry, ...(before === undefined ? {} : { before }) });
  });
  if (!caller.dryRun) cluster.forget(id);
  return id;
}

/**
 * Writes this node as it is now, where that differs from what is stored; true where it did. For the node layer, at the
 * start of a node that has synced (before that it would not see that it was there already), and when it was removed while it lived.
 */
export function announceSelf(context: CommandContext, self: NodeBody): Promise<boolean> {
  return runCommand(context, SYSTEM, (tx) => {
    const before = tx.get("node", [self.id]);
    const after = tx.put("node", self);
    if (before !== undefined && before.stamp === after.stamp) return false;
    const entry = { resource: "node", resource_id: self.id, resource_name: self.id, after: self };
    if (before === undefined) tx.note({ ...entry, action: "create", detail: "a node joined the cluster" });
    else tx.note({ ...entry, action: "update", before: before.body, detail: "a node started with other properties" });
    return true;
  });
}

/**
 * Calls `forget` for each node that somebody removes, here or elsewhere, and `onSelf` where it is this one: it was away while that
 * was done. The result ends it.
 */
export function followRemovedNodes(
  store: Pick<Store, "onChange" | "nodeId">,
  forget: (id: string) => void,
  onSelf: () => void,
): () => void {
  return store.onChange(({ changes }) => {
    for (const { kind, key, after } of changes) {
      const [id] = key;
      if (kind !== "node" || after !== undefined || id === undefined) continue;
      if (id === store.nodeId) onSelf();
      else forget(id);
    }
  });
}
