/** Every limit of the product's nouns, named once. Each area has its own paragraph. */

/** Faults that one refusal names; more help nobody. */
export const FAULTS_MAX = 50;

/** Users, sessions and tokens. Lengths in characters. */
export const USERNAME_CHARACTERS_MAX = 128;
export const PASSWORD_CHARACTERS_MIN = 16;
export const PASSWORD_CHARACTERS_MAX = 1024;
export const TOKEN_CHARACTERS_MAX = 4096;
export const USERS_MAX = 10_000;
/** Beyond them the one that was used least lately ends. */
export const SESSIONS_PER_USER_MAX = 100;
/** Entries in the audit log; beyond those of a minute failures are counted, beyond those of a day in one entry an hour. */
export const SIGN_IN_FAILURES_PER_MINUTE = 600;
export const SIGN_IN_FAILURES_PER_DAY = 20_000;

/** Service accounts. */
export const SERVICE_ACCOUNTS_MAX = 10_000;
export const SERVICE_ACCOUNT_NAME_CHARACTERS_MAX = 128;
export const SERVICE_ACCOUNT_ZONES_MAX = 1_000;
export const SERVICE_ACCOUNT_YEARS_MAX = 10;
export const COMMENT_CHARACTERS_MAX = 1_000;

/** Settings of single sign-on. */
export const IDP_TEXT_CHARACTERS_MAX = 500;
export const IDP_ENTRIES_MAX = 50;
export const IDP_CLAIM_VALUE_CHARACTERS_MAX = 128;
/** Of each request to the identity provider. */
export const IDP_TIMEOUT_SECONDS = 10;
export const IDP_ANSWER_BYTES_MAX = 2 ** 20;
export const IDP_RETURN_CHARACTERS_MAX = 1_000;
/** Of one parameter that the provider sends the browser back with. */
export const IDP_PARAMETER_CHARACTERS_MAX = 4_096;
/** From the redirect to the provider until the browser is back. */
export const IDP_SIGN_IN_SECONDS = 600;

/** Names, zones, records. Text of a name: 255 bytes of wire form, each of them written as `\DDD` at worst. */
export const NAME_TEXT_MAX = 1016;
/** RFC 2181 section 8. */
export const TTL_MAX = 2_147_483_647;
export const DEFAULT_TTL = 3600;
export const OVERRIDE_DEFAULT_TTL = 300;
export const UINT16_MAX = 65_535;
export const CAA_FLAGS_MAX = 255;
export const CAA_VALUE_MAX = 4096;
export const VALUES_MAX = 1000;
export const VALUE_TEXT_MAX = 32_768;
/** A record as JSON, in bytes: it must fit into one value of the store, its secrets sealed, and into one DNS message. */
export const RECORD_BYTES_MAX = 48_000;
export const COMMENT_MAX = 1000;
export const REGION_MAX = 64;
export const ID_MAX = 64;
export const SERIAL_MAX = 4_294_967_295;
/** The greatest serial taken from an import: above it, later changes would soon wrap around. */
export const IMPORTED_SERIAL_MAX = 4_000_000_000;

/** Policies and health checks. */
export const WEIGHT_MAX = 100;
export const WEIGHTS_SUM_MAX = 100;
export const REGION_PREFERENCE_MAX = 100;
export const AFFINITY_TTL_SECONDS_MAX = 604_800;
export const PROBE_INTERVAL_SECONDS_DEFAULT = 15;
export const PROBE_INTERVAL_SECONDS_MAX = 86_400;
export const PROBE_TIMEOUT_SECONDS_DEFAULT = 5;
export const PROBE_PATH_MAX = 2048;
export const PROBE_STATUSES_MAX = 100;
export const PROBE_HEADERS_MAX = 32;
export const HEADER_NAME_MAX = 128;
export const HEADER_VALUE_MAX = 4096;
export const URL_MAX = 2048;
export const CREDENTIAL_MAX = 4096;
export const PEM_MAX = 16_384;
export const HEALTH_CHECKS_MAX = 5_000;
export const HEALTH_CHECK_NAME_CHARACTERS_MAX = 128;
/** A check as JSON, in bytes, as a record's. */
export const HEALTH_CHECK_BYTES_MAX = 48_000;
export const FAILURE_THRESHOLD_DEFAULT = 3;
export const FAILURE_THRESHOLD_MAX = 100;
export const SCRIPT_COMMAND_CHARACTERS_MAX = 1024;
export const SCRIPT_ARGS_MAX = 64;
export const SCRIPT_ARG_CHARACTERS_MAX = 4096;

/** Imports. Bodies in bytes; what a request may hold, and what one zone of it may. */
export const IMPORT_BYTES_MAX = 20 * 1_000_000;
export const ZONE_IMPORT_BYTES_MAX = 10 * 1_000_000;
export const IMPORT_ZONES_MAX = 50;
export const IMPORT_ZONE_RECORDS_MAX = 50_000;
/** All zones of a request together: as one transaction they take some 1.5 KB of the control thread's heap each. */
export const IMPORT_RECORDS_MAX = 250_000;
/** Entries of each list of faults and notes in the answer to an import; the rest are counted. */
export const IMPORT_NOTES_MAX = 1_000;
/** One row of CSV: the longest value, quoted, beside its other columns. */
export const CSV_ROW_BYTES_MAX = 100_000;
/** One header block and the boundary of a part of multipart/form-data (RFC 2046 section 5.1.1). */
export const MULTIPART_HEADER_BYTES_MAX = 8_192;
export const MULTIPART_BOUNDARY_MAX = 70;
export const FILE_NAME_MAX = 255;

