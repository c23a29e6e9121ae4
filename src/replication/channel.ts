/** A way to one peer on which messages arrive whole and in order, or not at all; peers.ts has the real ones, tests some in memory. */

export type PeerIdentity = {
  readonly nodeId: string;
  /** Of its store. */
  readonly instanceId: string;
};

/** What a peer said of itself when the channel opened. */
export type Peer = PeerIdentity & {
  /** The greatest version of the protocol that both ends know. */
  readonly version: number;
  /** What it can do beyond its version; names that are unknown here mean nothing. */
  readonly abilities: readonly string[];
  /** Milliseconds since 1970: tombstones due before it have left its store. */
  readonly collectedUpToMs: number;
  /** When its store last agreed with another on everything, milliseconds since 1970; 0: never. */
  readonly lastAgreementMs: number;
  /** How far its clock was ahead of ours, as the messages that opened the channel tell; good to half of their way there and back. */
  readonly clockSkewMs: number;
};

/** Messages are not longer than this. */
export const MESSAGE_BYTES_MAX = 8 * 2 ** 20;

/** Untaken bytes are few at and below this. */
export const FEW_UNTAKEN_BYTES = 64 * 1024;

/** A channel with so many untaken bytes is closed: whoever sends looks at them long before. */
export const UNTAKEN_BYTES_MAX = 128 * 2 ** 20;

export type Channel = {
  readonly peer: Peer;
  /** The bytes are the channel's from now on. Nothing happens on a closed channel. Throws a RangeError above MESSAGE_BYTES_MAX. */
  readonly send: (message: Uint8Array) => void;
  /** Bytes that were sent and that the network has not taken. */
  readonly untakenBytes: () => number;
  /** How far the peer's clock is ahead of ours, as its answers to the latest pings tell; milliseconds. */
  readonly skewMs: () => number;
  /** The peer is told the reason where it still listens. */
  readonly close: (reason: string) => void;
};

export type ChannelHandlers = {
  /** The bytes belong to whoever is called. */
  readonly onMessage: (message: Uint8Array) => void;
  /** `untakenBytes` was above FEW_UNTAKEN_BYTES and no longer is. */
  readonly onDrain: () => void;
  /** Called once, whoever closed it; nothing else is called from then on. */
  readonly onClose: (reason: string) => void;
};

/** Is told of a channel as soon as it is open, before any message arrives; what it gives back hears the rest. It may send at once. */
export type ChannelOpened = (channel: Channel) => ChannelHandlers;
