/** Versions with their secrets opened, and which kinds live and die with a zone. */
import type { Kind } from "../model/objects.ts";
import type { Envelope, StoredEnvelope } from "./envelope.ts";
import type { Seal } from "./seal.ts";

/** The version with its secrets in the clear. */
export function openEnvelope(kind: Kind, { key, envelope, sealed }: StoredEnvelope, seal: Seal): Envelope {
  const { content } = envelope;
  if (!sealed || content.kind !== "body") return envelope;
  return { ...envelope, content: { kind: "body", body: seal.open(kind, key, content.body) } };
}

/** Kinds whose objects live and die with a zone's floor. */
export function isOfZone(kind: Kind): boolean {
  return kind === "zone" || kind === "record";
}