/** Ids that the body of a bulk-delete has room for, so that it is the cap of the guardrails that refuses too many. */
export const BULK_IDS_MAX = 100_000;

/** Documents of settings. */
export const RATE_LIMIT_MAX = 10_000_000;
export const BULK_DELETE_CAP_MAX = 10_000;
export const NETWORKS_MAX = 1_000;
export const NOTIFY_TARGETS_MAX = 100;
export const NOTIFY_DEBOUNCE_SECONDS_MAX = 3_600;
export const SAMPLE_RATE_MAX = 1_000_000;
export const DEBUG_WINDOW_SECONDS_MAX = 3_600;
export const DEBUG_WINDOW_SECONDS_DEFAULT = 900;
export const CACHE_BYTES_MIN = 2 ** 20;
export const CACHE_BYTES_MAX = 2 ** 32;
export const CACHE_TTL_SECONDS_MAX = 604_800;
export const PUSH_PULL_SECONDS_MAX = 3_600;
/** Where 0 is configured. */
export const READYZ_QUEUE_THRESHOLD = 5_000;
export const QUEUE_THRESHOLD_MAX = 10_000_000;
export const PROBE_HOSTS_MAX = 100;
export const OTLP_INTERVAL_SECONDS_MAX = 3_600;
export const OTLP_HEADERS_MAX = 32;
/** An address or a host name, with a port. */
export const ENDPOINT_MAX = 262;

/** The cluster. Addresses that one request has dialled, and zones that one asks all nodes of. */
export const JOIN_ADDRESSES_MAX = 32;
/** The id of an entry of the conflict journal, in characters: its key. A path has room for no more. */
export const CONFLICT_ID_MAX = 512;
export const CONSISTENCY_ZONES_DEFAULT = 100;
export const CONSISTENCY_ZONES_MAX = 500;
/** A pending zone becomes active after that time, acknowledged or not; each further node steps in that much later. */
export const ZONE_ACTIVATION_MS = 60_000;
export const ZONE_ACTIVATION_STEP_MS = 5_000;
/** After a start the others get at least so long to be met and to acknowledge. */
export const ZONE_ACTIVATION_RESTART_MS = 10_000;

/** Forwarders and stub zones. */
export const UPSTREAMS_MAX = 16;
/** `tls://`, a host with its port, `#` and a name. */
export const UPSTREAM_TEXT_MAX = 528;
/** Conditional forwarders and stub zones together. */
export const ROUTES_MAX = 5_000;
export const REBINDING_EXCEPTIONS_MAX = 1_000;
/** RFC 6891 section 6.2.3 knows no less; beyond it answers are fragmented on their way. */
export const UDP_SIZE_MIN = 512;
export const UDP_SIZE_MAX = 4_096;
/** RFC 8767 section 5 recommends one to three days. */
export const SERVE_STALE_SECONDS_MAX = 604_800;

/** TSIG keys and subnet mappings. */
export const TSIG_KEYS_MAX = 1_000;
/** 128 bits; RFC 8945 section 8 wants a secret that cannot be guessed. */
export const TSIG_SECRET_BYTES_MIN = 16;
export const TSIG_SECRET_BYTES_MAX = 512;
export const TSIG_GRANTS_MAX = 200;
export const TSIG_GRANT_NAMES_MAX = 1_000;
/** A key as JSON, so that it fits into one value of the store. */
export const TSIG_KEY_BYTES_MAX = 48_000;
export const SUBNET_MAPPINGS_MAX = 200_000;

/** Access tokens whose signature a node need not verify again. */
export const ACCESS_TOKENS_REMEMBERED_MAX = 4_096;

/** The blocklist. A body of the largest list of usual names; a list of long names has fewer. */
export const BLOCKLIST_BYTES_MAX = 40 * 1_000_000;
export const BLOCKLIST_DOMAINS_MAX = 1_500_000;
/** Names of one part, in bytes: deflated at worst and in base64 they fit into one value of the store. */
export const BLOCKLIST_PART_BYTES_MAX = 44_000;
/** Hashes of that many parts fit into one value of the store, the index. */
export const BLOCKLIST_PARTS_MAX = 2_500;
/** Names of one shard, in bytes. A list exceeds it where its names were chosen to. */
export const BLOCKLIST_SHARD_BYTES_MAX = 2 ** 22;
/** Lists up to here are shown in the order of names. */
export const BLOCKLIST_SORTED_MAX = 10_000;
/** Parts that no list names any more are kept so long: another node may be about to name them, or be reading them. */
export const BLOCKLIST_PARTS_KEPT_MS = 3_600_000;
