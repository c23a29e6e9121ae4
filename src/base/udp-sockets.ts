/** What carries questions to upstreams over UDP: one socket for each, at a port that nobody can foresee. */

export type UdpSockets = {
  /**
   * Opens a socket at a random port, connected to the server, and sends. Its number, below `capacity` and used again
   * after `close`; -1: the system gave none, or has no way there. What goes wrong later is told by `onError`.
   */
  readonly open: (address: Uint8Array, port: number, bytes: Uint8Array) => number;
  readonly close: (socket: number) => void;
  /** The open socket at a port of this machine, by the bytes (4 or 16) of its family's addresses; -1: none. */
  readonly socketAt: (port: number, addressBytes: number) => number;
  /** As many sockets may be open at a time. */
  readonly capacity: number;
  /** Closes all; nothing may be called afterwards. */
  readonly end: () => void;
};

export type UdpEvents = {
  /** A datagram from the server that the socket is connected to. `bytes` are good until this returns. */
  readonly onDatagram: (socket: number, bytes: Uint8Array) => void;
  /** Refused, unreachable. The socket remains open. */
  readonly onError: (socket: number) => void;
};

/** `randomPort` gives a port to bind, another one with each call. */
export type UdpSocketsOptions = {
  readonly events: UdpEvents;
  readonly randomPort: () => number;
  readonly capacity: number;
  /**
   * Shared memory of `capacity` + 1 words where open descriptors stand, that the thread which comes after one that was
   * ended can close them: they end with the process only. Left out: there is no such thread.
   */
  readonly descriptors?: Int32Array;
};

export type OpenUdpSockets = (options: UdpSocketsOptions) => UdpSockets;

/** Ports are drawn so often before a socket is given up. */
export const BIND_ATTEMPTS = 16;
