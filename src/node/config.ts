/** The settings of a node: one table, and how a configuration file and SVC_ variables over embedded defaults fill it. */
import { OperatorError } from "../base/errors.ts";
import { ipFromText } from "../base/ip.ts";
import { LOG_LEVELS } from "../base/log.ts";
import { isWildcard } from "../listen/address.ts";
import { UDP_SLOT_BYTES } from "../listen/limits.ts";
import {
  PASSWORD_CHARACTERS_MAX,
  PASSWORD_CHARACTERS_MIN,
  PUSH_PULL_SECONDS_MAX,
  QUEUE_THRESHOLD_MAX,
} from "../model/limits.ts";
import { EVENT_TYPES } from "../notify/event.ts";
import { environmentSettings } from "./config-environment.ts";
import { readConfigFile } from "./config-file.ts";
import { ANSWER_THREADS_MAX } from "./limits.ts";
import {
  ADDRESS,
  ADDRESSES,
  identifier,
  METADATA_URL,
  NETWORKS,
  ORIGINS,
  oneOf,
  optional,
  PEER,
  PEERS,
  SCHEDULE,
  type SettingRow,
  type SettingType,
  SWITCH,
  secret,
  TEXT,
  TOPIC_URL,
  textsOf,
  WEBHOOK_URL,
  wholeNumber,
  words,
} from "./setting-types.ts";

export const UDP_MODES = ["auto", "batch", "dgram"] as const;
export const LOG_FORMATS = ["auto", "text", "json"] as const;
export const SERVICE_ACCOUNT_SCOPES = ["issuing-node", "cluster"] as const;

const LEAST_UDP_SIZE = 512;
/** It goes into NSID options and TXT answers beside everything else that an answer has. */
const LONGEST_NODE_ID_BYTES = 63;
/** As many as base64 has for 16 random bytes, the least that resists guessing. */
const LEAST_KEY_CHARACTERS = 24;
const LONGEST_SECRET_CHARACTERS = 1_024;
const MOST_SECONDS = 86_400;

