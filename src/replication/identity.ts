/**
 * Who is at the other end: the first message of either side says it, with a proof that holds for this connection and this side
 * of it only, so that nothing can be replayed or sent back. Whoever has the cluster's key can say that it is any node: nodes of
 * one cluster trust each other.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { parseJson } from "../base/json.ts";
import type { PeerIdentity } from "./channel.ts";

export type Role = "dialer" | "acceptor";

/** The versions of the protocol that a node speaks. */
export type VersionRange = { readonly least: number; readonly greatest: number };
export const VERSIONS: VersionRange = { least: 1, greatest: 1 };

export type Hello = PeerIdentity & {
  readonly versions: VersionRange;
  readonly abilities: readonly string[];
  /** host:port at which it is a member; absent where it does not say. */
  readonly address?: string;
  readonly collectedUpToMs: number;
  readonly lastAgreementMs: number;
  /** The time of day when it was sent, milliseconds since 1970. */
  readonly wallMs: number;
};

/** What a proof is made with: the cluster's key for this purpose, and what the connection exports. */
export type ProofKeys = { readonly key: Uint8Array; readonly exported: Uint8Array };

export type ReadHello =
  | { readonly kind: "hello"; readonly hello: Hello }
  | { readonly kind: "proof" | "malformed"; readonly detail: string };

const PROOF_BYTES = 32;
/** A hello with its proof is not longer. */
export const HELLO_BYTES_MAX = 8 * 1024;
const ABILITIES_MAX = 64;
const ABILITY_CHARACTERS_MAX = 64;
const ID_CHARACTERS_MAX = 256;
const ADDRESS_CHARACTERS_MAX = 256;

/** Over the exported secret, the role of who sends it and the whole hello, both ids with it. */
function proofOf({ key, exported }: ProofKeys, role: Role, hello: Uint8Array): Buffer {
  return createHmac("sha256", key).update(exported).update(`\0${role}\0`).update(hello).digest();
}

/** The proof, then JSON. */
export function encodeHello(hello: Hello, keys: ProofKeys, role: Role): Uint8Array {
  const text = Buffer.from(JSON.stringify(hello));
  return Buffer.concat([proofOf(keys, role, text), text]);
}

/** `role` is the sender's. Members that are unknown here are passed over. */
export function decodeHello(bytes: Uint8Array, keys: ProofKeys, role: Role): ReadHello {
  if (bytes.length < PROOF_BYTES) return { kind: "malformed", detail: "the hello is too short" };
  const text = bytes.subarray(PROOF_BYTES);
  // Before anything is read: no stranger's text gets as far as a parser.
  if (!timingSafeEqual(bytes.subarray(0, PROOF_BYTES), proofOf(keys, role, text))) {
    return { kind: "proof", detail: "the proof of its identity does not belong to this connection" };
  }
  const parsed = parseJson(text);
  const hello = "fault" in parsed ? undefined : helloOf(parsed.value);
  return hello === undefined ? { kind: "malformed", detail: "the hello is malformed" } : { kind: "hello", hello };
}

function helloOf(value: unknown): Hello | undefined {
  if (!isRecord(value) || !isRecord(value.versions)) return undefined;
  const { nodeId, instanceId, abilities, address, collectedUpToMs, lastAgreementMs, wallMs } = value;
  const { least, greatest } = value.versions;
  if (!isId(nodeId) || !isId(instanceId) || !isAbilities(abilities)) return undefined;
  if (!isTime(collectedUpToMs) || !isTime(lastAgreementMs) || !isTime(wallMs)) return undefined;
  if (!isVersion(least) || !isVersion(greatest) || least > greatest) return undefined;
  if (address !== undefined && !isText(address, ADDRESS_CHARACTERS_MAX)) return undefined;
  return {
    ...{ nodeId, instanceId, abilities, collectedUpToMs, lastAgreementMs, wallMs, versions: { least, greatest } },
    ...(address !== undefined && { address }),
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown, charactersMax: number): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= charactersMax && !/\p{Cc}/u.test(value);
}

function isId(value: unknown): value is string {
  return isText(value, ID_CHARACTERS_MAX);
}

function isAbilities(value: unknown): value is string[] {
  if (!Array.isArray(value) || value.length > ABILITIES_MAX) return false;
  return value.every((ability) => isText(ability, ABILITY_CHARACTERS_MAX));
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

function isVersion(value: unknown): value is number {
  return Number.isInteger(value) && isTime(value);
}

/** The greatest version that both speak, undefined where there is none: nodes of neighbouring releases have one. */
export function commonVersion(ours: VersionRange, theirs: VersionRange): number | undefined {
  const greatest = Math.min(ours.greatest, theirs.greatest);
  return greatest >= Math.max(ours.least, theirs.least) ? greatest : undefined;
}

export function versionsText({ least, greatest }: VersionRange): string {
  return least === greatest ? String(least) : `${least} to ${greatest}`;
}

/** A clock's distance as one exchange tells it: the answer was made somewhere between sending and receiving. */
export type SkewSample = { readonly skewMs: number; readonly roundTripMs: number };

/** `wallMs` is ours when the answer came, `peerWallMs` is the peer's in it. */
export function skewSample(roundTripMs: number, wallMs: number, peerWallMs: number): SkewSample {
  return { skewMs: peerWallMs - (wallMs - roundTripMs / 2), roundTripMs };
}

export const SKEW_SAMPLES = 8;

/** Samples that are further apart than the way there and back explains, and than clocks drift: one of the clocks was set. */
const STEP_MS = 1_000;

/** In the order of time. The sample whose answer came soonest is off by the least; those of before a clock was set say nothing. */
export function bestSkewMs(samples: readonly SkewSample[]): number {
  const latest = samples.at(-1);
  if (latest === undefined) return 0;
  const isOfNow = ({ skewMs, roundTripMs }: SkewSample) =>
    Math.abs(skewMs - latest.skewMs) <= (roundTripMs + latest.roundTripMs) / 2 + STEP_MS;
  const best = samples.filter(isOfNow).reduce((least, each) => (each.roundTripMs < least.roundTripMs ? each : least));
  return Math.round(best.skewMs);
}

/**
 * How far this node's clock is ahead of the cluster's, by how far the clocks of its peers are ahead of its own: the middle one of
 * all, its own among them, counts. Of two middle ones the earlier does, for what carries a late stamp is what others refuse.
 */
export function clockAheadMs(skewsMs: readonly number[]): number {
  const sorted = [0, ...skewsMs].sort((left, right) => left - right);
  const middle = sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
  return middle === 0 ? 0 : -middle;
}
