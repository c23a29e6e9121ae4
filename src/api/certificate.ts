/**
 * The certificate of the listener: the operator's files, taken anew when they change, or one made here and kept in the
 * data directory, so that a client that has pinned it finds it again after a restart.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import { errorText, OperatorError } from "../base/errors.ts";
import { ipFromText } from "../base/ip.ts";
import type { Log } from "../base/log.ts";
import { readableFault } from "../base/private-path.ts";
import type { Identity } from "../base/tls.ts";
import { CERTIFICATE_CHECK_MS, CERTIFICATE_FILE_BYTES_MAX, SELF_MADE_DAYS, SELF_MADE_RENEW_DAYS } from "./limits.ts";
import { makeSelfSigned } from "./self-signed.ts";

export type CertificateSource =
  | { readonly kind: "files"; readonly certFile: string; readonly keyFile: string }
  | { readonly kind: "self-made"; readonly directory: string; readonly names: readonly string[] };

const DAY_MS = 86_400_000;
const CERT_NAME = "api-certificate.pem";
const KEY_NAME = "api-key.pem";

/**
 * The certificate and key to begin with. Throws OperatorError where configured files cannot be used, and where others could
 * have read the self-made key: clients may have pinned its certificate, so that the operator must know.
 */
export function loadIdentity(source: CertificateSource, nowMs: number): Identity {
  if (source.kind === "files") return readIdentity(source.certFile, source.keyFile);
  const { certFile, keyFile } = selfMadeFiles(source.directory);
  requirePrivateKey(keyFile);
  const kept = keptIdentity(certFile, keyFile);
  if (kept !== undefined && isFit(kept, source.names, nowMs)) return kept;
  // Clocks of clients may be a little behind.
  const made = makeSelfSigned(source.names, nowMs - DAY_MS, nowMs + SELF_MADE_DAYS * DAY_MS);
  mkdirSync(source.directory, { recursive: true, mode: 0o700 });
  writePrivately(keyFile, made.key);
  writePrivately(certFile, made.cert);
  return made;
}

/** Where the self-made certificate and its key lie. */
export function selfMadeFiles(directory: string): { readonly certFile: string; readonly keyFile: string } {
  return { certFile: join(directory, CERT_NAME), keyFile: join(directory, KEY_NAME) };
}

function readIdentity(certFile: string, keyFile: string): Identity {
  try {
    const identity = { cert: readText(certFile), key: readText(keyFile) };
    createSecureContext(identity);
    const certificate = new X509Certificate(identity.cert);
    if (!certificate.checkPrivateKey(createPrivateKey(identity.key)))
      throw new Error("the key is not that of the certificate");
    return identity;
  } catch (error) {
    throw new OperatorError(`cannot use the certificate ${certFile} with the key ${keyFile}: ${errorText(error)}`);
  }
}

function readText(path: string): string {
  const { size } = statSync(path);
  if (size > CERTIFICATE_FILE_BYTES_MAX) throw new Error(`${path} is larger than ${CERTIFICATE_FILE_BYTES_MAX} bytes`);
  return readFileSync(path, "utf8");
}

function requirePrivateKey(keyFile: string): void {
  const stat = statSync(keyFile, { throwIfNoEntry: false });
  const fault = stat === undefined ? undefined : readableFault(keyFile, stat);
  if (fault !== undefined) throw new OperatorError(`cannot use the key ${keyFile}: ${fault}`);
}

/** What was made before; what cannot be read or used is made again. */
function keptIdentity(certFile: string, keyFile: string): Identity | undefined {
  try {
    return readIdentity(certFile, keyFile);
  } catch {
    return undefined;
  }
}

function isFit(identity: Identity, names: readonly string[], nowMs: number): boolean {
  const certificate = new X509Certificate(identity.cert);
  if (certificate.validToDate.getTime() - nowMs < SELF_MADE_RENEW_DAYS * DAY_MS) return false;
  return names.every((name) =>
    ipFromText(name) === undefined ? certificate.checkHost(name) : certificate.checkIP(name),
  );
}

/** The names that a self-made certificate holds: this machine's, and the address that it listens on. */
export function ownNames(listenHost: string): readonly string[] {
  const names = ["localhost", "127.0.0.1", "::1"];
  // A host name that is no DNS name cannot stand in a certificate.
  if (/^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,251}[a-zA-Z0-9])?$/.test(hostname())) names.push(hostname().toLowerCase());
  const isWildcard = listenHost === "0.0.0.0" || listenHost === "::";
  if (ipFromText(listenHost) !== undefined && !isWildcard) names.push(listenHost);
  return [...new Set(names)];
}

/** A reader finds the old file or the new one, and nobody else may read either. */
function writePrivately(path: string, text: string): void {
  const temporary = `${path}.new`;
  // A file that was there would keep its mode and its readers, a link would lead elsewhere.
  rmSync(temporary, { force: true });
  writeFileSync(temporary, text, { mode: 0o600, flag: "wx" });
  renameSync(temporary, path);
}

export type CertificateWatch = {
  /** Looks at once: what is new is in use then, or has been refused with a line in the log. */
  readonly reload: () => void;
  readonly stop: () => void;
};

/**
 * Gives `use` every later certificate: changed files, or a self-made one that is renewed before its end. Files are looked
 * at rather than watched: that hears of symbolic links that are turned, as container platforms do it, and of any file
 * system. A pair that cannot be used changes nothing. `name` says in the log whose certificate it is.
 */
export function watchIdentity(
  source: CertificateSource,
  first: Identity | undefined,
  use: (identity: Identity) => void,
  surroundings: {
    readonly now: () => number;
    readonly log: Log;
    readonly checkMs?: number;
    readonly name?: string;
  },
): CertificateWatch {
  const { now, log, name = "api" } = surroundings;
  let current = first;
  let lastFault = "";
  const reload = (): void => {
    try {
      const next = loadIdentity(source, now());
      lastFault = "";
      if (next.cert === current?.cert && next.key === current.key) return;
      use(next);
      const how = current === undefined ? "taken" : "taken anew";
      current = next;
      log("info", `${name}: the certificate was ${how}`, { valid_to: new X509Certificate(next.cert).validTo });
    } catch (error) {
      const fault = errorText(error);
      if (fault !== lastFault)
        log(
          "error",
          `${name}: ${current === undefined ? "waits for a certificate" : "the certificate in use stays"}: ${fault}`,
        );
      lastFault = fault;
    }
  };
  const timer = setInterval(reload, surroundings.checkMs ?? CERTIFICATE_CHECK_MS);
  timer.unref();
  return { reload, stop: () => clearInterval(timer) };
}