/** Every setting, in the order of the help text. */
export const SETTINGS = {
  "node.id": {
    type: optional(identifier(LONGEST_NODE_ID_BYTES)),
    fallback: "",
    help: "name of this node, also answered to id.server; empty: a random one, and such questions are refused",
  },
  "node.region": {
    type: optional(identifier(LONGEST_NODE_ID_BYTES)),
    fallback: "",
    help: "region of this node, and of clients that no subnet mapping covers",
  },
  "node.data_dir": { type: TEXT, fallback: "./data", help: "directory of this node's data, made where it is missing" },
  "dns.listen": {
    type: ADDRESSES,
    fallback: "127.0.0.1:5353",
    help: "addresses served over UDP and TCP",
  },
  "dns.threads": {
    type: wholeNumber(0, ANSWER_THREADS_MAX),
    fallback: "0",
    help: "threads that answer UDP; 0: one a core",
  },
  "dns.max_udp_size": {
    type: wholeNumber(LEAST_UDP_SIZE, UDP_SLOT_BYTES),
    fallback: "1232",
    help: "largest UDP answer in bytes, 512 to 4096",
  },
  "dns.udp": {
    type: oneOf(UDP_MODES),
    fallback: "auto",
    help: "batch (Linux system calls), dgram (Node's sockets) or auto",
  },
  "dns.client_subnet_sources": {
    type: NETWORKS,
    fallback: "",
    help: "networks of resolvers whose EDNS Client Subnet (RFC 7871) is believed; empty: none",
  },
  "dns.tsig_md5": { type: SWITCH, fallback: "false", help: "keys of HMAC-MD5, for what can sign with nothing better" },
  "api.listen": { type: ADDRESS, fallback: "127.0.0.1:8443", help: "address of the API, HTTPS" },
  "api.tls_cert_file": { type: optional(TEXT), fallback: "", help: "certificate chain, PEM; empty: a self-made one" },
  "api.tls_key_file": { type: optional(TEXT), fallback: "", help: "its private key, PEM" },
  "api.allowed_origins": { type: ORIGINS, fallback: "", help: "origins of pages that may call the API" },
  "api.trusted_proxies": {
    type: NETWORKS,
    fallback: "",
    help: "networks whose X-Forwarded-For names the client",
  },
  "management.listen": {
    type: ADDRESS,
    fallback: "127.0.0.1:8080",
    help: "address of /healthz, /readyz and /metrics",
  },
  "forwarders.ca_file": {
    type: optional(TEXT),
    fallback: "",
    help: "certificates, PEM, that upstreams over TLS may be vouched for by, besides the system's",
  },
  "replication.listen": { type: ADDRESS, fallback: "127.0.0.1:7946", help: "address for peers" },
  "replication.advertise": { type: optional(PEER), fallback: "", help: "host:port that peers dial" },
  "replication.encrypt_key": {
    type: optional(secret(LEAST_KEY_CHARACTERS, LONGEST_SECRET_CHARACTERS)),
    fallback: "",
    help: "the cluster's key, the same on every node; seals secrets and signs tokens",
    isSecret: true,
  },
  "replication.join": { type: PEERS, fallback: "", help: "host:port of peers" },
  "replication.push_pull_interval_seconds": {
    type: wholeNumber(1, PUSH_PULL_SECONDS_MAX),
    fallback: "30",
    help: "how often peers compare all they hold",
  },
  "replication.readyz_queue_threshold": {
    type: wholeNumber(0, QUEUE_THRESHOLD_MAX),
    fallback: "5000",
    help: "changes waiting beyond which the node is not ready; 0: 5000",
  },
  "transport.cert_file": {
    type: optional(TEXT),
    fallback: "",
    help: "certificate chain for DNS over TLS and HTTPS, PEM; empty: the API's",
  },
  "transport.key_file": { type: optional(TEXT), fallback: "", help: "its private key, PEM" },
  "auth.initial_admin_password": {
    type: optional(secret(PASSWORD_CHARACTERS_MIN, PASSWORD_CHARACTERS_MAX)),
    fallback: "",
    help: "the admin's password at the very first start; empty: a random one, printed once",
    isSecret: true,
  },
  "auth.service_account_scope": {
    type: oneOf(SERVICE_ACCOUNT_SCOPES),
    fallback: "issuing-node",
    help: "where a service account's token is taken: issuing-node or cluster",
  },
  "script_checks.enabled": { type: SWITCH, fallback: "false", help: "health checks by script" },
  "script_checks.runner_socket": {
    type: optional(TEXT),
    fallback: "",
    help: "socket of the runner of scripts; empty: the node starts a runner of its own",
  },
  "script_checks.user": {
    type: optional(TEXT),
    fallback: "",
    help: "user that scripts run as, name or number, never root; empty: 60953, which is nobody's",
  },
  "script_checks.directory": {
    type: optional(TEXT),
    fallback: "",
    help: "directory of scripts of your own; empty: scripts are of /usr only",
  },
  "notifications.enabled": { type: SWITCH, fallback: "false", help: "send events" },
  "notifications.webhook_url": {
    type: optional(WEBHOOK_URL),
    fallback: "",
    help: "https:// URL that events are posted to",
  },
  "notifications.webhook_secret": {
    type: optional(secret(1, LONGEST_SECRET_CHARACTERS)),
    fallback: "",
    help: "key that signs them",
    isSecret: true,
  },
  "notifications.eventgrid_topic_endpoint": {
    type: optional(TOPIC_URL),
    fallback: "",
    help: "https:// URL of an event topic",
  },
  "notifications.event_types": {
    type: words(EVENT_TYPES),
    fallback: "",
    help: "events to send; empty: all",
  },
  "notifications.min_interval_seconds": {
    type: wholeNumber(0, MOST_SECONDS),
    fallback: "60",
    help: "within them an event about the same thing is not repeated",
  },
  "cloud.metadata_url": {
    type: METADATA_URL,
    fallback: "http://169.254.169.254",
    help: "where the platform's instance metadata service hands out tokens of the managed identity",
  },
  "audit.retention_days": { type: wholeNumber(1, 3_650), fallback: "90", help: "how long the audit log is kept" },
  "backup.schedule": { type: optional(SCHEDULE), fallback: "", help: "when backups are made, cron", isUnused: true },
  "backup.directory": { type: optional(TEXT), fallback: "", help: "where to", isUnused: true },
  "backup.keep": { type: wholeNumber(1, 10_000), fallback: "7", help: "how many are kept", isUnused: true },
  "backup.passphrase": {
    type: optional(secret(1, LONGEST_SECRET_CHARACTERS)),
    fallback: "",
    help: "encrypts them",
    isSecret: true,
    isUnused: true,
  },
  "query_log.file": {
    type: optional(TEXT),
    fallback: "",
    help: "file or pipe that the query log is written to, a line of JSON a query; empty: standard output",
  },
  "query_log.dnstap_socket": {
    type: optional(TEXT),
    fallback: "",
    help: "Unix socket of a receiver of dnstap; without query_log.file no lines are written then",
  },
  "log.level": { type: oneOf(LOG_LEVELS), fallback: "info", help: "debug, info, warn or error" },
  "log.format": {
    type: oneOf(LOG_FORMATS),
    fallback: "auto",
    help: "text, json or auto: text on a terminal, else json",
  },
} as const satisfies Record<string, SettingRow>;

