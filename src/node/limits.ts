/** Every limit of the running node, named once. */
import { MAX_THREADS } from "../image/shared.ts";

/** From the signal to the end of the process, whatever still runs. */
export const STOP_DEADLINE_MS = 4_500;
/** Heap of the control thread; what it exceeds ends that thread only. */
export const CONTROL_HEAP_MB = 1_024;
/** Its room for new objects: as much of it as one large request has ever filled stays with the process. */
export const CONTROL_YOUNG_MB = 24;
/** Heap of the health thread: 20,000 probes with their history take a quarter of it. */
export const HEALTH_HEAP_MB = 384;
/** Heap of a listener thread: it needs next to nothing. */
export const LISTENER_HEAP_MB = 256;

/** Heap of the resolve thread: 100,000 clients and 20,000 questions take half of it. */
export const RESOLVE_HEAP_MB = 512;

/** Clients that wait to be resolved, the bytes of their queries in all, */
export const CLIENTS_MAX = 100_000;
export const CLIENT_BYTES_MAX = 2 ** 26;
/** and how long one waits at most, over how many names of a chain. How often that is looked at. */
export const CLIENT_MS = 8_000;
export const CLIENT_ROUNDS_MAX = 20;
export const CLIENT_SWEEP_MS = 250;
/** Bytes of answers on their way to one thread that sends them itself; the clients beyond wait unanswered. */
export const ANSWER_BYTES_UNDER_WAY_MAX = 2 ** 22;
/** Queries that the resolve thread takes, and clients that it answers, before its sockets and timers have their turn. */
export const CLIENTS_TURN = 64;
/** It gives way to threads that answer, by so much of the system's "nice" (Linux, where a thread has its own). */
export const RESOLVE_NICE = 10;
/** How long the control thread waits for what the resolve thread is asked. */
export const RESOLVE_ASK_MS = 5_000;

/** A thread that lived this long was healthy: its death is answered at once, as a first one. */
export const HEALTHY_AFTER_MS = 30_000;
/** Pause before the second replacement; it doubles with every further one up to the longest. */
export const FIRST_PAUSE_MS = 100;
export const LONGEST_PAUSE_MS = 10_000;
/** How often a thread gives a sign of life, and how often the supervisor looks for it. */
export const LIFE_SIGN_MS = 500;
export const LIFE_CHECK_MS = 1_000;
/** The control thread may be busy for a moment: collecting a large heap, opening a large store. */
export const LIFELESS_AFTER_MS = 20_000;
/** The health thread never has more than a moment's work in one go. */
export const HEALTH_LIFELESS_AFTER_MS = 10_000;
/** Nor has the resolve thread. */
export const RESOLVE_LIFELESS_AFTER_MS = 10_000;
/** Nor has the thread of DNS over TLS and HTTPS. */
export const SECURE_LIFELESS_AFTER_MS = 10_000;
/** A change of where DNS over TLS and HTTPS listen is acknowledged when it is so, or after this. */
export const SECURE_SETTLES_MS = 5_000;
/**
 * A thread that does not run yet may take longer for what it starts with: on a machine with much other work one that was ended
 * for that would be replaced by one that is as slow, for ever.
 */
export const START_MS_MAX = 60_000;
/** A thread that is ended ends at once; one that has not by then never will. */
export const STUCK_AFTER_MS = 5_000;

/** Of probed hosts outside of our zones: how long one attempt to find addresses takes, and how many there are. */
export const RESOLVE_MS = 1_000;
export const RESOLVE_TRIES = 2;
/** What was found is asked for again after this long, and this many hosts are kept. */
export const RESOLVED_MS = 2_000;
export const RESOLVED_MAX = 10_000;

/** Of the files and sockets that the process may have open, the shares that probes and questions to upstreams may take. */
export const HEALTH_DESCRIPTOR_SHARE = 0.25;
export const UPSTREAM_DESCRIPTOR_SHARE = 0.25;
/** Sockets for questions over UDP that are open at the same time, at most. */
export const UPSTREAM_SOCKETS_MAX = 4_096;
/** The file of health states: a line is some 80 bytes. */
export const HEALTH_STATE_BYTES_MAX = 2 ** 26;
/** It is written this soon after a state has changed, and this often for the ages of those that have not. */
export const HEALTH_STATE_CHANGED_MS = 5_000;
export const HEALTH_STATE_REFRESH_MS = 30_000;

/** How often the control thread looks at its heap; see memory-guard.ts. */
export const HEAP_CHECK_MS = 100;
/** Used share of the heap beyond which garbage is collected to see what of it lives, and how often at most. */
export const HEAP_SUSPECT_SHARE = 0.75;
export const HEAP_COLLECT_MS = 2_000;
/** Living share of the heap beyond which the thread makes way for another. */
export const HEAP_FULL_SHARE = 0.7;

/** The management listener serves a few small answers to a few known clients. */
export const MANAGEMENT_CONNECTIONS = 64;
export const MANAGEMENT_HEADER_BYTES = 8_192;
export const MANAGEMENT_REQUEST_MS = 5_000;

/** The largest zone file that is read: some forty million records. */
export const ZONE_FILE_BYTES_MAX = 2 ** 30;

/** A configuration file is a page; what is larger is another file. */
export const CONFIG_FILE_BYTES_MAX = 2 ** 20;
export const SECRET_FILE_BYTES_MAX = 2 ** 16;
export const AUTHORITIES_BYTES_MAX = 2 ** 20;

/**
 * Readers of the image besides the threads that answer UDP: stream, secure, health, control where it explains an answer, resolve, and
 * once more resolve where it asks our own zones for a host.
 */
const READERS_BESIDE = 6;
export const ANSWER_THREADS_MAX = MAX_THREADS - READERS_BESIDE;

/** Zones that the log names one by one at the start. */
export const SERVED_ZONES_NAMED = 10;

/** Series of single checks and values in the metrics; the rest is counted. */
export const HEALTH_CHECK_SERIES_MAX = 1_000;
export const HEALTH_VALUE_SERIES_MAX = 2_000;
/** One scrape reads many figures of the health thread, and asks for them once. */
export const HEALTH_FIGURES_MS = 500;

/** Series of single upstreams in the metrics; the rest is counted together. Figures are asked for once a scrape. */
export const UPSTREAM_SERIES_MAX = 100;
export const RESOLVE_FIGURES_MS = 500;
/** Who resolves knows a route for so long after it is gone: longer than any client of it waits. */
export const ROUTES_KEPT_MS = 10_000;

/** Events of health in the log within EVENT_LINES_MS; those beyond are counted. */
export const EVENT_LINES_MAX = 100;
export const EVENT_LINES_MS = 10_000;

/** Lines of debug capture that the control thread keeps. */
export const DEBUG_LINES_MAX = 1_000;
/** Heap of the thread that writes the query log. */
export const QUERY_LOG_HEAP_MB = 128;
/** It lives on for so long when nobody wants it any more, so that what is on its way arrives. */
export const QUERY_LOG_IDLE_MS = 1_000;
/** One that died is replaced after this long, and one that is to end has so long. */
export const QUERY_LOG_RESTART_MS = 1_000;
export const QUERY_LOG_STOP_MS = 2_000;

/** Lines of one part of the node (part-log.ts) within PART_LINES_MS: of one kind, and of all. */
export const PART_LINES_MS = 60_000;
export const PART_LINES_OF_KIND_MAX = 20;
export const PART_LINES_MAX = 100;
