/** Cross-origin requests (the Fetch standard, section "CORS protocol") from the origins that the operator lists, and from no other. */

const METHODS = "GET, HEAD, POST, PUT, DELETE";
const REQUEST_HEADERS = "Authorization, Content-Type, If-Match, X-Request-Id, X-SVC-CSRF";
const RESPONSE_HEADERS = "ETag, Location, Retry-After, X-Request-Id";
const PREFLIGHT_SECONDS = "600";

export type CrossOrigin = {
  /** Headers that answer to this origin needs. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether this is a preflight of a listed origin, which is answered with 204 and the headers. */
  readonly isPreflight: boolean;
};

export function crossOrigin(
  allowedOrigins: readonly string[],
  method: string,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): CrossOrigin {
  if (allowedOrigins.length === 0) return { headers: {}, isPreflight: false };
  const { origin } = headers;
  // Caches must not give one origin's answer to another, also where this one is not listed.
  if (typeof origin !== "string" || !allowedOrigins.includes(origin)) {
    return { headers: { vary: "Origin" }, isPreflight: false };
  }
  const common = {
    vary: "Origin",
    "access-control-allow-origin": origin,
    "access-control-allow-credentials": "true",
    "access-control-expose-headers": RESPONSE_HEADERS,
    "cross-origin-resource-policy": "cross-origin",
  };
  if (method !== "OPTIONS" || headers["access-control-request-method"] === undefined) {
    return { headers: common, isPreflight: false };
  }
  const preflight = {
    "access-control-allow-methods": METHODS,
    "access-control-allow-headers": REQUEST_HEADERS,
    "access-control-max-age": PREFLIGHT_SECONDS,
  };
  return { headers: { ...common, ...preflight }, isPreflight: true };
}
