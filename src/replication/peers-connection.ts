/** One connection from its first byte to its end: the handshake, who is there, then the stream. */
import type { TLSSocket } from "node:tls";
import type { Timers } from "../cluster/transport.ts";
import type { ChannelOpened, Peer } from "./channel.ts";
import type { Hello, Role, SkewSample, VersionRange } from "./identity.ts";
import { openIdentity } from "./identity-exchange.ts";
import type { Failure } from "./peers-failures.ts";
import { openStream, type Stream, type StreamEnd } from "./peers-stream.ts";
import { createWire, type Wire } from "./peers-wire.ts";
import { exportedSecret, type Handshake, type HandshakeHandlers } from "./tls.ts";

/** What a node tells of itself when a stream opens. */
export type SelfDescription = Omit<Hello, "versions" | "wallMs">;

export type ConnectionSettings = {
  /** Of proofs of identity. */
  readonly key: Uint8Array;
  readonly self: () => SelfDescription;
  readonly versions: VersionRange;
  readonly timers: Timers;
  readonly wallMs: () => number;
  /** From the connection to the open stream. */
  readonly openingMs: number;
  readonly pingMs: number;
  /** So many pings in a row without a byte from the peer, and the stream is closed. */
  readonly silentPings: number;
  /** A stream that has carried so many bytes is closed, to be dialed again with new keys (RFC 8446 section 5.5). */
  readonly renewBytes: number;
};

export type ConnectionHandlers = {
  readonly role: Role;
  readonly begin: (handlers: HandshakeHandlers) => Handshake;
  readonly refusal: (hello: Hello) => string | undefined;
  /** The peer is welcome; its channel is about to open. */
  readonly onWelcome: (peer: Peer) => void;
  readonly opened: ChannelOpened;
  readonly onOpen: (stream: Stream) => void;
  /** Called once in place of `onOpen`, unless the connection was abandoned. */
  readonly onFailed: (failure: Failure, nodeId: string | undefined) => void;
  /** Called once, after `onOpen`. */
  readonly onEnd: (stream: Stream, end: StreamEnd) => void;
  readonly onGone: () => void;
};

/** What is returned ends what is no open stream yet. */
export function beginConnection(settings: ConnectionSettings, handlers: ConnectionHandlers): Handshake {
  const { timers, wallMs, versions, key } = settings;
  const { role } = handlers;
  let isOpening = true;
  let wire: Wire | undefined;
  const over = (): boolean => {
    const wasOpening = isOpening;
    isOpening = false;
    callOff();
    return wasOpening;
  };
  const fail = (failure: Failure, nodeId: string | undefined) => {
    if (over()) handlers.onFailed(failure, nodeId);
  };
  const abandon = () => {
    if (!over()) return;
    wire?.destroy();
    handshake.abandon();
  };
  const callOff = timers.after(settings.openingMs, () => {
    if (!isOpening) return;
    abandon();
    handlers.onFailed({ kind: "timeout", detail: `nothing was agreed on within ${settings.openingMs} ms` }, undefined);
  });
  const onOpen = (of: Wire, peer: Peer, skew: SkewSample) => {
    over();
    handlers.onWelcome(peer);
    const { stream, listener } = openStream({
      ...{ wire: of, peer, skew, timers, wallMs, opened: handlers.opened },
      limits: settings,
      onEnd: (end) => handlers.onEnd(stream, end),
    });
    handlers.onOpen(stream);
    return listener;
  };
  const onSecure = (socket: TLSSocket) => {
    const keys = { key, exported: exportedSecret(socket) };
    wire = createWire(socket, timers, (made) =>
      openIdentity({
        ...{ wire: made, role, keys, versions, timers, wallMs, refusal: handlers.refusal },
        self: settings.self(),
        onOpen: (peer, skew) => onOpen(made, peer, skew),
        onFault: ({ kind, detail, nodeId }) => fail({ kind, detail }, nodeId),
      }),
    );
  };
  const handshake = handlers.begin({ onSecure, onFault: (fault) => fail(fault, undefined), onGone: handlers.onGone });
  return { abandon };
}
