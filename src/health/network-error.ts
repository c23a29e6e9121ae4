/** What the network and TLS say, in the words that users read. */
import { errorCode, errorText } from "../base/errors.ts";
import type { ProbeError } from "./probe.ts";

export type Failure = { readonly error: ProbeError; readonly detail: string };

const BY_CODE: Readonly<Record<string, ProbeError>> = {
  ECONNREFUSED: "refused",
  ETIMEDOUT: "connect_timeout",
  ECONNRESET: "reset",
  EPIPE: "reset",
  ECONNABORTED: "reset",
  ERR_TLS_CERT_ALTNAME_INVALID: "tls_name",
  ERR_TLS_CERT_ALTNAME_FORMAT: "tls_name",
  CERT_HAS_EXPIRED: "tls_expired",
  CERT_NOT_YET_VALID: "tls_expired",
};

/** Of OpenSSL's verification (X509_V_ERR), as Node spells them. */
const UNTRUSTED = new Set([
  ...["DEPTH_ZERO_SELF_SIGNED_CERT", "SELF_SIGNED_CERT_IN_CHAIN", "UNABLE_TO_GET_ISSUER_CERT"],
  ...["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "CERT_UNTRUSTED", "CERT_REJECTED"],
  ...["CERT_REVOKED", "CERT_SIGNATURE_FAILURE", "CERT_CHAIN_TOO_LONG", "INVALID_CA", "INVALID_PURPOSE"],
  ...["PATH_LENGTH_EXCEEDED", "UNABLE_TO_DECRYPT_CERT_SIGNATURE", "UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY"],
]);

/** A server's alerts (RFC 8446 section 6.2) that can only be about the certificate which the probe showed, or did not. */
const OUR_CERTIFICATE =
  /alert (bad certificate|unsupported certificate|certificate (revoked|expired|unknown|required)|unknown ca|access denied)/i;

const DETAIL_MAX = 200;

/** What a failure is called. The detail may hold what the other side chose, and is made harmless. */
export function failureOf(thrown: unknown): Failure {
  const code = errorCode(thrown) ?? "";
  const text = errorText(thrown);
  const detail = plainText(reasonOf(text));
  const known = BY_CODE[code];
  if (known !== undefined) return { error: known, detail };
  if (UNTRUSTED.has(code)) return { error: "tls_untrusted", detail };
  if (OUR_CERTIFICATE.test(text.replaceAll("_", " "))) {
    return { error: "credentials", detail: "the server refuses the client certificate, or wants one" };
  }
  if (/^(ERR_SSL_|ERR_TLS_|ERR_OSSL_|EPROTO$|CERT_|CRL_)/.test(code)) return { error: "tls", detail };
  return { error: "unreachable", detail };
}

/** OpenSSL's reason out of the line of its error, which goes on about its own source. */
function reasonOf(text: string): string {
  return /\berror:[0-9A-F]{8}:[^:]*:[^:]*:([^:]+)/.exec(text)?.[1] ?? text;
}

/** One line of printable ASCII, cut. */
export function plainText(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, " ").slice(0, DETAIL_MAX);
}
