/** A way to one peer on which messages arrive whole and in order, or not at all; tls.ts has the real one, tests one in memory. */

export type PeerIdentity = {
  readonly nodeId: string;
  /** Of its store. */
  readonly instanceId: string;
};

export type Channel = {
  readonly peer: PeerIdentity;
  readonly send: (message: Uint8Array) => void;
  /** Bytes that were sent and that the network has not taken. */
  readonly untakenBytes: () => number;
  readonly close: (reason: string) => void;
};

export type ChannelHandlers = {
  /** The bytes belong to whoever is called. */
  readonly onMessage: (message: Uint8Array) => void;
  /** `untakenBytes` has become small again. */
  readonly onDrain: () => void;
  /** Called once, whoever closed it. */
  readonly onClose: (reason: string) => void;
};
