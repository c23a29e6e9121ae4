/** Whom a probe trusts, and what it shows of itself: contexts for TLS, made once for all probes that have the same. */
import { createHash } from "node:crypto";
import { createSecureContext, getCACertificates, type SecureContext, setDefaultCACertificates } from "node:tls";
import type { HttpConfig } from "../model/objects.ts";

export type TlsContexts = {
  /** Throws where the client certificate and its key, or the authority, cannot be used. */
  readonly contextFor: (config: HttpConfig) => SecureContext;
  /** For connections without such a context: token services. */
  readonly trustPlatform: () => void;
};

/** Each takes some 30 kB, and a third of a millisecond to make. */
const CONTEXTS_MAX = 1_000;

/** The certificates that Node comes with, those of the environment and those of the operating system. */
export function platformAuthorities(): readonly string[] {
  return [...new Set([...getCACertificates("default"), ...getCACertificates("system")])];
}

/** With the first use `authorities` become what this thread trusts in general: to read them takes a while. */
export function createTlsContexts(authorities: () => readonly string[]): TlsContexts {
  const contexts = new Map<string, SecureContext>();
  let isTrustSet = false;
  const trustPlatform = (): void => {
    if (!isTrustSet) setDefaultCACertificates([...authorities()]);
    isTrustSet = true;
  };
  return {
    trustPlatform,
    contextFor: ({ mtls, ca_pem }) => {
      trustPlatform();
      const key = digest([mtls?.cert_pem, mtls?.key_pem, ca_pem]);
      const known = contexts.get(key);
      const context = known ?? makeContext(mtls, ca_pem);
      // Back to the end of the map: what goes first is what nobody has used for the longest.
      contexts.delete(key);
      contexts.set(key, context);
      const [oldest] = contexts.keys();
      if (contexts.size > CONTEXTS_MAX && oldest !== undefined) contexts.delete(oldest);
      return context;
    },
  };
}

function makeContext(mtls: HttpConfig["mtls"], ca_pem: string | undefined): SecureContext {
  const context = createSecureContext({
    minVersion: "TLSv1.2",
    ...(mtls === undefined ? {} : { cert: mtls.cert_pem, key: mtls.key_pem }),
  });
  if (ca_pem !== undefined) addAuthority(context.context, ca_pem);
  return context;
}

/**
 * Beside the general ones, which the option `ca` would have to parse again: thirty times the time, and more than a
 * megabyte for each context. This is the function of the native context that Node makes of that option.
 */
function addAuthority(native: unknown, pem: string): void {
  if (typeof native !== "object" || native === null || !("addCACert" in native)) throw new Error("no addCACert");
  if (typeof native.addCACert !== "function") throw new Error("no addCACert");
  native.addCACert(pem);
}

function digest(parts: readonly (string | undefined)[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64");
}
