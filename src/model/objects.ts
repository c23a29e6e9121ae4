/**
 * The kinds of objects that the store holds, their bodies and their natural keys. Bodies are spelled as the API spells
 * them (snake_case), so that no second vocabulary exists. Two nodes that create the same thing meet at its natural key.
 */

export const ROLES = ["readonly", "editor", "admin"] as const;
export type Role = (typeof ROLES)[number];

export const RECORD_TYPES = ["A", "AAAA", "CNAME", "MX", "NS", "PTR", "SRV", "TXT", "CAA", "ALIAS"] as const;
export type RecordType = (typeof RECORD_TYPES)[number];

export const LB_METHODS = ["round-robin", "failover", "latency", "region", "geo-failover", "weighted"] as const;
export type LbPolicy = {
  readonly method: (typeof LB_METHODS)[number];
  readonly client_affinity?: boolean;
  readonly affinity_ttl_seconds?: number;
  readonly failover_order?: readonly string[];
  readonly region_preference?: readonly string[];
  readonly value_weights?: Readonly<Record<string, number>>;
};

export type HttpConfig = {
  readonly path?: string;
  readonly host?: string;
  readonly expected_status?: readonly number[];
  /** Values are secrets. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly oauth2?: {
    readonly token_url: string;
    readonly client_id: string;
    readonly client_secret: string;
    readonly scope?: string;
  };
  readonly mtls?: { readonly cert_pem: string; readonly key_pem: string };
  readonly managed_identity?: { readonly resource: string; readonly client_id?: string };
  readonly ca_pem?: string;
};

/** A script that a runner runs in a sandbox; its exit status 0 is success. */
export type ScriptConfig = {
  readonly command: string;
  /** Read as *** in the audit log. */
  readonly args?: readonly string[];
  /** Instead of the check's own, for the run. */
  readonly timeout_seconds?: number;
};

export type HealthCheckTemplate = {
  readonly protocol: "tcp" | "http" | "https";
  readonly port?: number;
  readonly path?: string;
  readonly interval_seconds?: number;
  readonly timeout_seconds?: number;
  readonly http_config?: HttpConfig;
};

export type Soa = {
  readonly mname: string;
  readonly rname: string;
  readonly refresh: number;
  readonly retry: number;
  readonly expire: number;
  readonly minimum: number;
};

/** `name` is lower-case, absolute, with its trailing dot. */
export type ZoneBody = {
  readonly id: string;
  readonly name: string;
  readonly default_ttl: number;
  readonly soa: Soa;
  readonly deletion_lock: boolean;
  readonly lb_policy?: LbPolicy;
};

export type RecordValue = {
  readonly value: string;
  readonly region?: string;
  readonly priority?: number;
  readonly weight?: number;
  readonly port?: number;
  readonly tag?: string;
};

/** What a name answers with for one type: of records and overrides alike. */
export type AnswerBody = {
  readonly id: string;
  readonly name: string;
  readonly type: RecordType;
  /** Seconds. */
  readonly ttl: number;
  readonly values: readonly RecordValue[];
  readonly priority?: number;
  readonly weight?: number;
  readonly port?: number;
  readonly tag?: string;
  readonly lb_policy?: LbPolicy;
  readonly health_check_template?: HealthCheckTemplate;
  readonly comment?: string;
};

/** `zone` is the name of its zone; `name` is relative to it, lower-case, "@" at the apex. `ttl` 0: the zone's default. */
export type RecordBody = AnswerBody & {
  readonly zone: string;
  readonly protected: boolean;
  readonly auto_populate: boolean;
};

/** An answer for one full name whose zone is not hosted. `name` is absolute. */
export type OverrideBody = AnswerBody & {
  readonly enabled: boolean;
  /** RFC 3339. */
  readonly expires_at?: string;
};

export type UserBody = {
  readonly id: string;
  /** Lower-case. */
  readonly username: string;
  readonly role: Role;
  readonly enabled: boolean;
  /** argon2id in PHC text; absent for a user of the identity provider. */
  readonly password_hash?: string;
  /** Issuer and subject of the identity provider, for a user who signs in there. */
  readonly idp_subject?: string;
  /** Drawn anew whenever all sessions of the user end; a session holds the one that it began under. */
  readonly session_epoch?: string;
};

export type SessionBody = {
  readonly id: string;
  readonly user_id: string;
  /** Of the refresh token that holds; each is signed and names its own, so that none has to be stored. */
  readonly generation: number;
  /** When the generation began, milliseconds since 1970. */
  readonly rotated_at: number;
  readonly revoked: boolean;
  /** The user's `session_epoch` when it began. */
  readonly epoch?: string;
};

export type ServiceAccountBody = {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  readonly zone_ids?: readonly string[];
  readonly comment?: string;
  /** RFC 3339; absent: never. */
  readonly expires_at?: string;
  readonly revoked: boolean;
  readonly version: number;
  /** SHA-256 of the secret in hexadecimal. */
  readonly secret_hash: string;
  readonly issuing_node: string;
};

export type TsigGrant = {
  readonly zone: string;
  readonly names?: readonly string[];
  readonly types?: readonly RecordType[];
  readonly transfer?: boolean;
  readonly update?: boolean;
};

export type TsigKeyBody = {
  readonly id: string;
  /** Lower-case, absolute. */
  readonly name: string;
  readonly algorithm: string;
  /** Base64; a secret. */
  readonly secret: string;
  readonly grants?: readonly TsigGrant[];
  readonly management_view: boolean;
};

export type SubnetMappingBody = {
  readonly id: string;
  /** Canonical CIDR. */
  readonly subnet: string;
  readonly region_id: string;
  readonly source: string;
};

/** Watches a target and gates nothing. `target` is "host:port" in its one spelling; a script may do without. */
export type HealthCheckBody = {
  readonly id: string;
  readonly name: string;
  readonly protocol: "tcp" | "http" | "https" | "script";
  readonly target?: string;
  readonly interval_seconds: number;
  readonly timeout_seconds: number;
  readonly failure_threshold: number;
  readonly http_config?: HttpConfig;
  readonly script_config?: ScriptConfig;
  readonly comment?: string;
};

/** Names at and below `domain` are asked of `upstreams`, with recursion. */
export type ForwarderBody = {
  readonly id: string;
  /** Lower-case, absolute. */
  readonly domain: string;
  /** As they were written: see parseUpstream in dns/upstream.ts. */
  readonly upstreams: readonly string[];
  readonly comment?: string;
};

/** Names at and below `domain` are resolved from its name servers on, which `hints` lead to. */
export type StubZoneBody = {
  readonly id: string;
  /** Lower-case, absolute. */
  readonly domain: string;
  /** As they were written, of plain DNS. */
  readonly hints: readonly string[];
  readonly comment?: string;
};

/** The list of blocked names: which parts it has. There is one, called `BLOCKLIST_NAME`. */
export type BlocklistBody = {
  readonly name: string;
  readonly count: number;
  /** For each shard the hashes of its parts in order, one behind the other: see model/blocklist.ts. */
  readonly shards: readonly string[];
};

/** Names of one shard. It never changes: its key is the hash of its content. */
export type BlocklistPartBody = {
  readonly hash: string;
  /** Base64 of the deflated names. */
  readonly names: string;
};

/** One document of settings as configured; defaults are computed, never stored. */
export type ConfigBody = { readonly name: string; readonly settings: Readonly<Record<string, unknown>> };

/** A node as it says of itself. Nobody else writes it, but to remove it. */
export type NodeBody = {
  readonly id: string;
  /** "" where it has none. */
  readonly region: string;
  /** host:port that peers dial. */
  readonly address: string;
  readonly version: string;
};

/** Every kind with its body. A later kind is added here, to NATURAL_KEYS and to the store's table of key bytes. */
export type Bodies = {
  readonly zone: ZoneBody;
  readonly record: RecordBody;
  readonly override: OverrideBody;
  readonly user: UserBody;
  readonly session: SessionBody;
  readonly "service-account": ServiceAccountBody;
  readonly "tsig-key": TsigKeyBody;
  readonly "subnet-mapping": SubnetMappingBody;
  readonly config: ConfigBody;
  readonly healthcheck: HealthCheckBody;
  readonly blocklist: BlocklistBody;
  readonly "blocklist-part": BlocklistPartBody;
  readonly forwarder: ForwarderBody;
  readonly "stub-zone": StubZoneBody;
  readonly node: NodeBody;
};
export type Kind = keyof Bodies;

/** A natural key: the parts that make an object unique within its kind, already canonical. */
export type NaturalKey = readonly string[];

export const NATURAL_KEYS: { readonly [K in Kind]: (body: Bodies[K]) => NaturalKey } = {
  zone: (zone) => [zone.name],
  record: (record) => [record.zone, record.name, record.type],
  override: (override) => [override.name, override.type],
  user: (user) => [user.username],
  session: (session) => [session.id],
  "service-account": (account) => [account.name],
  "tsig-key": (key) => [key.name],
  "subnet-mapping": (mapping) => [mapping.subnet],
  config: (config) => [config.name],
  healthcheck: (check) => [check.name],
  blocklist: (list) => [list.name],
  "blocklist-part": (part) => [part.hash],
  forwarder: (forwarder) => [forwarder.domain],
  "stub-zone": (stub) => [stub.domain],
  node: (node) => [node.id],
};

/** Ids are the prefix, "_" and 20 characters of base32 (100 random bits). */
export const ID_PREFIXES = {
  zone: "zon",
  record: "rec",
  override: "ovr",
  user: "usr",
  session: "ses",
  "service-account": "sva",
  "tsig-key": "tsk",
  "subnet-mapping": "map",
  healthcheck: "chk",
  forwarder: "fwd",
  "stub-zone": "stb",
} as const satisfies Partial<Record<Kind, string>>;
