/** Tokens for client credentials (RFC 6749 section 4.4). */
import type { LookupFunction } from "node:net";
import { boundedRequest } from "../base/bounded-request.ts";
import { codedError } from "../base/errors.ts";
import { tokenOf } from "../base/managed-identity.ts";
import { createTokenCache, type Token } from "../base/token-cache.ts";
import type { HttpConfig } from "../model/objects.ts";
import { isLinkLocal, isLoopback } from "../model/secret-destinations.ts";

export type Oauth2Config = NonNullable<HttpConfig["oauth2"]>;

export type Oauth2Client = {
  /** Rejects without a secret in the message. */
  readonly tokenFor: (config: Oauth2Config) => Promise<string>;
  /** It was refused; see TokenCache. */
  readonly drop: (config: Oauth2Config, leastAgeMs: number) => void;
  readonly close: () => void;
};

/** Of one request. Whoever waits for the token waits as long as it likes. */
const TIMEOUT_MS = 10_000;
const ANSWER_BYTES_MAX = 65_536;

export function createOauth2Client(now: () => number, lookup: LookupFunction): Oauth2Client {
  const cache = createTokenCache(now);
  const ended = new AbortController();
  const ask = (url: URL, headers: Readonly<Record<string, string>>, fields: Readonly<Record<string, string>>) =>
    boundedRequest({
      method: "POST",
      url,
      headers: { "Content-Type": "application/x-www-form-urlencoded", Accept: "application/json", ...headers },
      body: new URLSearchParams(fields).toString(),
      timeoutMs: TIMEOUT_MS,
      bytesMax: ANSWER_BYTES_MAX,
      lookup,
      signal: ended.signal,
    });
  const fetchToken = async ({ token_url, client_id, client_secret, scope }: Oauth2Config): Promise<Token> => {
    const url = URL.parse(token_url);
    if (url === null || !isSafe(url)) throw codedError("EOAUTH2", "token_url is not a safe https URL");
    const fields = { grant_type: "client_credentials", ...(scope === undefined ? {} : { scope }) };
    // Every server has to take it there (section 2.3.1) ...
    let answer = await ask(url, { Authorization: basic(client_id, client_secret) }, fields);
    // ... and some take it in the body alone.
    if (answer.status === 400 || answer.status === 401)
      answer = await ask(url, {}, { ...fields, client_id, client_secret });
    if (answer.status !== 200) {
      throw codedError("EOAUTH2", `the token endpoint answered ${answer.status}${errorWord(answer.body)}`);
    }
    const token = tokenOf(answer.body, now());
    if (token === undefined) throw codedError("EOAUTH2", "the token endpoint's answer has no usable token");
    return token;
  };
  return {
    tokenFor: (config) => cache.get(keyOf(config), () => fetchToken(config)),
    drop: (config, leastAgeMs) => cache.drop(keyOf(config), leastAgeMs),
    close: () => ended.abort(),
  };
}

function keyOf({ token_url, client_id, client_secret, scope }: Oauth2Config): string {
  return JSON.stringify([token_url, client_id, client_secret, scope]);
}

function isSafe(url: URL): boolean {
  const isProtected = url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url));
  return isProtected && !isLinkLocal(url) && url.username === "" && url.password === "";
}

/** Both parts are form-encoded first (RFC 6749 section 2.3.1). */
function basic(id: string, secret: string): string {
  const encode = (text: string) => new URLSearchParams([["", text]]).toString().slice(1);
  return `Basic ${Buffer.from(`${encode(id)}:${encode(secret)}`).toString("base64")}`;
}

/** The codes of section 5.2; of the rest of the answer nothing is shown. */
const ERROR_WORDS =
  /"error"\s*:\s*"(invalid_request|invalid_client|invalid_grant|unauthorized_client|unsupported_grant_type|invalid_scope)"/;

function errorWord(body: string): string {
  const word = ERROR_WORDS.exec(body)?.[1];
  return word === undefined ? "" : `: ${word}`;
}
