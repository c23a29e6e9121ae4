/**
 * Tokens of the machine's managed identity, from the cloud platform's instance metadata service: GET
 * /metadata/identity/oauth2/token with the header "Metadata: true", api-version 2018-02-01.
 */
import { boundedRequest } from "./bounded-request.ts";
import { codedError } from "./errors.ts";
import { createTokenCache, type Token } from "./token-cache.ts";

export type ManagedIdentity = {
  /** A token for `resource`, of the identity `clientId` where the machine has several. Rejects without a secret in the message. */
  readonly tokenFor: (resource: string, clientId?: string) => Promise<string>;
  /** It was refused; see TokenCache. */
  readonly drop: (resource: string, clientId?: string, leastAgeMs?: number) => void;
  /** Ends what is being fetched. */
  readonly close: () => void;
};

export type ManagedIdentityOptions = {
  /** Origin of the service, without a path. */
  readonly metadataUrl: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly timeoutMs?: number;
};

const TIMEOUT_MS = 5_000;
const ANSWER_BYTES_MAX = 65_536;

export function createManagedIdentity(options: ManagedIdentityOptions): ManagedIdentity {
  const { metadataUrl, now, timeoutMs = TIMEOUT_MS } = options;
  const cache = createTokenCache(now);
  const ended = new AbortController();
  const keyOf = (resource: string, clientId?: string) => JSON.stringify([resource, clientId]);
  const fetchToken = async (resource: string, clientId?: string): Promise<Token> => {
    const url = new URL("/metadata/identity/oauth2/token", metadataUrl);
    url.searchParams.set("api-version", "2018-02-01");
    url.searchParams.set("resource", resource);
    if (clientId !== undefined) url.searchParams.set("client_id", clientId);
    const { status, body } = await boundedRequest({
      method: "GET",
      url,
      headers: { Metadata: "true", Accept: "application/json" },
      timeoutMs,
      bytesMax: ANSWER_BYTES_MAX,
      signal: ended.signal,
    });
    if (status !== 200) throw codedError("EIDENTITY", `the metadata service answered ${status}`);
    const token = tokenOf(body, now());
    if (token === undefined) throw codedError("EIDENTITY", "the metadata service's answer has no usable token");
    return token;
  };
  return {
    tokenFor: (resource, clientId) => cache.get(keyOf(resource, clientId), () => fetchToken(resource, clientId)),
    drop: (resource, clientId, leastAgeMs) => cache.drop(keyOf(resource, clientId), leastAgeMs),
    close: () => ended.abort(),
  };
}

const LIFE_SECONDS_DEFAULT = 300;
const LIFE_SECONDS_MAX = 86_400;
/** Also of one that has expired already: each who needs it would fetch another. */
const LIFE_SECONDS_MIN = 5;

/**
 * The token of a service's JSON (RFC 6749 section 5.1, where a metadata service says `expires_on` in seconds since 1970
 * too). Undefined: there is none that a header could carry, or it is of another type than Bearer.
 */
export function tokenOf(json: string, nowMs: number): Token | undefined {
  const answer = parseObject(json);
  if (answer === undefined) return undefined;
  const { access_token: text, token_type, expires_in, expires_on } = answer;
  if (typeof text !== "string" || !/^[\x21-\x7e]+$/.test(text)) return undefined;
  if (token_type !== undefined && (typeof token_type !== "string" || token_type.toLowerCase() !== "bearer")) {
    return undefined;
  }
  // A metadata service keeps tokens itself, and may count `expires_in` from when it had this one.
  const lives = [secondsOf(expires_in), lifeUntil(secondsOf(expires_on), nowMs)].filter((life) => life !== undefined);
  const lifeSeconds = lives.length === 0 ? LIFE_SECONDS_DEFAULT : Math.min(...lives);
  return { text, expiresMs: nowMs + Math.min(Math.max(lifeSeconds, LIFE_SECONDS_MIN), LIFE_SECONDS_MAX) * 1_000 };
}

function parseObject(json: string): Partial<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null ? Object.fromEntries(Object.entries(value)) : undefined;
  } catch {
    return undefined;
  }
}

/** Services write seconds as numbers and as texts. */
function secondsOf(value: unknown): number | undefined {
  const seconds = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof seconds === "number" && Number.isFinite(seconds) ? seconds : undefined;
}

function lifeUntil(expiresSeconds: number | undefined, nowMs: number): number | undefined {
  return expiresSeconds === undefined ? undefined : expiresSeconds - nowMs / 1_000;
}
