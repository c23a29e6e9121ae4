/**
 * The documents of settings that hold for the whole cluster: their fields, and what applies where nothing is configured.
 * Only what somebody configured is stored; a default is computed, so that a later version may have a better one.
 */
import Type, { type Static, type TObject } from "typebox";
import * as limits from "./limits.ts";
import { NOT_PUBLIC_NETWORKS } from "./not-public-networks.ts";

const closed = { additionalProperties: false } as const;
const flag = (description: string) => Type.Boolean({ description });
const upTo = (maximum: number, description: string) => Type.Integer({ minimum: 0, maximum, description });
const from1To = (maximum: number, description: string) => Type.Integer({ minimum: 1, maximum, description });
const networks = (description: string) =>
  Type.Array(Type.String({ maxLength: 43, examples: ["192.0.2.0/24"] }), {
    maxItems: limits.NETWORKS_MAX,
    uniqueItems: true,
    description,
  });
const endpoint = (description: string) => Type.String({ minLength: 1, maxLength: limits.ENDPOINT_MAX, description });

const RateLimits = Type.Object(
  {
    auth: upTo(
      limits.RATE_LIMIT_MAX,
      "Sign-in requests a minute of one address, and of one user name; 0: the default.",
    ),
    upload: upTo(
      limits.RATE_LIMIT_MAX,
      "Uploads of snapshots and compactions a minute of one address; 0: the default.",
    ),
    write: upTo(limits.RATE_LIMIT_MAX, "Other changing requests a minute of one address; 0: the default."),
    read: upTo(limits.RATE_LIMIT_MAX, "Reading requests a minute of one address; 0: the default."),
  },
  closed,
);

const DeleteGuardrails = Type.Object(
  {
    bulk_delete_cap: from1To(limits.BULK_DELETE_CAP_MAX, "Ids that one bulk delete may name."),
    default_zone_deletion_lock: flag("The deletion lock of a zone whose creation does not say."),
  },
  closed,
);

const RegionDiscovery = Type.Object(
  {
    mode: Type.Union([Type.Literal("arm-list"), Type.Literal("resource-graph")], {
      description: "How subnets are read from the cloud platform.",
    }),
  },
  closed,
);

const Axfr = Type.Object(
  {
    enabled: flag("Whether zones may be transferred at all."),
    allow_networks: networks("Networks that may transfer without a key."),
    notify_targets: Type.Array(endpoint("Address or host name, with or without a port."), {
      maxItems: limits.NOTIFY_TARGETS_MAX,
      uniqueItems: true,
      description: "Secondaries that are told of changes (RFC 1996).",
    }),
    notify_tsig_key_name: Type.Union([Type.Null(), Type.String({ minLength: 1, maxLength: limits.NAME_TEXT_MAX })], {
      description: "Key that NOTIFY is signed with; null: unsigned.",
    }),
    notify_debounce_seconds: upTo(limits.NOTIFY_DEBOUNCE_SECONDS_MAX, "Changes within this time share one NOTIFY."),
  },
  closed,
);

const QueryLog = Type.Object(
  {
    enabled: flag("Whether queries are logged."),
    sample_rate: from1To(limits.SAMPLE_RATE_MAX, "One query in so many is logged."),
  },
  closed,
);

const DynamicDns = Type.Object(
  {
    enabled: flag("Whether updates of RFC 2136 are taken at all."),
    allow_unsigned_networks: networks("Networks that may update without a key."),
  },
  closed,
);

const Cache = Type.Object(
  {
    enabled: flag("Whether forwarded answers are kept."),
    max_bytes: Type.Integer({
      minimum: limits.CACHE_BYTES_MIN,
      maximum: limits.CACHE_BYTES_MAX,
      description: "Memory of the cache.",
    }),
    min_ttl_seconds: upTo(limits.CACHE_TTL_SECONDS_MAX, "A lower TTL is raised to this."),
    max_ttl_seconds: from1To(limits.CACHE_TTL_SECONDS_MAX, "A higher TTL is lowered to this."),
    max_negative_ttl_seconds: upTo(limits.CACHE_TTL_SECONDS_MAX, "The same for NXDOMAIN and NODATA (RFC 2308)."),
  },
  closed,
);

