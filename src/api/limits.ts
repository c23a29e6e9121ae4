/** Every limit of the API's listener, named once. */

/** Open connections; a client beyond is closed at once. */
export const CONNECTIONS_MAX = 2_048;
/** Open connections from one address (an IPv6 /64 is one), so that one client cannot take all. */
export const CONNECTIONS_PER_ADDRESS_MAX = 512;
/** Requests under way together; one beyond is told to come again. */
export const REQUESTS_MAX = 1_024;
/** Of them from one address (an IPv6 /64 is one), so that a client which reads no answers cannot take all. */
export const REQUESTS_PER_ADDRESS_MAX = 256;
/** Places beyond REQUESTS_MAX that only /healthz, /readyz and /metrics may take. */
export const PROBE_REQUESTS_RESERVED = 64;
export const HANDSHAKE_MS = 10_000;
export const HEADERS_MS = 15_000;
/** From the first byte of a request to the last byte of its body. */
export const REQUEST_MS = 120_000;
/** How long the rest of a refused request's body is taken in. */
export const DRAIN_MS = 20_000;
/** How much of it: more than any route takes. */
export const DRAIN_BYTES_MAX = 64 * 2 ** 20;
/** Without a byte in either direction. */
export const IDLE_MS = 60_000;
/** An answer of which a client takes nothing more, whatever else it sends, is ended. */
export const ANSWER_STALL_MS = 30_000;
/** What a file is sent in, so that a slow client that takes it is told from one that does not. */
export const ANSWER_PIECE_BYTES = 65_536;
/** From the end of an answer over HTTP/2 to the reset of a stream whose request has not ended. */
export const LINGER_MS = 1_000;
export const KEEP_ALIVE_MS = 30_000;
export const CONNECTIONS_CHECK_MS = 2_000;
export const HEADER_BYTES = 16_384;

/** Requests that one HTTP/2 connection may have under way. */
export const STREAMS_MAX = 64;
/** What one HTTP/2 connection may hold in memory, megabytes. */
export const SESSION_MEMORY_MB = 4;
/** Streams that a client may open and reset at once, and a second after that (CVE-2023-44487). */
export const STREAM_RESET_BURST = 256;
export const STREAM_RESETS_PER_SECOND = 32;

export const BODY_BYTES_DEFAULT = 2 ** 20;
/** Bodies of routes that anybody may call: names, passwords and tokens. */
export const SIGN_IN_BODY_BYTES_MAX = 16_384;
/** All bodies that are being taken in, together, and those of one address (an IPv6 /64 is one). */
export const BODIES_BYTES_MAX = 192 * 2 ** 20;
export const BODIES_BYTES_PER_ADDRESS_MAX = BODIES_BYTES_MAX / 4;
/** What of each body counts for neither, so that a node full of large ones takes short ones on. */
export const BODY_BYTES_UNCOUNTED = 65_536;
/** A body has so long at least; after that as long as its bytes last at the rate. */
export const BODY_GRACE_MS = 10_000;
export const BODY_BYTES_PER_SECOND_MIN = 1_024;

export const PATH_PARAMETER_LENGTH_MAX = 512;
export const QUERY_LENGTH_MAX = 8_192;
export const QUERY_PARAMETERS_MAX = 32;
export const CURSOR_LENGTH_MAX = 4_096;

/** Sign-ins a minute to one user name, from all addresses together: so many times what one address has. */
export const USER_LIMIT_FACTOR = 10;
/** A minute's requests of one address in each class; the config document "rate-limits" has others. */
export const RATE_TABLE_MAX = 65_536;

/** How often the certificate's files are looked at. */
export const CERTIFICATE_CHECK_MS = 5_000;
export const CERTIFICATE_FILE_BYTES_MAX = 2 ** 20;
export const SELF_MADE_DAYS = 397;
export const SELF_MADE_RENEW_DAYS = 30;

/** From the call of close to the end of the last connection. */
export const CLOSE_MS = 3_000;

/** Where a page of a list ends that has not reached its limit. */
export const PAGE_BYTES_MAX = 4 * 2 ** 20;
/** All answers that are made and not yet taken by their clients, together, and those of one address (an IPv6 /64 is one). */
export const ANSWERS_BYTES_MAX = 64 * 2 ** 20;
export const ANSWERS_BYTES_PER_ADDRESS_MAX = ANSWERS_BYTES_MAX / 4;
/** What a streamed answer counts as to its end: the pieces of it that are under way. */
export const STREAM_BYTES_HELD = 2 ** 18;
/** A piece of a streamed list. */
export const STREAM_CHUNK_CHARACTERS = 65_536;
