/**
 * The conversation with an OpenID Connect provider: discovery (cached), the address to send the browser to, and the
 * exchange of the code that it comes back with (RFC 6749, RFC 7636, OpenID Connect Core 1.0). Every request has a time
 * limit, every answer a size limit, and none is followed elsewhere.
 */
import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  type CustomFetch,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  None,
  ResponseBodyError,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from "openid-client";
import { errorText } from "../base/errors.ts";
import { type Claims, claimAt, type IdpEffective, providerUrl, safeUrl } from "../model/idp.ts";
import { IDP_ANSWER_BYTES_MAX } from "../model/limits.ts";

/** What a sign-in needs of the settings; whole, because settings that are enabled have been checked. */
export type ProviderSettings = IdpEffective & {
  readonly issuer: string;
  readonly client_id: string;
  readonly redirect_uri: string;
};

/** What ties the answer of the provider to the browser that asked; it stays sealed in that browser's cookie. */
export type Attempt = { readonly state: string; readonly nonce: string; readonly verifier: string };

export type CodeOutcome =
  | { readonly kind: "claims"; readonly issuer: string; readonly claims: Claims }
  /** The provider, or the person there, said no; the reason is one of the codes of RFC 6749 section 4.1.2.1. */
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string };

export type Provider = {
  /** Where to send the browser. Rejects where the provider cannot be reached, or is not what its address says. */
  readonly begin: (settings: ProviderSettings) => Promise<{ readonly url: string; readonly attempt: Attempt }>;
  /** What the parameters that the browser came back with are worth. */
  readonly finish: (settings: ProviderSettings, attempt: Attempt, query: URLSearchParams) => Promise<CodeOutcome>;
};

/** Metadata are read anew after so long; the provider's signing keys the library looks after. */
const DISCOVERY_MS = 3_600_000;

export function createProvider(now: () => number, timeoutSeconds: number): Provider {
  let known:
    | { readonly settings: string; readonly untilMs: number; readonly found: Promise<Configuration> }
    | undefined;
  const configurationOf = (settings: ProviderSettings): Promise<Configuration> => {
    const { issuer, client_id, client_secret } = settings;
    const text = JSON.stringify([issuer, client_id, client_secret]);
    if (known?.settings === text && now() < known.untilMs) return known.found;
    const found = discover(settings, timeoutSeconds);
    const entry = { settings: text, untilMs: now() + DISCOVERY_MS, found };
    known = entry;
    // A failure is not kept: the next sign-in asks again.
    found.catch(() => {
      if (known === entry) known = undefined;
    });
    return found;
  };
  return {
    begin: async (settings) => begin(settings, await configurationOf(settings)),
    finish: async (settings, attempt, query) => {
      try {
        return await finish(settings, await configurationOf(settings), attempt, query);
      } catch (error) {
        return outcomeOfError(error);
      }
    },
  };
}

function discover({ issuer, client_id, client_secret }: ProviderSettings, timeout: number): Promise<Configuration> {
  const server = providerUrl(issuer);
  if (server === undefined) return Promise.reject(new Error("the issuer is not an https URL, or is link-local"));
  const isPlain = server.protocol === "http:";
  return discovery(server, client_id, undefined, clientAuth(client_secret), {
    timeout,
    execute: [enableNonRepudiationChecks, ...(isPlain ? [allowInsecureRequests] : [])],
    [customFetch]: boundedFetch,
  });
}

/** The secret goes in the body where the provider says that it takes it there, else in a header, which every one takes. */
function clientAuth(secret: string | undefined): ClientAuth {
  if (secret === undefined) return None();
  const inBody = ClientSecretPost(secret);
  const inHeader = ClientSecretBasic(secret);
  return (server, client, body, headers) => {
    const takesBody = server.token_endpoint_auth_methods_supported?.includes("client_secret_post") === true;
    return (takesBody ? inBody : inHeader)(server, client, body, headers);
  };
}

const boundedFetch: CustomFetch = async (address, options) => {
  // The addresses come out of the provider's metadata.
  if (providerUrl(address) === undefined) {
    throw new Error("the provider names an address that is not https, or is link-local");
  }
  const { method, headers, body, signal } = options;
  const response = await fetch(address, {
    method,
    headers,
    redirect: "manual",
    ...(body === undefined || body === null ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
  });
  const bytes = await boundedBytes(response);
  const isEmpty = [101, 204, 205, 304].includes(response.status);
  return new Response(isEmpty ? null : bytes, { status: response.status, headers: response.headers });
};

async function boundedBytes(response: Response): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > IDP_ANSWER_BYTES_MAX) throw new Error("the provider's answer is too large");
    chunks.push(chunk);
  }
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}

async function begin(
  settings: ProviderSettings,
  configuration: Configuration,
): Promise<{ readonly url: string; readonly attempt: Attempt }> {
  const attempt = { state: randomState(), nonce: randomNonce(), verifier: randomPKCECodeVerifier() };
  const url = buildAuthorizationUrl(configuration, {
    redirect_uri: settings.redirect_uri,
    scope: settings.scopes.join(" "),
    state: attempt.state,
    nonce: attempt.nonce,
    code_challenge: await calculatePKCECodeChallenge(attempt.verifier),
    code_challenge_method: "S256",
  });
  if (safeUrl(url.href) === undefined) throw new Error("the provider names an address that is not https");
  return { url: url.href, attempt };
}

async function finish(
  settings: ProviderSettings,
  configuration: Configuration,
  attempt: Attempt,
  query: URLSearchParams,
): Promise<CodeOutcome> {
  const address = new URL(settings.redirect_uri);
  address.search = query.toString();
  const tokens = await authorizationCodeGrant(configuration, address, {
    expectedState: attempt.state,
    expectedNonce: attempt.nonce,
    pkceCodeVerifier: attempt.verifier,
    idTokenExpected: true,
  });
  const claims: Claims = { ...tokens.claims() };
  const { issuer, userinfo_endpoint } = configuration.serverMetadata();
  const { sub } = claims;
  if (typeof sub !== "string") return { kind: "failed", reason: "the provider's ID token has no subject" };
  // Many providers put few claims into the ID token of this flow (OpenID Connect Core 1.0 section 5.4).
  if (userinfo_endpoint === undefined || isEnough(settings, claims)) return { kind: "claims", issuer, claims };
  const more = await fetchUserInfo(configuration, tokens.access_token, sub);
  return { kind: "claims", issuer, claims: { ...more, ...claims } };
}

function isEnough(settings: IdpEffective, claims: Claims): boolean {
  const hasDomain = settings.allowed_domains.length === 0 || claims.email_verified !== undefined;
  return hasDomain && claims.preferred_username !== undefined && claimAt(claims, settings.role_claim) !== undefined;
}

function outcomeOfError(error: unknown): CodeOutcome {
  if (error instanceof AuthorizationResponseError) return { kind: "refused", reason: codeWord(error.error) };
  if (error instanceof ResponseBodyError && error.error === "invalid_grant") {
    return { kind: "refused", reason: "invalid_grant" };
  }
  if (error instanceof ResponseBodyError)
    return { kind: "failed", reason: `the provider answered ${codeWord(error.error)}` };
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${errorText(error.cause)}` : "";
  return { kind: "failed", reason: `${errorText(error)}${cause}` };
}

/** The provider's word for it, where it is one: it goes into answers, log and audit. */
function codeWord(text: string): string {
  return /^[a-z_]{1,64}$/.test(text) ? text : "an unknown error";
}
