/** What bounds exchanges with upstreams. */

/** Exchanges open at a time, over all servers: those of 20,000 questions, each with a second server behind the first. */
export const EXCHANGES_MAX = 40_000;
/** Where there are no more, who has waited for longer gives way to who has not asked yet. */
export const GIVES_WAY_AFTER_MS = 500;
/** EDNS UDP size where no hardening says another: what passes every path unfragmented (DNS Flag Day 2020). */
export const UDP_SIZE = 1_232;
/** Queries over TLS are padded to a multiple of so many bytes (RFC 8467 section 4.1). */
export const PADDING_BYTES = 128;

/** Connections to one server, and to all. */
export const TCP_CONNECTIONS_MAX = 32;
export const TLS_CONNECTIONS_MAX = 4;
export const CONNECTIONS_MAX = 512;
/** Queries on their way at a time in one connection over TLS; over TCP it is one, as some servers expect. */
export const TLS_PIPELINE_MAX = 100;
/** A connection without a query ends after so long (RFC 7766 section 6.2.3). */
export const TCP_IDLE_MS = 2_000;
export const TLS_IDLE_MS = 10_000;
/** Messages of a connection that nobody waits for, before it is taken for broken. */
export const STRAY_MESSAGES_MAX = 16;

/** For one question, over all its servers: clients give up after five seconds. */
export const QUESTION_MS = 4_500;
/** A server that is not known yet is waited for so long before the next is asked too. */
export const UNKNOWN_RTO_MS = 400;
export const UNKNOWN_TLS_RTO_MS = 1_000;
export const RTO_MIN_MS = 100;
export const RTO_MAX_MS = 1_500;
/** One question goes to the same server at most so often, and is sent at most so often in all. */
export const TRIES_OF_SERVER = 3;
export const TRIES_OF_QUESTION = 8;
/** So many silences in a row make a failing server. */
export const SILENCES_MAX = 4;
/** None of them counts while it has answered another question so lately: it is the names that nobody answers for. */
export const ANSWERED_LATELY_MS = 2_000;
/** A failing server is tried anew after the first time, which doubles up to the last. */
export const BACKOFF_FIRST_MS = 1_000;
export const BACKOFF_LAST_MS = 60_000;
/** Where nothing but failing servers is left, one of them has at most so many questions at a time. */
export const FAILING_ASKED_MAX = 64;
/** Where it has them, it is asked so often at most for what every server has an answer to. */
export const ALIVE_ASKED_MS = 250;
/** A server that was not asked for so long is measured again, beside the one that is asked. */
export const MEASURED_MS = 60_000;
/** So many unusable answers in a row put a server behind those that give usable ones. */
export const UNUSABLE_MAX = 4;
/** Servers of which is remembered how fast they are. */
export const SERVERS_REMEMBERED = 4_096;

/** Addresses of an upstream's host name, and how long they are kept. */
export const HOST_ADDRESSES_MAX = 8;
export const HOST_KEPT_MS = 60_000;
/** After a look-up that found nothing. */
export const HOST_RETRY_MS = 2_000;
export const HOST_LOOKUP_MS = 4_000;
export const HOSTS_MAX = 1_024;
