/** What the shape of a document of settings cannot say: texts that mean addresses, names and URLs, and fields that belong together. */
import { cidrFromText } from "../base/ip.ts";
import type { ConfigName, ConfigSettings } from "./config-schemas.ts";
import { parseEndpoint } from "./endpoint.ts";
import { fullName } from "./names.ts";
import type { FieldFault } from "./refusal.ts";
import { isLinkLocal, isLoopback } from "./secret-destinations.ts";
import { pointerToken } from "./shape.ts";
import { upstreamFaults } from "./upstreams.ts";

type Rules = { readonly [Name in ConfigName]?: (settings: ConfigSettings<Name>) => readonly FieldFault[] };

const RULES: Rules = {
  axfr: (settings) => [
    ...networkFaults("/allow_networks", settings.allow_networks),
    ...settings.notify_targets.flatMap((target, index) => targetFaults(`/notify_targets/${index}`, target)),
    ...keyNameFaults(settings.notify_tsig_key_name),
  ],
  "dynamic-dns": (settings) => networkFaults("/allow_unsigned_networks", settings.allow_unsigned_networks),
  cache: ({ min_ttl_seconds, max_ttl_seconds }) =>
    min_ttl_seconds <= max_ttl_seconds
      ? []
      : [{ pointer: "/min_ttl_seconds", detail: `must not be above max_ttl_seconds, which is ${max_ttl_seconds}` }],
  recursion: (settings) => networkFaults("/allow_networks", settings.allow_networks),
  "health-probe-policy": ({ managed_identity_hosts }) =>
    managed_identity_hosts.flatMap((host, index) => hostFaults(`/managed_identity_hosts/${index}`, host)),
  transport: (settings) => [
    ...listenFaults("/dot_listen_addr", settings.dot_listen_addr),
    ...listenFaults("/doh_listen_addr", settings.doh_listen_addr),
    ...sameListenFaults(settings),
  ],
  otlp: (settings) => otlpFaults(settings),
  "default-forwarder": ({ enabled, upstreams }) => [
    ...upstreamFaults("/upstreams", upstreams),
    ...(enabled && upstreams.length === 0
      ? [{ pointer: "/upstreams", detail: "must name an upstream where the default forwarder is enabled" }]
      : []),
  ],
  hardening: (settings) => hardeningFaults(settings),
};

/** The faults of what would apply. */
export function configFaults<Name extends ConfigName>(
  name: Name,
  settings: ConfigSettings<Name>,
): readonly FieldFault[] {
  return RULES[name]?.(settings) ?? [];
}

function hardeningFaults(settings: ConfigSettings<"hardening">): readonly FieldFault[] {
  const { min_ttl_seconds: min, max_ttl_seconds: max, rebinding_exceptions } = settings;
  const ttlFaults =
    min === null || max === null || min <= max
      ? []
      : [{ pointer: "/min_ttl_seconds", detail: `must not be above max_ttl_seconds, which is ${max}` }];
  return [...domainListFaults("/rebinding_exceptions", rebinding_exceptions), ...ttlFaults];
}

function domainListFaults(pointer: string, names: readonly string[]): readonly FieldFault[] {
  const seen = new Map<string, number>();
  return names.flatMap((name, index) => {
    const outcome = fullName(name);
    const place = `${pointer}/${index}`;
    if (outcome.kind === "fault") return [{ pointer: place, detail: outcome.detail }];
    const first = seen.get(outcome.text);
    seen.set(outcome.text, first ?? index);
    return first === undefined ? [] : [{ pointer: place, detail: `is the same as entry ${first}` }];
  });
}

function networkFaults(pointer: string, networks: readonly string[]): readonly FieldFault[] {
  return networks.flatMap((text, index) => {
    const network = cidrFromText(text);
    const place = `${pointer}/${index}`;
    if (network === undefined)
      return [{ pointer: place, detail: "must be an address or a network such as 192.0.2.0/24" }];
    return network.hostBitsSet ? [{ pointer: place, detail: "has bits set behind its prefix" }] : [];
  });
}

function targetFaults(pointer: string, target: string): readonly FieldFault[] {
  const parsed = parseEndpoint(target);
  if (parsed !== undefined && parsed.port !== 0) return [];
  return [{ pointer, detail: "must be an address or a host name, with or without a port such as 192.0.2.1:53" }];
}

function keyNameFaults(name: string | null): readonly FieldFault[] {
  if (name === null) return [];
  const outcome = fullName(name);
  return outcome.kind === "name" ? [] : [{ pointer: "/notify_tsig_key_name", detail: outcome.detail }];
}

function hostFaults(pointer: string, host: string): readonly FieldFault[] {
  const parsed = parseEndpoint(host.startsWith("*.") ? host.slice(2) : host);
  const isName = parsed !== undefined && !parsed.isAddress && parsed.port === undefined;
  return isName ? [] : [{ pointer, detail: "must be a host name, or *. and one" }];
}

function listenFaults(pointer: string, text: string): readonly FieldFault[] {
  const parsed = parseEndpoint(text);
  const isListen = parsed?.isAddress === true && parsed.port !== undefined;
  return isListen ? [] : [{ pointer, detail: "must be an address with a port, such as 0.0.0.0:853 or [::]:853" }];
}

function sameListenFaults(settings: ConfigSettings<"transport">): readonly FieldFault[] {
  const isSame = settings.dot_listen_addr === settings.doh_listen_addr && !settings.dot_listen_addr.endsWith(":0");
  if (!isSame || !settings.dot_enabled || !settings.doh_enabled) return [];
  return [{ pointer: "/doh_listen_addr", detail: "is the address of DNS over TLS" }];
}

/** RFC 9110 section 5.6.2. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Made by the client that sends them. */
const OWN_HEADERS = new Set(["host", "content-length", "content-type", "transfer-encoding", "connection"]);

function otlpFaults({ enabled, endpoint, headers }: ConfigSettings<"otlp">): readonly FieldFault[] {
  const faults: FieldFault[] = [];
  if (enabled && endpoint === null) faults.push({ pointer: "/endpoint", detail: "is needed to enable the export" });
  const fault = endpoint === null ? undefined : collectorFault(endpoint, Object.keys(headers).length > 0);
  if (fault !== undefined) faults.push({ pointer: "/endpoint", detail: fault });
  for (const [name, value] of Object.entries(headers)) {
    const pointer = `/headers/${pointerToken(name)}`;
    if (!HEADER_NAME.test(name)) faults.push({ pointer, detail: "is no name of a header" });
    else if (OWN_HEADERS.has(name.toLowerCase())) faults.push({ pointer, detail: "is set by the export itself" });
    else if (!HEADER_VALUE.test(value))
      faults.push({ pointer, detail: "holds characters that a header must not hold" });
  }
  return faults;
}

function collectorFault(text: string, hasSecrets: boolean): string | undefined {
  const url = URL.parse(text);
  const isHttp = url?.protocol === "https:" || url?.protocol === "http:";
  if (url === null || !isHttp || url.username !== "" || url.password !== "" || url.hash !== "") {
    return "must be an http or https URL without credentials and fragment";
  }
  if (isLinkLocal(url)) return "must not be a link-local address";
  if (url.protocol === "http:" && hasSecrets && !isLoopback(url)) {
    return "must be an https URL where there are headers, as they are secrets; http is taken on a loopback address";
  }
  return undefined;
}
