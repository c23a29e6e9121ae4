/** What a probe does, worked out once for all of its runs: the request, the name that TLS proves, and what it carries. */
import { ipFromText, ipToText } from "../base/ip.ts";
import type { HttpConfig } from "../model/objects.ts";
import type { ProbePolicy, ProbeSpec } from "./probe.ts";

export type ProbePlan = {
  /** Where the host is one. */
  readonly address?: string;
  readonly http?: HttpPlan;
};

export type HttpPlan = {
  readonly isTls: boolean;
  /** The host that is asked for: in the certificate, and in the Host header. Without trailing dot. */
  readonly name: string;
  /** The whole request; `token` goes into its Authorization header. */
  readonly request: (token?: string) => string;
  readonly isExpected: (status: number) => boolean;
  readonly config: HttpConfig;
  /** The API lets in nothing else; a line break out of an older store would begin another header. */
  readonly isWritable: boolean;
};

export function planOf(spec: ProbeSpec): ProbePlan {
  const { host, protocol } = spec;
  const address = ipFromText(host) === undefined ? {} : { address: host };
  return protocol === "http" || protocol === "https" ? { ...address, http: httpPlan(spec) } : address;
}

function httpPlan({ host, port, protocol, path, http: config = {} }: ProbeSpec): HttpPlan {
  const isTls = protocol === "https";
  const name = foldHost(config.host ?? host);
  const { expected_status } = config;
  const target = path ?? config.path ?? "/";
  const before = `GET ${target} HTTP/1.1\r\nHost: ${authority(name, port, isTls)}\r\n`;
  const names = new Set(Object.keys(config.headers ?? {}).map((header) => header.toLowerCase()));
  const own = OWN_HEADERS.filter(([header]) => !names.has(header.toLowerCase()));
  const lines = [...own, ...Object.entries(config.headers ?? {})].map(([header, value]) => `${header}: ${value}\r\n`);
  const after = `${lines.join("")}Connection: close\r\n\r\n`;
  return {
    isTls,
    name,
    request: (token) => (token === undefined ? before + after : `${before}Authorization: Bearer ${token}\r\n${after}`),
    isExpected: expected_status === undefined ? isSuccess : (status) => expected_status.includes(status),
    config,
    isWritable: /^[!-~]*$/.test(target + name) && lines.every((line) => /^[\t\x20-\x7e]*\r\n$/.test(line)),
  };
}

const OWN_HEADERS: readonly (readonly [string, string])[] = [
  ["User-Agent", "signpost-probe"],
  ["Accept", "*/*"],
];

function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}

/** RFC 9110 section 7.2. */
function authority(name: string, port: number, isTls: boolean): string {
  const host = name.includes(":") ? `[${name}]` : name;
  return port === (isTls ? 443 : 80) ? host : `${host}:${port}`;
}

/** Lower case without trailing dot; an address in its one spelling. */
function foldHost(host: string): string {
  const address = ipFromText(host);
  return address === undefined ? host.toLowerCase().replace(/\.$/, "") : ipToText(address);
}

/** Why the policy forbids the probe; undefined: it does not. */
export function policyFault(spec: ProbeSpec, plan: HttpPlan, policy: ProbePolicy): string | undefined {
  const { isTls, name, config } = plan;
  const { headers = {}, oauth2, mtls, managed_identity, ca_pem } = config;
  const isAuthenticated =
    Object.keys(headers).length > 0 || oauth2 !== undefined || mtls !== undefined || managed_identity !== undefined;
  if (isAuthenticated && !isTls && !policy.allowInsecureAuthenticatedProbes) {
    return "credentials need https, or allow_insecure_authenticated_probes";
  }
  if (managed_identity === undefined) return undefined;
  const isListed = (host: string) => policy.managedIdentityHosts.some((entry) => coversHost(entry, host));
  if (!isListed(name)) return "the host is not in managed_identity_hosts";
  // TLS proves the name whatever address is dialled, but not where the one who wrote the probe says who may vouch for it.
  if (isTls && ca_pem !== undefined) return "a managed identity's token is not sent where ca_pem says who is trusted";
  if (!isTls && !isListed(foldHost(spec.host)))
    return "without TLS the probed value has to be in managed_identity_hosts";
  return undefined;
}

/** An entry is a host, or "*." and a name that all names below it are of. */
function coversHost(entry: string, host: string): boolean {
  if (!entry.startsWith("*.")) return foldHost(entry) === host;
  return ipFromText(host) === undefined && host.endsWith(foldHost(entry.slice(1)));
}