export type Setting = keyof typeof SETTINGS;
type ValueOf<Type> = Type extends SettingType<infer Value> ? Value : never;
/** The value of every setting, under its name. */
export type Config = { readonly [S in Setting]: ValueOf<(typeof SETTINGS)[S]["type"]> };

/**
 * Reads the file, where there is one, and the environment, which goes before it. Throws OperatorError with every fault at
 * once.
 */
export function loadConfig(environment: NodeJS.ProcessEnv, file: string | undefined): Config {
  const rows: Readonly<Record<string, SettingRow>> = SETTINGS;
  const sources = [...(file === undefined ? [] : [readConfigFile(file, rows)]), environmentSettings(environment, rows)];
  const faults = sources.flatMap((source) => source.faults);
  const values: Record<string, unknown> = {};
  for (const [setting, { type, fallback }] of Object.entries(rows)) {
    const reading = type.read(textsOf(fallback, type));
    if (reading.kind === "value") values[setting] = reading.value;
  }
  const faulty = new Set<string>();
  for (const { setting, where, texts } of sources.flatMap(({ given }) => given)) {
    const reading = rows[setting]?.type.read(texts);
    if (reading?.kind === "value") values[setting] = reading.value;
    if (reading?.kind !== "fault") continue;
    faulty.add(setting);
    faults.push(`${where} ${reading.detail}`);
  }
  // Every row has put its value here by its own type.
  const config = values as Config;
  faults.push(...rulesBetween(config, faulty));
  const [first] = faults;
  if (first === undefined) return config;
  if (faults.length === 1) throw new OperatorError(first);
  throw new OperatorError(`the configuration has ${faults.length} faults`, faults);
}

/** What no setting shows by itself. `faulty`: settings of which a fault has been told, and which are not missing besides. */
function rulesBetween(config: Config, faulty: ReadonlySet<string>): string[] {
  const faults: string[] = [];
  const pairs = [
    ["api.tls_cert_file", "api.tls_key_file"],
    ["transport.cert_file", "transport.key_file"],
  ] as const;
  for (const [certificate, key] of pairs) {
    if (config[certificate] !== undefined && config[key] === undefined) faults.push(`${certificate} needs ${key}`);
    if (config[certificate] === undefined && config[key] !== undefined) faults.push(`${key} needs ${certificate}`);
  }
  const sinks = ["notifications.webhook_url", "notifications.eventgrid_topic_endpoint"] as const;
  if (config["notifications.enabled"] && sinks.every((sink) => config[sink] === undefined && !faulty.has(sink))) {
    faults.push(
      "notifications.enabled is true without a sink; set notifications.webhook_url or notifications.eventgrid_topic_endpoint",
    );
  }
  return [...faults, ...clusterFaults(config, faulty)];
}

/** What the settings of the cluster lack of each other: peers have to be able to dial this node. */
function clusterFaults(config: Config, faulty: ReadonlySet<string>): readonly string[] {
  const { bytes } = config["replication.listen"];
  const join = config["replication.join"];
  if (config["replication.encrypt_key"] === undefined) {
    if (join.length === 0 || faulty.has("replication.encrypt_key")) return [];
    return ["replication.join needs replication.encrypt_key, the same on every node"];
  }
  if (config["replication.advertise"] !== undefined || faulty.has("replication.advertise")) return [];
  if (isWildcard(bytes)) {
    return ["replication.listen is a wildcard address, so that replication.advertise has to say what peers dial"];
  }
  const isElsewhere = join.some((peer) => {
    const address = ipFromText(peer.replace(/:\d+$/, "").replace(/^\[|\]$/g, ""));
    return address !== undefined && !isLoopbackAddress(address);
  });
  if (!isLoopbackAddress(bytes) || !isElsewhere) return [];
  return ["replication.listen is a loopback address, which the peers of replication.join cannot dial"];
}

/** 127.0.0.0/8 or ::1, in 4 or 16 bytes. */
function isLoopbackAddress(bytes: Uint8Array): boolean {
  return bytes.length === 4 ? bytes[0] === 127 : bytes.every((byte, index) => byte === (index === 15 ? 1 : 0));
}
