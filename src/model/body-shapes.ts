/**
 * What every version of this product may take for granted of a body that another node made: which fields it has, of which types
 * and within which bounds. A later version may add fields, words and texts, which are for whoever reads them to judge; it gives
 * a known field no other type. So nothing that is stored makes a reader of it throw, spin or wait for ever.
 */
import { FAILURE_THRESHOLD_MAX, PROBE_INTERVAL_SECONDS_MAX, TTL_MAX, UINT16_MAX, WEIGHT_MAX } from "./limits.ts";
import type {
  AnswerBody,
  Bodies,
  HealthCheckTemplate,
  HttpConfig,
  Kind,
  LbPolicy,
  RecordValue,
  ScriptConfig,
  Soa,
  TsigGrant,
} from "./objects.ts";

type Fits = (value: unknown) => boolean;
/** An entry for every field of a type, those that may be missing too. */
type FieldsOf<Body> = { readonly [Field in keyof Body]-?: Fits };

/** Deeper bodies, and whatever is kept for later versions, are those of nobody: recursion must end. */
const DEPTH_MAX = 32;

const text: Fits = (value) => typeof value === "string";
const flag: Fits = (value) => typeof value === "boolean";
const from =
  (least: number, most: number): Fits =>
  (value) =>
    Number.isSafeInteger(value) && typeof value === "number" && value >= least && value <= most;
const maybe =
  (fits: Fits): Fits =>
  (value) =>
    value === undefined || fits(value);
const list =
  (fits: Fits): Fits =>
  (value) =>
    Array.isArray(value) && value.every(fits);
const map =
  (fits: Fits): Fits =>
  (value) =>
    isObject(value) && Object.values(value).every(fits);
const object = <Body>(fields: FieldsOf<Body>): Fits => {
  const entries = Object.entries<Fits>(fields);
  return (value) => isObject(value) && entries.every(([name, fits]) => fits(value[name]));
};

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const uint16 = from(0, UINT16_MAX);
const port = from(1, UINT16_MAX);
const count = from(0, Number.MAX_SAFE_INTEGER);
const ttl = from(0, TTL_MAX);
/** Never 0: whoever waits so long before doing it again would never stop. */
const seconds = from(1, PROBE_INTERVAL_SECONDS_MAX);

const lbPolicy = object<LbPolicy>({
  method: text,
  client_affinity: maybe(flag),
  affinity_ttl_seconds: maybe(from(1, TTL_MAX)),
  failover_order: maybe(list(text)),
  region_preference: maybe(list(text)),
  value_weights: maybe(map(from(0, WEIGHT_MAX))),
});

const httpConfig = object<HttpConfig>({
  path: maybe(text),
  host: maybe(text),
  expected_status: maybe(list(uint16)),
  headers: maybe(map(text)),
  oauth2: maybe(
    object<NonNullable<HttpConfig["oauth2"]>>({
      ...{ token_url: text, client_id: text, client_secret: text, scope: maybe(text) },
    }),
  ),
  mtls: maybe(object<NonNullable<HttpConfig["mtls"]>>({ cert_pem: text, key_pem: text })),
  managed_identity: maybe(
    object<NonNullable<HttpConfig["managed_identity"]>>({ resource: text, client_id: maybe(text) }),
  ),
  ca_pem: maybe(text),
});

const template = object<HealthCheckTemplate>({
  protocol: text,
  port: maybe(port),
  path: maybe(text),
  interval_seconds: maybe(seconds),
  timeout_seconds: maybe(seconds),
  http_config: maybe(httpConfig),
});

const recordValue = object<RecordValue>({
  value: text,
  region: maybe(text),
  priority: maybe(uint16),
  weight: maybe(uint16),
  port: maybe(uint16),
  tag: maybe(text),
});

const answerFields: FieldsOf<AnswerBody> = {
  id: text,
  name: text,
  type: text,
  ttl,
  // None where other nodes are to add theirs.
  values: list(recordValue),
  priority: maybe(uint16),
  weight: maybe(uint16),
  port: maybe(uint16),
  tag: maybe(text),
  lb_policy: maybe(lbPolicy),
  health_check_template: maybe(template),
  comment: maybe(text),
};

const SHAPES: { readonly [K in Kind]: Fits } = {
  zone: object<Bodies["zone"]>({
    id: text,
    name: text,
    default_ttl: ttl,
    soa: object<Soa>({ mname: text, rname: text, refresh: ttl, retry: ttl, expire: ttl, minimum: ttl }),
    deletion_lock: flag,
    lb_policy: maybe(lbPolicy),
  }),
  record: object<Bodies["record"]>({ ...answerFields, zone: text, protected: flag, auto_populate: flag }),
  override: object<Bodies["override"]>({ ...answerFields, enabled: flag, expires_at: maybe(text) }),
  user: object<Bodies["user"]>({
    id: text,
    username: text,
    role: text,
    enabled: flag,
    password_hash: maybe(text),
    idp_subject: maybe(text),
    session_epoch: maybe(text),
  }),
  session: object<Bodies["session"]>({
    id: text,
    user_id: text,
    generation: count,
    rotated_at: count,
    revoked: flag,
    epoch: maybe(text),
  }),
  "service-account": object<Bodies["service-account"]>({
    id: text,
    name: text,
    role: text,
    zone_ids: maybe(list(text)),
    comment: maybe(text),
    expires_at: maybe(text),
    revoked: flag,
    version: count,
    secret_hash: text,
    issuing_node: text,
  }),
  "tsig-key": object<Bodies["tsig-key"]>({
    id: text,
    name: text,
    algorithm: text,
    secret: text,
    grants: maybe(
      list(
        object<TsigGrant>({
          zone: text,
          names: maybe(list(text)),
          types: maybe(list(text)),
          transfer: maybe(flag),
          update: maybe(flag),
        }),
      ),
    ),
    management_view: flag,
  }),
  "subnet-mapping": object<Bodies["subnet-mapping"]>({ id: text, subnet: text, region_id: text, source: text }),
  // Of the settings each document judges its own.
  config: object<Bodies["config"]>({ name: text, settings: isObject }),
  healthcheck: object<Bodies["healthcheck"]>({
    id: text,
    name: text,
    protocol: text,
    target: maybe(text),
    interval_seconds: seconds,
    timeout_seconds: seconds,
    failure_threshold: from(1, FAILURE_THRESHOLD_MAX),
    http_config: maybe(httpConfig),
    script_config: maybe(
      object<ScriptConfig>({ command: text, args: maybe(list(text)), timeout_seconds: maybe(seconds) }),
    ),
    comment: maybe(text),
  }),
  forwarder: object<Bodies["forwarder"]>({ id: text, domain: text, upstreams: list(text), comment: maybe(text) }),
  "stub-zone": object<Bodies["stub-zone"]>({ id: text, domain: text, hints: list(text), comment: maybe(text) }),
  blocklist: object<Bodies["blocklist"]>({ name: text, count, shards: list(text) }),
  "blocklist-part": object<Bodies["blocklist-part"]>({ hash: text, names: text }),
  node: object<Bodies["node"]>({ id: text, region: text, address: text, version: text }),
};

/** Whether a body from elsewhere has what everybody who reads one of its kind relies on. */
export function isBodyOf(kind: Kind, body: unknown): boolean {
  return SHAPES[kind](body);
}

/** Whether whoever goes through a value from JSON by recursion comes to its end; `depth` is that of the values around it. */
export function isShallow(value: unknown, depth = 0): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (depth === DEPTH_MAX) return false;
  return Object.values(value).every((member) => isShallow(member, depth + 1));
}
