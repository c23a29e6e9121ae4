/** An example for every schema of the documentation: the schema's own, what fits the field's name, or the plainest value. */
import type { TSchema } from "typebox";

const TIME = "2026-01-31T12:00:00Z";

/** What a field of that name holds, wherever it is a string or a number. */
const BY_NAME: Readonly<Record<string, unknown>> = {
  id: "rec_abcdefghij2345672345",
  zone_id: "zon_abcdefghij2345672345",
  zoneId: "zon_abcdefghij2345672345",
  zone: "corp.example.",
  zone_name: "corp.example.",
  name: "www",
  fqdn: "www.corp.example.",
  value: "192.0.2.10",
  ttl: 300,
  default_ttl: 3600,
  mname: "ns1.corp.example.",
  rname: "hostmaster.corp.example.",
  subnet: "10.1.0.0/16",
  region: "eu-west",
  region_id: "eu-west",
  source: "manual",
  username: "operator",
  password: "a password of your own",
  secret: "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTEyMzQ=",
  comment: "moves in May",
  path: "/health",
  target: "192.0.2.10:443",
  issuer: "https://login.example",
  client_id: "signpost",
  endpoint: "https://collector.example/v1/metrics",
  dot_listen_addr: "0.0.0.0:853",
  doh_listen_addr: "0.0.0.0:443",
  next_cursor: null,
};

const BY_ITEM_OF: Readonly<Record<string, unknown>> = {
  allow_networks: "10.0.0.0/8",
  allow_unsigned_networks: "10.0.0.0/8",
  notify_targets: "192.0.2.53:53",
  managed_identity_hosts: "*.vault.example",
  upstreams: "192.0.2.53:53",
  failover_order: "192.0.2.10",
  region_preference: "eu-west",
  names: "www",
  ids: "rec_abcdefghij2345672345",
  zone_ids: "zon_abcdefghij2345672345",
};

/** `name` is the field's, "" for a whole body. */
export function exampleOf(name: string, schema: TSchema): unknown {
  const { examples, const: only, enum: words, anyOf, type, properties, items, minimum, format } = keywordsOf(schema);
  if (Array.isArray(examples) && examples.length > 0) return examples[0];
  if (only !== undefined) return only;
  if (Array.isArray(words)) return words[0];
  if (Object.hasOwn(BY_NAME, name) && type !== "object" && type !== "array") return BY_NAME[name];
  if (Array.isArray(anyOf)) return exampleOf(name, anyOf.find((each) => keywordsOf(each).type !== "null") ?? {});
  switch (type) {
    case "object":
      return Object.fromEntries(
        Object.entries(properties ?? {}).map(([field, each]) => [field, exampleOf(field, each)]),
      );
    case "array":
      return items === undefined
        ? []
        : [BY_ITEM_OF[name] ?? exampleOf(name === "items" ? "" : name.replace(/s$/, ""), items)];
    case "integer":
    case "number":
      return typeof minimum === "number" ? minimum : 0;
    case "boolean":
      return false;
    case "string":
      return format === "date-time" ? TIME : "text";
    default:
      return null;
  }
}

type Keywords = {
  readonly examples?: unknown;
  readonly const?: unknown;
  readonly enum?: unknown;
  readonly anyOf?: readonly TSchema[];
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly items?: TSchema;
  readonly minimum?: unknown;
  readonly format?: unknown;
};

function keywordsOf(schema: TSchema): Keywords {
  return schema;
}
