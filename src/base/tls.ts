/** What every TLS server of a node accepts. */
import { constants } from "node:crypto";

/** Those of TLS 1.3, and of TLS 1.2 those with forward secrecy and authenticated encryption (RFC 9325 section 4.2). */
const CIPHERS = [
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "TLS_AES_128_GCM_SHA256",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
];

/** No renegotiation: it is work for the asking (TLS 1.3 has none). */
export const TLS = {
  minVersion: "TLSv1.2",
  ciphers: CIPHERS.join(":"),
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
} as const;

/** PEM of a certificate chain and of its key. */
export type Identity = { readonly cert: string; readonly key: string };
