/** Who the client is to a selection: the sender of the query, or whom a trusted resolver asks for (RFC 7871). */
import type { Cidr } from "../base/ip.ts";
import { isOfferedTo } from "../image/recursion.ts";
import { recallRegion, regionScope } from "../image/regions.ts";
import { CONTROL } from "../image/shared.ts";
import { type Query, READ } from "./query.ts";
import type { AnswerState } from "./state.ts";

/** Address families (RFC 7871 section 6); 0 is what a client sends that wants no tailoring and has no address to show. */
const FAMILY = { NONE: 0, IPV4: 1, IPV6: 2 } as const;
const SUBNET_HEADER = 4;

/** A client whose region was not looked up for this answer yet. */
const REGION_UNKNOWN = -1;

/** Whether recursion is offered to the sender; unknown as long as nothing of this answer asked for it. */
const OFFER = { UNKNOWN: 0, ALL: 1, NOTHING: 2 } as const;

/** The sender is the client, as far as is known. */
export function noteClient(state: AnswerState, address: Uint8Array, at: number, length: number): void {
  // To store what is there already is dearer than to look.
  if (state.client !== address) state.client = address;
  state.clientAt = at;
  state.clientLength = length;
  state.clientRegion = REGION_UNKNOWN;
  if (state.sender !== address) state.sender = address;
  state.senderAt = at;
  state.senderLength = length;
  state.offer = OFFER.UNKNOWN;
}

/** Whether names that are not ours are resolved for the sender: whom it asks for (RFC 7871) does not matter. */
export function isRecursionOffered(state: AnswerState): boolean {
  return state.offer === OFFER.UNKNOWN ? lookUpOffer(state) : state.offer === OFFER.ALL;
}

function lookUpOffer(state: AnswerState): boolean {
  const { offersToAll, offered, view, sender, senderAt, senderLength } = state;
  const isOffered = offersToAll || isOfferedTo(offered, view, sender, senderAt, senderLength);
  state.offer = isOffered ? OFFER.ALL : OFFER.NOTHING;
  return isOffered;
}

/** Takes the network that is asked for as the client, where the sender lies in one of `sources`. */
export function takeSubnet(state: AnswerState, sources: readonly Cidr[]): void {
  const { query, client, clientAt, clientLength } = state;
  if (query.read !== READ.QUERY) return;
  if (!sources.some((source) => covers(source, client, clientAt, clientLength))) return;
  if (!readSubnet(query)) {
    // RFC 7871 section 6: whoever sends too few or too many octets, or bits behind the prefix, is to hear of it.
    query.read = READ.MALFORMED;
    return;
  }
  state.client = query.subnet;
  state.clientAt = 0;
  // Without a prefix no tailoring is wanted (RFC 7871 section 7.1.2).
  state.clientLength = query.subnetSource === 0 ? 0 : query.subnetFamily === FAMILY.IPV4 ? 4 : 16;
}

function covers({ address: network, prefixBits }: Cidr, address: Uint8Array, at: number, length: number): boolean {
  if (network.length !== length) return false;
  const whole = prefixBits >>> 3;
  for (let index = 0; index < whole; index++) if (network[index] !== address[at + index]) return false;
  const rest = prefixBits & 7;
  return rest === 0 || ((network[whole]! ^ address[at + whole]!) & (0xff00 >>> rest) & 0xff) === 0;
}

/** Copies what the option says into the query, since the answer is written over it. False where it is malformed. */
function readSubnet(query: Query): boolean {
  const { data, subnetAt: at, subnetBytes: length, subnet } = query;
  if (length < SUBNET_HEADER) return false;
  const family = data.getUint16(at);
  const source = data.getUint8(at + 2);
  const scope = data.getUint8(at + 3);
  const bits = family === FAMILY.IPV4 ? 32 : family === FAMILY.IPV6 ? 128 : family === FAMILY.NONE ? 0 : -1;
  const bytes = (source + 7) >>> 3;
  // In a query the scope is 0.
  if (source > bits || scope !== 0 || length !== SUBNET_HEADER + bytes) return false;
  subnet.fill(0);
  for (let index = 0; index < bytes; index++) subnet[index] = data.getUint8(at + SUBNET_HEADER + index);
  if ((source & 7) !== 0 && (subnet[bytes - 1]! & (0xff >>> (source & 7))) !== 0) return false;
  query.subnetFamily = family;
  query.subnetSource = source;
  query.subnetScope = 0;
  query.subnetLength = length;
  return true;
}

/** The client's region: by its address, else the node's own, 0 for none. */
export function clientRegion(state: AnswerState): number {
  if (state.clientRegion !== REGION_UNKNOWN) return state.clientRegion;
  const { view, client, clientAt, clientLength, regions } = state;
  const mapped = clientLength === 0 ? 0 : recallRegion(regions, view, client, clientAt, clientLength);
  if (clientLength > 0) narrowScope(state, -1);
  const region = mapped === 0 ? view.control[CONTROL.OWN_REGION]! : mapped;
  state.clientRegion = region;
  state.trace?.({ kind: "client", region, source: mapped !== 0 ? "mapping" : region === 0 ? "none" : "node" });
  return region;
}

/**
 * Notes that the answer is for no more than `bits` of the client's address, -1: for as many as its region is sure of. A
 * resolver may give the answer to all clients within (RFC 7871 section 7.2.1).
 */
export function narrowScope(state: AnswerState, bits: number): void {
  const { query, view, client, clientAt, clientLength } = state;
  state.isForClient = true;
  if (query.subnetLength === 0) return;
  const scope = bits >= 0 ? bits : regionScope(view, client, clientAt, clientLength);
  if (scope > query.subnetScope) query.subnetScope = scope;
}