const Recursion = Type.Object(
  {
    allow_networks: networks(
      "Networks for whose clients names are resolved that are not ours; default: all that cannot be reached from the public Internet.",
    ),
  },
  closed,
);

const Replication = Type.Object(
  {
    push_pull_interval_seconds: upTo(
      limits.PUSH_PULL_SECONDS_MAX,
      "Between two full comparisons with a peer; 0: the default.",
    ),
    readyz_queue_threshold: upTo(
      limits.QUEUE_THRESHOLD_MAX,
      "Changes in the queue that make a node not ready; 0: the default.",
    ),
  },
  closed,
);

const HealthProbePolicy = Type.Object(
  {
    allow_insecure_authenticated_probes: flag("Whether probes may send credentials without TLS."),
    managed_identity_hosts: Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
      maxItems: limits.PROBE_HOSTS_MAX,
      uniqueItems: true,
      description: "Hosts, and with a leading `*.` all names below, that may be sent a token of the managed identity.",
    }),
  },
  closed,
);

const PrivateEndpoints = Type.Object(
  { enabled: flag("Whether private endpoints are registered by themselves.") },
  closed,
);

const Transport = Type.Object(
  {
    dot_enabled: flag("DNS over TLS (RFC 7858)."),
    dot_listen_addr: endpoint("Address and port of DNS over TLS."),
    doh_enabled: flag("DNS over HTTPS (RFC 8484)."),
    doh_listen_addr: endpoint("Address and port of DNS over HTTPS."),
  },
  closed,
);

const Otlp = Type.Object(
  {
    enabled: flag("Whether metrics are exported."),
    endpoint: Type.Union([Type.Null(), Type.String({ minLength: 1, maxLength: limits.URL_MAX })], {
      description: "URL of the collector.",
    }),
    headers: Type.Record(
      Type.String({ maxLength: limits.HEADER_NAME_MAX }),
      Type.String({ maxLength: limits.HEADER_VALUE_MAX }),
      { maxProperties: limits.OTLP_HEADERS_MAX, description: "Sent with every export. Values are secrets." },
    ),
    interval_seconds: Type.Integer({
      minimum: 5,
      maximum: limits.OTLP_INTERVAL_SECONDS_MAX,
      description: "Between two exports.",
    }),
    timeout_seconds: from1To(60, "Of one export."),
  },
  closed,
);

const DefaultForwarder = Type.Object(
  {
    upstreams: Type.Array(
      Type.String({ minLength: 1, maxLength: limits.UPSTREAM_TEXT_MAX, examples: ["192.0.2.53:53"] }),
      {
        maxItems: limits.UPSTREAMS_MAX,
        description:
          "Servers that are asked with recursion: `host` or `host:port`, IPv6 addresses in brackets, `tls://host:port#name` for DNS over TLS.",
      },
    ),
    enabled: flag("Whether names are forwarded that nothing else matches; otherwise they are refused."),
  },
  closed,
);

const secondsOrNull = (description: string) =>
  Type.Union([Type.Null(), Type.Integer({ minimum: 0, maximum: limits.CACHE_TTL_SECONDS_MAX })], { description });

