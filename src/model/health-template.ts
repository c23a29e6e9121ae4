/** Templates of health checks, which gate the values of their record. */
import { type Static, Type } from "typebox";
import { ipFromText } from "../base/ip.ts";
import {
  CREDENTIAL_MAX,
  HEADER_NAME_MAX,
  HEADER_VALUE_MAX,
  NAME_TEXT_MAX,
  PEM_MAX,
  PROBE_HEADERS_MAX,
  PROBE_INTERVAL_SECONDS_DEFAULT,
  PROBE_INTERVAL_SECONDS_MAX,
  PROBE_PATH_MAX,
  PROBE_STATUSES_MAX,
  PROBE_TIMEOUT_SECONDS_DEFAULT,
  UINT16_MAX,
  URL_MAX,
} from "./limits.ts";
import { isHostSpelling } from "./names.ts";
import type { HealthCheckTemplate, HttpConfig, RecordType } from "./objects.ts";
import type { FieldFault } from "./refusal.ts";
import { isLinkLocal, isLoopback } from "./secret-destinations.ts";
import { pointerToken } from "./shape.ts";

/** A path of an HTTP request: printable, without blanks, from a slash on. */
const PATH_PATTERN = "^/[!-~]*$";
const Seconds = Type.Integer({ minimum: 1, maximum: PROBE_INTERVAL_SECONDS_MAX });
const Credential = Type.String({ minLength: 1, maxLength: CREDENTIAL_MAX, pattern: "^[ -~]*$" });
const Pem = Type.String({ minLength: 1, maxLength: PEM_MAX });

export const HttpConfigShape = Type.Object(
  {
    path: Type.Optional(Type.String({ maxLength: PROBE_PATH_MAX, pattern: PATH_PATTERN })),
    host: Type.Optional(Type.String({ minLength: 1, maxLength: NAME_TEXT_MAX })),
    expected_status: Type.Optional(
      Type.Array(Type.Integer({ minimum: 100, maximum: 599 }), {
        minItems: 1,
        maxItems: PROBE_STATUSES_MAX,
        uniqueItems: true,
      }),
    ),
    headers: Type.Optional(
      Type.Record(Type.String(), Type.String({ maxLength: HEADER_VALUE_MAX }), { maxProperties: PROBE_HEADERS_MAX }),
    ),
    oauth2: Type.Optional(
      Type.Object(
        {
          token_url: Type.String({ minLength: 1, maxLength: URL_MAX }),
          client_id: Credential,
          client_secret: Credential,
          scope: Type.Optional(Credential),
        },
        { additionalProperties: false },
      ),
    ),
    mtls: Type.Optional(Type.Object({ cert_pem: Pem, key_pem: Pem }, { additionalProperties: false })),
    managed_identity: Type.Optional(
      Type.Object({ resource: Credential, client_id: Type.Optional(Credential) }, { additionalProperties: false }),
    ),
    ca_pem: Type.Optional(Pem),
  },
  { additionalProperties: false, description: "Values of headers, client_secret and key_pem read as ***" },
);

export const HealthCheckTemplateShape = Type.Object(
  {
    protocol: Type.Enum(["tcp", "http", "https"]),
    port: Type.Optional(Type.Integer({ minimum: 1, maximum: UINT16_MAX })),
    path: Type.Optional(Type.String({ maxLength: PROBE_PATH_MAX, pattern: PATH_PATTERN })),
    interval_seconds: Type.Optional(Seconds),
    timeout_seconds: Type.Optional(Seconds),
    http_config: Type.Optional(HttpConfigShape),
  },
  {
    additionalProperties: false,
    description: "The failure threshold is 3, recovery needs 2 successes",
    examples: [{ protocol: "https", port: 443, path: "/healthz", interval_seconds: 15, timeout_seconds: 5 }],
  },
);
export type HealthCheckTemplateShape = Static<typeof HealthCheckTemplateShape>;

const TEMPLATE_TYPES: readonly RecordType[] = ["A", "AAAA", "CNAME", "ALIAS", "SRV"];

/** What is wrong with a template on a record of that type. `pointer` leads to the template. */
export function templateFaults(
  template: HealthCheckTemplate,
  type: RecordType,
  pointer = "/health_check_template",
): FieldFault[] {
  if (!TEMPLATE_TYPES.includes(type)) {
    return [{ pointer, detail: `${type} records take no health check; ${TEMPLATE_TYPES.join(", ")} do` }];
  }
  const faults: FieldFault[] = [];
  const { protocol, port, path, timeout_seconds, http_config } = template;
  const interval = template.interval_seconds ?? PROBE_INTERVAL_SECONDS_DEFAULT;
  if (timeout_seconds !== undefined && timeout_seconds > interval) {
    faults.push({
      pointer: `${pointer}/timeout_seconds`,
      detail: `must not exceed interval_seconds, which is ${interval}`,
    });
  }
  // Each value of SRV has a port of its own.
  if (protocol === "tcp" && port === undefined && type !== "SRV") {
    faults.push({ pointer: `${pointer}/port`, detail: "is missing: tcp has no port of its own" });
  }
  if (protocol === "tcp" && path !== undefined) {
    faults.push({ pointer: `${pointer}/path`, detail: "tcp has no path" });
  }
  if (http_config === undefined) return faults;
  const at = `${pointer}/http_config`;
  if (protocol === "tcp") return [...faults, { pointer: at, detail: "tcp has no http_config" }];
  if (path !== undefined && http_config.path !== undefined && path !== http_config.path) {
    faults.push({ pointer: `${at}/path`, detail: "differs from the path of the template" });
  }
  return [...faults, ...httpFaults(http_config, protocol === "https", at)];
}

