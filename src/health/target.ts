/** From a value and its template to the probe that asks it, and to a text that tells this probe from all others. */
import { ipFromText } from "../base/ip.ts";
import { completeTemplate } from "../model/health-template.ts";
import type { HealthCheckTemplate, RecordType } from "../model/objects.ts";
import { canonicalText } from "../model/record-values.ts";
import type { ProbeSpec } from "./probe.ts";

/** Templates have it fixed. */
export const TEMPLATE_FAILURE_THRESHOLD = 3;

/** What a template says of the probes of all its values. */
export type ProbeSettings = {
  readonly type: RecordType;
  /** Undefined: each value brings its own. */
  readonly port: number | undefined;
  readonly spec: Omit<ProbeSpec, "key" | "slot" | "host" | "port">;
  /** All of `spec`, secrets included, in one spelling. */
  readonly text: string;
};

/** Settings of the template on a record of that type, with the defaults of what it leaves out. */
export function probeSettings(template: HealthCheckTemplate, type: RecordType): ProbeSettings {
  const complete = completeTemplate(template, type);
  const { protocol, path, http_config, port, interval_seconds = 0, timeout_seconds = 0 } = complete;
  // The complete template has the path in one place.
  const { path: _, ...http } = http_config ?? {};
  const spec = {
    protocol,
    intervalMs: interval_seconds * 1000,
    timeoutMs: timeout_seconds * 1000,
    failureThreshold: TEMPLATE_FAILURE_THRESHOLD,
    ...(path === undefined ? {} : { path }),
    ...(Object.keys(http).length === 0 ? {} : { http }),
  };
  return { type, port, spec, text: sortedJson(spec) };
}

export type ProbeTarget = {
  /** All that the probe does. */
  readonly text: string;
  readonly spec: Omit<ProbeSpec, "key" | "slot">;
};

/**
 * Undefined where nothing can be asked: an SRV value that says that there is no service (RFC 2782), or one without a port.
 */
export function probeTarget(
  { type, port: templatePort, spec, text }: ProbeSettings,
  value: string,
  valuePort: number | undefined,
): ProbeTarget | undefined {
  const host = hostOf(type, value);
  const port = templatePort ?? valuePort ?? 0;
  if (host === undefined || port === 0) return undefined;
  // A host is an address or ends in its dot, so the text tells every pair apart.
  return { text: `${host} ${port} ${text}`, spec: { ...spec, host, port } };
}

/** An address in canonical spelling, or an absolute host name in lower case. */
function hostOf(type: RecordType, value: string): string | undefined {
  if (type === "A" || type === "AAAA") return canonicalText(type, value);
  const name = value.toLowerCase();
  if (name === "" || name === ".") return undefined;
  if (ipFromText(name) !== undefined) return name;
  return name.endsWith(".") ? name : `${name}.`;
}

/** JSON whose objects have their keys in order, so that two spellings of one thing are one text. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).toSorted(([one], [other]) => (one < other ? -1 : 1)));
  });
}