const Hardening = Type.Object(
  {
    case_randomization: flag("Questions are asked in random case, which the answer has to repeat (0x20)."),
    dns_cookies: flag("Questions carry a cookie (RFC 7873)."),
    bailiwick_scrubbing: flag("What the question did not ask for is left out of answers."),
    rebinding_protection: flag("Addresses of private networks are left out of answers."),
    rebinding_exceptions: Type.Array(
      Type.String({ minLength: 1, maxLength: limits.NAME_TEXT_MAX, examples: ["lan.example."] }),
      {
        maxItems: limits.REBINDING_EXCEPTIONS_MAX,
        description: "Names that may have private addresses, with all names below; each ends in a dot.",
      },
    ),
    max_udp_size: Type.Integer({
      minimum: limits.UDP_SIZE_MIN,
      maximum: limits.UDP_SIZE_MAX,
      description: "The largest answer over UDP that upstreams are asked for.",
    }),
    min_ttl_seconds: secondsOrNull("A lower TTL is raised to this; null: as the cache has it."),
    max_ttl_seconds: secondsOrNull("A higher TTL is lowered to this; null: as the cache has it."),
    serve_stale: flag("Answers whose time is over are given where no upstream answers (RFC 8767)."),
    serve_stale_seconds: from1To(limits.SERVE_STALE_SECONDS_MAX, "For how long after their time."),
    refuse_any: flag("Queries of type ANY are refused."),
  },
  closed,
);

export const CONFIG_SCHEMAS = {
  "rate-limits": RateLimits,
  "delete-guardrails": DeleteGuardrails,
  "region-discovery": RegionDiscovery,
  axfr: Axfr,
  "query-log": QueryLog,
  "dynamic-dns": DynamicDns,
  cache: Cache,
  recursion: Recursion,
  replication: Replication,
  "health-probe-policy": HealthProbePolicy,
  "private-endpoints": PrivateEndpoints,
  transport: Transport,
  otlp: Otlp,
  "default-forwarder": DefaultForwarder,
  hardening: Hardening,
} as const satisfies Record<string, TObject>;

export type ConfigName = keyof typeof CONFIG_SCHEMAS;
export type ConfigSettings<Name extends ConfigName> = Static<(typeof CONFIG_SCHEMAS)[Name]>;

/** What a GET shows of a field that nobody configured. 0 in some fields stands for a value that a version chooses. */
export const CONFIG_UNSET: { readonly [Name in ConfigName]: ConfigSettings<Name> } = {
  "rate-limits": { auth: 0, upload: 0, write: 0, read: 0 },
  "delete-guardrails": { bulk_delete_cap: 100, default_zone_deletion_lock: false },
  "region-discovery": { mode: "arm-list" },
  axfr: {
    enabled: false,
    allow_networks: [],
    notify_targets: [],
    notify_tsig_key_name: null,
    notify_debounce_seconds: 2,
  },
  "query-log": { enabled: false, sample_rate: 1 },
  "dynamic-dns": { enabled: false, allow_unsigned_networks: [] },
  cache: {
    enabled: true,
    max_bytes: 64 * 2 ** 20,
    min_ttl_seconds: 0,
    max_ttl_seconds: 86_400,
    max_negative_ttl_seconds: 3_600,
  },
  recursion: { allow_networks: [...NOT_PUBLIC_NETWORKS] },
  replication: { push_pull_interval_seconds: 0, readyz_queue_threshold: 0 },
  "health-probe-policy": { allow_insecure_authenticated_probes: false, managed_identity_hosts: [] },
  "private-endpoints": { enabled: false },
  transport: { dot_enabled: false, dot_listen_addr: "0.0.0.0:853", doh_enabled: false, doh_listen_addr: "0.0.0.0:443" },
  otlp: { enabled: false, endpoint: null, headers: {}, interval_seconds: 60, timeout_seconds: 10 },
  "default-forwarder": { upstreams: [], enabled: false },
  hardening: {
    case_randomization: true,
    dns_cookies: true,
    bailiwick_scrubbing: true,
    rebinding_protection: false,
    rebinding_exceptions: [],
    max_udp_size: 1_232,
    min_ttl_seconds: null,
    max_ttl_seconds: null,
    serve_stale: false,
    serve_stale_seconds: 86_400,
    refuse_any: false,
  },
};

/** What 0 stands for. */
export const CONFIG_ZEROS: { readonly [Name in ConfigName]?: Partial<ConfigSettings<Name>> } = {
  "rate-limits": { auth: 60, upload: 6, write: 6_000, read: 30_000 },
  replication: { push_pull_interval_seconds: 30, readyz_queue_threshold: limits.READYZ_QUEUE_THRESHOLD },
};