/** What is wrong with the settings of an HTTP or HTTPS probe. */
export function httpFaults(config: HttpConfig, isTls: boolean, pointer: string): FieldFault[] {
  const faults = headerFaults(config, `${pointer}/headers`);
  if (config.host !== undefined && ipFromText(config.host) === undefined && !isHostSpelling(config.host)) {
    faults.push({ pointer: `${pointer}/host`, detail: "must be a host name or an address" });
  }
  const { oauth2, managed_identity, mtls, ca_pem } = config;
  if (oauth2 !== undefined && managed_identity !== undefined) {
    faults.push({
      pointer: `${pointer}/managed_identity`,
      detail: "cannot stand beside oauth2: both make the Authorization header",
    });
  }
  if (oauth2 !== undefined && !isTokenUrl(oauth2.token_url)) {
    faults.push({
      pointer: `${pointer}/oauth2/token_url`,
      detail: "must be an https URL without user, password and fragment, not of a link-local address",
    });
  }
  for (const [field, value] of Object.entries({ mtls, ca_pem })) {
    if (value !== undefined && !isTls)
      faults.push({ pointer: `${pointer}/${field}`, detail: "needs the protocol https" });
  }
  const pems = { "mtls/cert_pem": mtls?.cert_pem, "mtls/key_pem": mtls?.key_pem, ca_pem };
  for (const [field, pem] of Object.entries(pems)) {
    const label = field === "mtls/key_pem" ? "PRIVATE KEY" : "CERTIFICATE";
    if (pem !== undefined && !isPem(pem, label)) {
      faults.push({ pointer: `${pointer}/${field}`, detail: `must be PEM with a ${label} in it` });
    }
  }
  return faults;
}

/** RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Headers that make the message itself, or that the probe sets. */
const RESERVED_HEADERS = new Set([
  ...["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive"],
  ...["proxy-connection", "expect", "http2-settings"],
]);

function headerFaults({ headers = {}, oauth2, managed_identity }: HttpConfig, pointer: string): FieldFault[] {
  const faults: FieldFault[] = [];
  const seen = new Set<string>();
  for (const [name, value] of Object.entries(headers)) {
    const at = `${pointer}/${pointerToken(name.slice(0, HEADER_NAME_MAX))}`;
    const lower = name.toLowerCase();
    if (!TOKEN.test(name) || name.length > HEADER_NAME_MAX)
      faults.push({ pointer: at, detail: "is not the name of a header" });
    else if (lower === "host") faults.push({ pointer: at, detail: "is set by http_config.host" });
    else if (RESERVED_HEADERS.has(lower))
      faults.push({ pointer: at, detail: "belongs to the connection and cannot be set" });
    else if (seen.has(lower)) faults.push({ pointer: at, detail: "is there twice, in another case" });
    else if (lower === "authorization" && (oauth2 ?? managed_identity) !== undefined) {
      faults.push({ pointer: at, detail: "cannot stand beside oauth2 or managed_identity, which set it" });
    }
    // A line break would begin another header.
    if (!/^[\t\x20-\x7e]*$/.test(value)) faults.push({ pointer: at, detail: "its value must be printable ASCII" });
    seen.add(lower);
  }
  return faults;
}

function isTokenUrl(text: string): boolean {
  if (!/^https?:\/\/[!-~]+$/.test(text) || !URL.canParse(text)) return false;
  const url = new URL(text);
  if (url.username !== "" || url.password !== "" || url.hash !== "" || isLinkLocal(url)) return false;
  return url.protocol === "https:" || isLoopback(url);
}

function isPem(text: string, label: string): boolean {
  if (!/^[\t\n\r\x20-\x7e]*$/.test(text)) return false;
  const kind = /-----BEGIN ([A-Z0-9 ]+)-----/.exec(text)?.[1] ?? "";
  return kind.endsWith(label) && text.includes(`-----END ${kind}-----`);
}

/** The template with what it leaves out: interval and timeout, and for HTTP the path and, where values have none, the port. */
export function completeTemplate(given: HealthCheckTemplate, type: RecordType): HealthCheckTemplate {
  const { protocol } = given;
  const interval_seconds = given.interval_seconds ?? PROBE_INTERVAL_SECONDS_DEFAULT;
  const timeout_seconds = given.timeout_seconds ?? Math.min(PROBE_TIMEOUT_SECONDS_DEFAULT, interval_seconds);
  if (protocol === "tcp") return { ...given, interval_seconds, timeout_seconds };
  const port = given.port ?? (type === "SRV" ? undefined : protocol === "https" ? 443 : 80);
  return {
    ...given,
    path: given.path ?? given.http_config?.path ?? "/",
    ...(port === undefined ? {} : { port }),
    interval_seconds,
    timeout_seconds,
  };
}
