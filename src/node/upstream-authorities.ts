/** Certificates of authorities that vouch for upstreams over TLS, besides those of the system. */
import { X509Certificate } from "node:crypto";
import { errorText, OperatorError } from "../base/errors.ts";
import { AUTHORITIES_BYTES_MAX } from "./limits.ts";
import { readRegularFile } from "./regular-file.ts";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The certificates of a file, in PEM form. Throws OperatorError where it has none, or one that is none. */
export function readAuthorities(path: string): string {
  try {
    const certificates = readRegularFile(path, AUTHORITIES_BYTES_MAX).toString("latin1").match(CERTIFICATE) ?? [];
    if (certificates.length === 0) throw new Error("there is no certificate in PEM form");
    for (const certificate of certificates) new X509Certificate(certificate);
    return certificates.join("\n");
  } catch (error) {
    throw new OperatorError(`forwarders.ca_file ${path}: ${errorText(error)}`);
  }
}
