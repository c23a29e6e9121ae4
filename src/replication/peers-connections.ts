/** What the connections of a node have in common, either way: who may be a peer, what is counted and logged, and the end of all. */
import type { Log } from "../base/log.ts";
import type { Timers } from "../cluster/transport.ts";
import type { ChannelOpened, PeerIdentity } from "./channel.ts";
import { type Hello, type Role, VERSIONS, type VersionRange } from "./identity.ts";
import {
  beginConnection,
  type ConnectionHandlers,
  type ConnectionSettings,
  type SelfDescription,
} from "./peers-connection.ts";
import { createFailures, type FailedPeer, type Failure, type FailureKind } from "./peers-failures.ts";
import type { Stream, StreamEnd } from "./peers-stream.ts";
import { createStreamTls, type Handshake, replicationKey, type StreamTls } from "./tls.ts";

export type StreamLimits = Pick<ConnectionSettings, "openingMs" | "pingMs" | "silentPings" | "renewBytes">;

/** AES-GCM is good for some 2^38 bytes under one key; there is no way to ask for another on a stream that is open. */
export const STREAM_LIMITS: StreamLimits = { openingMs: 5_000, pingMs: 5_000, silentPings: 3, renewBytes: 2 ** 36 };

export type ConnectionsOptions = {
  /** 32 bytes that the nodes of one cluster, and nobody else, have. */
  readonly root: Uint8Array;
  readonly self: () => SelfDescription;
  /** Why a node may not be a peer (its id is alive under another instance, it was removed); asked in either direction. */
  readonly refusal: (peer: PeerIdentity) => string | undefined;
  readonly onOutgoing: ChannelOpened;
  readonly onIncoming: ChannelOpened;
  /** An open stream broke or went silent; neither end has closed it. */
  readonly onReset: (nodeId: string) => void;
  readonly timers: Timers;
  /** The time of day, milliseconds since 1970. */
  readonly wallMs?: () => number;
  readonly log: Log;
  readonly versions?: VersionRange;
};

export type PeersFigures = {
  /** Streams that were opened, either way. */
  readonly opened: number;
  /** Streams that broke or went silent. */
  readonly resets: number;
  /** Streams that could not be opened, either way, by why. */
  readonly failures: Readonly<Record<FailureKind, number>>;
  /** Of frames, on all streams, those that are over too. */
  readonly bytesIn: number;
  readonly bytesOut: number;
};

/** What one connection means to whoever began it. */
export type ConnectionUse = Pick<
  ConnectionHandlers,
  "begin" | "onWelcome" | "onOpen" | "onFailed" | "onEnd" | "onGone"
>;

export type Connections = {
  readonly tls: StreamTls;
  readonly begin: (peer: FailedPeer, use: ConnectionUse) => Handshake;
  /** A connection that was not even begun. */
  readonly note: (failure: Failure, peer: FailedPeer) => void;
  readonly figures: () => PeersFigures;
  readonly isClosed: () => boolean;
  /** Closes every stream for that reason and begins no other; settles when nothing is left of any connection. */
  readonly close: (reason: string) => Promise<void>;
};

export function createConnections(options: ConnectionsOptions, limits: StreamLimits): Connections {
  const { timers, wallMs = Date.now, versions = VERSIONS, self, log, root, onReset } = options;
  const settings = { ...limits, key: replicationKey(root, "identity"), self, versions, timers, wallMs };
  const failures = createFailures(log, timers);
  const opening = new Set<Handshake>();
  const streams = new Set<Stream>();
  let live = 0;
  let onNone: (() => void) | undefined;
  let isClosed = false;
  const past = { opened: 0, resets: 0, bytesIn: 0, bytesOut: 0 };

  const refusal = (hello: Hello, wanted: string | undefined): string | undefined =>
    isClosed
      ? `${self().nodeId} is stopping`
      : (identityRefusal(hello, self().nodeId, wanted, streams) ?? options.refusal(hello));
  const ended = (stream: Stream, { by, reason }: StreamEnd, address: string, role: Role) => {
    const { bytesIn, bytesOut } = stream.figures();
    streams.delete(stream);
    past.bytesIn += bytesIn;
    past.bytesOut += bytesOut;
    const isReset = by === "reset" && !isClosed;
    if (isReset) past.resets++;
    log(isReset ? "info" : "debug", "a replication stream closed", { node: stream.peer.nodeId, address, role, reason });
    if (isReset) onReset(stream.peer.nodeId);
  };
  const begin = (peer: FailedPeer, use: ConnectionUse): Handshake => {
    const { role, address, nodeId } = peer;
    live++;
    const connection = beginConnection(settings, {
      ...{ role, begin: use.begin, onWelcome: use.onWelcome },
      refusal: (hello) => refusal(hello, nodeId),
      opened: role === "dialer" ? options.onOutgoing : options.onIncoming,
      onOpen: (stream) => {
        opening.delete(connection);
        streams.add(stream);
        past.opened++;
        log("debug", "a replication stream opened", { node: stream.peer.nodeId, address, role });
        use.onOpen(stream);
      },
      onFailed: (failure, claimed) => {
        opening.delete(connection);
        if (!isClosed) failures.note(failure, { ...peer, nodeId: nodeId ?? claimed });
        use.onFailed(failure, claimed);
      },
      onEnd: (stream, end) => {
        use.onEnd(stream, end);
        ended(stream, end, address, role);
      },
      onGone: () => {
        opening.delete(connection);
        use.onGone();
        live--;
        if (live === 0) onNone?.();
      },
    });
    opening.add(connection);
    return connection;
  };
  const figures = (): PeersFigures => {
    const now = [...streams].map((stream) => stream.figures());
    const bytesIn = now.reduce((sum, stream) => sum + stream.bytesIn, past.bytesIn);
    const bytesOut = now.reduce((sum, stream) => sum + stream.bytesOut, past.bytesOut);
    return { opened: past.opened, resets: past.resets, failures: failures.counts(), bytesIn, bytesOut };
  };
  const close = async (reason: string): Promise<void> => {
    isClosed = true;
    for (const connection of [...opening]) connection.abandon();
    for (const stream of [...streams]) stream.close(reason);
    if (live === 0) return;
    await new Promise<void>((resolve) => {
      onNone = resolve;
    });
  };
  return { tls: createStreamTls(root), begin, note: failures.note, figures, close, isClosed: () => isClosed };
}

/** What is wrong with who it says that it is: `wanted` is whom the dialer looks for, `streams` those that are open. */
function identityRefusal(
  { nodeId, instanceId }: PeerIdentity,
  own: string,
  wanted: string | undefined,
  streams: Iterable<Stream>,
): string | undefined {
  if (nodeId === own) return `${nodeId} is the id of both nodes`;
  if (wanted !== undefined && nodeId !== wanted) return `${wanted} was expected, and ${nodeId} is at its address`;
  for (const { peer } of streams) {
    if (peer.nodeId !== nodeId || peer.instanceId === instanceId) continue;
    return `${nodeId} is alive as another instance, ${peer.instanceId} and not ${instanceId}`;
  }
  return undefined;
}
