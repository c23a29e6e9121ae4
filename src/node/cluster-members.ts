/** What members tell each other with the membership protocol: who they are, and the digest of all they hold. */

import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { ipFromText, unmappedIp } from "../base/ip.ts";
import type { Member } from "../cluster/member.ts";
import type { Endpoint } from "../cluster/messages.ts";
import { addressToText } from "../listen/address.ts";
import type { Hello } from "../replication/identity.ts";

/** Of a member: the instance of its store, and what others show of it while it lives. */
export type NodeMeta = {
  readonly instance: string;
  readonly region: string;
  readonly version: string;
  /** host:port that it advertises, where that is a name; "" where its endpoint says it, or there was no room. */
  readonly address: string;
};

const NOTHING: NodeMeta = { instance: "", region: "", version: "", address: "" };
const TEXT_MAX = 128;
/** Texts of a member's meta that every version reads. */
const META_TEXTS = 3;

export function encodeMeta({ instance, region, version, address }: NodeMeta): Uint8Array {
  const texts = [instance, region, version];
  const whole = Buffer.from(JSON.stringify([...texts, address]));
  const isRoomy = address.length <= TEXT_MAX && whole.length <= bytesMax(META_TEXTS);
  return address !== "" && isRoomy ? whole : Buffer.from(JSON.stringify(texts));
}

/** Empty texts where it is none of ours: whoever has the key may be another program. */
export function decodeMeta(meta: Uint8Array): NodeMeta {
  const [instance, region, version, address = ""] = textsOf(meta, META_TEXTS) ?? [];
  if (instance === undefined || region === undefined || version === undefined) return NOTHING;
  return { instance, region, version, address };
}

/** What a push/pull carries: which node it is, and its root digest, "" while that is being made. */
export function encodeRoot(nodeId: string, root: string): Uint8Array {
  return Buffer.from(JSON.stringify([nodeId, root]));
}

export function decodeRoot(state: Uint8Array): { readonly nodeId: string; readonly root: string } | undefined {
  const [nodeId, root] = textsOf(state, 2) ?? [];
  return nodeId === undefined || root === undefined || root === "" ? undefined : { nodeId, root };
}

function bytesMax(count: number): number {
  return (TEXT_MAX + 8) * count;
}

function textsOf(bytes: Uint8Array, count: number): readonly string[] | undefined {
  if (bytes.length > bytesMax(count)) return undefined;
  try {
    const given: unknown = JSON.parse(Buffer.from(bytes).toString("utf8"));
    const isOurs = Array.isArray(given) && given.length >= count && given.every((text) => typeof text === "string");
    return isOurs ? given.map((text) => String(text).slice(0, TEXT_MAX)) : undefined;
  } catch {
    return undefined;
  }
}

/** A member of that id that is there, with another store than `instance`: two nodes must not share an id. */
export function otherInstance(members: readonly Member[], id: string, instance: string): string | undefined {
  const member = members.find(({ name, state }) => name === id && (state === "alive" || state === "suspect"));
  if (member === undefined) return undefined;
  const known = decodeMeta(member.meta).instance;
  return known === "" || known === instance ? undefined : `a node with the id ${id} is alive with another store`;
}

/**
 * The same for a copy of a running node, which has its store's instance too: it says that it is elsewhere. A node that was moved
 * is refused likewise, until its former self is known to be gone.
 */
export function otherAddress(
  members: readonly Member[],
  { nodeId, address }: Pick<Hello, "nodeId" | "address">,
): string | undefined {
  const member = members.find(({ name, state }) => name === nodeId && (state === "alive" || state === "suspect"));
  if (member === undefined || address === undefined) return undefined;
  const known = endpointText(member.endpoint);
  return known === address ? undefined : `a node with the id ${nodeId} is alive at ${known}`;
}

/**
 * host:port by which a member is dialled. While it is there membership knows it better than its own object, which may be of before
 * a move; what is gone has nothing else. `written` is that object's, undefined where there is none.
 */
export function addressOf({ state, endpoint, meta }: Member, written: string | undefined): string {
  const isThere = state === "alive" || state === "suspect";
  if (!isThere && written !== undefined) return written;
  return decodeMeta(meta).address || endpointText(endpoint);
}

export function endpointText({ address, port }: Endpoint): string {
  return addressToText({ bytes: unmappedIp(address), port });
}

/** Whether it is told of anybody but itself: the list that all nodes share names the first of them alone at first. */
export function joinsOthers(join: readonly string[], own: readonly string[]): boolean {
  return join.some((address) => !own.includes(address));
}

/** The addresses of a host name, by the system's resolver; of an address itself. */
export async function resolveHost(host: string): Promise<readonly Uint8Array[]> {
  if (isIP(host) !== 0) return bytesOf([host]);
  return bytesOf((await lookup(host, { all: true })).map(({ address }) => address));
}

function bytesOf(texts: readonly string[]): readonly Uint8Array[] {
  return texts.flatMap((text) => ipFromText(text) ?? []);
}
