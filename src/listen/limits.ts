/** Every limit of the listeners, named once. Times end in Ms or Seconds, sizes in Bytes. */

/** A UDP slot: the longest query taken and the longest answer given over UDP. */
export const UDP_SLOT_BYTES = 4096;
/** Datagrams taken and answered with one pair of system calls. */
export const UDP_BATCH = 64;
/** How long an answer thread may sit in the kernel before it looks at the STOP word. */
export const UDP_WAIT_MS = 100;
/** Batches that an answer thread still takes from a socket when it has been told to stop. */
export const UDP_DRAIN_BATCHES = 64;
/** How long a thread that answers wants to run at a stretch: the least that Linux takes, and more than a batch needs. */
export const ANSWER_SLICE_US = 100;
/** Queue of each UDP socket in the kernel; bridges a pause of the thread. */
export const UDP_SOCKET_BUFFER_BYTES = 4 * 2 ** 20;
/** Datagrams whose answering failed that one thread reports a second; all of them are counted. */
export const FAILURE_REPORTS_PER_SECOND = 10;

/** Queries that one thread with an event loop has handed over to the one that resolves, and waits for, */
export const HANDED_OVER_MAX = 20_000;
/** for so long at most: longer than that thread takes for any. How often the times are looked at. */
export const HANDED_OVER_MS = 10_000;
export const HANDED_OVER_SWEEP_MS = 1_000;

/** Connections that the kernel completes and keeps before they are accepted. */
export const TCP_BACKLOG = 511;

/** The bounds of TCP service (RFC 7766 section 6.2, RFC 9210 section 4). */
export type StreamLimits = {
  /** Open connections, all listeners together. */
  readonly maxConnections: number;
  /** Open connections of one client: an IPv4 address or an IPv6 /64. */
  readonly maxConnectionsPerClient: number;
  /** A connection without an unfinished message or a waiting answer is closed after this time. */
  readonly idleMs: number;
  /** A message that has begun to arrive must be complete within this time. */
  readonly messageMs: number;
  /** No connection lives longer. */
  readonly lifetimeMs: number;
  /** A client that takes none of its waiting answers for this time is cut. */
  readonly writeMs: number;
  /** Answers waiting for the client, in bytes, above which no more of its queries are read. */
  readonly maxQueuedBytes: number;
  /** Answers waiting for all clients together, in bytes, above which those that hold most of them are cut. */
  readonly maxQueuedBytesOfAll: number;
  /** Queries of one connection that are being resolved, above which no more of its queries are read. */
  readonly maxResolving: number;
  /** Queries of one connection answered before the others get their turn. */
  readonly maxBurst: number;
  /** How often the times above are looked at. */
  readonly sweepMs: number;
  /** While the node stops: a connection idle for this time is closed, */
  readonly drainIdleMs: number;
  /** and after this time every one. */
  readonly drainMs: number;
};

export const STREAM_LIMITS: StreamLimits = {
  maxConnections: 10_000,
  maxConnectionsPerClient: 1_000,
  idleMs: 10_000,
  messageMs: 5_000,
  lifetimeMs: 3_600_000,
  writeMs: 10_000,
  maxQueuedBytes: 128 * 1024,
  maxQueuedBytesOfAll: 64 * 1024 * 1024,
  maxResolving: 100,
  maxBurst: 100,
  sweepMs: 250,
  drainIdleMs: 200,
  drainMs: 2_000,
};

/** Messages for updaters and secondaries, signed ones among them, that wait of one thread: a tenth of what its ring has room for. */
export const PRIMARY_HANDED_OVER_MAX = 256;

/** The longest DNS message over a stream: its length has two bytes (RFC 1035 section 4.2.2). */
export const STREAM_MESSAGE_BYTES = 65_535;

/** The bounds of the listeners over TLS, of each of its own. */
export type SecureLimits = {
  /** Connections, those in their handshake among them, and of one client: an IPv4 address or an IPv6 /64. */
  readonly maxConnections: number;
  readonly maxConnectionsPerClient: number;
  /** From the connection to the end of the handshake. */
  readonly handshakeMs: number;
  /** What was accepted by a listener that is moved or switched off has so long to end. */
  readonly drainMs: number;
  /** How soon an address that could not be bound is tried again. */
  readonly bindRetryMs: number;
};

export const SECURE_LIMITS: SecureLimits = {
  maxConnections: 10_000,
  maxConnectionsPerClient: 1_000,
  handshakeMs: 5_000,
  drainMs: 2_000,
  bindRetryMs: 1_000,
};

/** The bounds of DNS over HTTPS besides them. */
export type HttpsLimits = {
  /** Requests that one HTTP/2 connection may have under way (RFC 9113 section 5.1.2). */
  readonly maxStreams: number;
  /** All fields of a request with its path. */
  readonly headerBytes: number;
  /** Frames that bring nothing, such as resets and pings, that a client may send at once, and a second after that. */
  readonly idleBurst: number;
  readonly idlePerSecond: number;
  /** From a request to the end of its answer, its body and the client's taking it included. Longer than any is resolved. */
  readonly requestMs: number;
  /** Who broke a rule has so long to hear of it, while what it sends is passed over. */
  readonly lingerMs: number;
  /** A body that is refused is heard out to its end up to so many bytes, none of which are kept. */
  readonly passedBytes: number;
  /** Who has its answer has so long to end its body, before it is asked to stop. */
  readonly unheardMs: number;
  /** A connection without a request under way is closed after this time, */
  readonly idleMs: number;
  /** and every one after this. */
  readonly lifetimeMs: number;
  /** Bodies and answers that one connection has waiting, in bytes, above which it is refused more. */
  readonly maxQueuedBytes: number;
  /** The same of all together, above which those that hold most are cut. */
  readonly maxQueuedBytesOfAll: number;
  /** How often the times above are looked at. */
  readonly sweepMs: number;
};

export const HTTPS_LIMITS: HttpsLimits = {
  maxStreams: 100,
  headerBytes: 16_384,
  idleBurst: 256,
  idlePerSecond: 64,
  requestMs: 15_000,
  lingerMs: 500,
  passedBytes: 2 ** 20,
  unheardMs: 1_000,
  idleMs: 30_000,
  lifetimeMs: 3_600_000,
  maxQueuedBytes: 2 ** 20,
  maxQueuedBytesOfAll: 64 * 2 ** 20,
  sweepMs: 250,
};
