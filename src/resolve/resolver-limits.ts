/** Every limit of the resolver, named once. */

/** Questions being resolved at the same time, whoever waits in all, and whoever waits for one question. */
export const IN_FLIGHT_MAX = 20_000;
export const WAITING_MAX = 100_000;
export const WAITING_EACH_MAX = 20_000;
/** Share of the questions in flight beyond which popular entries are not fetched ahead of their end. */
export const REFRESH_SHARE = 0.5;

/** How long a failure is answered without asking again (RFC 9520 section 3.2). */
export const FAILURE_SECONDS = 1;
/** Whoever waits is given an expired answer after this long (RFC 8767 section 5: client response timer). */
export const STALE_AFTER_MS = 1_800;
/** An expired answer is given for so long before the upstreams are asked again (RFC 8767 section 5: failure recheck timer). */
export const STALE_SECONDS = 30;

/** Servers asked one after the other to find an answer below a stub zone, and the time that all of it may take. */
export const ITERATION_STEPS_MAX = 16;
export const ITERATION_MS = 6_000;
/** With those that it takes to find addresses of name servers, however they hang together. */
export const ITERATION_STEPS_ALL = 32;
/** What one step of it may take. */
export const STEP_MS = 3_000;
/** Names of name servers that one question may make us look up: what NXNSAttack multiplies (CVE-2020-8616). */
export const NAME_SERVER_LOOKUPS_MAX = 5;
/** CNAMEs on the way from a name server's name to its addresses. */
export const NAME_SERVER_ALIASES_MAX = 4;
/** Name servers of a referral, and their addresses, that are taken notice of. */
export const NAME_SERVERS_MAX = 13;
export const NAME_SERVER_ADDRESSES_MAX = 26;

/** Zone cuts below stub zones, and name servers' addresses, that are kept, and how long at least and at most. */
export const LEARNED_MAX = 10_000;
export const LEARNED_SECONDS_MIN = 1;
export const LEARNED_SECONDS_MAX = 86_400;
/** A name server without an address is not looked up again before. */
export const LEARNED_FAILURE_SECONDS = 5;

/** Room for the answers on their way to those who wait, where the cache is off. */
export const CACHE_OFF_BYTES = 2 ** 22;
/** The least that a cache may have: some of the largest answers. */
export const CACHE_BYTES_MIN = 2 ** 20;
export const CACHE_BYTES_MAX = 2 ** 32;
/** The cache comes in steps of this. */
export const CACHE_STEP_BYTES = 2 ** 16;
