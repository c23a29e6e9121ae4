/**
 * How a stream opens: the dialer says hello, the acceptor says hello, the dialer confirms. Either may refuse the other instead,
 * with a reason; each learns from the answer to its own hello how far the other's clock is off.
 */
import type { Timers } from "../cluster/transport.ts";
import type { Peer } from "./channel.ts";
import {
  commonVersion,
  decodeHello,
  encodeHello,
  HELLO_BYTES_MAX,
  type Hello,
  type ProofKeys,
  type Role,
  type SkewSample,
  skewSample,
  type VersionRange,
  versionsText,
} from "./identity.ts";
import { FRAME, type Wire, type WireListener } from "./peers-wire.ts";

export type OpeningFault = {
  readonly kind: "proof" | "malformed" | "version" | "refused" | "refused_by_peer" | "network";
  readonly detail: string;
  /** Who it said that it was, where that is known. */
  readonly nodeId: string | undefined;
};

export type Opening = {
  readonly wire: Wire;
  readonly role: Role;
  readonly keys: ProofKeys;
  readonly self: Omit<Hello, "versions" | "wallMs">;
  readonly versions: VersionRange;
  readonly timers: Timers;
  readonly wallMs: () => number;
  /** Why it may not be a peer. */
  readonly refusal: (hello: Hello) => string | undefined;
  /** Gives what listens from now on. */
  readonly onOpen: (peer: Peer, skew: SkewSample) => WireListener;
  /** Called instead, once; the wire is finished or will be. */
  readonly onFault: (fault: OpeningFault) => void;
};

const REASON_CHARACTERS_MAX = 500;

/** Text for the peer's eyes, and what a peer sent as such. */
export function encodeReason(reason: string): Uint8Array {
  return Buffer.from(reason.slice(0, REASON_CHARACTERS_MAX));
}
export function decodeReason(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes.subarray(0, REASON_CHARACTERS_MAX * 4)).slice(0, REASON_CHARACTERS_MAX);
}

/** A time of day, milliseconds since 1970, as a double (big-endian). */
export function encodeTimes(...times: readonly number[]): Uint8Array {
  const bytes = Buffer.allocUnsafe(times.length * 8);
  times.forEach((time, index) => void bytes.writeDoubleBE(time, index * 8));
  return bytes;
}
/** So many of them, undefined where the bytes are something else. */
export function decodeTimes(bytes: Uint8Array, count: number): readonly number[] | undefined {
  if (bytes.length !== count * 8) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const times = Array.from({ length: count }, (_, index) => view.getFloat64(index * 8));
  return times.every(Number.isFinite) ? times : undefined;
}

/** What listens until both ends know each other; to be given to `createWire`. */
export function openIdentity(opening: Opening): WireListener {
  const { wire, role, keys, timers, wallMs } = opening;
  let sentAt = 0;
  /** The acceptor's, while it waits to be confirmed. */
  let accepted: { readonly hello: Hello; readonly version: number } | undefined;

  const fail = (fault: OpeningFault, tellPeer = true) => {
    if (tellPeer) {
      wire.send(FRAME.REFUSED, encodeReason(fault.detail));
      wire.finish();
    } else {
      wire.destroy();
    }
    opening.onFault(fault);
  };
  const sayHello = () => {
    sentAt = timers.now();
    const hello = { ...opening.self, versions: opening.versions, wallMs: wallMs() };
    wire.send(FRAME.HELLO, encodeHello(hello, keys, role));
  };
  const open = (hello: Hello, version: number, peerWallMs: number) => {
    const skew = skewSample(timers.now() - sentAt, wallMs(), peerWallMs);
    const { nodeId, instanceId, abilities, collectedUpToMs, lastAgreementMs } = hello;
    const clockSkewMs = Math.round(skew.skewMs);
    const peer = { nodeId, instanceId, version, abilities, collectedUpToMs, lastAgreementMs, clockSkewMs };
    wire.listen(opening.onOpen(peer, skew));
  };
  const hear = (body: Uint8Array) => {
    const read = decodeHello(body, keys, role === "dialer" ? "acceptor" : "dialer");
    if (read.kind !== "hello") return fail({ kind: read.kind, detail: read.detail, nodeId: undefined });
    const { hello } = read;
    const version = commonVersion(opening.versions, hello.versions);
    if (version === undefined) return fail(versionFault(opening, hello));
    const refusal = opening.refusal(hello);
    if (refusal !== undefined) return fail({ kind: "refused", detail: refusal, nodeId: hello.nodeId });
    if (role === "acceptor") {
      accepted = { hello, version };
      return sayHello();
    }
    wire.send(FRAME.CONFIRM, encodeTimes(wallMs()));
    open(hello, version, hello.wallMs);
  };
  if (role === "dialer") sayHello();
  return {
    bodyBytesMax: HELLO_BYTES_MAX,
    onFrame: (kind, body) => {
      const nodeId = accepted?.hello.nodeId;
      if (kind === FRAME.HELLO && accepted === undefined) return hear(body);
      if (kind === FRAME.REFUSED) {
        return fail({ kind: "refused_by_peer", detail: decodeReason(body), nodeId }, false);
      }
      const times = kind === FRAME.CONFIRM ? decodeTimes(body, 1) : undefined;
      if (accepted === undefined || times === undefined) {
        return fail({ kind: "malformed", detail: "an unexpected message before the stream is open", nodeId });
      }
      open(accepted.hello, accepted.version, times[0] ?? 0);
    },
    onDrain: () => {},
    onEnd: (kind, detail) => {
      fail({ kind: kind === "reset" ? "network" : kind, detail, nodeId: accepted?.hello.nodeId }, kind !== "reset");
    },
  };
}

function versionFault({ versions, self }: Opening, { versions: theirs, nodeId }: Hello): OpeningFault {
  const detail = `${self.nodeId} speaks version ${versionsText(versions)} of the replication protocol and ${nodeId} ${versionsText(theirs)}`;
  return { kind: "version", detail, nodeId };
}
